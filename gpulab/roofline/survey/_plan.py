"""Plan a survey: which points and sections it measures, in which order, and for how long.

The most useful ones come first, because a survey may have to end early.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from gpulab import device, gpus, roofline
from gpulab.core.requirements import FLAG, PATH, POSITIVE, NameOf, items_of
from gpulab.core.units import counted, format_time
from gpulab.gpus.provenance import device_label
from gpulab.roofline.survey import _transfers
from gpulab.roofline.survey._journal import LEFT_OUT, read_earlier
from gpulab.timing import MeasurementOptions
from gpulab.workloads import WORKLOADS, Workload
from gpulab.workloads.sweeps import FileContents, Point, Row, Task

# The eight workloads of the crossover, which are also measured on one thread of the CPU.
_ONE_THREAD = ("matmul", "add", "exp", "sum", "sort", "fft", "conv3x3", "softmax")
_QUICK = ("matmul", "add", "softmax")
_N_FEW, _N_MANY, _N_QUICK = 4, 7, 3
_N_ALL = 99
_SMALLER = (16, 4)
_OTHER_TYPES = ("float16", "float64")
LONGEST_GPU_S = 0.1  # a task whose call takes longer is left out
LONGEST_CPU_S = 0.08
_MOST_COPIED_BYTES = 1 << 30
# Seconds of a point in addition to its calls, and the number of calls, on an H200 and its host.
_GPU_OVERHEAD_S, _CPU_OVERHEAD_S = 0.04, 0.02
_N_CALLS = 25
# Rough rates for the estimates: work in the catalogue reaches about this share of a GPU's data
# sheet; the others are for a GPU without a data sheet, the link to the host and a typical CPU.
_SHARE = 0.4
_UNKNOWN_FLOPS, _UNKNOWN_BYTES = 5e12, 3e11
_LINK_BYTES = 2e10
_CPU_FLOPS, _CPU_BYTES = 2e11, 1e10
# Bytes of random inputs that a CPU makes in a second; a GPU needs almost no time for them.
_DRAWN_BYTES = 1e9
_MOST_BEYOND = 20
TOO_LONG = "one call takes too long"
EFFORT = MeasurementOptions(precision=0.02, max_time_s=0.2)
_PER_MINUTE_S = 60
_QUICK_SHARE = 4  # a quick survey divides the seconds of a section by this


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A task of a survey for some purpose, with rough times of one call and of the whole point."""

    task: Task
    group: str
    call_s: float
    estimate_s: float


def plan_tasks(
    gpu_name: str, sections: Iterable[str], *, max_time_s: float, quick: bool
) -> list[PlannedTask]:
    """Return the tasks of some sections, the most useful first.

    The GPU is called as by the driver; without a data sheet for it the estimates are rougher. The
    sections are some of ``"catalogue"``, ``"crossover"`` and ``"cpu"``. ``max_time_s`` limits the
    samples of one point. A quick plan has three workloads at three sizes in one type.
    """
    wanted = set(sections)
    # Rough estimates are enough: they do not set the order, only what fits into the time.
    spec = gpus.by_driver_name(gpu_name)
    keys: set[str] = set()
    planned = []
    for section, group, tasks in _groups(quick=quick):
        for task in tasks if section in wanted else ():
            # Groups overlap: a later one repeats sizes of an earlier one and adds more.
            if task.key not in keys:
                keys.add(task.key)
                planned.append(_planned(task, group, spec, max_time_s))
    return planned


def reason_to_skip(planned: PlannedTask) -> str:
    """Return why a task is left out of the plan; empty if it is not."""
    if planned.task.on == "gpu" and planned.call_s > LONGEST_GPU_S:
        return TOO_LONG
    if planned.task.transfers != "none" and _bytes(planned.task) > _MOST_COPIED_BYTES:
        return "its data are larger than a survey copies"
    return ""


def count_groups(tasks: Sequence[PlannedTask]) -> str:
    """Return how many tasks each group has, as text."""
    sizes = Counter(task.group for task in tasks)
    return ", ".join(f"{n:,} of {group}" for group, n in sizes.items())


def scaled_s(task: Task, smaller: Point) -> float:
    """Return the longest time that a CPU call should take, scaled up from a smaller size."""
    flops = _flops(task) / max(1, _flops(smaller.task))
    # The faster growing of the two, because which one bounds the work is unknown here.
    growth = max(flops, _bytes(task) / _bytes(smaller.task))
    # A time far above the estimate is mostly a fixed cost, which does not grow with the size.
    return growth * min(smaller.median_s, _MOST_BEYOND * _cpu_call_s(smaller.task))


def _groups(*, quick: bool) -> Iterator[tuple[str, str, Iterator[Task]]]:
    """Yield section, name and tasks of each group, the most useful first."""
    names = _QUICK if quick else tuple(WORKLOADS)
    few, many = (_N_QUICK, _N_QUICK) if quick else (_N_FEW, _N_MANY)
    single = ("float32",)
    # The lessons and the model of the GPU need these.
    yield "catalogue", "float32 hot and cold", _calibrated(names, few, single)
    # The two sides of the crossover; one without the other is useless.
    yield "crossover", "launch and wait", _waited(names, many)
    yield "cpu", "the CPU", _on_cpu(names, many)
    if not quick:
        # Peaks differ by type, so the roofline of one type says little about another.
        yield "catalogue", "other types hot and cold", _calibrated(names, few, None)
    yield "crossover", "transfers both ways", _waited(names, many, ("both",))
    if not quick:
        # The rest only adds points to curves that the groups above have begun.
        yield "catalogue", "more sizes in float32", _calibrated(names, many, single)
        yield "crossover", "transfers one way", _waited(names, many, ("in", "out"))
        yield "cpu", "one thread of the CPU", _on_cpu(_ONE_THREAD, many, n_threads=1)
        yield "crossover", "sizes in between", _waited(names, _N_ALL, ("none", "both"))
        yield "cpu", "sizes in between", _on_cpu(names, _N_ALL)
        for dtype in _OTHER_TYPES:
            yield "crossover", "other types", _waited(names, few, dtype=dtype)
            yield "cpu", "other types", _on_cpu(names, few, dtype=dtype)


def _calibrated(names: Iterable[str], n: int, dtypes: tuple[str, ...] | None) -> Iterator[Task]:
    for name in names:
        workload = WORKLOADS[name]
        kinds = dtypes or workload.dtypes
        for dtype, size, cache in itertools.product(kinds, _spread(workload, n), ("cold", "hot")):
            yield Task(name, size, dtype, cache=cache)


def _waited(
    names: Iterable[str], n: int, transfers: tuple[str, ...] = ("none",), *, dtype: str = "float32"
) -> Iterator[Task]:
    for workload, moved in itertools.product(_offering(names, dtype), transfers):
        for size in _from_below(workload, n):
            yield Task(
                workload.name, size, dtype, cache="hot", method="synchronized", transfers=moved
            )


def _on_cpu(
    names: Iterable[str], n: int, *, dtype: str = "float32", n_threads: int | None = None
) -> Iterator[Task]:
    for workload in _offering(names, dtype):
        for size in _from_below(workload, n):
            yield Task(workload.name, size, dtype, on="cpu", n_threads=n_threads)


def _offering(names: Iterable[str], dtype: str) -> list[Workload]:
    return [WORKLOADS[name] for name in names if dtype in WORKLOADS[name].dtypes]


def _spread(workload: Workload, n: int) -> tuple[int, ...]:
    """Return ``n`` of a workload's sizes at even steps, including the smallest and the largest."""
    sizes = workload.sizes
    n = min(n, len(sizes))
    # The smallest size shows the fixed cost, and the largest shows the slope.
    return tuple(sizes[round(step * (len(sizes) - 1) / (n - 1))] for step in range(n))


def _from_below(workload: Workload, n: int) -> tuple[int, ...]:
    """Return :func:`_spread` and two smaller sizes, because GPUs often win at all the others."""
    first = workload.sizes[0]
    smaller = (first // share for share in _SMALLER if first >= share)
    return (*smaller, *_spread(workload, n))


def _planned(task: Task, group: str, spec: gpus.GpuSpec | None, max_time_s: float) -> PlannedTask:
    call_s = _cpu_call_s(task) if task.on == "cpu" else _gpu_call_s(task, spec)
    overhead_s = _GPU_OVERHEAD_S
    if task.on == "cpu":
        overhead_s = _CPU_OVERHEAD_S + _bytes(task) / _DRAWN_BYTES
        if call_s > LONGEST_CPU_S:  # left out later, by the time of a smaller size
            return PlannedTask(task, group, call_s, 0.0)
    # Warm-up and samples each end when their time is over, after the call that runs then.
    calls_s = min(_N_CALLS * call_s, 2 * max_time_s + 5 * call_s)
    return PlannedTask(task, group, call_s, overhead_s + calls_s)


def _gpu_call_s(task: Task, spec: gpus.GpuSpec | None) -> float:
    flops_per_s, bytes_per_s = _UNKNOWN_FLOPS, _UNKNOWN_BYTES
    if spec is not None:
        flops_per_s = _SHARE * spec.peak_flops_per_s[task.dtype]
        bytes_per_s = _SHARE * spec.bandwidth_bytes_per_s
    work_s = max(_flops(task) / flops_per_s, _bytes(task) / bytes_per_s)
    # Counts all data, inputs and results; copies one way take less.
    return work_s + (0.0 if task.transfers == "none" else _bytes(task) / _LINK_BYTES)


def _cpu_call_s(task: Task) -> float:
    # Memory-bound work gains less from threads, so with one thread this estimate is too long
    # rather than too short.
    share = 1.0 if task.n_threads is None else task.n_threads / torch.get_num_threads()
    return max(_flops(task) / _CPU_FLOPS, _bytes(task) / _CPU_BYTES) / min(1.0, share)


def _flops(task: Task) -> int:
    return WORKLOADS[task.workload].flops(task.size)


def _bytes(task: Task) -> int:
    return WORKLOADS[task.workload].bytes(task.size, task.dtype)


@dataclass(frozen=True, slots=True)
class SurveySection:
    """A section of a recording whose rows have columns of their own, unlike points.

    ``rows`` measures it, and ``estimate_s`` is what that takes on an H200 and its host.
    """

    name: str
    summary: str
    rows: Callable[..., Iterable[Row]]
    estimate_s: float


def _ceilings(*, quick: bool) -> list[Row]:
    return roofline.measure_ceilings(max_time_s=0.05 if quick else 0.2).to_rows()


_ROW_SECTIONS = (
    SurveySection("ceilings", "bandwidth, arithmetic, cache and floor", _ceilings, 5),
    SurveySection("transfers", "copies by size, direction and memory", _transfers.rows, 12),
)
_POINT_SECTIONS = ("catalogue", "crossover", "cpu")
SECTIONS = (*(part.name for part in _ROW_SECTIONS), *_POINT_SECTIONS)


@dataclass(frozen=True, slots=True)
class SurveyPlan:
    """What a survey will measure, the most useful first, and how long it will take.

    ``gpu`` says whether it is a virtual one, and ``limit_s`` when to stop. ``left_out``
    has the keys of tasks that will not be measured, and why. ``n_done`` counts the points and
    sections that the file already has.
    """

    gpu: str
    limit_s: float
    sections: tuple[SurveySection, ...]
    tasks: tuple[PlannedTask, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    n_done: int = 0

    @property
    def estimate_s(self) -> float:
        """Seconds that everything takes, estimated from data sheets."""
        return sum(part.estimate_s for part in self.sections) + sum(
            planned.estimate_s for planned in self.tasks
        )

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield (
            f"Recording {self.gpu}: about {format_time(self.estimate_s, 2)}, "
            f"and {format_time(self.limit_s, 2)} at most"
        )
        if self.n_done:
            yield f"  {counted(self.n_done, 'result')} already in the file"
        for part in self.sections:
            yield f"  {part.name}: {part.summary}, {format_time(part.estimate_s, 2)}"
        if self.tasks:
            points_s = sum(planned.estimate_s for planned in self.tasks)
            groups = count_groups(self.tasks)
            n_points = counted(len(self.tasks), "point")
            yield f"  {n_points}, {format_time(points_s, 2)}: {groups}"
        if self.left_out:
            n_points = counted(len(self.left_out), "point")
            yield f"  left out, because of the time they would take: {n_points}"
        if late := self._late():
            yield f"  the time will probably end before these: {count_groups(late)}"

    def _late(self) -> Sequence[PlannedTask]:
        """Return the tasks at the end for which there will be no time."""
        left_s = self.limit_s - sum(part.estimate_s for part in self.sections)
        for index, planned in enumerate(self.tasks):
            left_s -= planned.estimate_s
            if left_s < 0:
                return self.tasks[index:]
        return ()


def plan(
    out: str | Path | None = None,
    *,
    minutes: float = 10.0,
    sections: Iterable[str] | None = None,
    quick: bool = False,
) -> SurveyPlan:
    """Return what :func:`gpulab.roofline.survey.record` would measure, and how long it would take.

    Arguments and errors are those of ``record``. Without a file, nothing is measured yet.
    """
    POSITIVE.check(minutes=minutes)
    PATH.or_none.check(out=out)
    FLAG.check(quick=quick)
    names = SECTIONS if sections is None else sections
    wanted = items_of("sections", names, NameOf("section", SECTIONS))
    before = None if out is None else read_earlier(Path(out))
    done = set() if before is None else _done(before)
    gpu = device.current()
    share = _QUICK_SHARE if quick else 1
    chosen = [
        replace(part, estimate_s=part.estimate_s / share)
        for part in _ROW_SECTIONS
        if part.name in wanted and part.name not in done
    ]
    todo = plan_tasks(gpu.name, wanted, max_time_s=EFFORT.max_time_s, quick=quick)
    reasons = {planned.task.key: reason_to_skip(planned) for planned in todo}
    return SurveyPlan(
        gpu=device_label(gpu.name, gpu.source),
        limit_s=minutes * _PER_MINUTE_S,
        sections=tuple(chosen),
        tasks=tuple(
            planned
            for planned in todo
            if not reasons[planned.task.key] and planned.task.key not in done
        ),
        left_out={key: reason for key, reason in reasons.items() if reason},
        n_done=len(done),
    )


def _done(before: FileContents) -> set[str]:
    """Return keys and names of what need not be measured again; failed points are tried again."""
    points = {key for key, point in before.points.items() if point.ok}
    return points | {*before.sections} - {LEFT_OUT}
