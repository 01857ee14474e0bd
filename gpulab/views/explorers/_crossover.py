"""The model of the crossover explorer: its choices, its numbers and its words for a state."""

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gpulab.figures import Figure
from gpulab.roofline.scaling import LINKS, Crossover, crossover
from gpulab.views import plots
from gpulab.views.explorers import _crossover_numbers as numbers
from gpulab.views.explorers._crossover_numbers import CACHE, METHOD
from gpulab.views.explorers._scene import Measured, Selector, Step, nearest
from gpulab.views.explorers._sources import (
    COMPUTED,
    HERE,
    computed_choices,
    need_points,
    points_among,
    points_of,
    recorded_choices,
)
from gpulab.workloads import names, workload
from gpulab.workloads.sweeps import TRANSFERS, Point, Task

if TYPE_CHECKING:
    import pandas as pd

_MEASURE = "Press “Measure here”, or choose another {} above."
# In this order, because the options of a choice may depend on the choices before it.
_ORDER = ("workload", "dtype", "gpu", "beside", "cpu", "transfers", "link", "n_threads", "size")
_SIDES = {"cpu": "this machine's CPU", "gpu": "the GPU in use"}


@dataclass(frozen=True, slots=True)
class CrossoverState:
    """The choices of a crossover explorer.

    Attributes
    ----------
    workload, dtype
        The operation and its type.
    gpu, cpu
        Source of the times: ``"recorded:NAME"``, ``"here"``, and for the GPU also
        ``"computed:NAME"``.
    n_threads
        Threads of the CPU; None: torch's setting, at the time of the measurement.
    transfers
        Copies that the GPU's times include.
    link
        The link of the copies: a name, or bytes per second. None: the measured one, or the GPU's
        own.
    size
        The size at which times are compared.
    beside
        A second GPU to compare with, as ``gpu``; empty for none.
    """

    workload: str = "matmul"
    dtype: str = "float32"
    gpu: str = ""
    cpu: str = ""
    n_threads: int | None = None
    transfers: str = "none"
    link: str | float | None = None
    size: int = 512
    beside: str = ""


class CrossoverModel:
    """The model of the crossover explorer; see :class:`gpulab.views.explorers._scene.Model`."""

    name = "crossover"

    def __init__(self, own_files: Iterable[str] = ()) -> None:
        self.own_files = tuple(own_files)
        # The caches belong to this object and not to its class, so that they are freed with the
        # explorer.
        self.record = lru_cache(maxsize=500)(self._record)
        self._choices = lru_cache(maxsize=500)(self._offered)

    def choices(self, state: CrossoverState) -> tuple[Selector, ...]:
        # Cached, because each step of a slider asks for it.
        return self._choices(replace(state, size=0, n_threads=None, link=None, gpu="", beside=""))

    def _offered(self, state: CrossoverState) -> tuple[Selector, ...]:
        work = workload(state.workload)
        recorded, computed = recorded_choices(self.own_files), computed_choices()
        known = points_of(state.cpu or HERE, "cpu", state.workload, state.dtype, ())
        sizes = (*work.sizes, *(point.task.size for point in known))
        middle = round(math.sqrt(min(sizes) * max(sizes)))
        link = (None, *LINKS)
        return (
            Selector("workload", "menu", tuple(names())),
            Selector("dtype", "menu", work.dtypes),
            Selector("gpu", "menu", (*recorded, *computed, HERE)),
            Selector("beside", "menu", ("", *recorded, *computed)),
            Selector("cpu", "menu", (*recorded, HERE)),
            Selector("transfers", "menu", TRANSFERS),
            Selector("link", "rate", link if state.transfers != "none" else link[:1]),
            Selector("n_threads", "slider", _threads(state)),
            Selector("size", "size", (min(sizes), middle, max(sizes))),
        )

    def settled(self, state: CrossoverState) -> CrossoverState:
        for name in _ORDER:
            choice = next(each for each in self.choices(state) if each.name == name)
            value: Any = getattr(state, name)
            if choice.kind == "size" and not choice.fits(value):
                # A size of another operation. The middle shows more than the end of the range.
                _, value, _ = choice.offered
            elif not choice.fits(value):
                value = nearest(choice.offered, value)
            state = replace(state, **{name: value})
        return state

    def steps(self, state: CrossoverState) -> tuple[Step, ...]:
        """Return both sides at every size of the catalogue, smallest first."""
        bare = Task(state.workload, 1, state.dtype, cache=CACHE, method=METHOD)
        cpu = Task(state.workload, 1, state.dtype, on="cpu", n_threads=_on_here(state))
        sides = [cpu, bare]
        # Times over a chosen link are computed from those without transfers.
        if state.transfers != "none" and state.link is None:
            sides.append(replace(bare, transfers=state.transfers))
        return tuple(
            replace(task, size=size) for size in workload(state.workload).sizes for task in sides
        )

    def words(self, state: CrossoverState, measured: Sequence[Measured]) -> tuple[str, ...]:
        record = self._shown(state, measured)
        copies = "" if record.transfers == "none" else f", transfers {record.transfers}"
        title = f"{record.workload} {record.dtype}: CPU against GPU{copies} ({record.origin})"
        return (title, *record.details.splitlines())

    def frame(self, state: CrossoverState, measured: Sequence[Measured]) -> "pd.DataFrame":
        return self._shown(state, measured).to_frame()

    def figure(self, state: CrossoverState, measured: Sequence[Measured]) -> Figure:
        return plots.crossover(self._shown(state, measured))

    def base_numbers(self) -> dict[str, Any]:
        """Return the recorded times of all operations."""
        return numbers.base_numbers(recorded_choices(self.own_files))

    def state_numbers(self, state: CrossoverState) -> dict[str, Any]:
        """Return the times of the virtual GPUs that a state shows, and the bytes of its copies."""
        name, dtype = state.workload, state.dtype
        curves = {
            gpu: {
                "none": numbers.curve(
                    points_of(gpu, "gpu", name, dtype, (), method=METHOD, cache=CACHE)
                )
            }
            for gpu in (state.gpu, state.beside)
            if gpu.startswith(COMPUTED)
        }
        payload = numbers.payloads(name, dtype, recorded_choices(self.own_files))
        known = {"gpus": curves, "payload": payload}
        return {"operations": {name: {"types": {dtype: known}}}}

    def own_numbers(self, measured: Sequence[Measured]) -> dict[str, Any]:
        return numbers.own_numbers(points_among(measured))

    def _shown(self, state: CrossoverState, measured: Sequence[Measured]) -> Crossover:
        # The size and a second GPU change no curve; without them, one record serves them all.
        return self.record(replace(state, size=0, beside=""), points_among(measured))

    def _record(self, state: CrossoverState, points: tuple[Point, ...]) -> Crossover:
        name, dtype = state.workload, state.dtype
        points_by_side = {
            side: points_of(choice, side, name, dtype, points, method=METHOD, cache=CACHE)
            for side, choice in (("cpu", state.cpu), ("gpu", state.gpu))
        }
        cpu = [point for point in points_by_side["cpu"] if point.task.n_threads == state.n_threads]
        for side, side_points in (("cpu", cpu), ("gpu", points_by_side["gpu"])):
            need_points(
                side_points, f"{name} {dtype} on {_SIDES[side]}", _MEASURE.format(side.upper())
            )
        return crossover(
            name,
            dtype=dtype,
            transfers=state.transfers,
            link=state.link,
            source=[*cpu, *points_by_side["gpu"]],
        )


def _threads(state: CrossoverState) -> tuple[int | None, ...]:
    """Return the numbers of threads with times, most first, because the first is the default."""
    if state.cpu == HERE or not state.cpu:
        return numbers.own_threads()
    known = points_of(state.cpu, "cpu", state.workload, state.dtype, ())
    counts = {point.task.n_threads for point in known} or {None}
    return tuple(sorted(counts, key=lambda n: math.inf if n is None else n, reverse=True))


def _on_here(state: CrossoverState) -> int | None:
    """Return the threads for this machine, which may have fewer than the recorded CPU."""
    return None if state.n_threads is None else min(state.n_threads, os.cpu_count() or 1)
