"""Change right answers to exercises in one place, and compare the verdicts with a reference."""
