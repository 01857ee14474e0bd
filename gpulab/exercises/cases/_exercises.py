"""The table of the exercises of all cases, two for each case."""

from importlib import import_module

CASES = tuple(import_module(f"{__package__}._case_{number:02}") for number in range(1, 11))
EXERCISES = tuple(each for case in CASES for each in case.EXERCISES)
