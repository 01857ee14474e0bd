"""Streams of torch are matched with the numbers that records give them."""

import pytest
import torch

import gpulab
from gpulab.tracing import profiling
from gpulab.tracing._cuda_events import stream_numbers
from gpulab.tracing.profiling import Records


def test_numbers_of_streams() -> None:
    """On the virtual GPU the numbers are those of the streams themselves."""
    with gpulab.virtual_gpu("H200"):
        side = torch.cuda.Stream()
        streams = {(0, 111): torch.cuda.default_stream(), (0, 222): side}
        number = side.stream_id
        assert stream_numbers(streams) == {(0, 111): (0, 0), (0, 222): (0, number)}
        assert torch.cuda.current_stream() == torch.cuda.default_stream()


def test_no_streams_need_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program without events does not pay for a profiler session."""
    monkeypatch.setattr(profiling, "capture", lambda _work: pytest.fail("a session was opened"))
    assert stream_numbers({}) == {}


def test_lost_record_loses_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """If one record is lost, no stream gets a number, as it is unknown which is missing."""
    nothing = Records((), (), "measured", "NVIDIA H200")
    with gpulab.virtual_gpu("H200"):
        monkeypatch.setattr(profiling, "capture", lambda _work: nothing)
        assert stream_numbers({(0, 1): torch.cuda.default_stream()}) == {}
