"""The file of a survey: each result is added as it comes, and a checksum closes the file."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpulab import recordings
from gpulab.disk import GrowingFile
from gpulab.errors import NotSavedError, RecordingError
from gpulab.recordings import Recording, Row
from gpulab.sweeps import Journal, Point

LEFT_OUT = "left_out"  # the section that says what a recording lacks, and why


@dataclass(slots=True)
class OpenRecording:
    """A recording that a survey adds to.

    Attributes
    ----------
    points
        By the key of their task; those of an earlier run are among them.
    sections
        By name, as the points.
    left_out
        Why something is missing, by the key of its task or the name of its section.
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
        self.file.append(recordings.as_line(recordings.section_line(name, rows)))

    def add_left_out(self) -> None:
        """Write what is missing, of earlier runs too."""
        rows = [{"what": what, "reason": reason} for what, reason in self.left_out.items()]
        self.add_section(LEFT_OUT, rows)

    def in_memory(self) -> Recording:
        """Return what was measured, whether or not the file has it."""
        return Recording(
            str(self.file.path), self.provenance, tuple(self.points.values()), self.sections
        )


def read_earlier(path: Path) -> recordings.RecordingContents:
    """Return what an earlier run has written; it is empty if there is no file.

    Raises
    ------
    RecordingError
        If the file is something else, or was changed since it was sealed.
    """
    if path.suffix == ".gz":
        raise RecordingError(
            f"{path} would be a compressed file, to which nothing can be added while recording; "
            "record to a name that ends in .jsonl, and pack it: gpulab.recordings.save(...)"
        )
    # An empty file is what a name from mktemp is: nothing is lost by writing to it.
    if path.exists() and path.stat().st_size:
        return recordings.read(path, unfinished=True)
    return recordings.RecordingContents({})


@contextmanager
def recording_in(file: GrowingFile, provenance: Mapping[str, object]) -> Iterator[OpenRecording]:
    """Go on with the recording in a file, or begin one; it is sealed however the block ends.

    Raises
    ------
    RecordingError
        As :func:`read_earlier`.
    InvalidOptionError
        If the file was begun on another machine.
    """
    before = read_earlier(file.path)
    # Lines behind a checksum would be refused; while lines are added there is none.
    _unseal(file)
    journal = Journal(file)
    about = before.provenance or provenance
    points, sections = dict(before.points), dict(before.sections)
    log = OpenRecording(file, journal, about, points, sections, _left_out(before))
    with _kept_in_memory(log):
        try:
            journal.begin(provenance)
            yield log
        finally:
            _seal(file)


@contextmanager
def _kept_in_memory(log: OpenRecording) -> Iterator[None]:
    """Give the error of a disk that refuses a line the whole recording to keep."""
    try:
        yield
    except NotSavedError as error:
        raise NotSavedError(
            f"{error}; what was measured ({len(log.points)} points) is in memory, as this error's "
            ".partial: after a traceback sys.last_value.partial",
            error,
            log.in_memory(),
        ) from error


def _left_out(before: recordings.RecordingContents) -> dict[str, str]:
    # A run that was killed may have taken what the run before had left out.
    there = before.points.keys() | before.sections.keys()
    rows = before.sections.get(LEFT_OUT, ())
    told = {str(row.get("what")): str(row.get("reason")) for row in rows}
    return {what: reason for what, reason in told.items() if what not in there}


def _unseal(file: GrowingFile) -> str:
    """Take the checksum away, and a last line that is not whole; return the text that is left."""
    body = recordings.unsealed(file.read().decode())
    file.cut(len(body.encode()))
    return body


def _seal(file: GrowingFile) -> None:
    if body := _unseal(file):
        file.append(recordings.seal(body))
        file.sync()
