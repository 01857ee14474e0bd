"""Exercises and claims of lesson 00: where a number comes from."""
