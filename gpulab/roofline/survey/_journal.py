"""The file of a survey: each result is added when it is measured; a checksum closes the file."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpulab.core import interrupts
from gpulab.core.disk import GrowingFile
from gpulab.core.errors import NotSavedError, RecordingError
from gpulab.core.units import counted
from gpulab.workloads.recordings import Recording
from gpulab.workloads.sweeps import (
    FileContents,
    Journal,
    Point,
    Row,
    as_line,
    read_recording,
    seal,
    section_line,
    unsealed,
)

LEFT_OUT = "left_out"  # the section that says what was not measured, and why


@dataclass(slots=True)
class OpenRecording:
    """A recording that a survey adds to; points and sections include those of an earlier run.

    Points have the key of their task. ``left_out`` has the reason why something is missing, by the
    key of its task or the name of its section.
    """

    file: GrowingFile
    journal: Journal
    provenance: Mapping[str, object]
    points: dict[str, Point]
    sections: dict[str, tuple[Row, ...]]
    left_out: dict[str, str]

    def add(self, point: Point) -> None:
        """Write a point."""
        self.points[point.task.key] = point
        self.left_out.pop(point.task.key, None)
        self.journal.add(point)

    def add_section(self, name: str, rows: list[Row]) -> None:
        """Write a section."""
        self.sections[name] = tuple(rows)
        self.left_out.pop(name, None)
        self.file.append(as_line(section_line(name, rows)))

    def add_left_out(self) -> None:
        """Write what is missing and why, also from earlier runs."""
        rows = [{"what": key, "reason": reason} for key, reason in self.left_out.items()]
        self.add_section(LEFT_OUT, rows)

    def in_memory(self) -> Recording:
        """Return everything that was measured, also what could not be written to the file."""
        return Recording(
            str(self.file.path), self.provenance, tuple(self.points.values()), self.sections
        )


def read_earlier(path: Path) -> FileContents:
    """Return what an earlier run has written; nothing if there is no file.

    Raises `RecordingError` if it is no recording, or was changed after it was finished.
    """
    if path.suffix == ".gz":
        raise RecordingError(
            f"{path} would be a compressed file, and results cannot be added to one; record to a "
            "name that ends in .jsonl, and compress it afterwards: gpulab.recordings.save(...)"
        )
    # tempfile creates empty files, and writing to one loses nothing.
    if path.exists() and path.stat().st_size:
        return read_recording(path, unfinished=True)
    return FileContents({})


@interrupts.contextmanager
def recording_in(file: GrowingFile, provenance: Mapping[str, object]) -> Iterator[OpenRecording]:
    """Continue the recording in a file, or begin one; close it with a checksum after the block.

    The checksum is written however the block ends. Raises `RecordingError` as
    :func:`read_earlier`, and `InvalidOptionError` if the file was begun on another machine.
    """
    before = read_earlier(file.path)
    # Lines after the checksum would be refused, so it is removed while lines are added.
    _unseal(file)
    journal = Journal(file)
    about = before.provenance or provenance
    points, sections = dict(before.points), dict(before.sections)
    log = OpenRecording(file, journal, about, points, sections, _left_out(before))
    with _kept_in_memory(log):
        try:
            # Inside the try, so that a file of another machine, which is refused here, is sealed
            # again.
            journal.begin(provenance)
            yield log
        finally:
            _seal(file)


@contextmanager
def _kept_in_memory(log: OpenRecording) -> Iterator[None]:
    """Attach the whole recording to the error of a disk that refuses a line, as ``partial``."""
    try:
        yield
    except NotSavedError as error:
        raise NotSavedError(
            f"{error}; what was measured ({counted(len(log.points), 'point')}) is in memory, as "
            ".partial of this error; after a traceback it is sys.last_value.partial",
            error,
            log.in_memory(),
        ) from error


def _left_out(before: FileContents) -> dict[str, str]:
    # After "left out" was written, a later run may have measured the point and then been killed.
    measured = before.points.keys() | before.sections.keys()
    rows = before.sections.get(LEFT_OUT, ())
    reasons = {str(row.get("what")): str(row.get("reason")) for row in rows}
    return {key: reason for key, reason in reasons.items() if key not in measured}


def _unseal(file: GrowingFile) -> str:
    """Remove the checksum and an incomplete last line, and return the text that is left."""
    body = unsealed(file.read().decode())
    # Counted in bytes, as names may contain other characters than ASCII.
    file.cut(len(body.encode()))
    return body


def _seal(file: GrowingFile) -> None:
    if body := _unseal(file):
        file.append(seal(body))
        file.sync()
