"""Static figures with matplotlib: one function for each kind of record.

With a record alone, such as ``samples(result)``, each function returns a figure with a title, a
source and a text alternative, all computed from the record. Options replace them: ``title``,
``alt``, ``ax_size`` (width and height in inches), and ``source`` for numbers that do not say where
they come from. With axes as second argument it draws on these and returns them.
"""

from gpulab.views.plots._basic import compare_methods, samples
from gpulab.views.plots._crossover import crossover
from gpulab.views.plots._draw import draw
from gpulab.views.plots._frames import bars, line, scatter
from gpulab.views.plots._ladder import ladder
from gpulab.views.plots._queue import between_two_events, host_and_gpu
from gpulab.views.plots._readings import host_times, reading_and_work, readings_in_order
from gpulab.views.plots._roofline import gaps, roofline
from gpulab.views.plots._side_by_side import side_by_side
from gpulab.views.plots._sweep import sweep
from gpulab.views.plots._timeline import timeline
from gpulab.views.plots._times import call_times, scaling

__all__ = [
    "bars",
    "between_two_events",
    "call_times",
    "compare_methods",
    "crossover",
    "draw",
    "gaps",
    "host_and_gpu",
    "host_times",
    "ladder",
    "line",
    "reading_and_work",
    "readings_in_order",
    "roofline",
    "samples",
    "scaling",
    "scatter",
    "side_by_side",
    "sweep",
    "timeline",
]
