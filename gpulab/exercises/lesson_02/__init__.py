"""Exercises and claims of lesson 02: where to wait for the GPU."""
