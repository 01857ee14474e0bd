"""Exercises and claims of lesson 03: events."""
