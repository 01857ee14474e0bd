"""`make lab` says first what it will download, and installs no CUDA libraries unless asked."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILDS = "gpulab/device/_builds.py"
TORCH_ALONE = "pip install -c constraints.txt --no-deps --index-url"
THE_REST = "pip install -c constraints.txt -e .[lab]"
SMALL, LARGE = "0.2 GB to download and 0.8 GB on disk", "2.1 GB to download and 4.6 GB on disk"

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")


def write_program(path: Path, *lines: str) -> None:
    """Write a shell script that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)


def test_make_looks_for_browser_tests_where_they_are() -> None:
    """`make browser-tests` collects only the folders in which tests have its mark."""
    texts = {path: path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    marks = ("needs_browser", "mark.browser")
    folders = {path.parent for path, text in texts.items() if any(mark in text for mark in marks)}
    found = re.search(r"pytest .*-m browser (.*)", (ROOT / "Makefile").read_text("utf-8"))
    assert found
    assert folders - {Path(__file__).parent} == {ROOT / name for name in found[1].split()}


class Clone:
    """A copy of what `make` reads, with stand-ins for Python, pip, gpulab and nvidia-smi."""

    def __init__(self, folder: Path, *, gpu: bool, answer: str = "580.65.06, 9.0") -> None:
        self.folder, self.log = folder, folder / "log"
        (folder / BUILDS).parent.mkdir(parents=True)
        shutil.copy(ROOT / BUILDS, folder / BUILDS)
        for name in ("Makefile", "pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, folder)
        programs = folder / "programs"
        note = f'echo "$(basename "$0") $*" >> "{self.log}"'
        write_program(programs / "nvidia-smi", f"echo '{answer}'" if gpu else "exit 9")
        for name in ("pip", "gpulab"):
            write_program(programs / name, note, '[ "$*" != "$FAILS" ]')
        write_program(
            programs / "python3",
            '[ "$1" = -c ] && exit $OLD',
            f'[ "$1" = {BUILDS} ] && exec "{sys.executable}" "$@"',
            f'mkdir -p "$3/bin" && cp "{programs}"/* "$3/bin"',
        )
        self.path = f"{programs}{os.pathsep}{os.environ['PATH']}"

    def make(
        self, *arguments: str, old: int = 0, fails: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        """Run make, and return what it printed."""
        ours = ("MAKE", "TORCH")
        kept = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
        return subprocess.run(
            ["make", *arguments],
            cwd=self.folder,
            env=kept | {"PATH": self.path, "OLD": str(old), "FAILS": fails},
            capture_output=True,
            text=True,
            check=False,
        )

    def calls(self) -> list[str]:
        """Return the calls of pip and gpulab, in their order."""
        return self.log.read_text().splitlines() if self.log.exists() else []


def test_without_a_gpu_torch_is_the_small_build(tmp_path: Path) -> None:
    """Without a GPU, torch comes from PyTorch's CPU index, and make says how to get the other."""
    clone = Clone(tmp_path, gpu=False)
    said = clone.make("lab").stdout
    index = "https://download.pytorch.org/whl/cpu"
    assert clone.calls() == [f"{TORCH_ALONE} {index} torch", THE_REST, "gpulab lab"]
    assert f"the CPU build, because nvidia-smi lists no NVIDIA GPU, from {index}." in said
    before, _, _ = said.partition("python3 -m venv")
    assert "make lab TORCH=default" in before
    assert SMALL in before
    assert LARGE in before


def test_with_a_gpu_torch_is_what_pip_takes(tmp_path: Path) -> None:
    """With a GPU, make takes pip's build, and first says its size and how to get the small one."""
    clone = Clone(tmp_path, gpu=True)
    said = clone.make("lab").stdout
    assert clone.calls() == [THE_REST, "gpulab lab"]
    assert "the build that pip takes by itself, because it serves driver 580.65.06" in said
    before, _, _ = said.partition("python3 -m venv")
    assert "make lab TORCH=cpu" in before
    assert LARGE in before


def test_cuda_12_8_comes_with_the_last_torch_that_has_it(tmp_path: Path) -> None:
    """A 5090 with driver 570 gets torch 2.11, and the tools of the tests do not replace it."""
    clone = Clone(tmp_path, gpu=True, answer="570.86.10, 12.0")
    assert "the build for CUDA 12.8, because it serves" in clone.make("lab").stdout
    clone.make("style", "TORCH=cpu")
    pins = ".venv/constraints.txt"
    assert [call.partition(f"-c {pins} ")[2] for call in clone.calls() if "pip" in call] == [
        "--no-deps --index-url https://download.pytorch.org/whl/cu128 torch",
        "-e .[lab]",
        "-e .[docs,test]",
    ]
    before, after = ((tmp_path / name).read_text() for name in ("constraints.txt", pins))
    assert re.sub("(?m)^torch==.*$", "torch==2.11.0", before) == after != before


def test_the_second_time_nothing_is_installed_or_said(tmp_path: Path) -> None:
    """A second `make lab` installs nothing and prints nothing."""
    clone = Clone(tmp_path, gpu=False)
    clone.make("lab")
    assert clone.make("lab").stdout == ""
    assert clone.calls()[-1] == "gpulab lab"
    assert clone.calls().count(THE_REST) == 1


def test_an_index_that_does_not_answer_is_named_with_two_ways_on(tmp_path: Path) -> None:
    """If the index does not answer, make stops and names two ways to go on."""
    clone = Clone(tmp_path, gpu=False)
    # the arguments for which the stand-in for pip fails
    done = clone.make("lab", "TORCH_INDEX=there", fails=f"{TORCH_ALONE[4:]} there torch")
    assert done.returncode != 0
    assert (
        "torch could not be had from there; name another index: make lab TORCH_INDEX=URL, or"
        in (done.stderr)
    )
    assert len(clone.calls()) == 1


def test_an_unknown_build_is_refused(tmp_path: Path) -> None:
    """An unknown TORCH is refused, with the two valid values."""
    clone = Clone(tmp_path, gpu=False)
    said = clone.make("lab", "TORCH=cuda").stderr
    assert "TORCH=cuda is not known; write TORCH=cpu for the small build, TORCH=cu126" in said
    assert clone.calls() == []


def test_another_python_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """An unsupported Python is refused, with the versions that work and how to name one."""
    clone = Clone(tmp_path, gpu=False)
    done = clone.make("lab", old=1)
    assert done.returncode != 0
    assert done.stderr.startswith(
        "python3 is not Python 3.11 to 3.14; name one that is: make lab PYTHON=python3.12"
    )
    assert clone.calls() == []
    assert done.stdout == ""


def test_checks_install_what_they_need_on_top(tmp_path: Path) -> None:
    """The checks install the tools of the tests, which `make lab` does not need."""
    clone = Clone(tmp_path, gpu=True)
    clone.make("style")
    assert clone.calls() == [THE_REST, "pip install -c constraints.txt -e .[docs,test]"]
