"""Time GPU work: the methods, ``measure``, ``compare`` and ``ladder``, and benchmark cards."""

from gpulab.timing._benchmarks import BenchmarkResult, Benchmarks
from gpulab.timing._cache_flush import flusher
from gpulab.timing._compare import Comparison, compare, measure_in_turns
from gpulab.timing._cpu import cpu_threads, take_cpu_samples
from gpulab.timing._device_floor import floor
from gpulab.timing._event_pairs import elapsed_s, new_pairs
from gpulab.timing._findings import examine_samples
from gpulab.timing._isolation import left_as_found
from gpulab.timing._ladder import N_RUNGS, Ladder, Rung, ladder, run_ladder
from gpulab.timing._measure import measure, take_samples
from gpulab.timing._methods import METHODS
from gpulab.timing._options import MeasurementOptions, amount_of
from gpulab.timing._statement import amounts_in, run_setup, work_of
from gpulab.timing._work_floor import Floor

__all__ = [
    "METHODS",
    "N_RUNGS",
    "BenchmarkResult",
    "Benchmarks",
    "Comparison",
    "Floor",
    "Ladder",
    "MeasurementOptions",
    "Rung",
    "amount_of",
    "amounts_in",
    "compare",
    "cpu_threads",
    "elapsed_s",
    "examine_samples",
    "floor",
    "flusher",
    "ladder",
    "left_as_found",
    "measure",
    "measure_in_turns",
    "new_pairs",
    "run_ladder",
    "run_setup",
    "take_cpu_samples",
    "take_samples",
    "work_of",
]
