from ._sketch import TEN_CALLS as TEN_CALLS
from .figures import draw_first_uses as draw_first_uses
from .figures import draw_loops as draw_loops
from .figures import draw_runs as draw_runs
from .first_use import in_a_new_process as in_a_new_process
