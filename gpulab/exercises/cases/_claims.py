"""The table of the claims of all cases, one for each case."""

from gpulab.exercises.cases._exercises import CASES

CLAIMS = tuple(each for case in CASES for each in case.CLAIMS)
