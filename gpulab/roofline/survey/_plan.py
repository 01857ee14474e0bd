"""Plan a survey: which points it measures, in which order, and about for how long.

The most useful ones come first, because a survey may have to end early.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpulab import device
from gpulab.core.errors import RecordingError
from gpulab.core.requirements import FLAG, PATH, POSITIVE, NameOf, items_of
from gpulab.core.units import counted, format_time
from gpulab.gpus.provenance import device_label
from gpulab.timing import MeasurementOptions
from gpulab.workloads import WORKLOADS, Workload
from gpulab.workloads.sweeps import FileContents, Point, Task, read_recording

CEILINGS = "ceilings"
SECTIONS = (CEILINGS, "catalogue", "crossover", "cpu")
LEFT_OUT = "left_out"  # the section that says what was not measured, and why

# The eight workloads of the crossover, which are also measured on one thread of the CPU.
_ONE_THREAD = ("matmul", "add", "exp", "sum", "sort", "fft", "conv3x3", "softmax")
_QUICK = ("matmul", "add", "softmax")
_N_FEW, _N_MANY, _N_QUICK = 4, 7, 3
_N_ALL = 99
_SMALLER = (16, 4)
_OTHER_TYPES = ("float16", "float64")
_MOST_COPIED_BYTES = 1 << 30
EFFORT = MeasurementOptions(precision=0.02, max_time_s=0.2)
# An H100 and its host took 345 s for 2,817 points, and 5 s for the ceilings.
_POINT_S, _CEILINGS_S = 0.12, 5.0
_PER_MINUTE_S = 60


def plan_tasks(sections: Iterable[str], *, quick: bool) -> list[Task]:
    """Return the tasks of some sections, the most useful first.

    A quick plan has three workloads at three sizes in one type.
    """
    wanted = set(sections)
    groups = (tasks for section, tasks in _groups(quick=quick) if section in wanted)
    # Groups overlap: a later one repeats sizes of an earlier one and adds more.
    return list(dict.fromkeys(itertools.chain.from_iterable(groups)))


def _groups(*, quick: bool) -> Iterator[tuple[str, Iterator[Task]]]:
    """Yield the section and the tasks of each group, the most useful first."""
    names = _QUICK if quick else tuple(WORKLOADS)
    few, many = (_N_QUICK, _N_QUICK) if quick else (_N_FEW, _N_MANY)
    single = ("float32",)
    # The lessons and the model of the GPU need these.
    yield "catalogue", _calibrated(names, few, single)
    # The two sides of the crossover; one without the other is useless.
    yield "crossover", _waited(names, many)
    yield "cpu", _on_cpu(names, many)
    if not quick:
        # Peaks differ by type, so the roofline of one type says little about another.
        yield "catalogue", _calibrated(names, few, None)
    yield "crossover", _waited(names, many, ("both",))
    if not quick:
        # The rest only adds points to curves that the groups above have begun.
        yield "catalogue", _calibrated(names, many, single)
        yield "crossover", _waited(names, many, ("in", "out"))
        yield "cpu", _on_cpu(_ONE_THREAD, many, n_threads=1)
        yield "crossover", _waited(names, _N_ALL, ("none", "both"))
        yield "cpu", _on_cpu(names, _N_ALL)
        for dtype in _OTHER_TYPES:
            yield "crossover", _waited(names, few, dtype=dtype)
            yield "cpu", _on_cpu(names, few, dtype=dtype)


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


def _copies_too_much(task: Task) -> bool:
    size_bytes = WORKLOADS[task.workload].bytes(task.size, task.dtype)
    return task.transfers != "none" and size_bytes > _MOST_COPIED_BYTES


@dataclass(frozen=True, slots=True)
class SurveyPlan:
    """What a survey will measure, the most useful first, and about how long it will take.

    ``gpu`` says whether it is a virtual one, and ``limit_s`` when to stop. ``before`` has the
    points of an earlier run by the key of their task, and ``n_done`` counts those of them, and
    sections, that are not measured again. ``left_out`` has the keys of tasks that will not be
    measured, and why.
    """

    gpu: str
    limit_s: float
    has_ceilings: bool
    tasks: tuple[Task, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, Point] = field(default_factory=dict)
    n_done: int = 0

    @property
    def estimate_s(self) -> float:
        """Seconds that everything takes on an H100 and its host."""
        return _CEILINGS_S * self.has_ceilings + _POINT_S * len(self.tasks)

    def __str__(self) -> str:
        ceilings = "the ceilings and " if self.has_ceilings else ""
        done = f"; {counted(self.n_done, 'result')} already in the file" if self.n_done else ""
        return (
            f"Recording {self.gpu}: {ceilings}{counted(len(self.tasks), 'point')}, about "
            f"{format_time(self.estimate_s, 2)} on an H100 and {format_time(self.limit_s, 2)} at "
            f"most{done}"
        )


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
    before = FileContents({}) if out is None else _read_earlier(Path(out))
    # Points that failed are tried again.
    measured = {key for key, point in before.points.items() if point.ok}
    measured |= before.sections.keys() - {LEFT_OUT}
    planned = {task.key: task for task in plan_tasks(wanted, quick=quick)}
    left_out = {
        str(row.get("what")): str(row.get("reason")) for row in before.sections.get(LEFT_OUT, ())
    }
    for key, task in planned.items():
        left_out.pop(key, None)  # it is measured now, or left out for another reason
        if _copies_too_much(task):
            left_out[key] = "its data are larger than a survey copies"
    gpu = device.current()
    return SurveyPlan(
        gpu=device_label(gpu.name, gpu.source),
        limit_s=minutes * _PER_MINUTE_S,
        has_ceilings=CEILINGS in wanted and CEILINGS not in measured,
        tasks=tuple(
            task for key, task in planned.items() if key not in measured | left_out.keys()
        ),
        left_out={key: reason for key, reason in left_out.items() if key not in measured},
        before=before.points,
        n_done=len(measured),
    )


def _read_earlier(path: Path) -> FileContents:
    """Return what an earlier run has written; nothing if there is no file."""
    if path.suffix == ".gz":
        raise RecordingError(
            f"{path} would be a compressed file, and results cannot be added to one; record to a "
            "name that ends in .jsonl, and compress it afterwards: gpulab.recordings.save(...)"
        )
    # tempfile creates empty files, and writing to one loses nothing.
    if path.exists() and path.stat().st_size:
        return read_recording(path, unfinished=True)
    return FileContents({})
