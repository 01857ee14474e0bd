"""The file of a sweep or a recording, in JSON lines: a header, then points and sections."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpulab.core.disk import GrowingFile
from gpulab.core.errors import (
    DamagedDataError,
    GpulabError,
    InvalidOptionError,
    SchemaVersionError,
)
from gpulab.core.serialization import as_text, parse_object, read_bytes
from gpulab.gpus.provenance import SOURCES
from gpulab.workloads.sweeps._functions import FunctionPoint
from gpulab.workloads.sweeps._tasks import Point

SCHEMA = "gpulab.sweep/1"
_MAX_SHOWN = 60  # characters of an unknown schema in a message
# All points of a file must have these in common, or their times cannot be compared. Other facts,
# such as the date and the clocks, may change from run to run.
IDENTITY = ("gpu", "source", "driver", "torch", "cuda", "cpu", "n_threads")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FileKind:
    """What messages call a file, the error that they raise, and what they advise."""

    name: str
    error: type[GpulabError]
    cure: str
    repair: str


_SWEEP = FileKind(
    "the file of a sweep",
    SchemaVersionError,
    "give another file",
    "remove that line, or give another file",
)


@dataclass(slots=True)
class FileContents:
    """The contents of a file: the facts about the machine, its points and its sections.

    Points are by the key of their task. If a task comes twice, the later line counts, because a
    failed task may have been tried again. A sweep has no sections, and a recording no
    :class:`FunctionPoint`.
    """

    provenance: Row
    points: dict[str, Any] = field(default_factory=dict)
    sections: dict[str, tuple[Row, ...]] = field(default_factory=dict)


def contents_of(text: str, name: str, kind: FileKind) -> FileContents:
    """Return the contents of complete lines, without a checksum; ``name`` is the file's.

    If they are not such a file, or damaged, this raises the error of the kind, with the line;
    `SchemaVersionError` if another version of gpulab is needed.
    """
    # Not splitlines(), which also splits at separators that may be part of a name.
    head, *lines = text.removesuffix("\n").split("\n")
    contents = FileContents(_provenance(head, name, kind))
    for number, line in enumerate(lines, start=2):
        try:
            _add(contents, parse_object(line))
        except GpulabError as error:
            raise kind.error(
                f"{name}, line {number}, is damaged: {error}; {kind.repair}"
            ) from error
    return contents


def _provenance(head: str, name: str, kind: FileKind) -> Row:
    try:
        header = parse_object(head)
    except DamagedDataError as error:
        reason = str(error) if head else "it is empty"
        raise kind.error(_not_one(name, kind, reason)) from error
    schema = str(header.get("schema"))[:_MAX_SHOWN]
    # Another kind of file is not a newer version: an update would not help.
    if schema.partition("/")[0] != SCHEMA.partition("/")[0]:
        raise kind.error(_not_one(name, kind, f"it has the schema {schema!r}"))
    if schema != SCHEMA:
        raise SchemaVersionError(
            f"{name} has the schema {schema!r} and this version of gpulab reads {SCHEMA!r}; "
            "read it with a newer gpulab: pip install --upgrade gpulab"
        )
    provenance = header.get("provenance")
    if not isinstance(provenance, dict):
        raise kind.error(f"{name} is damaged: its header has no provenance; {kind.repair}")
    # The source says whether a time was measured or computed by a model.
    source = provenance.get("source", SOURCES[0])
    if source not in SOURCES:
        raise kind.error(
            f"{name} is damaged: its header has the source {source!r}, and it must be one of "
            f"{', '.join(SOURCES)}; {kind.repair}"
        )
    return provenance


def _not_one(name: str, kind: FileKind, reason: str) -> str:
    return f"{name} is not {kind.name}: {reason}; {kind.cure}"


def _add(contents: FileContents, row: Row) -> None:
    if "section" in row:
        rows = row.get("rows")
        if not isinstance(rows, list) or not all(isinstance(each, dict) for each in rows):
            raise DamagedDataError("it is a section without rows")
        contents.sections[str(row["section"])] = tuple(rows)
    elif "task" in row:
        kind = FunctionPoint if row.get("schema") == FunctionPoint.schema else Point
        point = kind.from_dict(row)
        contents.points[point.task.key] = point
    else:
        raise DamagedDataError("it is neither a point nor a section")


def read(path: str | os.PathLike[str]) -> FileContents:
    """Return the contents of a sweep's file, without a last line that a crash has cut off.

    `SchemaVersionError` if it is no sweep's, has another version, or is damaged; it gives the
    line. `InvalidOptionError` if it is a finished recording.
    """
    return _contents(_whole_lines(path), str(path))


def _contents(whole: bytes, name: str) -> FileContents:
    if not whole:
        return FileContents({})
    if whole.removesuffix(b"\n").rpartition(b"\n")[2].startswith(b'{"checksum"'):
        raise InvalidOptionError(
            f"{name} is a finished recording, closed by a checksum; give another file"
        )
    try:
        text = as_text(whole)
    except DamagedDataError as error:
        raise SchemaVersionError(_not_one(name, _SWEEP, str(error))) from error
    return contents_of(text, name, _SWEEP)


def _whole_lines(path: str | os.PathLike[str]) -> bytes:
    """Return all complete lines; none if the header itself was cut off."""
    try:
        content = read_bytes(path)
    except OSError as error:
        raise InvalidOptionError(
            f"{path} cannot be read: {error.strerror}; give another file"
        ) from error
    except DamagedDataError as error:
        raise SchemaVersionError(_not_one(str(path), _SWEEP, str(error))) from error
    # Bytes and not text: a crash may have cut a character in two.
    whole = content[: content.rfind(b"\n") + 1]
    start = b'{"schema": "' + SCHEMA.encode()
    # Compares only as much as is there, since the cut may be anywhere.
    if not whole and content[: len(start)] != start[: len(content)]:
        raise SchemaVersionError(_not_one(str(path), _SWEEP, "it has no header of one"))
    return whole


def header(provenance: Mapping[str, object]) -> Row:
    """Return the first row of a file."""
    return {"schema": SCHEMA, "provenance": dict(provenance)}


def section(name: str, rows: Iterable[Row]) -> Row:
    """Return a section as a row of a file."""
    return {"section": name, "rows": list(rows)}


def as_line(row: Row) -> str:
    """Return a row as a line of JSON; nan and other values that JSON lacks are an error."""
    return json.dumps(row, allow_nan=False) + "\n"


class Journal:
    """The file of a sweep, new or of an earlier run, open for more points.

    A last line that was cut off is removed, because the next point would be appended to it. Raises
    `InvalidOptionError` if it is a finished recording, and `SchemaVersionError` as :func:`read`.
    """

    def __init__(self, file: GrowingFile) -> None:
        whole = _whole_lines(file.path)
        self.before = _contents(whole, str(file.path))
        self._file = file
        file.cut(len(whole))

    def add(self, point: Point | FunctionPoint) -> None:
        """Write a point; when this returns, a crash of this process cannot lose it."""
        self._write(point.to_dict())

    def add_section(self, name: str, rows: Iterable[Row]) -> None:
        """Write a table of other measurements; one of the same name replaces an earlier one."""
        self._write(section(name, rows))

    def begin(self, provenance: Mapping[str, object]) -> Mapping[str, object]:
        """Return the provenance in the file's header; write the header if there is none.

        If the file's points were measured on another machine, an error says what differs.
        """
        if not self.before.provenance:
            self._write(header(provenance))
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

    def _write(self, row: Row) -> None:
        self._file.append(as_line(row))
