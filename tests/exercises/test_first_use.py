"""First uses are timed on a new GPU or in a new process, and not on the GPU in use."""

import io
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout

import pytest
import torch

import gpulab
from gpulab import device
from gpulab.device import _notebook_session
from gpulab.exercises.lesson_04 import first_use, in_a_new_process

LINES = "import sys\nfor n in range(3):\n print('{\"what\": %d}' % n, flush=True)\n"


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make gpulab believe that a real GPU is in use; no test uses it."""
    monkeypatch.setattr(device, "current", lambda: device.Device("a GPU", "measured", "a test"))


@pytest.fixture
def _session() -> Iterator[None]:
    """Restore the choice of the GPU."""
    before = _notebook_session.session.device
    yield
    _notebook_session.session.device = before


@pytest.mark.slow
def test_first_uses_run_on_a_virtual_gpu_of_their_own() -> None:
    """First uses are slower than second ones; the GPU in use keeps its time and tensors."""
    with gpulab.virtual_gpu("A100") as mine:
        x = torch.ones(4, device="cuda")
        torch.cuda.synchronize()
        before_s = mine.now_s
        costs = list(first_use.measured())
        assert mine.now_s == before_s
        assert x.tolist() == [1.0] * 4
    assert tuple(cost["what"] for cost in costs) == first_use.NAMES
    assert all(cost["first_s"] > 3 * cost["second_s"] for cost in costs)  # type: ignore[operator]  # numbers


@pytest.mark.usefixtures("real")
def test_first_uses_of_a_real_gpu_run_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process prints one line for each cost; if it fails, a note quotes what it said."""
    code = f"{LINES}sys.exit('no GPU today')"
    monkeypatch.setattr(first_use, "_COMMAND", (sys.executable, "-c", code))
    costs = first_use.measured()
    assert [next(costs)["what"] for _ in range(3)] == [0, 1, 2]
    with pytest.raises(subprocess.CalledProcessError) as error:
        next(costs)
    assert error.value.returncode == 1
    assert error.value.__notes__ == ["the new process said: no GPU today"]


@pytest.mark.usefixtures("real")
def test_closing_the_generator_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends when the generator is closed before its end."""
    code = "import time; print('{\"what\": 0}', flush=True); time.sleep(600)"
    monkeypatch.setattr(first_use, "_COMMAND", (sys.executable, "-c", code))
    made: list[subprocess.Popen[str]] = []
    popen = subprocess.Popen

    def watched(*arguments: object, **options: object) -> object:
        made.append(popen(*arguments, **options))  # type: ignore[call-overload]  # passed on
        return made[-1]

    monkeypatch.setattr(first_use.subprocess, "Popen", watched)
    costs = first_use.measured()
    assert next(costs) == {"what": 0}
    costs.close()  # type: ignore[attr-defined]  # a generator
    assert made[0].returncode not in {None, 0}


# A learner's own function


def first_and_second() -> list[float]:
    """Time two waits for the GPU."""
    import time  # the new process gets this function's source alone, not the imports of the file

    times_s = []
    for _ in range(2):
        start_s = time.perf_counter()
        torch.cuda.synchronize()
        times_s.append(time.perf_counter() - start_s)
    return times_s


def sum_of_ones() -> list[float]:
    """Use torch, and return numbers that must arrive without rounding."""
    return [0.1, 1e-9, float(torch.ones(3).sum())]


@pytest.mark.usefixtures("_session")
def test_the_virtual_gpu_is_new_each_time() -> None:
    """Each run creates a context, on a new GPU of the chosen kind."""
    device.use("A100")
    for _ in range(2):
        first_s, second_s = in_a_new_process(first_and_second)
        assert first_s > 0.3
        assert second_s < 1e-4
    virtual = device.current().virtual
    assert virtual is not None
    assert virtual.spec.name == "A100"


@pytest.mark.usefixtures("real")
def test_a_real_gpu_gets_the_source_of_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its source runs without the names of its file, and its numbers come back unrounded."""

    def lines_of(command: Sequence[str]) -> list[str]:
        python, option, code = command
        assert (python, option) == (sys.executable, "-c")
        with redirect_stdout(io.StringIO()) as printed:
            exec(code, {})
        return printed.getvalue().splitlines()

    monkeypatch.setattr(first_use, "_lines_of", lines_of)
    assert in_a_new_process(sum_of_ones) == [0.1, 1e-9, 3.0]
