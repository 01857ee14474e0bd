"""Summarize the answers: how far each tool is from the referee, over all cases."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.common.tool import DEFAULT

Record = dict[str, Any]

_SHORT_US = 1000.0  # answers about work shorter than this have a goal for their wall time


@dataclass(frozen=True, slots=True)
class Point:
    """One answer of a tool, with the referee's readings of the same case.

    Attributes
    ----------
    case
        Name of the work.
    us
        The tool's answer, in microseconds.
    referee_us
        The referee's median. It includes the gaps between kernels if the tool counts them, minus
        what the profiler adds to these gaps.
    recorded_us
        The same median, before that subtraction.
    clean_us
        The referee's median after a flush that leaves no dirty lines.
    n_records
        Number of kernels, copies and fills that the work consists of.
    low_us, high_us
        Ends of the interval that the tool reports, or NaN if it reports none.
    wall_s
        Wall time of the answer.
    """

    case: str
    us: float
    referee_us: float
    recorded_us: float
    clean_us: float
    n_records: int
    low_us: float
    high_us: float
    wall_s: float

    @property
    def error_us(self) -> float:
        """Signed error in microseconds."""
        return self.us - self.referee_us

    @property
    def error(self) -> float:
        """Signed error as a share of the referee's time."""
        return self.error_us / self.referee_us

    @property
    def recorded_error(self) -> float:
        """Signed relative error against the records before any correction."""
        return self.us / self.recorded_us - 1

    @property
    def clean_error(self) -> float:
        """Signed relative error against the same work on a cold cache without dirty lines."""
        return self.us / self.clean_us - 1

    @property
    def has_interval(self) -> bool:
        """Whether the tool reported an interval, even one of width zero."""
        return not math.isnan(self.low_us)

    @property
    def holds(self) -> bool:
        """Whether the interval contains the referee's median."""
        return self.low_us <= self.referee_us <= self.high_us


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: a tool, its answers and its failures.

    Attributes
    ----------
    name, owner, state, interval
        As in :class:`benchmarks.common.tool.Tool`.
    points
        Its answers.
    failures
        Cases that it did not answer, with the reason.
    """

    name: str
    owner: str
    state: str
    interval: str
    points: tuple[Point, ...]
    failures: dict[str, str]

    def only(self, *, single: bool) -> "Row":
        """Return a row with only the works of a single kernel or copy, or only the others."""
        chosen = tuple(point for point in self.points if (point.n_records == 1) is single)
        return replace(self, points=chosen)

    @property
    def is_hot(self) -> bool:
        """Whether it times with a warm cache."""
        return self.state == "hot"

    @property
    def median_error_us(self) -> float:
        """Median of the absolute errors, in microseconds."""
        return statistics.median(abs(point.error_us) for point in self.points)

    @property
    def median_error(self) -> float:
        """Median of the absolute relative errors."""
        return statistics.median(abs(point.error) for point in self.points)

    @property
    def mean_error(self) -> float:
        """Mean of the absolute relative errors."""
        return statistics.fmean(abs(point.error) for point in self.points)

    @property
    def bias_us(self) -> float:
        """Median of the signed errors, in microseconds."""
        return statistics.median(point.error_us for point in self.points)

    @property
    def clean_error(self) -> float:
        """Mean of the absolute relative errors against a cold cache without dirty lines."""
        return statistics.fmean(abs(point.clean_error) for point in self.points)

    @property
    def recorded_error(self) -> float:
        """Mean of the absolute relative errors against the records before any correction."""
        return statistics.fmean(abs(point.recorded_error) for point in self.points)

    @property
    def worst(self) -> Point:
        """The answer with the largest relative error."""
        return max(self.points, key=lambda point: abs(point.error))

    @property
    def wall_s(self) -> float:
        """Median wall time of an answer."""
        return statistics.median(point.wall_s for point in self.points)

    @property
    def short_wall_s(self) -> float:
        """Median wall time of an answer about work of less than 1 ms."""
        return statistics.median(
            point.wall_s for point in self.points if point.referee_us < _SHORT_US
        )

    @property
    def coverage(self) -> float | None:
        """Share of the intervals that contain the referee's median, or None without intervals."""
        # Tools without an interval are left out; they have no coverage, rather than one of zero.
        known = [point.holds for point in self.points if point.has_interval]
        return sum(known) / len(known) if known else None


def rows(results: Record) -> list[Row]:
    """Return a row for each tool that answered, in the order of the file."""
    made = [_row(name, tool, results["cases"]) for name, tool in results["tools"].items()]
    return [row for row in made if row.points]


def own_row(listed: Iterable[Row]) -> Row | None:
    """Return the row of ``gpulab.measure`` without options, or None if it gave no answer."""
    return next((row for row in listed if row.name == DEFAULT), None)


def _row(name: str, tool: Record, cases: Iterable[Record]) -> Row:
    points, failures = [], {}
    for case in cases:
        answer = case.get("answers", {}).get(name)
        if answer is None:
            continue
        if "error" in answer:
            failures[case["name"]] = answer["error"]
        else:
            points.append(_point(case, answer, tool))
    return Row(name, tool["owner"], tool["state"], tool["interval"], tuple(points), failures)


def _point(case: Record, answer: Record, tool: Record) -> Point:
    # As `_spread` of benchmarks.accuracy.run writes them: smallest, median and largest span, and
    # median busy time.
    _, span_us, _, busy_us = case["read_us"]
    return Point(
        case=case["name"],
        us=answer["us"],
        referee_us=answer["referee_us"],
        recorded_us=answer["recorded_us"],
        clean_us=span_us - case["stretch_us"] if tool["counts_gaps"] else busy_us,
        n_records=case["n_records"],
        low_us=answer.get("low_us", math.nan),
        high_us=answer.get("high_us", math.nan),
        wall_s=answer["wall_s"],
    )


def range_us(results: Record) -> tuple[float, float]:
    """Return the shortest and the longest work that was timed, in microseconds."""
    times: Sequence[float] = [case["read_us"][1] for case in results["cases"] if "read_us" in case]
    return min(times), max(times)
