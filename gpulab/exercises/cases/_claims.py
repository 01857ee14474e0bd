"""The table of the claims of all cases, one for each case."""

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

_CASES = (
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
CLAIMS = tuple(each for case in _CASES for each in case.CLAIMS)
