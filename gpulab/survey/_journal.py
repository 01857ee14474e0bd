"""The file of a survey: each result is added as it comes, and a checksum closes the file."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpulab import recordings as file
from gpulab.errors import RecordingError
from gpulab.sweeps import Journal, Point, journal

LEFT_OUT = "left_out"  # the section that says what a recording lacks, and why


@dataclass(slots=True)
class OpenRecording:
    """A recording that a survey adds to.

    Attributes
    ----------
    points
        By the key of their task; those of an earlier run are among them.
    left_out
        Why something is missing, by the key of its task or the name of its section.
    """

    path: Path
    journal: Journal
    points: dict[str, Point]
    left_out: dict[str, str]

    def add(self, point: Point) -> None:
        """Write a point."""
        self.journal.add(point)
        self.points[point.task.key] = point
        self.left_out.pop(point.task.key, None)

    def add_section(self, name: str, rows: list[file.Row]) -> None:
        """Write a section."""
        # The journal writes points only; it holds nothing back, so the lines come in order.
        with self.path.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(file.as_line(file.section_line(name, rows)))
        self.left_out.pop(name, None)

    def add_left_out(self) -> None:
        """Write what is missing, of earlier runs too."""
        rows = [{"what": what, "reason": reason} for what, reason in self.left_out.items()]
        self.add_section(LEFT_OUT, rows)


def read_earlier(path: Path) -> file.RecordingContents:
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
        return file.read(path, unfinished=True)
    return file.RecordingContents({})


@contextmanager
def open_recording(path: Path, provenance: Mapping[str, object]) -> Iterator[OpenRecording]:
    """Open a recording for a first or a later run; it is sealed however the block ends.

    Raises
    ------
    RecordingError
        As :func:`read_earlier`.
    InvalidOptionError
        If the file was begun on another machine, or its folder does not exist.
    """
    before = read_earlier(path)
    # Lines behind a checksum would be refused; while lines are added there is none.
    if before.sealed:
        file.write(path, file.unsealed(path.read_text("utf-8")))
    try:
        with journal(path) as lines:
            lines.begin(provenance)
            yield OpenRecording(path, lines, dict(before.points), _left_out(before))
    finally:
        if path.exists():
            _seal(path)


def _left_out(before: file.RecordingContents) -> dict[str, str]:
    # A run that was killed may have taken what the run before had left out.
    there = before.points.keys() | before.sections.keys()
    rows = before.sections.get(LEFT_OUT, ())
    told = {str(row.get("what")): str(row.get("reason")) for row in rows}
    return {what: reason for what, reason in told.items() if what not in there}


def _seal(path: Path) -> None:
    # A line that an interrupt has cut off would make the whole file unreadable.
    body = file.unsealed(path.read_text("utf-8"))
    file.write(path, body + file.seal(body))
