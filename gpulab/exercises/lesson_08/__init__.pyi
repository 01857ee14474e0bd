from . import pipelines as pipelines
from ._figures import draw_overlap as draw_overlap
from ._host import host_times as host_times
from ._host import how_they_ran as how_they_ran
from ._host import run_the_puzzle as run_the_puzzle
from ._host import share_of_serial as share_of_serial
from ._late_error import line_that_raises as line_that_raises
from ._memory import draw_reuse as draw_reuse
