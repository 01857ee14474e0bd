"""Recordings of machines: times measured on real GPUs, shipped with gpulab or made by you."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from gpulab.errors import UnknownNameError
from gpulab.foreign_text import one_line, visible_row
from gpulab.recordings import _file as file
from gpulab.recordings._compare import ratios, refuse_incomparable
from gpulab.requirements import (
    DIGITS,
    FLAG,
    NAME,
    PATH,
    NameOf,
    Requirement,
    check_fields,
    each,
    instance_of,
    mapping_to,
)
from gpulab.sweeps import Point, frame_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Recording", "compare", "list", "load", "save"]


_SUFFIX = ".jsonl.gz"
_FACTS = instance_of(Mapping, "a dict of facts about the machine")
_SECTIONS = mapping_to(
    each(instance_of(Mapping, "a row"), "rows"), "a dict from names to rows, each row a dict"
)


class HasProvenance(Protocol):
    """A recording, or a sweep: points and their provenance."""

    @property
    def points(self) -> tuple[Point, ...]:
        """Its points."""
        ...

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Where and when they were measured."""
        ...


@dataclass(frozen=True, slots=True)
class Recording:
    """What was measured on one machine, to be looked at on any other.

    Attributes
    ----------
    name
        Of a shipped recording, or the path of a file.
    provenance
        Names of the GPU and the CPU, versions, clocks and time.
    points
        One for each task, those that failed included; their source is ``"recorded"``, or
        ``"virtual"`` where a virtual GPU was recorded.
    sections
        What is not a point: rows by the name of the section, see docs/recordings.md.
    """

    name: str
    provenance: Mapping[str, Any]
    # Thousands of points: a notebook that shows a recording is to say what it is.
    points: tuple[Point, ...] = field(repr=False)
    sections: Mapping[str, tuple[dict[str, Any], ...]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        NAME.check(name=self.name)
        _FACTS.check(provenance=self.provenance)
        check_fields(self)
        _SECTIONS.check(sections=self.sections)

    @property
    def is_virtual(self) -> bool:
        """Whether its GPU was a virtual one, so that a model computed its times."""
        return self.provenance.get("source") == "virtual"

    def frame(self) -> "pd.DataFrame":
        """Return the points as a table, one row each; see :func:`gpulab.sweeps.frame_of`."""
        return frame_of(self.points)

    def section(self, name: str) -> "pd.DataFrame":
        """Return a section as a table.

        Raises
        ------
        UnknownNameError
            If the recording has no such section; the message names those it has.
        """
        import pandas as pd

        NameOf(f"section of {self.name}", self.sections).check(section=name)
        return pd.DataFrame(map(visible_row, self.sections[name]))

    def __str__(self) -> str:
        return one_line(f"{self.name}: {'; '.join(self._facts())}")

    def _facts(self) -> Iterator[str]:
        about = self.provenance
        yield f"{'virtual ' if self.is_virtual else ''}{about.get('gpu')} and {about.get('cpu')}"
        day = str(about.get("taken_at"))[:10]
        yield f"recorded {day} with torch {about.get('torch')}, driver {about.get('driver')}"
        timed = [point for point in self.points if point.ok]
        n_workloads = len({point.task.workload for point in timed})
        failed = (
            f", {len(self.points) - len(timed)} failed" if len(timed) < len(self.points) else ""
        )
        yield f"{len(timed):,} points of {n_workloads} workloads{failed}"
        if self.sections:
            yield f"sections {', '.join(self.sections)}"


RECORDING = instance_of(Recording, "a recording, such as recordings.load() returns")
_COMPARED = Requirement(
    "a recording, the name or the file of one, or a sweep",
    lambda value: (
        PATH.accepts(value) or (hasattr(value, "points") and hasattr(value, "provenance"))
    ),
)


def list() -> tuple[str, ...]:  # noqa: A001 # read as gpulab.recordings.list()
    """Return the names of the shipped recordings, sorted.

    Examples
    --------
    >>> import gpulab
    >>> gpulab.recordings.list()
    ('h200-sxm-2026-11',)
    """
    return tuple(sorted(_shipped_files()))


def load(name: str | Path, *, unfinished: bool = False) -> Recording:
    """Return a recording by the name of a shipped one, or from a file of your own.

    Parameters
    ----------
    name
        One of :func:`list`, or the path of a file that ``gpulab record`` or
        :func:`gpulab.sweep` wrote; plain or gzipped.
    unfinished
        Whether to take a file that has no checksum yet, as far as its lines are whole: one
        that is still being written, or a sweep.

    Raises
    ------
    RecordingError
        If the file cannot be read, is no recording, was cut off, edited or damaged.
    SchemaVersionError
        If a newer version of gpulab wrote it.
    UnknownNameError
        If there is neither such a recording nor such a file.

    Examples
    --------
    >>> import gpulab
    >>> recorded = gpulab.recordings.load("h200-sxm-2026-11")
    >>> recorded.name, len(recorded.points)
    ('h200-sxm-2026-11', 2812)
    """
    PATH.check(name=name)
    FLAG.check(unfinished=unfinished)
    # A file of the same name can still be had, as ./NAME.
    if str(name) in _shipped_files():
        return _shipped(str(name))
    path = Path(name)
    # What looks like a name is a misspelt one more often than a missing file.
    if isinstance(name, str) and not path.exists() and path.name == name and not path.suffix:
        raise UnknownNameError("recording", name, list())
    return _recording(str(path), file.read(path, unfinished=unfinished))


def save(recording: Recording, path: str | Path, *, digits: int | None = None) -> Path:
    """Write a recording with its checksum; gzipped where the name ends in ``.gz``.

    Parameters
    ----------
    recording
        What is written.
    path
        The file; one that is there already is replaced.
    digits
        How many significant digits are kept of times; None: all. Six of them still tell
        a thousandth of the usual interval.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    NotSavedError
        If the file cannot be written; one that was there before is as it was.
    """
    RECORDING.check(recording=recording)
    PATH.check(path=path)
    DIGITS.or_none.check(digits=digits)
    # Points come first, so that a reader of the head sees them without a tool of ours.
    lines = file.lines_of(recording.points, recording.sections)
    kept = lines if digits is None else (file.thinned(line, digits) for line in lines)
    path = Path(path)
    file.write(path, file.sealed(recording.provenance, kept))
    return path


def compare(
    a: HasProvenance | str | Path, b: HasProvenance | str | Path, *, virtual: bool = False
) -> "pd.DataFrame":
    """Return, for each task that both have, how long ``b`` takes as a multiple of ``a``.

    A task is the same if workload, size, type, side, cache, method, transfers and threads are.

    Parameters
    ----------
    a, b
        Recordings, their names or files, or sweeps just made.
    virtual
        Whether times of a virtual GPU may stand beside recorded or measured ones.

    Returns
    -------
    pandas.DataFrame
        One row a task: its fields, ``a_s`` and ``b_s`` (medians, seconds), ``ratio`` (b / a) with
        its 95 % interval ``low`` and ``high``, and ``verdict``. The interval holds what the
        samples tell. It knows nothing of other clocks, drivers or machines of the same kind.
        ``attrs`` has the two names, and how many tasks only one of them has.

    Raises
    ------
    NotComparableError
        If they have no task in common, or one is virtual and the other is not; the message
        says how they differ.

    Examples
    --------
    >>> import gpulab
    >>> both = gpulab.recordings.compare("h200-sxm-2026-11", "h200-sxm-2026-11")
    >>> set(both["ratio"].dropna()) == {1.0}
    True
    """
    _COMPARED.check(a=a, b=b)
    FLAG.check(virtual=virtual)
    first, second = _named(a, "a"), _named(b, "b")
    refuse_incomparable(first, second, virtual=virtual)
    return ratios(first, second)


def _named(given: HasProvenance | str | Path, name: str) -> Recording:
    if isinstance(given, str | Path):
        return load(given)
    if isinstance(given, Recording):
        return given
    return Recording(name, given.provenance, tuple(given.points))


@cache
def _shipped(name: str) -> Recording:
    with as_file(_shipped_files()[name]) as path:
        contents = file.read(path)
    return _recording(name, contents)


def _shipped_files() -> dict[str, Any]:
    # A package can be a zip archive, in which there are no paths.
    folder = files("gpulab").joinpath("data", "recordings")
    entries = folder.iterdir() if folder.is_dir() else itertools.chain()
    return {
        entry.name.removesuffix(_SUFFIX): entry
        for entry in entries
        if entry.name.endswith(_SUFFIX)
    }


def _recording(name: str, contents: file.RecordingContents) -> Recording:
    """Name what was measured elsewhere, or before, as recorded."""
    recorded = {"measured": "recorded"}
    about = dict(contents.provenance)
    about["source"] = recorded.get(str(about.get("source")), about.get("source"))
    points = (
        replace(point, source=recorded.get(point.source, point.source))
        for point in contents.points.values()
    )
    return Recording(
        name, MappingProxyType(about), tuple(points), MappingProxyType(contents.sections)
    )
