"""The model of the crossover explorer: its choices, its picture and its words for a state."""

import math
import os
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gpulab.core.units import format_estimate, format_ratio, format_time
from gpulab.figures import legend_below, look_of, marks, name_line, unit_of
from gpulab.gpus.provenance import device_label
from gpulab.roofline.scaling import LINKS, Crossover, Curve, crossover
from gpulab.views import plots
from gpulab.views.explorers._scene import (
    Marker,
    Measured,
    Scene,
    Selector,
    Spot,
    Step,
    as_options,
    nearest,
)
from gpulab.views.explorers._sources import (
    HERE,
    computed_options,
    here_of,
    need_points,
    points_among,
    points_of,
    recorded_options,
    too_long,
)
from gpulab.workloads import names, workload
from gpulab.workloads.sweeps import TRANSFERS, Point, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Limits = tuple[tuple[float, float], tuple[float, float]]
# The time that a program waits: launch and wake-up included.
_METHOD, _CACHE = "synchronized", "hot"
_STEPS_PER_OCTAVE = 4
_SECOND = "D"  # marker of the second GPU
_RIGHT = 0.81  # of the axes, as a share of the picture; the names of the lines are beside it
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
        The link of the copies; None: the measured one, or the GPU's own.
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
    link: str | None = None
    size: int = 512
    beside: str = ""


class CrossoverModel:
    """The model of the crossover explorer; see :class:`gpulab.views.explorers._scene.Model`."""

    name = "crossover"

    def __init__(self, mine: Iterable[str] = ()) -> None:
        self.mine = tuple(mine)
        # The caches belong to this object and not to its class, so that they are freed with the
        # explorer.
        self.record = lru_cache(maxsize=500)(self._record)
        self._limits = lru_cache(maxsize=500)(self._spanned)
        self._choices = lru_cache(maxsize=500)(self._offered)

    def choices(self, state: CrossoverState) -> tuple[Selector, ...]:
        """Return the choices with their options; the first option of each is the default."""
        # Cached, because each step of a slider asks for it.
        return self._choices(replace(state, size=0, n_threads=None, link=None, gpu="", beside=""))

    def _offered(self, state: CrossoverState) -> tuple[Selector, ...]:
        work = workload(state.workload)
        recorded = recorded_options(self.mine)
        here = (("measured here", HERE),)
        known = points_of(state.cpu or HERE, "cpu", state.workload, state.dtype, ())
        sizes = (*work.sizes, *(point.task.size for point in known))
        others = (("none", ""), *recorded, *computed_options())
        link = (("its own", None), *((name, name) for name in LINKS))
        return (
            Selector("workload", "Operation", "menu", as_options(names())),
            Selector("dtype", "Type", "menu", as_options(work.dtypes)),
            Selector("gpu", "GPU", "menu", (*recorded, *computed_options(), *here)),
            Selector("beside", "Second GPU", "menu", others),
            Selector("cpu", "CPU", "menu", (*recorded, *here)),
            Selector("transfers", "Transfers", "menu", as_options(TRANSFERS)),
            Selector("link", "Link", "slider", link if state.transfers != "none" else link[:1]),
            Selector("n_threads", "CPU threads", "slider", self._threads(state)),
            Selector("size", "Size n", "slider", _sizes(sizes)),
        )

    def settled(self, state: CrossoverState) -> CrossoverState:
        """Return the nearest state in which every choice is one of its options."""
        for name in _ORDER:
            choice = next(each for each in self.choices(state) if each.name == name)
            value: Any = nearest(choice.offered, getattr(state, name))
            if name == "size" and not choice.offered[0] <= state.size <= choice.offered[-1]:
                # A size of another operation. The middle shows more than the end of the range.
                value = choice.offered[len(choice.offered) // 2]
            state = replace(state, **{name: value})
        return state

    def steps(self, state: CrossoverState) -> tuple[Step, ...]:
        """Return both sides at every size of the catalogue, smallest first."""
        bare = Task(state.workload, 1, state.dtype, cache=_CACHE, method=_METHOD)
        cpu = Task(state.workload, 1, state.dtype, on="cpu", n_threads=_on_here(state))
        sides = [cpu, bare]
        # Times over a chosen link are computed from those without transfers.
        if state.transfers != "none" and state.link is None:
            sides.append(replace(bare, transfers=state.transfers))
        return tuple(
            replace(task, size=size) for size in workload(state.workload).sizes for task in sides
        )

    def skips(self, step: Step, found: Sequence[Measured]) -> bool:
        """Return whether a smaller size took so long that this one would block the notebook."""
        return too_long(step, found)

    def scene(self, state: CrossoverState, found: Sequence[Measured]) -> Scene:
        """Return both curves, the times at the chosen size, and what was measured here."""
        points = points_among(found)
        # The size moves only markers, which the page draws. Without it in the key, one cached
        # picture serves every step of that slider.
        still = replace(state, size=0)
        record, words = self.record(replace(still, beside=""), points)
        second = self._second(still, points)
        overlay = _overlay(state, points)
        limits = self._limits(replace(still, transfers="none", link=None), points)
        return Scene(
            plot=partial(_plot, record, second, overlay, limits),
            key=(still, points),
            markers=tuple(_markers(record, state.size)),
            title=_title(record, second),
            alt="Time of a call on the CPU and on the GPU over the size.",
            words=(_where(record, state.size), *words, *_compared(record, second, state.size)),
            spots=tuple(_spots(record, second, overlay)),
            frame=record.to_frame,
            right=_RIGHT,
        )

    def _second(self, state: CrossoverState, points: tuple[Point, ...]) -> Crossover | None:
        """Return the crossover of the second GPU, which is recorded or computed."""
        if not state.beside or state.beside == state.gpu:
            return None
        return self.record(replace(state, gpu=state.beside, beside=""), points)[0]

    def _threads(self, state: CrossoverState) -> tuple[tuple[str, Hashable], ...]:
        if state.cpu == HERE or not state.cpu:
            most = os.cpu_count() or 1
            counts: set[int | None] = {2**k for k in range(most.bit_length()) if 2**k <= most}
            counts.add(most)
        else:
            known = points_of(state.cpu, "cpu", state.workload, state.dtype, ())
            counts = {point.task.n_threads for point in known} or {None}
        # The most threads come first, because the first option is the default.
        ordered = sorted(counts, key=lambda count: math.inf if count is None else count)
        return tuple(("as set" if n is None else str(n), n) for n in reversed(ordered))

    def _record(
        self, state: CrossoverState, points: tuple[Point, ...]
    ) -> tuple[Crossover, tuple[str, ...]]:
        name, dtype = state.workload, state.dtype
        found = {
            side: points_of(choice, side, name, dtype, points, method=_METHOD, cache=_CACHE)
            for side, choice in (("cpu", state.cpu), ("gpu", state.gpu))
        }
        cpu = [point for point in found["cpu"] if point.task.n_threads == state.n_threads]
        for side, kept in (("cpu", cpu), ("gpu", found["gpu"])):
            need_points(kept, f"{name} {dtype} on {_SIDES[side]}", _MEASURE.format(side.upper()))
        record = crossover(
            name,
            dtype=dtype,
            transfers=state.transfers,
            link=state.link,
            source=[*cpu, *found["gpu"]],
        )
        return record, tuple(_words(record))

    def _spanned(self, state: CrossoverState, points: tuple[Point, ...]) -> Limits:
        """Return axis limits (sizes, seconds) that suit every link and number of threads.

        If the axes moved with the slider, they would hide its effect.
        """
        # PCIe 3 is the slowest link, so no choice gives a higher curve than this one.
        slowest, _ = self.record(replace(state, transfers="both", link="PCIe 3"), points)
        cpu = points_of(state.cpu, "cpu", state.workload, state.dtype, points)
        timed = [*_overlay(state, points), *(point for point in cpu if point.ok)]
        second = self._second(replace(state, transfers="both", link="PCIe 3"), points)
        lines = (*_curves_of(slowest), *(() if second is None else (second.gpu,)))
        sizes = [*(p.task.size for p in timed), *(n for curve in lines for n in curve.sizes)]
        times_s = [*(p.median_s for p in timed), *(t for curve in lines for t in curve.median_s)]
        return _wider(sizes, 1.25), _wider([time_s for time_s in times_s if time_s > 0], 1.6)


def _sizes(known: Sequence[int]) -> tuple[tuple[str, int], ...]:
    """Return the sizes of the slider: from the smallest to the largest, four per octave."""
    first, last = min(known), max(known)
    n_steps = round(_STEPS_PER_OCTAVE * math.log2(last / first))
    steps = sorted({round(size) for size in np.geomspace(first, last, n_steps + 1)})
    return tuple((f"{size:,}", size) for size in steps)


def _on_here(state: CrossoverState) -> int | None:
    """Return the threads for this machine, which may have fewer than the recorded CPU."""
    if state.n_threads is None or state.cpu == HERE:
        return state.n_threads
    return min(state.n_threads, os.cpu_count() or 1)


def _wider(values: Sequence[float], factor: float) -> tuple[float, float]:
    # A factor and not a sum, because both axes are logarithmic.
    return min(values) / factor, max(values) * factor


def _overlay(state: CrossoverState, points: Sequence[Point]) -> tuple[Point, ...]:
    """Return points measured here that fit the choices and are not part of a curve."""
    return tuple(
        point
        for side, choice in (("cpu", state.cpu), ("gpu", state.gpu))
        if choice != HERE
        for point in here_of(points, side)
        if point.ok and _belongs(point.task, state)
    )


def _belongs(task: Task, state: CrossoverState) -> bool:
    if (task.workload, task.dtype) != (state.workload, state.dtype):
        return False
    return task.on == "cpu" or task.transfers in {"none", state.transfers}


def _curves_of(record: Crossover) -> tuple[Curve, ...]:
    """Return the curves in the order of the figure."""
    moved = () if record.transfers == "none" else (record.bare,)
    return (record.cpu, record.gpu, *moved)


def _scale_of(record: Crossover) -> float:
    """Return the seconds of the unit in which the figure shows times."""
    return unit_of([time_s for curve in _curves_of(record) for time_s in curve.median_s])[0]


def _plot(
    record: Crossover,
    second: Crossover | None,
    overlay: Sequence[Point],
    limits: Limits,
    ax: "Axes",
) -> None:
    """Draw both curves, the points measured here over them, and axes with these limits."""
    scale = _scale_of(record)
    ax.set_xlim(*limits[0])
    ax.set_ylim(*(time_s / scale for time_s in limits[1]))
    plots.crossover(record, ax)
    if second is not None:
        curve = second.gpu
        times = [time_s / scale for time_s in curve.median_s]
        signs = marks(look_of("GPU")._replace(marker=_SECOND), curve.source)
        label = f"second {curve.name}"
        (line,) = ax.plot(curve.sizes, times, label=label, linewidth=1.2, **signs)
        name_line(ax, line, "second GPU")
    here = []
    for side in ("cpu", "gpu"):
        part = [point for point in overlay if point.task.on == side]
        if part:
            here += ax.plot(
                [point.task.size for point in part],
                [point.median_s / scale for point in part],
                markersize=9,
                label=_name(part[-1]),
                **marks(look_of(side.upper()), part[-1].source) | {"linestyle": "none"},
            )
    if here:  # loose points, which have no line with a name at its end
        legend_below(ax, here)


def _title(record: Crossover, second: Crossover | None) -> str:
    """Return the title: what is compared, and on which devices.

    It does not depend on the sliders, because axes with a new title take long to draw.
    """
    copies = "" if record.transfers == "none" else f", transfers {record.transfers}"
    lines = [f"{record.workload} {record.dtype}: CPU against GPU{copies}", f"({record.origin})"]
    if second is not None:
        other = device_label(second.gpu.device_name, second.gpu.source)
        lines.append(f"(second GPU: {other})")
    return "\n".join(lines)


def _name(point: Point) -> str:
    return f"{point.task.on.upper()} here: {device_label(point.device_name, point.source)}"


def _markers(record: Crossover, size: int) -> Iterable[Marker]:
    """Yield the marker of the slider's size, and of both times there."""
    yield Marker(size)
    scale = _scale_of(record)
    for curve in (record.cpu, record.gpu):
        time_s = _at_size(curve, size)
        if time_s is not None:
            yield Marker(size, time_s / scale)


def _at_size(curve: Curve, size: int) -> float | None:
    """Return a curve's seconds at a size, interpolated on log axes; None outside of the curve."""
    if not curve.sizes[0] <= size <= curve.sizes[-1]:
        return None
    return math.exp(np.interp(math.log(size), np.log(curve.sizes), np.log(curve.median_s)))


def _words(record: Crossover) -> Iterable[str]:
    """Yield sentences on where the curves cross, where the fits cross, and doubts."""
    found = str(record)
    has_size = record.bare_crossing.kind == "once"  # what the sentence begins with
    yield f"Crossing: {found}." if has_size else f"{found[0].upper()}{found[1:]}."
    if record.predicted is not None:
        yield f"From the fitted lines alone: {record.predicted}."
    for curve in (record.cpu, record.gpu):
        if curve.how:
            yield f"Times of the {curve.on.upper()}: {curve.how}."
    if record.is_mixed:
        yield "The two sides come from different sources: read it as an estimate."


def _where(record: Crossover, size: int) -> str:
    """Return a sentence with both times at the size and their ratio."""
    cpu_s, gpu_s = (_at_size(curve, size) for curve in (record.cpu, record.gpu))
    here = f"At n = {size:,}"
    for curve, time_s in ((record.cpu, cpu_s), (record.gpu, gpu_s)):
        if time_s is None:
            ends = f"{curve.sizes[0]:,} to {curve.sizes[-1]:,}"
            return f"{here} the {curve.on.upper()} has no time; it has some from {ends}."
    if cpu_s is None or gpu_s is None:
        return here
    copies = "" if record.transfers == "none" else f" with transfers {record.transfers}"
    ahead, times = ("GPU", cpu_s / gpu_s) if gpu_s < cpu_s else ("CPU", gpu_s / cpu_s)
    return (
        f"{here}: CPU {format_time(cpu_s)}, GPU{copies} {format_time(gpu_s)}; "
        f"the {ahead} is {format_ratio(times)} times as fast."
    )


def _compared(record: Crossover, second: Crossover | None, size: int) -> Iterable[str]:
    """Yield a sentence on the second GPU: its crossing, and the ratio of the GPUs at the size."""
    if second is None:
        return
    said = f"Second {second.gpu.name}: {second}"
    one_s, other_s = (_at_size(each.gpu, size) for each in (record, second))
    if one_s is not None and other_s is not None:
        faster = "second" if other_s < one_s else "first"
        ratio = max(one_s, other_s) / min(one_s, other_s)
        said += f"; at n = {size:,} it takes {format_time(other_s)}, and the {faster} GPU is "
        said += f"{format_ratio(ratio)} times as fast"
    yield f"{said}."


def _spots(
    record: Crossover, second: Crossover | None, overlay: Sequence[Point]
) -> Iterable[Spot]:
    """Yield a tooltip for every point: operation, device and time."""
    what, scale = f"{record.workload} {record.dtype}", _scale_of(record)
    for curve in (*_curves_of(record), *(() if second is None else (second.gpu,))):
        columns = (curve.sizes, curve.median_s, curve.low_s, curve.high_s)
        for size, time_s, low_s, high_s in zip(*columns, strict=True):
            time = format_estimate(time_s, low_s, high_s)
            yield Spot(size, time_s / scale, f"{what}, n = {size:,}\n{curve.name}\n{time}")
    for point in overlay:
        time = format_estimate(point.median_s, point.low_s, point.high_s)
        hint = f"{what}, n = {point.task.size:,}\n{_name(point)}\n{time}"
        yield Spot(point.task.size, point.median_s / scale, hint)
