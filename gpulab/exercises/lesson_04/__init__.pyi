from . import figures as figures
from . import first_use as first_use
from . import traces as traces
from ._exercises import EXERCISES as EXERCISES
from .first_use import in_a_new_process as in_a_new_process
