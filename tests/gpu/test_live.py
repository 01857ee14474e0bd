"""An interrupted ``live.load`` ends cleanly, on a real GPU and on the virtual one."""

import signal
from collections.abc import Iterator
from contextlib import nullcontext

import pytest
import torch

import gpulab
from gpulab import live
from tests.support.notebook_display import shown_in

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("no_pixels")]


@pytest.fixture(params=["real", "virtual"])
def gpu(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test on the GPU of this machine, if there is one, and on the virtual H200."""
    if request.param == "real" and not torch.cuda.is_available():
        pytest.skip("no CUDA GPU: only the virtual one runs here")
    with nullcontext() if request.param == "real" else gpulab.virtual_gpu("H200"):
        yield request.param


@pytest.mark.slow
@pytest.mark.parametrize("watched", [False, True])
def test_an_interrupted_load(gpu: str, *, watched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted load returns its readings, with an empty queue and an ended thread."""
    shown = shown_in(monkeypatch, watched=watched)
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.half)
    out = torch.empty_like(a)
    calls: list[None] = []

    def work() -> None:
        torch.mm(a, a, out=out)
        calls.append(None)
        if len(calls) == 2000:
            signal.raise_signal(signal.SIGINT)

    trace = live.load(work, duration_s=60)
    assert torch.cuda.current_stream().query()
    assert trace.source == {"real": "measured", "virtual": "virtual"}[gpu]
    assert trace.stopped_by == "interrupt"
    assert len(trace.readings) > 1
    assert trace.missing or trace.readings[-1].sm_mhz
    assert "stopped by an interrupt after" in shown.outputs[0][-1].title
