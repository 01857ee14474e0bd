from ._break_even import n_needed as n_needed
from ._chain import operations_needed as operations_needed
from ._figures import causes as causes
from ._figures import draw_crossings as draw_crossings
from ._figures import short as short
from ._sides import draw_sides as draw_sides
from ._sketch import MATMUL_TIMES as MATMUL_TIMES
