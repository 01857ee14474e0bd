"""The fixture for pytest: a base is saved, held, and told apart from what is no base."""

import json
import os
import re
import shlex
import statistics
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.packages import ROOT

pytestmark = pytest.mark.slow  # each test starts processes

Run = Callable[..., tuple[int, str]]

TEST = """
import torch

def test_relu(gpu_benchmark):
    x = torch.ones(1024, 1024, device="cuda")
    gpu_benchmark(lambda: torch.relu(x @ x)).check(at_most=1.02)
"""
SLOWER = TEST.replace("torch.relu(x @ x)", "torch.relu(x @ x) + x")
OPTIONS = ("-p", "gpulab.pytest_plugin", "-p", "no:cacheprovider", "-q")


@pytest.fixture
def run(tmp_path: Path, warm_python: list[str]) -> Run:
    """Return a function that runs pytest on a test file, and returns exit code and output."""

    def run(test: str, *options: str) -> tuple[int, str]:
        (tmp_path / "test_it.py").write_text(test)
        # Without other plugins, and without ours twice where gpulab is installed with it.
        environment = {
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": str(ROOT),
            "CUDA_VISIBLE_DEVICES": "",
        }
        done = subprocess.run(
            [*warm_python, "-m", "pytest", *OPTIONS, *options],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return run


def test_a_slower_version_fails_and_the_same_one_passes(run: Run) -> None:
    """The base is saved in one run; the next ones pass with the same work, and not with more."""
    code, out = run(TEST, "--gpulab-save", "base.json")
    assert (code, "saved 1 benchmark: base.json" in out) == (0, True), out
    code, out = run(TEST, "--gpulab-compare", "base.json")
    assert code == 0, out
    assert "no difference seen: test_it.py::test_relu / base = 1.000 [" in out
    code, out = run(SLOWER, "--gpulab-compare", "base.json")
    assert code == 1
    assert "TooSlowError: at most 1.02 times is allowed, and test_it.py::test_relu takes" in out
    assert "gpulab/timing" not in out  # the line of the test, and no frame of ours


def test_without_a_base_the_check_passes(run: Run) -> None:
    """A developer runs the tests without a file; a test that the base lacks says so."""
    assert run(SLOWER)[0] == 0
    run(TEST, "--gpulab-save", "base.json")
    code, out = run(TEST.replace("test_relu", "test_new"), "--gpulab-compare", "base.json")
    assert code == 0
    assert "not in the base: nothing to compare with" in out


def test_a_gpu_at_another_clock_gets_time_to_cool(run: Run, tmp_path: Path) -> None:
    """A base at another clock is not comparable, so the test pauses and measures again."""
    test = f"""
import time
import pytest
{TEST}
def test_pauses(gpu_benchmark, monkeypatch):
    pauses = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    x = torch.ones(1024, 1024, device="cuda")
    gpu_benchmark(lambda: torch.relu(x @ x))
    assert [pause for pause in pauses if pause >= 1] == EXPECTED
"""
    run(test.replace("EXPECTED", "[]"), "--gpulab-save", "base.json")
    assert run(test.replace("EXPECTED", "[]"), "--gpulab-compare", "base.json")[0] == 0
    base = tmp_path / "base.json"
    base.write_text(base.read_text().replace('"clock_after_mhz": 1980', '"clock_after_mhz": 1500'))
    code, out = run(test.replace("EXPECTED", "[1.0, 5.0, 20.0]"), "--gpulab-compare", "base.json")
    assert (code, "1 failed, 1 passed" in out) == (1, True), out
    assert "NotComparableError: not comparable, because the clock was 1500 MHz" in out


def test_counts_hold_launches_waits_and_memory(run: Run) -> None:
    """On the virtual GPU a test holds exact numbers; a failed test leaves no base."""
    test = """
import torch

def test_counts(gpu_benchmark):
    x = torch.ones(1024, 1024, device="cuda")
    counts = gpu_benchmark.counts(lambda: torch.relu(x @ x))
    assert (counts.n_kernels, counts.n_waits, counts.peak_bytes) == (2, 0, 8 * 2**20)
    gpu_benchmark(lambda: x + x)
    assert counts.n_kernels == 1
"""
    code, out = run(test, "--gpulab-save", "base.json")
    assert code == 1
    assert "assert 2 == 1" in out
    assert "base.json is not written: no test with gpu_benchmark passed" in out


@pytest.mark.parametrize(
    ("options", "content", "message"),
    [
        (["--gpulab-compare", "lost.json"], "", "lost.json: there is no such file; save one befo"),
        (["--gpulab-compare", "a.json"], "{", "a.json: the saved data are not a whole"),
        (
            ["--gpulab-compare", "a.json"],
            json.dumps({"schema": "gpulab.benchmarks/0", "measurements": []}),
            "have the schema 'gpulab.benchmarks/0' and this version of gpulab reads",
        ),
        (["--gpulab-save", "."], "", "--gpulab-save .: it is no name of a file; give one"),
        (["--gpulab-save="], "", "it is no name of a file; give one, such as base.json"),
        (["--gpulab-save", "none/a.json"], "", "none/a.json: there is no such folder; make it"),
        (["--gpulab-export", "no/a.json"], "", "--gpulab-export no/a.json: there is no such fol"),
        (["--gpulab-gpu", "H20"], "", "did you mean 'H200'?"),
        (["--gpulab-gpu", "cuda"], "", "torch"),
    ],
)
def test_wrong_options_are_one_sentence(
    options: list[str], content: str, message: str, run: Run, tmp_path: Path
) -> None:
    """A lost file, a damaged one, an older schema and an unknown GPU are told apart."""
    (tmp_path / "a.json").write_text(content)
    code, out = run(TEST, *options)
    assert code == 4, out
    (line,) = (line for line in out.splitlines() if line.startswith("ERROR: "))
    assert message in line
    assert "Traceback" not in out


def test_wrong_options_of_the_fixture_show_the_line_of_the_test(run: Run) -> None:
    """A misspelt method and two benchmarks of one name fail without a frame of ours."""
    code, out = run(TEST.replace("x @ x)", 'x @ x), method="event"'))
    assert code == 1
    assert "did you mean 'events'?" in out
    assert "gpulab/timing" not in out
    twice = TEST + "    gpu_benchmark(lambda: x + x)\n"
    code, out = run(twice)
    assert "two benchmarks of test_it.py::test_relu have the label ''; give each one" in out
    code, out = run(twice.replace("x + x", 'x + x, label="add"'))
    assert code == 0
    assert "test_it.py::test_relu add: " in out


def test_a_file_that_cannot_be_written_fails_the_run(run: Run) -> None:
    """The tests passed, but the base is not there, so the run does not count as good."""
    # Made by the test itself: a folder that is there before is refused before the tests.
    made = f"{TEST}\n    import os; os.mkdir('base.json')"
    code, out = run(made, "--gpulab-save", "base.json")
    assert code == 1
    assert "base.json" in out.splitlines()[-2]
    assert "INTERNALERROR" not in out


def test_the_export_has_the_form_of_pytest_benchmark(run: Run, tmp_path: Path) -> None:
    """Each benchmark has its name and the statistics of its samples in seconds."""
    code, out = run(TEST, "--gpulab-save", "base.json", "--gpulab-export", "export.json")
    assert (code, "saved 1 benchmark: export.json" in out) == (0, True), out
    (found,) = json.loads((tmp_path / "export.json").read_text())["benchmarks"]
    (saved,) = json.loads((tmp_path / "base.json").read_text())["measurements"]
    samples_s = saved["samples_s"]
    assert (found["name"], found["fullname"]) == ("test_relu", "test_it.py::test_relu")
    stats = found["stats"]
    assert stats["data"] == samples_s
    assert (stats["rounds"], stats["min"]) == (len(samples_s), min(samples_s))
    assert stats["median"] == statistics.median(samples_s)
    assert stats["mean"] == pytest.approx(statistics.fmean(samples_s))
    assert stats["ops"] == pytest.approx(1 / stats["mean"])
    assert stats["stddev"] == pytest.approx(statistics.stdev(samples_s))
    assert stats["q1"] <= stats["median"] <= stats["q3"]
    assert stats["iqr"] == stats["q3"] - stats["q1"]


def test_workers_report_to_one_file(run: Run, tmp_path: Path) -> None:
    """With pytest-xdist all benchmarks of all workers are in the file."""
    pytest.importorskip("xdist")
    test = TEST + TEST.replace("test_relu", "test_other")
    code, out = run(test, "-p", "xdist", "-n", "2", "--gpulab-save", "base.json")
    assert code == 0, out
    assert "saved 2 benchmarks: base.json" in out
    saved = json.loads((tmp_path / "base.json").read_text())["measurements"]
    names = {each["label"] for each in saved}
    assert names == {"test_it.py::test_relu", "test_it.py::test_other"}


def test_pytest_finds_the_plugin_by_its_entry_point() -> None:
    """The entry point names the module, so that users need no option."""
    entries = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    assert entries == {"pytest11": {"gpulab": "gpulab.pytest_plugin"}}


MODEL = "import torch\n\n\ndef layer(x):\n    return torch.relu(x @ x)\n"


def test_the_guide_runs(tmp_path: Path, warm_python: list[str]) -> None:
    """The tests and the commands of the page, word by word: two commits, and a slower one."""
    page = (ROOT / "docs" / "howto" / "in-ci.md").read_text("utf-8")
    project = tmp_path / "project"
    project.mkdir()
    for name, text in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", page, re.DOTALL):
        (project / name).write_text(text)
    (project / "model.py").write_text(MODEL)
    python = tmp_path / "bin" / "python"  # the `python` of the page
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {shlex.join(warm_python)} "$@"\n')
    python.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(python.parent), os.environ["PATH"]]),
        "PYTEST_ADDOPTS": "-p gpulab.pytest_plugin -p no:cacheprovider",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": str(ROOT),
        "CUDA_VISIBLE_DEVICES": "",
    }

    def run(command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    git = "git -c user.name=a -c user.email=a@b.example"
    assert run(f"git init -q -b main && git add . && {git} commit -qm before")[0] == 0
    assert run("git switch -qc change")[0] == 0
    blocks = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    commands = [re.findall(r"^\$ (.*)$", block, re.MULTILINE) for block in blocks]
    (save, compare), (checkout, save_before, compare_after), _install = commands
    for command in (save, compare, checkout, save_before, compare_after):
        code, out = run(command)
        assert code == 0, out
    assert "no difference seen: test_speed.py::test_layer / base = 1.0" in out, out
    (project / "model.py").write_text(MODEL.replace("(x @ x)", "(x @ x) * x"))
    code, out = run(compare_after)
    assert code == 1
    assert "TooSlowError: at most 1.05 times is allowed, and test_speed.py::test_layer" in out
