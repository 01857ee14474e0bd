"""A fault during a measurement ends in an error that names its cause, or in a valid result."""

import sys
import time
from collections.abc import Callable, Iterator
from itertools import count

import pytest
import torch

import gpulab
from gpulab import clocks
from gpulab.core.errors import ClocksUnavailableError
from gpulab.device.work import Work
from gpulab.timing import MeasurementOptions
from gpulab.timing._stopping import StoppingRule, take_in_turns

MESSAGE = "CUDA error: device-side assert triggered"


@pytest.fixture
def x() -> Iterator[torch.Tensor]:
    """Give a tensor on a small virtual GPU."""
    with gpulab.virtual_gpu("T4"):
        yield torch.ones(64, 64, device="cuda")


MEASURED: dict[str, Callable[[Work], object]] = {
    "measure": gpulab.measure,
    "compare": lambda work: gpulab.compare(work, work),
    "ladder": gpulab.ladder,
    "timeline": lambda work: gpulab.timeline(lambda: [work() for _ in range(20)]),
}


@pytest.mark.parametrize("run", MEASURED.values(), ids=MEASURED.keys())
def test_out_of_memory_is_raised_and_leaves_the_gpu_usable(
    x: torch.Tensor, run: Callable[[Work], object]
) -> None:
    """After out-of-memory in the work, the same GPU can measure as soon as the memory is freed."""
    kept: list[torch.Tensor] = []
    with pytest.raises(torch.OutOfMemoryError, match=r"^CUDA out of memory\."):
        run(lambda: kept.append(torch.empty(1 << 28, device="cuda")))
    assert kept
    kept.clear()
    assert gpulab.measure(lambda: x + 1, n_samples=3).n_samples == 3


@pytest.mark.usefixtures("x")
@pytest.mark.parametrize("is_lost", [True, False])
def test_an_asynchronous_error_says_what_may_be_to_blame(
    monkeypatch: pytest.MonkeyPatch, *, is_lost: bool
) -> None:
    """Notes on a CUDA error blame an earlier kernel, and say if the context is lost."""
    fails, calls, wait = [False], count(), torch.cuda.synchronize

    def synchronize(*args: object) -> None:
        if fails[0]:
            fails[0] = is_lost
            raise torch.AcceleratorError(MESSAGE)
        wait(*args)  # type: ignore[arg-type] # passed on as given

    def work() -> None:
        torch.cuda._sleep(20_000_000)  # long enough for batches of a few samples
        fails[0] = fails[0] or next(calls) == 80

    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    with pytest.raises(torch.AcceleratorError, match=MESSAGE) as error:
        gpulab.measure(work, method="synchronized", n_samples=200)
    raised, blamed, *lost = error.value.__notes__
    partial = error.value.partial  # type: ignore[attr-defined] # where the note says
    assert raised.endswith(
        f"; the {partial.n_samples} samples before are kept in its attribute `partial`"
    )
    assert partial.stopped_by == "error"
    assert blamed == (
        "gpulab: CUDA errors are asynchronous, so the kernel that failed may be an earlier one; "
        "CUDA_LAUNCH_BLOCKING=1 in the environment finds it"
    )
    advice = (
        "gpulab: the CUDA context of this process is lost, as after an index out of range in a "
        "kernel, and every later call on the GPU will fail; restart the process (in a notebook: "
        "the kernel)"
    )
    assert lost == ([advice] if is_lost else [])


NVML_CALLS = (
    *("nvmlInit", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetClockInfo"),
    *("nvmlDeviceGetPowerUsage", "nvmlDeviceGetTemperature", "nvmlDeviceGetMaxClockInfo"),
    *("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"),
    *("nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetUtilizationRates"),
)
UNINITIALIZED, NOT_SUPPORTED, GPU_IS_LOST, UNKNOWN = 1, 3, 15, 999


@pytest.mark.parametrize("n_answers", [0, 9, 13])
@pytest.mark.parametrize("code", [UNINITIALIZED, NOT_SUPPORTED, GPU_IS_LOST, UNKNOWN])
def test_a_driver_that_stops_answering_costs_the_clocks_only(
    x: torch.Tensor, monkeypatch: pytest.MonkeyPatch, code: int, n_answers: int
) -> None:
    """When NVML fails midway, the samples are complete and only the clock is missing."""
    nvml, asked = sys.modules["pynvml"], count()

    def vanishing(answer: Callable[..., object]) -> Callable[..., object]:
        def ask(*args: object) -> object:
            if next(asked) >= n_answers:
                raise nvml.NVMLError(code)
            return answer(*args)

        return ask

    for name in NVML_CALLS:
        monkeypatch.setattr(nvml, name, vanishing(getattr(nvml, name)))
    found = gpulab.measure(lambda: x + 1, n_samples=20)
    assert found.n_samples == 20
    assert found.conditions.clock_after_mhz is None or n_answers >= 13
    assert gpulab.compare(lambda: x + 1, lambda: x + 1, n_samples=5).first.n_samples == 5
    if code == UNINITIALIZED:
        with pytest.raises(ClocksUnavailableError, match=r"^the clocks cannot be read: "):
            clocks.read()


CLOCKS: dict[str, Callable[[float, int], float]] = {
    "stands still": lambda _now_s, _n: 1.0,
    "is set back once": lambda now_s, n: now_s - (5 if n > 40 else 0),
    "jumps ahead once": lambda now_s, n: now_s + (3600 if n > 40 else 0),
    "jumps again and again": lambda now_s, n: now_s + 3600 * (n // 40),
}


@pytest.fixture(params=CLOCKS.values(), ids=CLOCKS.keys())
def wrong_clock(
    x: torch.Tensor,  # noqa: ARG001 # the virtual clock comes first
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Make the host's clock go wrong, like that of a laptop that was asleep."""
    right, asked = time.perf_counter, count()
    monkeypatch.setattr(time, "perf_counter", lambda: request.param(right(), next(asked)))


@pytest.mark.usefixtures("wrong_clock")
@pytest.mark.parametrize("method", ["naive", "synchronized", "calibrated"])
def test_no_time_is_negative_and_no_loop_endless(x: torch.Tensor, method: str) -> None:
    """With a broken host clock, samples are not negative and the median ignores one jump."""
    found = gpulab.measure(lambda: x + 1, method=method, progress=False)
    assert min(found.samples_s) >= 0
    assert found.median_s < 1e-3
    compared = gpulab.compare(lambda: x + 1, lambda: x + 1, method=method, n_samples=10)
    assert not compared.differs
    assert "nan" not in compared.verdict()


def test_the_time_that_has_passed_never_gets_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule's elapsed time never decreases, even if the clock is set back."""
    times_s, passed_s = iter([0.0, 0.9, -5.0, 2.0]), []

    def n_next(_n_taken: int, elapsed_s: float) -> int:
        passed_s.append(elapsed_s)
        return 1

    rule = StoppingRule(options=MeasurementOptions(), n_least=100)
    monkeypatch.setattr(time, "perf_counter", lambda: next(times_s))
    taken: list[int] = []
    ended = take_in_turns(
        [taken.append], rule, count=taken.__len__, judged=lambda: [1.0], n_next=n_next
    )
    assert (ended, passed_s) == ((3, "max_time"), [0.0, 0.9, 0.9])
