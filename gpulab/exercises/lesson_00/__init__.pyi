from ._exercises import EXERCISES as EXERCISES
