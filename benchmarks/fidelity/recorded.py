"""The calls of the recordings, which are the workloads of the benchmark."""

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.fidelity import (
    accumulation,
    gradients,
    layers,
    more_operators,
    movement,
    operators,
    selection,
    statistics_of_rows,
)
from benchmarks.fidelity.workload import SAMPLED, Workload
from gpulab.device.work import Work

Make = Callable[..., Work]
_MODULES = (
    *(gradients, layers, operators, accumulation, more_operators, movement, selection),
    statistics_of_rows,
)
# The columns of a sampled call after its parameters begin with these three.
_N_READ = 3


@cache
def makers() -> tuple[Make, ...]:
    """Return the functions that set up workloads; the first parameter of each is the type."""
    return tuple(
        make
        for module in _MODULES
        for make in vars(module).values()
        if inspect.isfunction(make)
        and make.__module__ == module.__name__
        and next(iter(inspect.signature(make).parameters), "") == "dtype"
    )


def workload_of(name: str, entry: Mapping[str, Any]) -> Workload:
    """Return the workload of an entry of a recording.

    Raises
    ------
    LookupError
        If no function sets up a workload of this name.
    """
    known = (entry["dtype"], entry["parameters"])
    for make in makers():
        workload = Workload(entry["role"], entry["family"], make, *known)
        if workload.name == name and _takes(make, entry["parameters"]):
            return workload
    raise LookupError(f"no function of benchmarks.fidelity makes {name!r}")


def _takes(make: Make, parameters: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(make).bind(None, **parameters)
    except TypeError:
        return False
    return True


Row = tuple[Workload, float, float]


def calls(path: Path) -> Iterator[Row]:
    """Return the workloads of a recording of either form, with their times hot and cold (µs)."""
    recording = json.loads(path.read_text("utf-8"))
    for name, entry in recording.get("workloads", {}).items():
        times = entry["device"]
        yield workload_of(name, entry), times["hot_us"], times["cold_us"]
    by_name = {make.__name__: make for make in makers()}
    for name, group in recording.get("calls", {}).items():
        n_parameters = group["columns"].index("dtype")
        for row in group["rows"]:
            dtype, hot_us, cold_us = row[n_parameters : n_parameters + _N_READ]
            parameters = dict(zip(group["columns"][:n_parameters], row, strict=False))
            yield Workload(SAMPLED, "", by_name[name], dtype, parameters), hot_us, cold_us
