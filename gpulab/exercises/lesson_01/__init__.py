"""Lesson 01, a stopwatch without a wait: its exercises."""
