"""CUPTI is found among the mapped libraries and detached, unless another program uses it."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from gpulab.tracing.profiling import _cupti as detaching

MAPPED = """\
7f10-7f20 r--p 00000000 08:01 11 /opt/a folder/lib/libc.so.6
7f30-7f40 r-xp 00001000 08:01 12 /opt/a folder/lib/libcupti.so.13
7f40-7f50 rw-p 00002000 08:01 12 /opt/a folder/lib/libcupti.so.13
7f60-7f70 rw-p 00000000 00:00 0
"""


class Library:
    """A fake of the loaded CUPTI."""

    n_calls = 0

    def __init__(self, path: str) -> None:
        assert path == "/opt/a folder/lib/libcupti.so.13"

    def cuptiFinalize(self) -> int:  # noqa: N802 # CUPTI's name
        """Count this call."""
        type(self).n_calls += 1
        return 0


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Replace the list of mapped libraries by one with CUPTI in it."""
    maps = tmp_path / "maps"
    maps.write_text(MAPPED, "utf-8")
    monkeypatch.setattr(detaching, "_MAPPED", maps)
    monkeypatch.setattr(detaching.ctypes, "PyDLL", Library)
    monkeypatch.setattr(Library, "n_calls", 0)
    monkeypatch.delenv("TEARDOWN_CUPTI", raising=False)
    monkeypatch.delitem(sys.modules, "cupti", raising=False)
    detaching._library.cache_clear()
    yield maps
    detaching._library.cache_clear()


@pytest.mark.usefixtures("loaded")
def test_the_loaded_library_is_finalized() -> None:
    """The library is found by name and finalized once, though it is mapped in parts."""
    assert detaching.is_detachable()
    detaching.detach()
    assert Library.n_calls == 1


def test_without_cupti_there_is_nothing_to_do(loaded: Path) -> None:
    """Without CUPTI, as in a CPU build, nothing is detached."""
    loaded.write_text("7f10-7f20 r--p 00000000 08:01 11 /lib/libc.so.6\n", "utf-8")
    assert not detaching.is_detachable()
    detaching.detach()
    assert Library.n_calls == 0


def test_a_system_without_the_list_keeps_cupti(loaded: Path) -> None:
    """Without the list of mapped libraries, as on Windows, CUPTI stays attached."""
    loaded.unlink()
    assert not detaching.is_detachable()
    detaching.detach()
    assert Library.n_calls == 0


@pytest.mark.usefixtures("loaded")
def test_cupti_of_others_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUPTI is not detached if NVIDIA's package is imported or the user lets PyTorch do it."""
    monkeypatch.setitem(sys.modules, "cupti", ModuleType("cupti"))
    assert not detaching.is_detachable()
    detaching.detach()
    monkeypatch.delitem(sys.modules, "cupti")
    monkeypatch.setenv("TEARDOWN_CUPTI", "1")
    assert not detaching.is_detachable()
    detaching.detach()
    assert Library.n_calls == 0
    monkeypatch.setenv("TEARDOWN_CUPTI", "0")
    assert detaching.is_detachable()


def test_pytorch_is_kept_from_doing_it_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """TEARDOWN_CUPTI is set inside the block only, and a user's value is not changed."""
    monkeypatch.delenv("TEARDOWN_CUPTI", raising=False)
    with detaching.leave_teardown_to_us():
        assert os.environ["TEARDOWN_CUPTI"] == "0"
    assert "TEARDOWN_CUPTI" not in os.environ
    with pytest.raises(ZeroDivisionError), detaching.leave_teardown_to_us():
        raise ZeroDivisionError
    assert "TEARDOWN_CUPTI" not in os.environ
    monkeypatch.setenv("TEARDOWN_CUPTI", "1")
    with detaching.leave_teardown_to_us():
        assert os.environ["TEARDOWN_CUPTI"] == "1"
    assert os.environ["TEARDOWN_CUPTI"] == "1"


def test_names_in_any_encoding_are_passed_over(loaded: Path) -> None:
    """Other libraries may have names that are not UTF-8."""
    other = b"7f00-7f10 r--p 00000000 08:01 10 /opt/caf\xe9/libother.so\n"
    loaded.write_bytes(other + MAPPED.encode())
    detaching.detach()
    assert Library.n_calls == 1


def test_a_library_that_was_replaced_meanwhile_stays(
    loaded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library whose file was deleted, as by an upgrade, is not detached."""
    asked: list[str] = []

    def gone(path: str) -> Library:
        asked.append(path)
        raise OSError("cannot open shared object file")

    monkeypatch.setattr(detaching.ctypes, "PyDLL", gone)
    loaded.write_bytes(b"7f30-7f40 r-xp 0 08:01 12 /opt/\xff/libcupti.so.13 (deleted)\n")
    assert not detaching.is_detachable()
    detaching.detach()
    assert [os.fsencode(path) for path in asked] == [b"/opt/\xff/libcupti.so.13 (deleted)"]
