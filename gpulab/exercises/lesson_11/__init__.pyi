from ._bound_programs import program as program
from ._recorded_trace import h200_trace as h200_trace
