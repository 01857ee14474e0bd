"""First-use costs come one by one, from a new GPU or process, not from the GPU in use."""

import sys
from collections.abc import Iterator

import pytest
import torch

import gpulab
from gpulab import device
from gpulab.exercises.lesson_04 import first_use

LINES = "import sys\nfor n in range(3):\n print('{\"what\": %d}' % n, flush=True)\n"


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make gpulab believe that a real GPU is in use."""
    monkeypatch.setattr(device, "current", lambda: device.Device("a GPU", "measured", "a test"))
    return


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
    """The process prints one line for each cost, and each becomes one dict."""
    monkeypatch.setattr(first_use, "_COMMAND", (sys.executable, "-c", LINES))
    assert list(first_use.measured()) == [{"what": 0}, {"what": 1}, {"what": 2}]


@pytest.mark.usefixtures("real")
def test_a_process_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs printed before the failure are yielded; the error's note quotes the process."""
    code = f"{LINES}sys.exit('no GPU today')"
    monkeypatch.setattr(first_use, "_COMMAND", (sys.executable, "-c", code))
    costs = first_use.measured()
    assert [next(costs)["what"] for _ in range(3)] == [0, 1, 2]
    with pytest.raises(first_use.subprocess.CalledProcessError) as error:
        next(costs)
    assert error.value.returncode == 1
    assert error.value.__notes__ == ["the new process said: no GPU today"]


@pytest.mark.usefixtures("real")
def test_closing_the_generator_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends when the generator is closed before its end."""
    code = "import time; print('{\"what\": 0}', flush=True); time.sleep(600)"
    monkeypatch.setattr(first_use, "_COMMAND", (sys.executable, "-c", code))
    made: list[first_use.subprocess.Popen[str]] = []
    popen = first_use.subprocess.Popen

    def watched(*arguments: object, **options: object) -> object:
        made.append(popen(*arguments, **options))  # type: ignore[call-overload]  # passed on
        return made[-1]

    monkeypatch.setattr(first_use.subprocess, "Popen", watched)
    costs = first_use.measured()
    assert next(costs) == {"what": 0}
    costs.close()  # type: ignore[attr-defined]  # a generator
    assert made[0].returncode not in {None, 0}
