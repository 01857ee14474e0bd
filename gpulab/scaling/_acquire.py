"""Where the points of a crossover come from: given ones are chosen from, others are measured."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from gpulab import device, gpus
from gpulab.errors import InvalidOptionError
from gpulab.progress import Bar
from gpulab.sweeps import Point, Task
from gpulab.virtual import virtual_gpu
from gpulab.workloads import workload

# A CPU needs minutes for what a GPU does in milliseconds: sizes beyond the first slow one are
# left out where nobody asked for them.
_SLOW_S = 0.25


class HasPoints(Protocol):
    """A recording, or a sweep."""

    @property
    def points(self) -> tuple[Point, ...]:
        """What was found."""
        ...


Source = HasPoints | list[Point] | tuple[Point, ...] | str | Path | None
Take = Callable[[Task], Point]


@dataclass(frozen=True, slots=True)
class Request:
    """What one curve is to hold: a task at any size, and the sizes that were asked for."""

    task: Task
    sizes: tuple[int, ...] | None

    def fits(self, point: Point) -> bool:
        """Tell whether a point is one of the curve's, whatever its threads are."""
        asked_for = self.sizes is None or point.task.size in self.sizes
        return asked_for and _way(point.task) == _way(self.task)


def _way(task: Task) -> tuple[str, ...]:
    return (task.workload, task.on, task.dtype, task.method, task.cache, task.transfers)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The curves of a crossover; ``moved`` is the GPU with transfers, None: not to be timed."""

    cpu: Request
    bare: Request
    moved: Request | None


@dataclass(frozen=True, slots=True)
class Taken:
    """The points of the curves; no ``moved`` ones where they are to be computed."""

    cpu: tuple[Point, ...]
    bare: tuple[Point, ...]
    moved: tuple[Point, ...] = ()


def acquire(
    wanted: Wanted, source: Source, gpu: str | None, take: Take, *, progress: bool
) -> Taken:
    """Take the points from a source, or measure them, or both.

    Parameters
    ----------
    wanted
        The curves.
    source
        Points that there are already; None: everything is measured.
    gpu
        The virtual GPU that computes the GPU's times if the source has none of such a GPU.
    take
        Measures one point.
    progress
        Whether to show a bar.
    """
    points = _given(source)
    if points is None:
        cpu = tuple(measured(wanted.cpu, take, progress=progress))
    else:
        cpu = need(points, wanted.cpu)
        points = points if gpu is None else _of_gpu(points, gpu)
    # Times of the GPU that the source has are real ones, or at least of the same machine.
    if points:
        moved = choose(points, wanted.moved) if wanted.moved else ()
        return Taken(cpu, need(points, wanted.bare), moved)
    # Elsewhere there is nothing to compare a computed time with.
    asked = wanted.bare.sizes or (None if source is None else _sizes(cpu))
    with lent(gpu):
        both = [
            tuple(measured(replace(request, sizes=asked), take, progress=progress))
            for request in (wanted.bare, wanted.moved)
            if request is not None
        ]
    return Taken(cpu, *both)


def _given(source: Source) -> tuple[Point, ...] | None:
    if source is None:
        return None
    if isinstance(source, str | Path):
        from gpulab import recordings

        return recordings.load(source).points
    if isinstance(source, list | tuple):
        return tuple(source)
    return source.points


def _sizes(points: Iterable[Point]) -> tuple[int, ...]:
    return tuple(sorted({point.task.size for point in points}))


def _of_gpu(points: Iterable[Point], gpu: str) -> tuple[Point, ...]:
    driver_name = gpus.gpu(gpu).driver_name
    return tuple(point for point in points if point.device_name == driver_name)


def choose(points: Iterable[Point], request: Request) -> tuple[Point, ...]:
    """Return the points of one curve, none if there are none.

    Without a number of threads in the request those points are taken for which torch was left
    as it is set, or else those of the most threads.
    """
    fitting = [point for point in points if request.fits(point)]
    if request.task.on == "gpu" or not fitting:
        return tuple(fitting)
    counts = {point.task.n_threads for point in fitting}
    wanted = request.task.n_threads
    if wanted is None and None not in counts:
        wanted = max(count for count in counts if count is not None)
    return tuple(point for point in fitting if point.task.n_threads == wanted)


def need(points: Iterable[Point], request: Request) -> tuple[Point, ...]:
    """Return the points of one curve.

    Raises
    ------
    InvalidOptionError
        If there are none; the message says what there is instead.
    """
    points = tuple(points)
    found = choose(points, request)
    if found:
        return found
    wanted = request.task
    alike = (
        p.task for p in points if (p.task.workload, p.task.on) == (wanted.workload, wanted.on)
    )
    known = "; ".join(sorted({_kind(task) for task in alike})) or "nothing"
    sizes = "" if request.sizes is None else f" at n = {', '.join(map(str, request.sizes))}"
    raise InvalidOptionError(
        f"the source has no times of {wanted.workload}{sizes} for {_kind(wanted)}; of this "
        f"workload it has there: {known}. Ask for one of these, or leave source out to measure"
    )


def _kind(task: Task) -> str:
    """Write everything of a task but its workload and its size."""
    if task.on == "cpu":
        threads = "" if task.n_threads is None else f", {task.n_threads} threads"
        return f"{task.dtype} on the CPU{threads}"
    moved = "" if task.transfers == "none" else f", transfers {task.transfers}"
    return f"{task.dtype} on the GPU, {task.method}, {task.cache}{moved}"


def measured(request: Request, take: Take, *, progress: bool) -> Iterator[Point]:
    """Measure a curve here, size by size.

    Where no sizes were asked for, the catalogue's are taken; on the CPU up to the first one that
    takes long, and the others are points that say so.
    """
    slow_s = 0.0
    sizes = request.sizes or workload(request.task.workload).sizes
    name = f"{request.task.workload} on the {request.task.on.upper()}"
    for size in Bar(sizes, desc=name, unit="size", disable=not progress):
        task = replace(request.task, size=size)
        if slow_s:
            yield Point(task, error=f"left out: the size before took {slow_s:.2g} s a call")
            continue
        point = take(task)
        if request.sizes is None and task.on == "cpu" and point.median_s > _SLOW_S:
            slow_s = point.median_s
        yield point


@contextmanager
def lent(gpu: str | None) -> Iterator[None]:
    """Put the GPU in use behind ``torch.cuda``, or the virtual one of a name in its place.

    Raises
    ------
    UnknownNameError
        If there is no such GPU; the message names the nearest.
    """
    with device.active() if gpu is None else _virtual(gpu):
        yield


@contextmanager
def _virtual(gpu: str) -> Iterator[None]:
    made = virtual_gpu(gpu)  # may refuse the name, and then nothing was left
    with device.outside(), made:
        yield
