"""Change the code in one place at a time, and check that its tests fail."""
