"""Lesson 00, where a number comes from: its exercises."""
