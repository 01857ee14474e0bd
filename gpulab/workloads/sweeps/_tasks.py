"""A task says what a sweep measures; a point is its result, a time or an error."""

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import one_line, visible_row
from gpulab.core.requirements import (
    COUNT,
    NAME,
    NameOf,
    check_fields,
    check_not_negative,
    instance_of,
    items_of,
)
from gpulab.core.serialization import Saved
from gpulab.core.units import counted
from gpulab.gpus.provenance import check_source

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
WALL = "wall"  # the only method on the CPU: the host's clock, read before and after the work

_TIME_COLUMNS = ("median_s", "low_s", "high_s", "n_samples", "source", "device_name", "clock_mhz")


@dataclass(frozen=True, slots=True)
class Task:
    """What to measure: one workload at one size, on GPU or CPU, by one method.

    Attributes
    ----------
    workload
        A name from :data:`gpulab.workloads.WORKLOADS`.
    size
        Size of the problem, in the unit of that workload; at least 1.
    dtype
        Name of a PyTorch type.
    on
        ``"gpu"`` or ``"cpu"``.
    cache
        State of the GPU's cache, ``"cold"`` or ``"hot"``. On the CPU it is always ``"hot"``.
    method
        A method of :func:`gpulab.measure`. On the CPU it is always ``"wall"``.
    transfers
        Which copies between host and GPU are timed with the work: ``"none"``, of the inputs
        (``"in"``), of the results (``"out"``), or ``"both"``.
    n_threads
        Number of CPU threads; None: PyTorch's setting.

    Raises
    ------
    UnknownNameError
        If ``on``, ``cache`` or ``transfers`` is none of the names above.
    InvalidOptionError
        If the size or the number of threads is below 1, or if you pass threads for the GPU or
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
                f"n_threads={self.n_threads} for {self.workload} on the GPU; only the CPU uses "
                "threads: leave n_threads out, or use on='cpu'"
            )

    def _settle_on_cpu(self) -> None:
        if self.transfers != "none":
            raise InvalidOptionError(
                f"transfers={self.transfers!r} for {self.workload} on the CPU, where nothing is "
                "copied; leave transfers out, or use on='gpu'"
            )
        # The defaults of cache and method are for the GPU. Without this, the same task on the CPU
        # would have several keys, and a resumed sweep would measure it again.
        object.__setattr__(self, "cache", "hot")
        object.__setattr__(self, "method", WALL)

    @property
    def key(self) -> str:
        """Text that identifies the task, also in the file of a sweep that is resumed."""
        threads = () if self.n_threads is None else (self.n_threads,)
        parts = (self.workload, self.size, self.dtype, self.on, self.cache, self.method)
        return "/".join(map(str, (*parts, self.transfers, *threads)))

    def failed(self, reason: str, **facts: Any) -> "Point":  # noqa: ANN401  # fields of a point
        """Return a point with an error instead of a time."""
        return Point(self, error=reason, **facts)

    def __str__(self) -> str:
        how = f"{self.cache}, {self.method}" if self.on == "gpu" else _threads(self.n_threads)
        copied = "" if self.transfers == "none" else f", transfers {self.transfers}"
        return one_line(
            f"{self.workload} n={self.size:,} {self.dtype} on the {self.on.upper()}: {how}{copied}"
        )

    __repr__ = __str__


def _threads(n_threads: int | None) -> str:
    return "PyTorch's number of threads" if n_threads is None else counted(n_threads, "thread")


@dataclass(frozen=True, slots=True)
class Point(Saved):
    """The time of a task, or the reason why there is none.

    Attributes
    ----------
    task
        What was measured.
    median_s, low_s, high_s
        Median of the samples and its 95 % interval, in seconds per call; 0 if there is an
        error.
    n_samples
        Number of samples; 0 if there is an error.
    source
        ``"measured"`` here, ``"recorded"`` elsewhere, or ``"virtual"``: computed by a model.
    device_name
        Name of the GPU or the CPU, as the system reports it.
    floor_s
        What was subtracted from each timed interval; 0 for nothing.
    clock_mhz
        Clock of the GPU's multiprocessors after the samples; None if it could not be read.
    findings
        Codes of the findings about it; see :mod:`gpulab.timing._findings`.
    error
        Why there is no time, in one line; empty if there is one.
    taken_at
        Time at the end of the measurement, ISO 8601, UTC.

    Raises
    ------
    InvalidOptionError
        If a time is negative or not finite, if ``low_s`` is above ``high_s``, or if there are
        neither samples nor an error.
    UnknownNameError
        If the source is not one of the three.

    Examples
    --------
    >>> from gpulab.workloads.sweeps import Point, Task
    >>> Point(Task("add", 64), median_s=2e-6, low_s=2e-6, high_s=3e-6, n_samples=10).ok
    True
    >>> Point(Task("add", 2**50), error="out of memory").ok
    False
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
                f"n_samples={self.n_samples} of {self.task.key} without an error; a point needs "
                "samples, or an error that says why it has none"
            )

    @property
    def ok(self) -> bool:
        """Whether there is a time."""
        return not self.error


class HasPoints(Protocol):
    """The protocol of objects with points, such as a sweep or a recording."""

    @property
    def points(self) -> tuple[Point, ...]:
        """The points."""
        ...


_POINT = instance_of(Point, "a Point, such as sweep() measures")


def points_of(points: Iterable[Point] | HasPoints) -> tuple[Point, ...]:
    """Return the points of a sweep or a recording as a tuple; also accepts points themselves."""
    source: Any = points
    return items_of("points", getattr(source, "points", source), _POINT)


def frame_of(points: Iterable[Point]) -> "pd.DataFrame":
    """Return a table with one row per point, in the same order.

    Each field of the task is a column. Times are in seconds. They are missing for a point with an
    error, so that no plot or mean uses them as zeros. ``findings`` contains the codes, joined by
    commas.
    """
    import pandas as pd

    points = points_of(points)
    asked = [field.name for field in fields(Task)]
    rows = [_row(point) for point in points]
    table = pd.DataFrame(rows, columns=[*asked, *_TIME_COLUMNS, "findings", "error"])
    # pandas turns a column of integers with missing values into floats, unless it is "Int64".
    return table.astype({"n_threads": "Int64", "clock_mhz": "Int64"})


def _row(point: Point) -> dict[str, object]:
    row = asdict(point)
    times = {} if point.ok else dict.fromkeys(("median_s", "low_s", "high_s"), math.nan)
    return visible_row({**row["task"], **row, **times, "findings": ",".join(point.findings)})
