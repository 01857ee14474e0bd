"""Lesson 02, where to wait: its exercises and its claims."""
