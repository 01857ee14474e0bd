from ._exercises import EXERCISES as EXERCISES
from ._slow_programs import slow_program as slow_program
