"""Answers to all exercises, and what the pages say of the lessons."""
