"""The file of a recording: a header, JSON lines, and a checksum in the last line."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gpulab.core.disk import GrowingFile
from gpulab.core.errors import DamagedDataError, NotSavedError, RecordingError
from gpulab.core.interrupts import contextmanager
from gpulab.core.serialization import parse_object, read_text
from gpulab.workloads.sweeps._journal import (
    FileContents,
    FileKind,
    Row,
    as_line,
    contents_of,
    header,
    section,
)
from gpulab.workloads.sweeps._tasks import Point

_AGAIN = "take the original again, or make a new one: gpulab record --out FILE"
_KIND = FileKind("a recording", RecordingError, "make one: gpulab record --out FILE", _AGAIN)


def read_recording(path: Path, *, unfinished: bool = False) -> FileContents:
    """Return the content of a recording's file, plain or gzipped.

    ``unfinished`` accepts a file without a checksum; a last line that is cut off is ignored.
    `RecordingError` if the file cannot be read, is not a recording, or was edited or damaged;
    `SchemaVersionError` if another version of gpulab is needed.
    """
    text, name = _text(path), str(path)
    # First, because another kind of file has no checksum either.
    contents_of(text.partition("\n")[0], name, _KIND)
    body, last = _split(text)
    seal_row = _json(last) or {}
    if "checksum" in seal_row:
        # Before the lines are read: an edited line would raise a less helpful error.
        _check_seal(body, seal_row, name)
    elif not unfinished:
        raise RecordingError(_unsealed(text, name))
    else:
        # Only the line that was being written when the recording stopped is lost.
        body = text[: text.rfind("\n") + 1]
    contents = contents_of(body, name, _KIND)
    if not all(isinstance(point, Point) for point in contents.points.values()):
        raise RecordingError(
            f"{name} has points of a function of your own, and a recording has workloads of the "
            "catalogue; read it with gpulab.workloads.sweeps.Sweep.load(FILE)"
        )
    return contents


def sealed(
    provenance: Mapping[str, Any],
    points: Iterable[Point],
    sections: Mapping[str, Iterable[Row]],
    digits: int | None = None,
) -> str:
    """Return the text of a complete recording: header, points, sections and checksum.

    Floats of points and sections have so many significant digits; None: all.
    """
    # Points come first, so that you see some with `head`.
    rows = [point.to_dict() for point in points]
    rows += [section(name, table) for name, table in sections.items()]
    lines = rows if digits is None else [_thinned(row, digits) for row in rows]
    body = "".join(map(as_line, (header(provenance), *lines)))
    return body + seal(body)


def _thinned(value: Any, digits: int) -> Any:  # noqa: ANN401 # whatever JSON can hold
    """Return a JSON value with all floats rounded to so many significant digits."""
    # Whole numbers stay: they are sizes and counts, in which every digit matters.
    if isinstance(value, float):
        # Through text, because round() counts digits after the point and not significant ones.
        return float(f"{value:.{digits}g}")
    if isinstance(value, Mapping):
        return {name: _thinned(part, digits) for name, part in value.items()}
    return [_thinned(part, digits) for part in value] if isinstance(value, list | tuple) else value


def seal(body: str) -> str:
    """Return the last line of a recording: the checksum of all lines before it."""
    digest = hashlib.sha256(body.encode()).hexdigest()
    return as_line({"checksum": f"sha256:{digest}", "n_lines": body.count("\n")})


def unsealed(text: str) -> str:
    """Return the text without its checksum, and without a last line that is cut off."""
    body, last = _split(text)
    return body if "checksum" in (_json(last) or {}) else text[: text.rfind("\n") + 1]


@contextmanager
def open_again(file: GrowingFile) -> Iterator[None]:
    """Remove the checksum of a recording inside the block, and write a new one after it.

    Lines after a checksum would be refused.
    """
    _unseal(file)
    try:
        yield
    except NotSavedError:
        raise  # the disk would refuse the checksum, too, and the same call can go on without it
    except BaseException:
        _seal(file)
        raise
    _seal(file)


def _seal(file: GrowingFile) -> None:
    if body := _unseal(file):
        file.append(seal(body))
        file.sync()


def _unseal(file: GrowingFile) -> str:
    """Remove the checksum and an incomplete last line, and return the text that is left."""
    body = unsealed(file.read().decode())
    # Counted in bytes, as names may contain other characters than ASCII.
    file.cut(len(body.encode()))
    return body


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
