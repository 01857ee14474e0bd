"""Files are read within a limit of memory, or refused with a short message."""

import gzip
import os
import sys
import tracemalloc
from pathlib import Path

import pytest

from gpulab.core.errors import DamagedDataError
from gpulab.core.serialization import _text, read_bytes, read_text

MIB = 1 << 20


@pytest.mark.slow
def test_a_small_file_that_unpacks_to_a_gigabyte_takes_little_memory(tmp_path: Path) -> None:
    """A file that unpacks to too much is refused, and needs at most about twice the limit."""
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b" " * (16 * MIB)) * 64)
    tracemalloc.start()
    with pytest.raises(DamagedDataError) as error:
        read_text(path)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert str(error.value) == "it unpacks to more than 64 MiB"
    assert peak_bytes < 160 * MIB


def test_exactly_the_limit_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that unpacks to exactly the limit is read; one byte more is refused."""
    monkeypatch.setattr(_text, "_MAX_BYTES", MIB)
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"x" * MIB))
    assert len(read_text(path)) == MIB
    path.write_bytes(gzip.compress(b"x" * (MIB + 1)))
    with pytest.raises(DamagedDataError) as error:
        read_text(path)
    assert str(error.value) == "it unpacks to more than 1 MiB"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
@pytest.mark.parametrize("name", ["pipe", "/dev/zero"])
def test_what_may_never_begin_or_end_is_refused(tmp_path: Path, name: str) -> None:
    """A pipe or a device is refused at once: to open or to read it could wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DamagedDataError) as error:
        read_bytes(tmp_path / name)
    assert str(error.value) == "it is a pipe or a device, and must be an ordinary file"


@pytest.mark.parametrize("n_kept", [3, 12, 20])
def test_an_archive_that_is_cut_off_is_refused(tmp_path: Path, n_kept: int) -> None:
    """An archive that ends in its header, its data or its checksum is refused."""
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"some text")[:n_kept])
    with pytest.raises(DamagedDataError, match=r"^it does not unpack \("):
        read_text(path)
