"""First-use costs are yielded one by one, in a new process, without touching the GPU in use."""

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
    """Make the GPU in use look like a real one."""
    monkeypatch.setattr(device, "current", lambda: device.Device("a GPU", "measured", "a test"))
    return


@pytest.mark.slow
def test_a_virtual_gpu_is_made_for_them() -> None:
    """Each first use is slower than the second, and the GPU in use keeps time and tensors."""
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
def test_a_real_gpu_takes_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines are yielded as they come."""
    monkeypatch.setattr(first_use, "_COMMAND", (sys.executable, "-c", LINES))
    assert list(first_use.measured()) == [{"what": 0}, {"what": 1}, {"what": 2}]


@pytest.mark.usefixtures("real")
def test_a_process_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """What came before is there, and the note says what the process said."""
    code = f"{LINES}sys.exit('no GPU today')"
    monkeypatch.setattr(first_use, "_COMMAND", (sys.executable, "-c", code))
    costs = first_use.measured()
    assert [next(costs)["what"] for _ in range(3)] == [0, 1, 2]
    with pytest.raises(first_use.subprocess.CalledProcessError) as error:
        next(costs)
    assert error.value.returncode == 1
    assert error.value.__notes__ == ["the new process said: no GPU today"]


@pytest.mark.usefixtures("real")
def test_whoever_stops_early_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends when the generator is closed, at any point."""
    code = "import time; print('{\"what\": 0}', flush=True); time.sleep(600)"
    monkeypatch.setattr(first_use, "_COMMAND", (sys.executable, "-c", code))
    made: list[first_use.subprocess.Popen[str]] = []
    popen = first_use.subprocess.Popen

    def kept(*arguments: object, **options: object) -> object:
        made.append(popen(*arguments, **options))  # type: ignore[call-overload]  # passed on
        return made[-1]

    monkeypatch.setattr(first_use.subprocess, "Popen", kept)
    costs = first_use.measured()
    assert next(costs) == {"what": 0}
    costs.close()  # type: ignore[attr-defined]  # a generator
    assert made[0].returncode not in {None, 0}
