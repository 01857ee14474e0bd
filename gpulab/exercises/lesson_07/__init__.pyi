from ._exercises import EXERCISES as EXERCISES
from ._gap_programs import program as program
