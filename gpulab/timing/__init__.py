"""Time GPU work: the methods, and ``measure``, ``compare`` and ``ladder`` on top of them."""

from gpulab.timing._cache_flush import FLUSHES, flusher, forget_flushes
from gpulab.timing._compare import Comparison, compare, versus
from gpulab.timing._cpu import threads, walls
from gpulab.timing._cuda_graph import Replayed, graph
from gpulab.timing._event_pairs import elapsed_s, new_event, new_pairs
from gpulab.timing._findings import CHECKS, EVENT_RESOLUTION_S, Facts, examine
from gpulab.timing._isolation import left_as_found, put_back_later, watched
from gpulab.timing._ladder import N_RUNGS, Ladder, Rung, ladder, run_ladder
from gpulab.timing._measure import measure
from gpulab.timing._methods import (
    METHODS,
    Method,
    TimingFunction,
    events,
    find_method,
    naive,
    synchronized,
)
from gpulab.timing._options import FLOORS
from gpulab.timing._profiler import Referee, profiler, profiler_span
from gpulab.timing._saturated import Saturated, saturated
from gpulab.timing._warmup import WarmUp, warm_up
from gpulab.timing.calibration import (
    FLOOR_METHODS,
    Floor,
    can_record,
    device_floor,
    floor,
    forget_floors,
    record_calls,
    work_floor,
)

__all__ = [
    "CHECKS",
    "EVENT_RESOLUTION_S",
    "FLOORS",
    "FLOOR_METHODS",
    "FLUSHES",
    "METHODS",
    "N_RUNGS",
    "Comparison",
    "Facts",
    "Floor",
    "Ladder",
    "Method",
    "Referee",
    "Replayed",
    "Rung",
    "Saturated",
    "TimingFunction",
    "WarmUp",
    "can_record",
    "compare",
    "device_floor",
    "elapsed_s",
    "events",
    "examine",
    "find_method",
    "floor",
    "flusher",
    "forget_floors",
    "forget_flushes",
    "graph",
    "ladder",
    "left_as_found",
    "measure",
    "naive",
    "new_event",
    "new_pairs",
    "profiler",
    "profiler_span",
    "put_back_later",
    "record_calls",
    "run_ladder",
    "saturated",
    "synchronized",
    "threads",
    "versus",
    "walls",
    "warm_up",
    "watched",
    "work_floor",
]
