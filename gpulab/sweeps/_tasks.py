"""One measurement of a sweep: the task that asks for it, and the point with its time."""

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from gpulab.errors import InvalidOptionError
from gpulab.foreign_text import one_line, visible_row
from gpulab.provenance import check_source
from gpulab.requirements import (
    COUNT,
    NAME,
    NameOf,
    check_fields,
    check_not_negative,
    instance_of,
    items_of,
)
from gpulab.serialization import Saved

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SIDES", "TRANSFERS", "HasPoints", "Point", "Task", "frame_of"]


SIDES = ("gpu", "cpu")
CACHES = ("cold", "hot")
TRANSFERS = ("none", "in", "out", "both")
_SIDE = NameOf("side for on", SIDES)
_CACHE = NameOf("cache state", CACHES)
_TRANSFERS = NameOf("kind of transfers", TRANSFERS)
_N_THREADS = COUNT.or_none
WALL = "wall"  # the one method of the CPU: its clock, read before and after

_TIME_COLUMNS = ("median_s", "low_s", "high_s", "n_samples", "source", "device_name", "clock_mhz")


@dataclass(frozen=True, slots=True)
class Task:
    """One workload at one size, on one side, to be timed in one way.

    Attributes
    ----------
    workload
        A name of :data:`gpulab.workloads.WORKLOADS`.
    size
        In what that workload counts; at least 1.
    dtype
        Name of torch's type.
    on
        ``"gpu"`` or ``"cpu"``.
    cache
        ``"cold"`` or ``"hot"``, of the GPU. On the CPU it is ``"hot"``, whatever was given.
    method
        A method of :func:`gpulab.measure`. On the CPU it is ``"wall"``, whatever was given.
    transfers
        What of the copies between host and GPU is within the timed part: ``"none"``, inputs
        going ``"in"``, results coming ``"out"``, or ``"both"``.
    n_threads
        Of the CPU's work; None: as torch is set.

    Raises
    ------
    UnknownNameError
        If side, cache or transfers are none of the names above.
    InvalidOptionError
        If the size or the number of threads is below 1, if threads are given for the GPU or
        transfers for the CPU.

    Examples
    --------
    >>> Task("add", 4096).key
    'add/4096/float32/gpu/cold/calibrated/none'
    >>> Task("add", 4096, on="cpu", n_threads=2).key
    'add/4096/float32/cpu/hot/wall/none/2'
    """

    workload: str
    size: int
    dtype: str = "float32"
    on: str = "gpu"
    cache: str = "cold"
    method: str = "calibrated"
    transfers: str = "none"
    n_threads: int | None = None

    def __post_init__(self) -> None:
        NAME.check(workload=self.workload, dtype=self.dtype, method=self.method)
        _SIDE.check(on=self.on)
        _CACHE.check(cache=self.cache)
        _TRANSFERS.check(transfers=self.transfers)
        COUNT.check(size=self.size)
        _N_THREADS.check(n_threads=self.n_threads)
        if self.on == "cpu":
            self._settle_on_cpu()
        elif self.n_threads is not None:
            raise InvalidOptionError(
                f"n_threads={self.n_threads} of {self.workload} on the GPU; threads are the "
                "CPU's: leave it out, or take on='cpu'"
            )

    def _settle_on_cpu(self) -> None:
        if self.transfers != "none":
            raise InvalidOptionError(
                f"transfers={self.transfers!r} of {self.workload} on the CPU, whose data are "
                "there already; leave it out, or take on='gpu'"
            )
        # One task has one key: the defaults, which are the GPU's, must not make a second one.
        object.__setattr__(self, "cache", "hot")
        object.__setattr__(self, "method", WALL)

    @property
    def key(self) -> str:
        """Identity of the task, by which a sweep that is resumed knows it again."""
        threads = () if self.n_threads is None else (self.n_threads,)
        parts = (self.workload, self.size, self.dtype, self.on, self.cache, self.method)
        return "/".join(map(str, (*parts, self.transfers, *threads)))

    def __str__(self) -> str:
        how = f"{self.cache}, {self.method}" if self.on == "gpu" else _threads(self.n_threads)
        copied = "" if self.transfers == "none" else f", transfers {self.transfers}"
        return one_line(
            f"{self.workload} n={self.size:,} {self.dtype} on the {self.on.upper()}: {how}{copied}"
        )


def _threads(n_threads: int | None) -> str:
    if n_threads is None:
        return "threads as torch is set"
    return "1 thread" if n_threads == 1 else f"{n_threads} threads"


@dataclass(frozen=True, slots=True)
class Point(Saved):
    """The time of a task, or the reason why there is none.

    Attributes
    ----------
    task
        What was asked for.
    median_s, low_s, high_s
        Median of the samples and its 95 % interval, in seconds per call; 0 where there is an
        error.
    n_samples
        Number of samples; 0 where there is an error.
    source
        ``"measured"`` here, ``"recorded"`` elsewhere, or ``"virtual"``: computed by a model.
    device_name
        The GPU's or the CPU's, as the system reports it.
    floor_s
        What was subtracted from each timed interval; 0 where nothing was.
    clock_mhz
        Clock of the GPU's multiprocessors behind the samples; None where it could not be read.
    findings
        Codes of the doubts about it, see :mod:`gpulab.timing._findings`.
    error
        Why there is no time, in one line; empty where there is one.
    taken_at
        Time at the end, ISO 8601, UTC.

    Raises
    ------
    InvalidOptionError
        If a time is negative or not finite, if the interval is turned round, or if there are
        neither samples nor an error.
    UnknownNameError
        If the source is not one of the three.
    """

    schema: ClassVar[str] = "gpulab.point/1"

    task: Task
    _: KW_ONLY
    median_s: float = 0.0
    low_s: float = 0.0
    high_s: float = 0.0
    n_samples: int = 0
    source: str = "measured"
    device_name: str = ""
    floor_s: float = 0.0
    clock_mhz: int | None = None
    findings: tuple[str, ...] = ()
    error: str = ""
    taken_at: str = ""

    def __post_init__(self) -> None:
        check_fields(self)
        check_source(self.source)
        check_not_negative(self, "median_s", "low_s", "high_s", "floor_s")
        check_not_negative(self, "n_samples", "clock_mhz")
        if self.low_s > self.high_s:
            raise InvalidOptionError(
                f"low_s={self.low_s}, high_s={self.high_s} of {self.task.key}; the low end of an "
                "interval must not be above the high one"
            )
        if not self.error and self.n_samples < 1:
            raise InvalidOptionError(
                f"n_samples={self.n_samples} of {self.task.key} without an error; a point has "
                "samples, or says why it has none"
            )

    @property
    def ok(self) -> bool:
        """Whether there is a time."""
        return not self.error


class HasPoints(Protocol):
    """A sweep, or a recording."""

    @property
    def points(self) -> tuple[Point, ...]:
        """Its points."""
        ...


_POINT = instance_of(Point, "a Point, such as sweep() measures")


def points_of(points: Iterable[Point] | HasPoints) -> tuple[Point, ...]:
    """Return the points of a sweep or a recording, or those that were given.

    Raises
    ------
    InvalidOptionError
        If there are none to be had, or one is something else.
    """
    given: Any = points
    return items_of("points", getattr(given, "points", given), _POINT)


def frame_of(points: Iterable[Point]) -> "pd.DataFrame":
    """Return a table with one row a point, in their order.

    The task's fields are columns of their own. Times are in seconds, and missing where there is
    an error, so that no plot or mean takes them for zero. ``findings`` are the codes, joined by
    commas.
    """
    import pandas as pd

    points = points_of(points)
    asked = [field.name for field in fields(Task)]
    rows = [_row(point) for point in points]
    table = pd.DataFrame(rows, columns=[*asked, *_TIME_COLUMNS, "findings", "error"])
    # Whole numbers that may be missing would turn into floats.
    return table.astype({"n_threads": "Int64", "clock_mhz": "Int64"})


def _row(point: Point) -> dict[str, object]:
    found = asdict(point)
    times = {} if point.ok else dict.fromkeys(("median_s", "low_s", "high_s"), math.nan)
    return visible_row({**found["task"], **found, **times, "findings": ",".join(point.findings)})
