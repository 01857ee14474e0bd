"""Ctrl-C while a file is opened, written or closed leaves it closed and whole.

``GPULAB_OPCODES=29`` interrupts at every 29th bytecode, and not at every line.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import gpulab
from gpulab.core import disk
from gpulab.exercises._entries import Guess
from gpulab.exercises._journal import LearnerJournal
from gpulab.workloads.sweeps import Journal, _executor, open_again, sweep
from tests.support.ctrl_c import interrupted_at_each_place, open_in

MODULES = (
    *("gpulab.core.disk", "gpulab.core.interrupts", "contextlib", "gpulab.exercises._journal"),
    *("gpulab.workloads.sweeps._sweep", "gpulab.workloads.sweeps._journal"),
    "gpulab.workloads.sweeps._recording_file",
)
FACTS = {"gpu": "none"}
STEP = int(os.environ.get("GPULAB_OPCODES", "0"))


def _growing(path: Path) -> None:
    with disk.growing(path) as file:
        file.append("line\n")
        file.sync()


def _survey(path: Path) -> None:
    with disk.growing(path) as file, open_again(file):
        Journal(file).begin(FACTS)


WRITERS: dict[str, Callable[[Path], object]] = {
    "growing": _growing,
    "whole": lambda path: disk.write_whole(path, b"new\n"),
    "sweep": lambda path: sweep([], out=path, progress=False),
    "survey": _survey,
    "journal": lambda path: LearnerJournal(path.parent).add(
        Guess("01.naive", "2026-11-22T10:00:00+00:00", 2e-6)
    ),
}


@pytest.mark.parametrize("name", WRITERS)
def test_ctrl_c_leaves_a_file_closed_and_whole(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever Ctrl-C comes, no file is open, each line is whole, and the same call works."""
    monkeypatch.setattr(_executor, "provenance", lambda: FACTS)
    write = partial(WRITERS[name], tmp_path / "file.jsonl")
    by, step = ("opcode", STEP) if STEP else ("line", 1)
    with gpulab.virtual_gpu("H200"):
        for at in interrupted_at_each_place(write, *MODULES, by=by, step=step):
            assert open_in(tmp_path) == [], at
            assert [*tmp_path.glob(".gpulab-*.part")] == [], at
            contents = [path.read_bytes() for path in tmp_path.iterdir()]
            assert all(content[-1:] in {b"", b"\n"} for content in contents), at
            write()
            for file in tmp_path.iterdir():
                file.unlink()
