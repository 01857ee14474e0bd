"""The graph method captures once, is exact when replayed, and cleans up after a failed capture."""

import pytest
import torch

from gpulab.core.errors import NotCapturableError
from gpulab.gpus import gpu
from gpulab.timing import _cuda_graph, flusher, take_samples

pytestmark = pytest.mark.usefixtures("gpu")


CYCLES_PER_US = gpu("H200").boost_clock_mhz


def kernel() -> None:
    """Enqueue a kernel of exactly 10 µs."""
    torch.cuda._sleep(10 * CYCLES_PER_US)


def ns(samples_s: list[float]) -> list[int]:
    """Return the samples in whole nanoseconds."""
    return [round(sample_s * 1e9) for sample_s in samples_s]


@pytest.mark.slow
def test_flush_is_in_the_graph_and_not_in_the_time() -> None:
    """A cold sample is longer by the time to read memory, and does not include the flush."""
    a = torch.ones(1 << 20, device="cuda")
    hot_ns = ns(take_samples("graph", lambda: a + a, n_samples=4))[-1]
    cold_ns = ns(take_samples("graph", lambda: a + a, n_samples=4, before=flusher()))[-1]
    assert hot_ns < cold_ns < 2 * hot_ns


def test_work_that_waits_cannot_be_captured() -> None:
    """The error names the reason in one line, and capture works again afterwards."""
    x = torch.ones(4, device="cuda")
    stream = torch.cuda.current_stream()
    with pytest.raises(NotCapturableError) as error:
        take_samples("graph", lambda: x.sum().item(), n_samples=3)
    assert str(error.value) == (
        "the work cannot be captured into a CUDA graph: CUDA error: operation not permitted when "
        'stream is capturing; use method="calibrated", or take waits, copies from pageable memory '
        "and decisions on values out of it"
    )
    assert torch.cuda.current_stream() == stream
    assert not torch.cuda.is_current_stream_capturing()
    assert len(take_samples("graph", kernel, n_samples=2)) == 2
    assert (x + 1).tolist() == [2.0] * 4


def test_error_of_the_work_is_the_reason() -> None:
    """Any error of the work ends the capture, and the message quotes its first line."""

    def broken() -> None:
        raise ValueError("no such luck\nand advice for another case")

    with pytest.raises(NotCapturableError, match="graph: no such luck; use") as error:
        take_samples("graph", broken, n_samples=1)
    assert isinstance(error.value.__cause__, ValueError)


@pytest.mark.parametrize(("waits", "n_mended"), [(False, 0), (True, 1)])
def test_only_a_capture_that_cannot_be_ended_is_mended(
    monkeypatch: pytest.MonkeyPatch, *, waits: bool, n_mended: int
) -> None:
    """`_mend` runs only if the capture cannot end; freeing a pool twice would kill the process."""
    mended: list[object] = []
    monkeypatch.setattr(_cuda_graph, "_mend", mended.append)

    def fails() -> None:
        if waits:
            torch.cuda.synchronize()
        raise ValueError("no such luck")

    with pytest.raises(NotCapturableError):
        take_samples("graph", fails, n_samples=1)
    assert len(mended) == n_mended


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
def test_nothing_is_captured_after_work_that_was_ended(error: type[BaseException]) -> None:
    """An interrupted capture is ended; otherwise every later synchronize would be refused."""

    def work() -> None:
        raise error

    with pytest.raises((error, NotCapturableError)):
        take_samples("graph", work, n_samples=1)
    assert not torch.cuda.is_current_stream_capturing()
    torch.cuda.synchronize()
    assert len(take_samples("graph", lambda: torch.ones(2, device="cuda"), n_samples=1)) == 1
