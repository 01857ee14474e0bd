"""What a survey is going to do, how long that takes, and what it leaves out."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpulab import (
    _survey_clocks,
    _survey_first_use,
    _survey_streams,
    _survey_transfers,
    device,
    roofline,
)
from gpulab._recordings_file import Contents
from gpulab._sources import place
from gpulab._survey_log import LEFT_OUT, found_in
from gpulab._survey_points import Job, jobs, told, too_long
from gpulab._sweep_take import Effort
from gpulab.errors import InvalidOptionError, UnknownNameError
from gpulab.units import format_time

EFFORT = Effort(precision=0.02, max_time_s=0.2)
_PER_MINUTE_S = 60
_QUICK_SHARE = 4  # of the seconds that a part takes

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A section of a recording that is no list of points.

    Attributes
    ----------
    name, summary
        What it is called, and what it is.
    rows
        Measures it.
    estimate_s
        Seconds that it takes on an H200 and its host.
    """

    name: str
    summary: str
    rows: Callable[..., Iterable[Row]]
    estimate_s: float


def _ceilings(*, quick: bool) -> list[Row]:
    return roofline.measure_ceilings(max_time_s=0.05 if quick else 0.2).to_rows()


_PARTS = (
    Part("first_use", "what is paid once, in fresh processes", _survey_first_use.rows, 16),
    Part("ceilings", "bandwidth, arithmetic, cache and floor", _ceilings, 5),
    Part("transfers", "copies by size, direction and memory", _survey_transfers.rows, 12),
    Part("streams", "what overlaps", _survey_streams.rows, 5),
    Part("clocks", "clock, power and heat over time", _survey_clocks.rows, 11),
)
_POINTS = ("catalogue", "crossover", "cpu")
SECTIONS = (*(part.name for part in _PARTS), *_POINTS)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a survey is going to do, most valuable first.

    Attributes
    ----------
    machine
        The GPU, and whether it is a virtual one.
    limit_s
        When to stop.
    parts, jobs
        What is to be measured.
    left_out
        Keys of the tasks that are not, and why.
    n_done
        Points and sections that the file has already.
    """

    machine: str
    limit_s: float
    parts: tuple[Part, ...]
    jobs: tuple[Job, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    n_done: int = 0

    @property
    def estimate_s(self) -> float:
        """Seconds that all of it takes, as far as data sheets tell."""
        return sum(part.estimate_s for part in self.parts) + sum(
            job.estimate_s for job in self.jobs
        )

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield (
            f"Recording {self.machine}: about {format_time(self.estimate_s, 2)}, "
            f"and {format_time(self.limit_s, 2)} at most"
        )
        if self.n_done:
            yield f"  {self.n_done:,} points and sections are in the file already"
        for part in self.parts:
            yield f"  {part.name}: {part.summary}, {format_time(part.estimate_s, 2)}"
        if self.jobs:
            points_s = sum(job.estimate_s for job in self.jobs)
            yield f"  {len(self.jobs):,} points, {format_time(points_s, 2)}: {told(self.jobs)}"
        if self.left_out:
            yield f"  left out, as they would take too long: {len(self.left_out):,} points"
        if late := self._late():
            yield f"  the time will probably end before these: {told(late)}"

    def _late(self) -> Sequence[Job]:
        """Return the jobs at the end for which there will be no time."""
        left_s = self.limit_s - sum(part.estimate_s for part in self.parts)
        for index, job in enumerate(self.jobs):
            left_s -= job.estimate_s
            if left_s < 0:
                return self.jobs[index:]
        return ()


def plan(
    out: str | Path | None = None,
    *,
    minutes: float = 10.0,
    sections: Iterable[str] | None = None,
    quick: bool = False,
) -> Plan:
    """Return what :func:`gpulab.surveying.record` would do, and how long that would take.

    Parameters
    ----------
    out, minutes, sections, quick
        As for :func:`gpulab.surveying.record`; without a file nothing counts as done.

    Raises
    ------
    InvalidOptionError, UnknownNameError, RecordingError
        As :func:`gpulab.surveying.record` does.
    """
    if not minutes > 0:
        raise InvalidOptionError(f"minutes={minutes}; it must be more than 0")
    wanted = SECTIONS if sections is None else tuple(sections)
    for name in wanted:
        if name not in SECTIONS:
            raise UnknownNameError("section", name, SECTIONS)
    before = None if out is None else found_in(Path(out))
    done = set() if before is None else _done(before)
    gpu = device.current()
    share = _QUICK_SHARE if quick else 1
    parts = [
        replace(part, estimate_s=part.estimate_s / share)
        for part in _PARTS
        if part.name in wanted and part.name not in done
    ]
    todo = jobs(gpu.name, wanted, max_time_s=EFFORT.max_time_s, quick=quick)
    reasons = {job.task.key: too_long(job) for job in todo}
    return Plan(
        machine=place(gpu.name, gpu.source),
        limit_s=minutes * _PER_MINUTE_S,
        parts=tuple(parts),
        jobs=tuple(job for job in todo if not reasons[job.task.key] and job.task.key not in done),
        left_out={key: reason for key, reason in reasons.items() if reason},
        n_done=len(done),
    )


def _done(before: Contents) -> set[str]:
    """Return keys and names of what need not be measured again; what failed is tried again."""
    points = {key for key, point in before.points.items() if point.ok}
    return points | {*before.sections} - {LEFT_OUT}
