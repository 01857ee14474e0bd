"""Exercises and claims of lesson 01: a stopwatch without a wait."""
