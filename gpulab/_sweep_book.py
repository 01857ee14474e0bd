"""What a sweep has found, and how it is gathered: on disk first, then in memory."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from gpulab._progress import Bar
from gpulab._sources import place
from gpulab._sweep_file import Journal
from gpulab._sweep_machine import now
from gpulab.tasks import Point, Task, frame_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep has found.

    Attributes
    ----------
    points
        One for each task that is done, in the order in which the tasks were given; of those
        that failed, too.
    provenance
        Of the machine: GPU, driver, versions, CPU and its threads, clocks, date.
    missing
        Tasks without a point, because the sweep was stopped.
    stopped_by
        What stopped it; empty where nothing did.
    """

    points: tuple[Point, ...] = field(repr=False)  # often thousands
    provenance: Mapping[str, object] = field(repr=False)
    missing: tuple[Task, ...] = ()
    stopped_by: str = ""

    def failures(self) -> tuple[Point, ...]:
        """Return the points that have an error in place of a time."""
        return tuple(point for point in self.points if point.error)

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with one row a point; see :func:`gpulab.tasks.frame_of`."""
        return frame_of(self.points)

    def __str__(self) -> str:
        n_tasks = len(self.points) + len(self.missing)
        places = [place(point.device_name, point.source) for point in self.points]
        lines = ["; ".join([f"{len(self.points)} of {n_tasks} points", *dict.fromkeys(places)])]
        lines += [f"failed: {point.task}: {point.error}" for point in self.failures()]
        if self.stopped_by:
            lines.append(f"stopped by {self.stopped_by}")
        if self.missing:
            n_more = len(self.missing) - 1
            more = f" and {n_more} more" if n_more else ""
            lines.append(
                f"missing: {self.missing[0]}{more}; the same call with the same file in out= "
                "goes on with what is missing"
            )
        return "\n".join(lines)


class Book:
    """The points of a sweep so far, in memory and in its file."""

    def __init__(
        self, asked: Mapping[str, Task], header: Mapping[str, object], file: Journal | None
    ) -> None:
        self._asked = asked
        self._header = header
        self._file = file
        before = {} if file is None else file.before.points
        self._points = {key: before[key] for key in asked if key in before}
        self._bar: Bar | None = None

    def open_tasks(self) -> list[Task]:
        """Return what is to be measured: new tasks first, because a failed one may fail again."""
        new = [task for key, task in self._asked.items() if key not in self._points]
        again = [point.task for point in self._points.values() if point.error]
        return new + again

    @contextmanager
    def shown(self, bar: Bar) -> Iterator[Self]:
        """Show on a bar how far the sweep is."""
        with bar:
            self._bar = bar
            bar.update(sum(not point.error for point in self._points.values()))
            yield self

    def begin(self, task: Task) -> None:
        """Show the title of a task that is on its way."""
        if self._bar is None or self._bar.disable:
            return
        self._bar.set_description_str(str(task), refresh=False)
        # Redrawing minds no delay by itself, and a short sweep is to show nothing.
        if self._bar.format_dict["elapsed"] >= self._bar.delay:
            self._bar.refresh()

    def keep(self, point: Point) -> None:
        """Keep a point, on disk first."""
        point = self._checked(point)
        if self._file is not None:
            self._file.add(point)
        self._points[point.task.key] = point
        if self._bar is not None:
            self._bar.update()

    def _checked(self, point: Point) -> Point:
        """Return a point of this sweep's machine: workers need not be alike, and some die."""
        name = str(self._header["gpu" if point.task.on == "gpu" else "cpu"])
        if not point.device_name:  # it comes from no worker
            source = str(self._header["source"]) if point.task.on == "gpu" else "measured"
            return replace(point, device_name=name, source=source, taken_at=now())
        if point.error or point.device_name == name:
            return point
        reason = f"its worker has {point.device_name}, and the sweep is of {name}"
        return Point(
            point.task,
            error=reason,
            source=point.source,
            device_name=point.device_name,
            taken_at=point.taken_at,
        )

    def closed(self, stopped_by: str) -> Sweep:
        """Return what there is."""
        return Sweep(
            tuple(self._points[key] for key in self._asked if key in self._points),
            self._header,
            tuple(task for key, task in self._asked.items() if key not in self._points),
            stopped_by,
        )
