from ._exercises import EXERCISES as EXERCISES
from ._figures import staircase as staircase
