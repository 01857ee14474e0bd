"""Read a file from an unknown source: limit its size, unpack it, and check that it is UTF-8."""

import codecs
import errno
import gzip
import io
import os
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from gpulab.core.errors import DamagedDataError

GZIP_MAGIC = b"\x1f\x8b"
_MAX_BYTES = 64 << 20  # enough for the text of 140,000 points of a sweep
_CHUNK_BYTES = 1 << 20
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file, unpacked if it is gzipped.

    Raises
    ------
    OSError
        If the operating system cannot read it.
    DamagedDataError
        If it does not unpack, unpacks to more than 64 MiB, or is not UTF-8. The message is a
        clause, e.g. ``"it is not text"``; the caller puts the name of the file before it.

    Examples
    --------
    >>> import gzip, tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp(), "notes.txt.gz")
    >>> _ = path.write_bytes(gzip.compress(b"two launches"))
    >>> read_text(path)
    'two launches'
    """
    raw = read_bytes(path)
    # By content and not by name, because some download programs unpack a file and keep its name.
    return as_text(_unpacked(raw) if raw.startswith(GZIP_MAGIC) else raw)


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a file, or up to 64 MiB from a pipe or a device, which may never end.

    Raises
    ------
    OSError
        If the operating system cannot read it.
    DamagedDataError
        If a pipe or a device gives more than 64 MiB.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp(), "notes.txt")
    >>> _ = path.write_bytes(b"two launches")
    >>> read_bytes(path)
    b'two launches'
    """
    try:
        with Path(path).open("rb") as stream:
            # A pipe has size 0. If a file grows while it is read, what it had at first is read.
            size = os.fstat(stream.fileno()).st_size
            raw = stream.read(size) if size else _beginning(stream)
    except ValueError:  # open() raises it for a name that contains a null byte
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(path)) from None
    if not size and len(raw) > _MAX_BYTES:
        raise DamagedDataError(_too_large("it contains"))
    return raw


def _beginning(stream: BinaryIO) -> bytes:
    """Return all bytes of a stream, but stop soon after the limit."""
    # Stops at the first part above the limit, which is enough to know that there is too much.
    found = bytearray()
    while len(found) <= _MAX_BYTES and (part := stream.read(_CHUNK_BYTES)):
        found += part
    return bytes(found)


def as_text(raw: bytes) -> str:
    r"""Return bytes decoded as UTF-8.

    Raises
    ------
    DamagedDataError
        If they are not UTF-8, or begin with a byte order mark. The message is a clause, e.g.
        ``"it is not text"``.

    Examples
    --------
    >>> as_text(b"2.5 \xc2\xb5s")
    '2.5 µs'
    """
    # Only for a better message: bytes in UTF-16 usually fail to decode, too.
    if raw.startswith(_UTF_16):
        raise DamagedDataError("it is UTF-16 text, and must be UTF-8")
    if raw.startswith(codecs.BOM_UTF8):
        raise DamagedDataError(
            "it begins with a byte order mark, and must be UTF-8 without one, as gpulab wrote it"
        )
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise DamagedDataError("it is not text") from None


def _unpacked(raw: bytes) -> bytes:
    # A few kilobytes of gzip can unpack to gigabytes, so unpacking stops at the limit.
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
            found = _beginning(cast("BinaryIO", stream))
    except (OSError, EOFError, zlib.error) as error:
        raise DamagedDataError(f"it does not unpack ({error})") from None
    if len(found) > _MAX_BYTES:
        raise DamagedDataError(_too_large("it unpacks to"))
    return found


def _too_large(verb: str) -> str:
    return f"{verb} more than {_MAX_BYTES >> 20} MiB"
