from ._exercises import EXERCISES as EXERCISES
from ._figures import asked_for as asked_for
from ._figures import over_time as over_time
