"""The file of a recording: a header, JSON lines, and a checksum in the last line."""

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpulab.core.disk import write_whole
from gpulab.core.errors import DamagedDataError, RecordingError
from gpulab.core.requirements import FLAG, NAME, PATH, TEXT, instance_of, items_of
from gpulab.core.serialization import parse_object, read_text
from gpulab.workloads.sweeps import SCHEMA, FileKind, Point, contents_of

_AGAIN = "take the original again, or make a new one: gpulab record --out FILE"
_KIND = FileKind("a recording", RecordingError, "make one: gpulab record --out FILE", _AGAIN)

Row = dict[str, Any]
_ROW = instance_of(Mapping, "a dict")


@dataclass(slots=True)
class RecordingContents:
    """The content of a recording's file.

    Attributes
    ----------
    provenance
        The facts about the machine, from the header.
    points, sections
        The points by the key of their task, the sections by name. If a key comes twice, the later
        line counts: a task that failed may have been tried again.
    sealed
        Whether the last line is a checksum that is right.

    Examples
    --------
    >>> RecordingContents({"gpu": "NVIDIA H200"}).sealed
    False
    """

    provenance: Row
    points: dict[str, Point] = field(default_factory=dict)
    sections: dict[str, tuple[Row, ...]] = field(default_factory=dict)
    sealed: bool = False


def read(path: Path, *, unfinished: bool = False) -> RecordingContents:
    """Return the content of a recording's file, plain or gzipped.

    Parameters
    ----------
    path
        The file.
    unfinished
        Whether to accept a file without a checksum; a last line that is cut off is ignored.

    Raises
    ------
    RecordingError
        If the file cannot be read, is not a recording, or was edited or damaged.
    SchemaVersionError
        If another version of gpulab is needed.

    Examples
    --------
    ::

        contents = read(Path("my-gpu.jsonl"))
        contents.sections["transfers"][0]

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "my-gpu.jsonl"
    ...     _ = path.write_text(sealed({"gpu": "NVIDIA H200"}, []))
    ...     contents = read(path)
    >>> contents.sealed, contents.provenance["gpu"]
    (True, 'NVIDIA H200')
    """
    PATH.check(path=path)
    FLAG.check(unfinished=unfinished)
    text, name = _text(Path(path)), str(path)
    # First, because another kind of file has no checksum either.
    contents_of(text.partition("\n")[0], name, _KIND)
    body, last = _split(text)
    seal_row = _json(last) or {}
    is_sealed = "checksum" in seal_row
    if is_sealed:
        # Before the lines are read: an edited line would raise a less helpful error.
        _check_seal(body, seal_row, name)
    elif not unfinished:
        raise RecordingError(_unsealed(text, name))
    else:
        # Only the line that was being written when the recording stopped is lost.
        body = text[: text.rfind("\n") + 1]
    contents = contents_of(body, name, _KIND)
    points = {key: point for key, point in contents.points.items() if isinstance(point, Point)}
    if len(points) < len(contents.points):
        raise RecordingError(
            f"{name} has points of a function of your own, and a recording has workloads of the "
            "catalogue; read it with gpulab.workloads.sweeps.Sweep.load(FILE)"
        )
    return RecordingContents(contents.provenance, points, contents.sections, is_sealed)


def sealed(provenance: Mapping[str, Any], lines: Iterable[Row]) -> str:
    """Return the text of a complete recording: header, lines and checksum."""
    header = {"schema": SCHEMA, "provenance": dict(provenance)}
    body = "".join(as_line(row) for row in (header, *lines))
    return body + seal(body)


def seal(body: str) -> str:
    r"""Return the last line of a recording: the checksum of all lines before it.

    Examples
    --------
    >>> seal("{}\n").endswith('"n_lines": 1}\n')
    True
    """
    TEXT.check(body=body)
    digest = hashlib.sha256(body.encode()).hexdigest()
    return as_line({"checksum": f"sha256:{digest}", "n_lines": body.count("\n")})


def unsealed(text: str) -> str:
    r"""Return the text without its checksum, and without a last line that is cut off.

    Examples
    --------
    >>> unsealed("{}\n" + seal("{}\n")) == "{}\n"
    True
    """
    TEXT.check(text=text)
    body, last = _split(text)
    return body if "checksum" in (_json(last) or {}) else text[: text.rfind("\n") + 1]


def as_line(row: Mapping[str, Any]) -> str:
    """Return a row as a line of JSON; nan and other values that JSON lacks are an error.

    Examples
    --------
    >>> as_line({"a": 1}).strip()
    '{"a": 1}'
    """
    _ROW.check(row=row)
    # ensure_ascii=False keeps names and units readable in an editor. A lone surrogate, which UTF-8
    # cannot encode, becomes its escape in JSON.
    text = json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode(errors="backslashreplace").decode()


def section_line(name: str, rows: Iterable[Mapping[str, Any]]) -> Row:
    """Return a section as a row of the file.

    Examples
    --------
    >>> section_line("clocks", [{"sm_mhz": 1980}])
    {'section': 'clocks', 'rows': [{'sm_mhz': 1980}]}
    """
    NAME.check(name=name)
    return {"section": name, "rows": [dict(row) for row in items_of("rows", rows, _ROW)]}


def write(path: Path, text: str) -> None:
    """Write a text completely or not at all; gzipped if the name ends in ``.gz``."""
    PATH.check(path=path)
    TEXT.check(text=text)
    path = Path(path)
    raw = text.encode()
    if path.suffix == ".gz":
        raw = gzip.compress(
            raw, mtime=0
        )  # no time of packing: the same content gives the same file
    write_whole(path, raw)


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except OSError as error:
        raise RecordingError(
            f"{path} cannot be read: {error.strerror}; check the name, or see what is shipped: "
            "gpulab.recordings.list()"
        ) from error
    except DamagedDataError as error:
        raise RecordingError(f"{path} cannot be read: {error}; {_AGAIN}") from error


def _check_seal(body: str, last: Row, name: str) -> None:
    # The number of lines comes first, because its message says more than "does not fit".
    n_lines = body.count("\n")
    if n_lines != last.get("n_lines"):
        raise RecordingError(
            f"{name} was edited or damaged: it has {n_lines} lines, and its checksum counts "
            f"{last.get('n_lines')}; {_AGAIN}"
        )
    # Compared as JSON, so that another order of the two keys is no damage.
    if _json(seal(body)) != last:
        raise RecordingError(
            f"{name} was edited or damaged: its content does not fit its checksum; {_AGAIN}"
        )


def _unsealed(text: str, name: str) -> str:
    # The last line is left out: it may be a checksum that was cut off.
    if '\n{"checksum"' in text.rstrip("\n").rpartition("\n")[0]:
        return f"{name} was edited: something stands behind its checksum; {_AGAIN}"
    return (
        f"{name} has no checksum in its last line: the recording was not finished, or the file "
        f"was cut off; go on with: gpulab record --out {name}, or take what is there: "
        "gpulab.recordings.load(..., unfinished=True)"
    )


def _split(text: str) -> tuple[str, str]:
    """Return all lines except the last, and the last line."""
    end = text.rstrip("\n").rfind("\n") + 1
    return text[:end], text[end:]


def _json(line: str) -> Row | None:
    """Return the JSON object in a line, or None if there is none."""
    try:
        return parse_object(line)
    except DamagedDataError:
        return None


def thinned(value: Any, digits: int) -> Any:  # noqa: ANN401 # whatever JSON can hold
    """Return a JSON value with all floats rounded to so many significant digits."""
    # Whole numbers stay: they are sizes and counts, in which every digit matters.
    if isinstance(value, float):
        # Through text, because round() counts digits after the point and not significant ones.
        return float(f"{value:.{digits}g}")
    if isinstance(value, Mapping):
        return {name: thinned(part, digits) for name, part in value.items()}
    return [thinned(part, digits) for part in value] if isinstance(value, list | tuple) else value


def lines_of(points: Iterable[Point], sections: Mapping[str, Iterable[Row]]) -> Iterator[Row]:
    """Yield the rows below the header: points first, then sections."""
    for point in points:
        yield point.to_dict()
    for name, rows in sections.items():
        yield section_line(name, rows)
