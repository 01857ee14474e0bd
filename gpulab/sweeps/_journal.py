"""The file of a sweep, in JSON lines: a header, then a line for each point as it comes."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from gpulab.errors import InvalidOptionError, SchemaVersionError
from gpulab.requirements import PATH, instance_of
from gpulab.sweeps._tasks import Point

SCHEMA = "gpulab.sweep/1"
# Numbers of one file must agree in these; what is not here may change from run to run.
IDENTITY = ("gpu", "source", "driver", "torch", "cuda", "cpu", "n_threads")


@dataclass(frozen=True, slots=True)
class JournalContents:
    """The contents of a sweep's file.

    Attributes
    ----------
    provenance
        The machine that measured the points; empty if the file has no header yet.
    points
        By the key of their task. If a task has several, the last is kept: a point that failed
        may have been tried again.
    n_bytes
        Length of all complete lines.
    """

    provenance: Mapping[str, object] = field(default_factory=dict)
    points: Mapping[str, Point] = field(default_factory=dict)
    n_bytes: int = 0


def read(path: str | os.PathLike[str]) -> JournalContents:
    """Return what a sweep has written, without a last line that a crash has cut off.

    Raises
    ------
    SchemaVersionError
        If it is no such file, is of another version, or is damaged; the message names the line.
    """
    content = Path(path).read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if not whole:
        return _begun(content, path)
    lines = whole.splitlines()
    header = _parsed(lines[0], path, 1)
    provenance = header.get("provenance")
    if header.get("schema") != SCHEMA or not isinstance(provenance, dict):
        raise SchemaVersionError(
            f"{path} has the schema {header.get('schema')!r} and this version of gpulab goes on "
            f"with {SCHEMA!r}; give another file"
        )
    points = {}
    for number, line in enumerate(lines[1:], start=2):
        row = _parsed(line, path, number)
        if "checksum" in row:
            raise InvalidOptionError(
                f"{path} is a finished recording, which a checksum closes; give another file"
            )
        if "section" not in row:
            point = Point.from_dict(row)
            points[point.task.key] = point
    return JournalContents(provenance, points, len(whole))


def _begun(content: bytes, path: str | os.PathLike[str]) -> JournalContents:
    # Not one whole line: a header that was cut off, or somebody's file of another kind.
    start = b'{"schema": "' + SCHEMA.encode()
    if content[: len(start)] != start[: len(content)]:
        raise SchemaVersionError(f"{path} is no file of a sweep; give another file")
    return JournalContents()


def _parsed(line: bytes, path: str | os.PathLike[str], number: int) -> dict[str, object]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise SchemaVersionError(
            f"line {number} of {path} is not JSON ({error}); the file is damaged: take that line "
            "out, or give another file"
        ) from error
    if not isinstance(row, dict):
        raise SchemaVersionError(
            f"line {number} of {path} is not a record; give the file of a sweep"
        )
    return row


class Journal:
    """The file of a sweep, open for more points."""

    def __init__(self, stream: IO[str], before: JournalContents) -> None:
        self.before = before
        self._stream = stream

    def add(self, point: Point) -> None:
        """Write a point; it is safe from the end of this process when this returns."""
        instance_of(Point, "a Point").check(point=point)
        self._write(point.to_dict())

    def begin(self, provenance: Mapping[str, object]) -> Mapping[str, object]:
        """Return the provenance in the file's header; it is written if there is none.

        Raises
        ------
        InvalidOptionError
            If the file's points were taken on another machine; the message says what differs.
        """
        instance_of(Mapping, "a dict of facts about the machine").check(provenance=provenance)
        if not self.before.provenance:
            self._write({"schema": SCHEMA, "provenance": dict(provenance)})
            return provenance
        for name in IDENTITY:
            then, now = self.before.provenance.get(name), provenance.get(name)
            if then != now:
                raise InvalidOptionError(
                    f"{self._stream.name} was taken with {name}={then!r}, and here it is {now!r}; "
                    "their points may not be mixed: give another file, or go on where it was "
                    "begun"
                )
        return self.before.provenance

    def _write(self, row: Mapping[str, object]) -> None:
        self._stream.write(json.dumps(row) + "\n")
        self._stream.flush()


@contextmanager
def journal(path: str | os.PathLike[str]) -> Iterator[Journal]:
    """Open the file of a sweep for a first or a later run.

    Raises
    ------
    InvalidOptionError
        If its folder does not exist, or it is a finished recording.
    SchemaVersionError
        As :func:`read`.
    """
    PATH.check(path=path)
    file = Path(path)
    if not file.parent.is_dir():
        raise InvalidOptionError(
            f"out={str(path)!r}, and the folder {str(file.parent)!r} does not exist; make it"
        )
    before = read(file) if file.exists() else JournalContents()
    with file.open("a", encoding="utf-8", newline="\n") as stream:
        stream.truncate(before.n_bytes)  # a line that was cut off would spoil the next
        yield Journal(stream, before)
