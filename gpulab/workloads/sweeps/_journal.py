"""The file of a sweep, in JSON lines: a header, then one line per measured point."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpulab.core.disk import GrowingFile
from gpulab.core.errors import (
    DamagedDataError,
    GpulabError,
    InvalidOptionError,
    SchemaVersionError,
)
from gpulab.core.requirements import instance_of
from gpulab.core.serialization import as_text, parse_object, read_bytes
from gpulab.workloads.sweeps._functions import FunctionPoint
from gpulab.workloads.sweeps._tasks import Point

SCHEMA = "gpulab.sweep/1"
_MAX_SHOWN = 60  # characters of an unknown schema in a message
# All points of a file must have these in common, or their times cannot be compared. Other facts,
# such as the date and the clocks, may change from run to run.
IDENTITY = ("gpu", "source", "driver", "torch", "cuda", "cpu", "n_threads")


@dataclass(frozen=True, slots=True)
class JournalContents:
    """The contents of a sweep's file: the points by the key of their task, and their machine.

    ``provenance`` is empty if the file has no header yet. If a task has several points, the last
    one counts, because a failed task may have been tried again. ``n_bytes`` is the length of all
    complete lines.
    """

    provenance: Mapping[str, object] = field(default_factory=dict)
    points: Mapping[str, Point | FunctionPoint] = field(default_factory=dict)
    n_bytes: int = 0


def read(path: str | os.PathLike[str]) -> JournalContents:
    """Return the contents of a sweep's file, without a last line that a crash has cut off.

    `SchemaVersionError` if it is no sweep's, has another version, or is damaged; it gives the
    line.
    """
    content = _content(path)
    # Bytes and not text: a crash may have cut a character in two.
    whole = content[: content.rfind(b"\n") + 1]
    if not whole:
        return _begun(content, path)
    # Not splitlines(), which also splits at separators that may be part of a name.
    header, *lines = _text(whole, path).removesuffix("\n").split("\n")
    try:
        provenance = _provenance(parse_object(header), path)
    except DamagedDataError as error:
        raise SchemaVersionError(_no_sweep(path, str(error))) from error
    points: dict[str, Point | FunctionPoint] = {}
    for number, line in enumerate(lines, start=2):
        row = _parsed(line, path, number)
        if "checksum" in row:
            raise InvalidOptionError(
                f"{path} is a finished recording, closed by a checksum; give another file"
            )
        # A recording is the same kind of file with sections, and is continued here, too.
        if "section" not in row:
            point = _point(row, path, number)
            points[point.task.key] = point
    return JournalContents(provenance, points, len(whole))


def _content(path: str | os.PathLike[str]) -> bytes:
    try:
        return read_bytes(path)
    except OSError as error:
        raise InvalidOptionError(
            f"{path} cannot be read: {error.strerror}; give another file"
        ) from error
    except DamagedDataError as error:
        raise SchemaVersionError(_no_sweep(path, str(error))) from error


def _text(content: bytes, path: str | os.PathLike[str]) -> str:
    try:
        return as_text(content)
    except DamagedDataError as error:
        raise SchemaVersionError(_no_sweep(path, str(error))) from error


def _no_sweep(path: str | os.PathLike[str], reason: str = "") -> str:
    return f"{path} is not the file of a sweep{reason and f': {reason}'}; give another file"


def _provenance(
    header: Mapping[str, object], path: str | os.PathLike[str]
) -> Mapping[str, object]:
    provenance = header.get("provenance")
    if header.get("schema") != SCHEMA or not isinstance(provenance, dict):
        raise SchemaVersionError(
            f"{path} has the schema {str(header.get('schema'))[:_MAX_SHOWN]!r}, and this version "
            f"of gpulab needs {SCHEMA!r}; give another file"
        )
    return provenance


def point_in(row: Mapping[str, object]) -> Point | FunctionPoint:
    """Return the point in a row of a file; its schema says which kind it is."""
    return (FunctionPoint if row.get("schema") == FunctionPoint.schema else Point).from_dict(row)


def _point(
    row: Mapping[str, object], path: str | os.PathLike[str], number: int
) -> Point | FunctionPoint:
    try:
        return point_in(row)
    except GpulabError as error:
        raise SchemaVersionError(_damaged(path, number, error)) from error


def _damaged(path: str | os.PathLike[str], number: int, reason: object) -> str:
    return f"line {number} of {path} is damaged: {reason}; remove that line, or give another file"


def _begun(content: bytes, path: str | os.PathLike[str]) -> JournalContents:
    # No complete line: either a header that was cut off, or a file of another kind.
    start = b'{"schema": "' + SCHEMA.encode()
    # Compares only as much as is there, since the cut may be anywhere.
    if content[: len(start)] != start[: len(content)]:
        raise SchemaVersionError(_no_sweep(path))
    return JournalContents()


def _parsed(line: str, path: str | os.PathLike[str], number: int) -> dict[str, object]:
    try:
        return parse_object(line)
    except DamagedDataError as error:
        raise SchemaVersionError(_damaged(path, number, error)) from error


class Journal:
    """The file of a sweep, new or of an earlier run, open for more points.

    A last line that was cut off is removed, because the next point would be appended to it. Raises
    `InvalidOptionError` if it is a finished recording, and `SchemaVersionError` as :func:`read`.
    """

    def __init__(self, file: GrowingFile) -> None:
        self.before = read(file.path)
        self._file = file
        file.cut(self.before.n_bytes)

    def add(self, point: Point | FunctionPoint) -> None:
        """Write a point; when this returns, a crash of this process cannot lose it."""
        instance_of((Point, FunctionPoint), "a Point").check(point=point)
        self._write(point.to_dict())

    def begin(self, provenance: Mapping[str, object]) -> Mapping[str, object]:
        """Return the provenance in the file's header; write the header if there is none.

        If the file's points were measured on another machine, an error says what differs.
        """
        instance_of(Mapping, "a dict of facts about the machine").check(provenance=provenance)
        if not self.before.provenance:
            self._write({"schema": SCHEMA, "provenance": dict(provenance)})
            return provenance
        for name in IDENTITY:
            then, now = self.before.provenance.get(name), provenance.get(name)
            if then != now:
                raise InvalidOptionError(
                    f"{self._file.path} was measured with {name}={then!r}, and here it is "
                    f"{now!r}; one file cannot have points of both: give another file, or "
                    "continue on the first machine"
                )
        return self.before.provenance

    def _write(self, row: Mapping[str, object]) -> None:
        self._file.append(json.dumps(row) + "\n")
