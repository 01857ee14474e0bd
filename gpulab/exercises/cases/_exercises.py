"""The table of the exercises of all cases, two for each case."""

from gpulab.exercises.cases import (
    _case_01,
    _case_02,
    _case_03,
    _case_04,
    _case_05,
    _case_06,
    _case_07,
    _case_08,
    _case_09,
    _case_10,
)

CASES = (
    _case_01,
    _case_02,
    _case_03,
    _case_04,
    _case_05,
    _case_06,
    _case_07,
    _case_08,
    _case_09,
    _case_10,
)
EXERCISES = tuple(each for case in CASES for each in case.EXERCISES)
