"""Time GPU work: the methods, ``measure``, ``compare`` and ``ladder``, and benchmark cards."""

from gpulab.timing._benchmarks import BenchmarkResult, Benchmarks
from gpulab.timing._cache_flush import FLUSHES, flusher
from gpulab.timing._compare import Comparison, compare, measure_in_turns
from gpulab.timing._cpu import cpu_threads, take_cpu_samples
from gpulab.timing._event_pairs import elapsed_s, new_pairs
from gpulab.timing._findings import examine_samples
from gpulab.timing._isolation import left_as_found, restore_settings_at_exit
from gpulab.timing._ladder import N_RUNGS, Ladder, Rung, ladder, run_ladder
from gpulab.timing._measure import measure
from gpulab.timing._methods import METHODS, find_method, take_samples
from gpulab.timing._options import DEFAULTS, FLOORS, MeasurementOptions, amount_of
from gpulab.timing._samplers import Sampler
from gpulab.timing._statement import amounts_in, run_setup, work_of
from gpulab.timing.calibration import (
    Floor,
    floor,
)

__all__ = [
    "DEFAULTS",
    "FLOORS",
    "FLUSHES",
    "METHODS",
    "N_RUNGS",
    "BenchmarkResult",
    "Benchmarks",
    "Comparison",
    "Floor",
    "Ladder",
    "MeasurementOptions",
    "Rung",
    "Sampler",
    "amount_of",
    "amounts_in",
    "compare",
    "cpu_threads",
    "elapsed_s",
    "examine_samples",
    "find_method",
    "floor",
    "flusher",
    "ladder",
    "left_as_found",
    "measure",
    "measure_in_turns",
    "new_pairs",
    "restore_settings_at_exit",
    "run_ladder",
    "run_setup",
    "take_cpu_samples",
    "take_samples",
    "work_of",
]
