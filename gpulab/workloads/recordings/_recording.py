"""Load, save and compare recordings, the shipped ones and your own."""

import gzip
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gpulab.core.disk import write_whole
from gpulab.core.errors import UnknownNameError
from gpulab.core.foreign_text import one_line, visible_row
from gpulab.core.requirements import (
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
from gpulab.workloads.recordings._compare import ratios, refuse_incomparable
from gpulab.workloads.sweeps import (
    FileContents,
    Point,
    Sweep,
    frame_of,
    points_of,
    read_recording,
    sealed,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Recording", "compare", "list", "load", "save"]


_SUFFIX = ".jsonl.gz"
_FACTS = instance_of(Mapping, "a dict of facts about the machine")
_SECTIONS = mapping_to(
    each(instance_of(Mapping, "a row"), "rows"), "a dict from names to rows, each row a dict"
)


@dataclass(frozen=True, slots=True)
class Recording:
    """The times that were measured on one machine, for use on any other.

    Attributes
    ----------
    name
        Name of a shipped recording, or path of a file.
    provenance
        Names of the GPU and the CPU, versions, clocks and date.
    points
        One for each task, also for tasks that failed. Their source is ``"recorded"``, or
        ``"virtual"`` if a virtual GPU was recorded.
    sections
        Tables of other measurements, by name; docs/recordings.md describes them.

    Examples
    --------
    >>> import gpulab
    >>> recorded = gpulab.recordings.load("h200-sxm-2026-11")
    >>> recorded.is_virtual, recorded.section("transfers").empty
    (False, False)
    """

    name: str
    provenance: Mapping[str, Any]
    # Not in the repr, because there are thousands of points.
    points: tuple[Point, ...] = field(repr=False)
    sections: Mapping[str, tuple[dict[str, Any], ...]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        NAME.check(name=self.name)
        _FACTS.check(provenance=self.provenance)
        check_fields(self)
        _SECTIONS.check(sections=self.sections)

    @property
    def is_virtual(self) -> bool:
        """Whether its GPU was a virtual one, so that its times are computed by a model."""
        return self.provenance.get("source") == "virtual"

    def frame(self) -> "pd.DataFrame":
        """Return the points as a table, one row per point, as ``sweeps.frame_of`` does."""
        return frame_of(self.points)

    def section(self, name: str) -> "pd.DataFrame":
        """Return a section as a table.

        Raises
        ------
        UnknownNameError
            If the recording has no such section; the message lists its sections.
        """
        import pandas as pd

        NameOf(f"section of {self.name}", self.sections).check(section=name)
        return pd.DataFrame(map(visible_row, self.sections[name]))

    def __str__(self) -> str:
        return one_line(f"{self.name}: {'; '.join(self._facts())}")

    __repr__ = __str__

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
    lambda value: PATH.accepts(value) or isinstance(value, Recording | Sweep),
)


def list() -> tuple[str, ...]:  # noqa: A001 # read as gpulab.recordings.list()
    """Return the names of the shipped recordings, sorted.

    Examples
    --------
    >>> import gpulab
    >>> gpulab.recordings.list()
    ('h100-sxm-2026-11', 'h200-sxm-2026-11')
    """
    return tuple(sorted(_shipped_files()))


def load(name: str | Path, *, unfinished: bool = False) -> Recording:
    """Return a shipped recording by its name, or read one from a file.

    Parameters
    ----------
    name
        One of :func:`list`, or the path of a file that ``gpulab record`` or
        :func:`gpulab.sweep` wrote; plain or gzipped.
    unfinished
        Whether to accept a file without a checksum: one that is still being written, or a sweep.
        A last line that is cut off is ignored.

    Raises
    ------
    RecordingError
        If the file cannot be read, is not a recording, or was cut off, edited or damaged.
    SchemaVersionError
        If a newer version of gpulab wrote it.
    UnknownNameError
        If there is neither a recording nor a file of this name.

    Examples
    --------
    >>> import gpulab
    >>> recorded = gpulab.recordings.load("h200-sxm-2026-11")
    >>> recorded.name, len(recorded.points)
    ('h200-sxm-2026-11', 2812)
    """
    PATH.check(name=name)
    FLAG.check(unfinished=unfinished)
    # A file with the name of a shipped recording can be loaded as ./NAME.
    if str(name) in _shipped_files():
        return _shipped(str(name))
    path = Path(name)
    # A text without folder and suffix is more likely a misspelt name than a missing file.
    if isinstance(name, str) and not path.exists() and path.name == name and not path.suffix:
        raise UnknownNameError("recording", name, list())
    return _recording(str(path), read_recording(path, unfinished=unfinished))


def save(recording: Recording, path: str | Path, *, digits: int | None = None) -> Path:
    """Write a recording with its checksum, and return the path.

    The file is gzipped if its name ends in ``.gz``.

    Parameters
    ----------
    recording
        The recording.
    path
        The file; an existing one is replaced.
    digits
        Significant digits of times in the file; None: all. Six digits are precise to a thousandth
        of the usual interval.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    NotSavedError
        If the file cannot be written; an existing one is unchanged.

    Examples
    --------
    ::

        recordings.save(recordings.load("my-gpu.jsonl"), "my-gpu.jsonl.gz", digits=6)

    >>> import tempfile
    >>> from dataclasses import replace
    >>> from gpulab import recordings
    >>> recording = recordings.load("h200-sxm-2026-11")
    >>> part = replace(recording, points=recording.points[:3])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = recordings.save(part, Path(folder) / "part.jsonl")
    ...     len(recordings.load(path).points)
    3
    """
    RECORDING.check(recording=recording)
    PATH.check(path=path)
    DIGITS.or_none.check(digits=digits)
    path = Path(path)
    text = sealed(recording.provenance, recording.points, recording.sections, digits)
    raw = text.encode()
    if path.suffix == ".gz":
        raw = gzip.compress(raw, mtime=0)  # no time of packing: the same content, the same file
    write_whole(path, raw)
    return path


def compare(
    a: Recording | Sweep | str | Path, b: Recording | Sweep | str | Path, *, virtual: bool = False
) -> "pd.DataFrame":
    """Return the ratio of the times, ``b`` over ``a``, for each task that both recordings have.

    Two tasks are the same if workload, size, type, side, cache, method, transfers and threads are
    equal.

    Parameters
    ----------
    a, b
        Recordings, their names or files, or sweeps.
    virtual
        Whether to compare times of a virtual GPU with recorded or measured ones.

    Returns
    -------
    pandas.DataFrame
        One row per task: its fields, ``a_s`` and ``b_s`` (medians, seconds), ``ratio`` (b / a)
        with its 95 % interval ``low`` and ``high``, and ``verdict``. The interval covers the
        scatter of the samples only, not other clocks, drivers or machines of the same kind.
        ``attrs`` has the two names, and how many tasks only one of the recordings has.

    Raises
    ------
    NotComparableError
        If they have no task in common, or if only one of them is virtual; the message says how
        they differ.

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


def _named(source: Recording | Sweep | str | Path, name: str) -> Recording:
    if isinstance(source, Sweep):
        return Recording(name, source.provenance, points_of(source))  # type: ignore[arg-type] # or it refuses them
    return source if isinstance(source, Recording) else load(source)


# Cached: lessons and explorers load the same recording again and again.
@cache
def _shipped(name: str) -> Recording:
    with as_file(_shipped_files()[name]) as path:
        contents = read_recording(path)
    return _recording(name, contents)


def _shipped_files() -> dict[str, Any]:
    # files() and not a path: a package may be inside a zip archive.
    folder = files("gpulab").joinpath("data", "recordings")
    # A package built without recordings has no such folder.
    entries = folder.iterdir() if folder.is_dir() else itertools.chain()
    return {
        entry.name.removesuffix(_SUFFIX): entry
        for entry in entries
        if entry.name.endswith(_SUFFIX)
    }


def _recording(name: str, contents: FileContents) -> Recording:
    """Return a recording whose measured times have the source ``"recorded"``."""
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
