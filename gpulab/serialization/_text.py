"""The bytes and the text of a file that somebody gives us, however large or strange it is."""

import codecs
import errno
import gzip
import io
import os
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from gpulab.errors import DamagedDataError

GZIP_MAGIC = b"\x1f\x8b"
_MAX_BYTES = 64 << 20  # the text of 140,000 points
_CHUNK_BYTES = 1 << 20
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file, unpacked if it is gzipped.

    Raises
    ------
    OSError
        If the system cannot read it.
    DamagedDataError
        If it does not unpack, unpacks to more than 64 MiB, or is not UTF-8. The message is a
        clause that says so, e.g. ``"it is not text"``.
    """
    raw = read_bytes(path)
    # By content, not by name: programs that download unpack some files on the way.
    return as_text(_unpacked(raw) if raw.startswith(GZIP_MAGIC) else raw)


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a file; a pipe or a device, which may never end, has at most 64 MiB.

    Raises
    ------
    OSError
        If the system cannot read it.
    DamagedDataError
        If it is a pipe or a device that has more.
    """
    try:
        with Path(path).open("rb") as stream:
            # A file has a size, and of one that grows meanwhile the beginning is whole.
            size = os.fstat(stream.fileno()).st_size
            raw = stream.read(size) if size else _beginning(stream)
    except ValueError:  # no system can have a file of this name
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(path)) from None
    if not size and len(raw) > _MAX_BYTES:
        raise DamagedDataError(_too_large("it holds"))
    return raw


def _beginning(stream: BinaryIO) -> bytes:
    """Return all that a stream gives, or a little more than the limit."""
    found = bytearray()
    while len(found) <= _MAX_BYTES and (part := stream.read(_CHUNK_BYTES)):
        found += part
    return bytes(found)


def as_text(raw: bytes) -> str:
    """Return the text that bytes are in UTF-8.

    Raises
    ------
    DamagedDataError
        If they are none, or begin with a mark of the byte order. The message is a clause.
    """
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
    # A few bytes can unpack to gigabytes, so that no more is unpacked than is allowed.
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
