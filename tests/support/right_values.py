"""Return a valid argument for each parameter of the public functions.

It follows from the parameter's name or its annotation. Records are made once, on the virtual GPU.
"""

import collections.abc
import copy
import tempfile
import types
import typing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import gpulab
from gpulab import clocks, exercises, gpus, plots, recordings, roofline, workloads
from gpulab.exercises import ask, draw, predict
from gpulab.exercises.lesson_04 import TEN_CALLS
from gpulab.timing import cards
from gpulab.timing.cards import _card as card_records
from gpulab.workloads import sweeps
from tests.support.conditions import HERE


class Spy:
    """A piece of work that counts its calls."""

    def __init__(self) -> None:
        self.n_calls = 0

    def __call__(self) -> None:
        """Count a call."""
        self.n_calls += 1


@cache
def record(name: str) -> Any:  # noqa: ANN401  # of any type
    """Return the record of the class with this name, made at the first call."""
    return _RECORDS[name]()


def _on_gpu(make: Callable[[Callable[[], object]], Any]) -> Any:  # noqa: ANN401  # as record
    """Call ``make`` with an addition on the virtual GPU, and return its result."""
    import torch

    with gpulab.device.outside(), gpulab.virtual_gpu("H200", first_use=False):
        a = torch.ones(1024, device="cuda")
        return make(lambda: a + a)


def _tasks() -> tuple[sweeps.Task, ...]:
    return sweeps.tasks_of(["add"], [1 << 12, 1 << 16], caches=["hot"])


def _crossover(_work: object) -> Any:  # noqa: ANN401  # as record
    return gpulab.crossover("add", [1 << 8, 1 << 20], gpu="H200", max_time_s=0.01, progress=False)


def _card() -> Any:  # noqa: ANN401  # as record
    entry = card_records.CardEntry("add", "hidden", 1e-5, 1e-5, (1e-5, 1.1e-5))
    check = card_records.CardCheck("work that waits")
    return cards.Card(
        "mine", "virtual", "NVIDIA H200", "hot", 1, (entry,), (check,), HERE, "the records"
    )


_RECORDS: dict[str, Callable[[], Any]] = {
    "MachineExplorer": gpulab.explorers.machine_explorer,
    "Measurement": lambda: _on_gpu(lambda work: gpulab.measure(work, n_samples=10)),
    "Conditions": lambda: HERE,
    "Finding": lambda: gpulab.Finding("code", "message", "advice"),
    "Timeline": lambda: _on_gpu(gpulab.timeline),
    "Span": lambda: record("Timeline").spans[0],
    "Summary": lambda: record("Timeline").summary(),
    "Ladder": lambda: _on_gpu(lambda work: gpulab.ladder(work, progress=False)),
    "Sweep": lambda: _on_gpu(lambda _: sweeps.sweep(_tasks(), progress=False)),
    "Task": lambda: _tasks()[0],
    "Point": lambda: record("Sweep").points[0],
    "Trace": lambda: _on_gpu(lambda work: gpulab.live.load(work, duration_s=0.2, progress=False)),
    "Series": lambda: gpulab.live.Series((1, 2), [1, 2]),
    "Reading": lambda: clocks.Reading(0.0, sm_mhz=1980, reasons=()),
    "Card": _card,
    "CardEntry": lambda: record("Card").entries[0],
    "CardCheck": lambda: record("Card").checks[0],
    "Crossover": lambda: _on_gpu(_crossover),
    "Curve": lambda: record("Crossover").gpu,
    "Fit": lambda: record("Curve").fit,
    "Ceilings": lambda: roofline.ceilings("H200"),
    "Roof": lambda: record("Ceilings").roofs[0],
    "Chart": lambda: roofline.chart(record("Sweep"), record("Ceilings")),
    "GpuSpec": lambda: gpus.gpu("H200"),
    "Recording": lambda: recordings.load(recordings.list()[0]),
    "Workload": lambda: workloads.workload("add"),
    "Prediction": lambda: predict("How long?", 3.0),
    "Question": lambda: ask("00.sources"),
    "DataFrame": lambda: roofline.table(record("Sweep")),
    "DrawnPrediction": lambda: draw("How long?", name="04.first", axes=TEN_CALLS),
    "SketchAxes": lambda: TEN_CALLS,
    "Progress": exercises.progress,
}


RECORD_NAMES = tuple(_RECORDS)


# Objects that hold a file, thread or figure open, so that each call gets a new one.
_NEW: dict[str, Callable[[], Any]] = {
    "Axes": lambda: _canvas().add_subplot(),
    "Executor": lambda: ThreadPoolExecutor(1),
    "Figure": lambda: plots.ladder(record("Ladder")),
    "Explorer": gpulab.explorers.roofline_explorer,
}
_BY_NAME: dict[str, object] = {
    "alt": "What is to be seen.",
    "arithmetic": "float32",
    "bandwidth_bytes_per_s": 1e12,
    "basis": "data sheet",
    "cache": "hot",
    "dtype": "float32",
    "dtypes": ("float32",),
    "duration_s": 0.05,
    "exercise_id": "01.hidden-sync",
    "gpu": "H200",
    "kind": "read",
    "method": "synchronized",
    "of": "launches",
    "on": "gpu",
    "parts": ("sm_mhz",),
    "peak_flops_per_s": {"float32": 1e12},
    "period_s": 0.02,
    "plot": lambda _record, ax, **_options: ax,
    "results": (1, 2),
    "size": 64,
    "sizes": (64, 128),
    "sm_mhz": 1500,
    "source": "measured",
    "transfers": "none",
    "workload": "add",
    "workloads": ("add",),
}


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp())


def _canvas() -> Any:  # noqa: ANN401  # matplotlib is imported where it is needed
    from matplotlib.figure import Figure

    return Figure()


def _frame(**columns: list[object]) -> Any:  # noqa: ANN401  # pandas is imported where it is needed
    import pandas as pd

    return pd.DataFrame(columns)


@cache
def _own_sweep() -> Any:  # noqa: ANN401  # a Sweep
    return _on_gpu(lambda work: sweeps.sweep(lambda n: work, n=[64, 128], progress=False))  # noqa: ARG005  # the same for each n


@cache
def _pair_of_events() -> Any:  # noqa: ANN401  # a Timeline
    import torch

    def program(work: Callable[[], object]) -> None:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()

    return _on_gpu(lambda work: gpulab.timeline(lambda: program(work)))


# Arguments of single functions, whose name means something else in other functions.
_BY_CALLEE: dict[str, Callable[[], object]] = {
    "roofline.predict(name)": lambda: "add",
    "exercises.compare(name)": lambda: "01.naive",
    "recordings.load(name)": lambda: recordings.list()[0],
    "recordings.compare(a)": lambda: record("Recording"),
    "recordings.compare(b)": lambda: record("Recording"),
    "plots.call_times(record)": lambda: [1e-6, 2e-6],
    "plots.scaling(record)": lambda: _frame(size=[1], duration_s=[1e-6], series=["a"]),
    "plots.line(record)": lambda: _frame(size=[1, 2], duration_s=[1e-6, 2e-6]),
    "plots.scatter(record)": lambda: _frame(size=[1, 2], duration_s=[1e-6, 2e-6]),
    "plots.line(log)": lambda: "xy",
    "plots.reading_and_work(record)": lambda: _frame(
        n=[64, 128], reading_s=[1e-6, 1e-6], gpu_s=[1e-6, 2e-6]
    ),
    "plots.between_two_events(record)": _pair_of_events,
    "plots.sweep(record)": _own_sweep,
    "plots.sweep(x)": lambda: "n",
    "plots.scatter(log)": lambda: "xy",
    "scaling.Curve.at(sizes)": lambda: record("Curve").sizes,
}


def right_value(callee: str, name: str, hint: object) -> Any:  # noqa: ANN401  # of any type
    """Return a valid value for a parameter."""
    if (key := f"{callee}({name})") in _BY_CALLEE:
        return _BY_CALLEE[key]()
    if name in {"out", "path"}:
        return _folder() / "file.csv"
    # A name such as "gpu" takes a record in some functions, and its annotation says so.
    is_named = name in _BY_NAME and getattr(hint, "__name__", "") not in _RECORDS
    return _BY_NAME[name] if is_named else _of_hint(callee, name, hint)


def value_of(kind: type) -> Any:  # noqa: ANN401  # of any type
    """Return an object of a class."""
    simple = {int: 2, float: 0.5, str: "text", bool: False, Path: Path("file.json")}
    if kind in simple:
        return simple[kind]
    if kind.__name__ in _NEW:
        return _NEW[kind.__name__]()
    if kind.__name__ not in _RECORDS:
        raise LookupError(f"no value of {kind} is known; add one to the register")
    return copy.copy(record(kind.__name__))


def _of_hint(callee: str, name: str, hint: object) -> Any:  # noqa: ANN401, PLR0911  # of any kind
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or hint is object or isinstance(hint, typing.TypeVar):
        return 1
    if origin in {typing.Union, types.UnionType}:
        return None if types.NoneType in parts else _of_hint(callee, name, parts[0])
    if origin is collections.abc.Callable:
        return Spy()
    if origin is None or origin is type:
        return value_of(typing.cast("type", hint))
    if issubclass(origin, collections.abc.Mapping):
        return {_of_hint(callee, name, parts[0]): _of_hint(callee, name, parts[1])}
    if not issubclass(origin, collections.abc.Iterable):
        return value_of(origin)
    n_parts = len(parts) if origin is tuple and parts[-1] is not Ellipsis else 1
    return tuple(_of_hint(callee, name, parts[index]) for index in range(n_parts))
