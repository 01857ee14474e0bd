from ._break_even import n_needed as n_needed
from ._exercises import EXERCISES as EXERCISES
from ._figures import crossings as crossings
from ._figures import crossings_of as crossings_of
from ._figures import nearest as nearest
from ._figures import short as short
