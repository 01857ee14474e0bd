"""Read a file from an unknown source: limit its size, unpack it, and check that it is UTF-8."""

import codecs
import errno
import gzip
import io
import os
import stat
import zlib
from pathlib import Path

from gpulab.core.errors import DamagedDataError

GZIP_MAGIC = b"\x1f\x8b"
_MAX_BYTES = 64 << 20  # enough for the text of 140,000 points of a sweep
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file, unpacked if it is gzipped.

    Raises `OSError` if the operating system cannot read it, and `DamagedDataError` if it does not
    unpack, unpacks to more than 64 MiB, or is not UTF-8. The message is a clause, e.g. ``"it is
    not text"``; the caller puts the name of the file before it.
    """
    raw = read_bytes(path)
    # By content and not by name, because some download programs unpack a file and keep its name.
    return as_text(_unpacked(raw) if raw.startswith(GZIP_MAGIC) else raw)


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a file.

    Raises `OSError` if the operating system cannot read it, and `DamagedDataError`, whose message
    is a clause, for a pipe or a device: it may never begin or end.
    """
    try:
        status = Path(path).stat()
    except ValueError:  # the name contains a null byte
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(path)) from None
    # Before it is opened, because to open a pipe waits for its other end.
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise DamagedDataError("it is a pipe or a device, and must be an ordinary file")
    with Path(path).open("rb") as stream:
        # If the file grows while it is read, what it had at first is read.
        return stream.read(status.st_size)


def as_text(raw: bytes) -> str:
    r"""Return bytes decoded as UTF-8, or raise `DamagedDataError`, whose message is a clause.

    A byte order mark at the beginning is refused, too.
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
            content = stream.read(_MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DamagedDataError(f"it does not unpack ({error})") from None
    if len(content) > _MAX_BYTES:
        raise DamagedDataError(f"it unpacks to more than {_MAX_BYTES >> 20} MiB")
    return content
