"""The points of the curves: select them from a recording or a sweep, or measure them now."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpulab import device, gpus
from gpulab.core.errors import InvalidOptionError
from gpulab.core.interrupts import contextmanager
from gpulab.core.progress import Bar
from gpulab.core.requirements import PATH, instance_of, items_of
from gpulab.core.units import counted
from gpulab.virtual import virtual_gpu
from gpulab.workloads import workload
from gpulab.workloads.sweeps import HasPoints, Point, Task

# A CPU may need minutes for what a GPU does in milliseconds. So, unless the user gives sizes,
# those above the first slow one are left out.
_SLOW_S = 0.25


PointSource = HasPoints | list[Point] | tuple[Point, ...] | str | Path | None
MeasureTask = Callable[[Task], Point]


@dataclass(frozen=True, slots=True)
class CurveRequest:
    """The points that one curve needs: a task, at some sizes or at all sizes of the source."""

    task: Task
    sizes: tuple[int, ...] | None

    def fits(self, point: Point) -> bool:
        """Return whether a point belongs to the curve, with any number of threads."""
        asked_for = self.sizes is None or point.task.size in self.sizes
        return asked_for and _without_size(point.task) == _without_size(self.task)


def _without_size(task: Task) -> tuple[str, ...]:
    # Without the threads too: select_points() chooses among their numbers.
    return (task.workload, task.on, task.dtype, task.method, task.cache, task.transfers)


def collect_points(
    requests: Sequence[CurveRequest],
    source: PointSource,
    gpu: str | None,
    measure: MeasureTask,
    *,
    progress: bool,
) -> list[tuple[Point, ...]]:
    """Return the points of each curve, from a source or measured now.

    The first curve is the CPU's, and the others are the GPU's. The first two must have points;
    others are empty if the source has none.
    ``gpu`` is the virtual GPU that computes the times if the source has none of that GPU.
    """
    points = _points_in(source)
    cpu, *gpu_curves = requests
    if points is None:
        on_cpu = tuple(measure_curve(cpu, measure, progress=progress))
    else:
        on_cpu = require_points(points, cpu)
        points = points if gpu is None else _of_gpu(points, gpu)
    # Times of the source are better than computed ones: measured, or at least of the same machine.
    if points:
        first, *others = gpu_curves
        more = (select_points(points, request) for request in others)
        return [on_cpu, require_points(points, first), *more]
    # Compute times only at the sizes of the CPU, because others could not be compared.
    sizes = gpu_curves[0].sizes or (None if source is None else _sizes(on_cpu))
    sized = [replace(request, sizes=sizes) for request in gpu_curves]
    with gpu_entered(gpu):
        return [on_cpu, *(tuple(measure_curve(r, measure, progress=progress)) for r in sized)]


_POINT = instance_of(Point, "a Point, or the source a sweep or a recording")


def _points_in(source: PointSource) -> tuple[Point, ...] | None:
    if source is None:
        return None
    if isinstance(source, str | Path):
        PATH.check(source=source)
        from gpulab.workloads import recordings

        return recordings.load(source).points
    records: Any = source
    return items_of("source", getattr(records, "points", records), _POINT)


def _sizes(points: Iterable[Point]) -> tuple[int, ...]:
    return tuple(sorted({point.task.size for point in points}))


def _of_gpu(points: Iterable[Point], gpu: str) -> tuple[Point, ...]:
    driver_name = gpus.gpu(gpu).driver_name
    return tuple(point for point in points if point.device_name == driver_name)


def select_points(points: Iterable[Point], request: CurveRequest) -> tuple[Point, ...]:
    """Return the points of one curve; an empty tuple if there are none.

    If the request has no number of threads, these are the points measured with PyTorch's own
    setting, or else those with the most threads.
    """
    fitting = [point for point in points if request.fits(point)]
    if request.task.on == "gpu" or not fitting:
        return tuple(fitting)
    counts = {point.task.n_threads for point in fitting}
    wanted = request.task.n_threads
    if wanted is None and None not in counts:
        wanted = max(count for count in counts if count is not None)
    return tuple(point for point in fitting if point.task.n_threads == wanted)


def require_points(points: Iterable[Point], request: CurveRequest) -> tuple[Point, ...]:
    """Return the points of one curve; if there are none, an error says which the source has."""
    points = tuple(points)
    selected = select_points(points, request)
    if selected:
        return selected
    wanted = request.task
    tasks = (
        p.task for p in points if (p.task.workload, p.task.on) == (wanted.workload, wanted.on)
    )
    available = "; ".join(sorted({_kind(task) for task in tasks})) or "nothing"
    sizes = "" if request.sizes is None else f" at n = {', '.join(map(str, request.sizes))}"
    raise InvalidOptionError(
        f"the source has no times of {wanted.workload}{sizes} for {_kind(wanted)}; for this "
        f"workload it has: {available}. Ask for one of these, or leave source out to measure"
    )


def _kind(task: Task) -> str:
    """Return a task as text, without its workload and its size."""
    if task.on == "cpu":
        threads = "" if task.n_threads is None else f", {counted(task.n_threads, 'thread')}"
        return f"{task.dtype} on the CPU{threads}"
    moved = "" if task.transfers == "none" else f", transfers {task.transfers}"
    return f"{task.dtype} on the GPU, {task.method}, {task.cache}{moved}"


def measure_curve(
    request: CurveRequest, measure: MeasureTask, *, progress: bool
) -> Iterator[Point]:
    """Yield the points of a curve, measured now, size by size.

    Without sizes in the request, the sizes of the catalogue are measured. On the CPU this stops
    after the first slow one, and the points of the others say so.
    """
    slow_s = 0.0
    sizes = request.sizes or workload(request.task.workload).sizes
    name = f"{request.task.workload} on the {request.task.on.upper()}"
    for size in Bar(sizes, desc=name, unit="size", disable=not progress):
        task = replace(request.task, size=size)
        if slow_s:
            yield Point(task, error=f"left out: the size before took {slow_s:.2g} s per call")
            continue
        point = measure(task)
        if request.sizes is None and task.on == "cpu" and point.median_s > _SLOW_S:
            # The first slow size still has a time; the larger ones only say why they have none.
            slow_s = point.median_s
        yield point


@contextmanager
def gpu_entered(gpu: str | None) -> Iterator[None]:
    """Use the virtual GPU of this name inside the block, or the GPU in use if it is None."""
    if gpu is None:
        with device.active():
            yield
    else:
        virtual = virtual_gpu(gpu)  # first, because it raises for an unknown name
        with device.outside(), virtual:
            yield
