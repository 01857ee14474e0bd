"""Lesson 03, events: its exercises and its claims."""
