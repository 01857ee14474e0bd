from ._bound_programs import program as program
from ._monitor_figures import monitor_panels as monitor_panels
from ._monitor_figures import util_and_power as util_and_power
from ._monitors import monitors as monitors
from ._recorded_trace import h200_trace as h200_trace
from ._recorded_trace import save_h200_trace as save_h200_trace
