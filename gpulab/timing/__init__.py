"""Time GPU work: the methods, ``measure``, ``compare`` and ``ladder``, and benchmark cards."""

from gpulab.timing._benchmarks import BenchmarkResult, Benchmarks
from gpulab.timing._cache_flush import FLUSHES, flusher, forget_flushes
from gpulab.timing._compare import Comparison, compare, measure_in_turns
from gpulab.timing._cpu import cpu_threads, take_cpu_samples
from gpulab.timing._cuda_graph import GraphSampler
from gpulab.timing._event_pairs import elapsed_s, new_event, new_pairs
from gpulab.timing._findings import examine_samples
from gpulab.timing._isolation import calling_work, left_as_found, restore_settings_at_exit
from gpulab.timing._ladder import N_RUNGS, Ladder, Rung, ladder, run_ladder
from gpulab.timing._measure import measure
from gpulab.timing._methods import METHODS, Method, find_method, take_samples
from gpulab.timing._options import DEFAULTS, FLOORS, MeasurementOptions
from gpulab.timing._profiler import ProfilerSampler
from gpulab.timing._samplers import EventSampler, NaiveSampler, Sampler, SynchronizedSampler
from gpulab.timing._saturated import SaturatedSampler
from gpulab.timing._statement import run_setup, users_traceback, work_of
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
    "DEFAULTS",
    "FLOORS",
    "FLOOR_METHODS",
    "FLUSHES",
    "METHODS",
    "N_RUNGS",
    "BenchmarkResult",
    "Benchmarks",
    "Comparison",
    "EventSampler",
    "Floor",
    "GraphSampler",
    "Ladder",
    "MeasurementOptions",
    "Method",
    "NaiveSampler",
    "ProfilerSampler",
    "Rung",
    "Sampler",
    "SaturatedSampler",
    "SynchronizedSampler",
    "WarmUp",
    "calling_work",
    "can_record",
    "compare",
    "cpu_threads",
    "device_floor",
    "elapsed_s",
    "examine_samples",
    "find_method",
    "floor",
    "flusher",
    "forget_floors",
    "forget_flushes",
    "ladder",
    "left_as_found",
    "measure",
    "measure_in_turns",
    "new_event",
    "new_pairs",
    "record_calls",
    "restore_settings_at_exit",
    "run_ladder",
    "run_setup",
    "take_cpu_samples",
    "take_samples",
    "users_traceback",
    "warm_up",
    "work_floor",
    "work_of",
]
