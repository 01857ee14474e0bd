"""Memory in use is read at every change."""

from collections.abc import Iterator

import pytest
import torch

import gpulab
from gpulab.tracing._memory import memory_series, watch_memory
from gpulab.virtual import VirtualGpu


@pytest.fixture
def virtual() -> Iterator[VirtualGpu]:
    """Enter a virtual H200 with two devices."""
    with gpulab.virtual_gpu("H200", count=2, first_use=False) as entered:
        yield entered


def test_virtual_memory_is_followed(virtual: VirtualGpu) -> None:
    """Every allocation and release of each device is read, with the host's time."""
    kept = torch.empty(256, device="cuda")
    before_ns = virtual.machine.host.now_ns
    with watch_memory(virtual.machine) as readings:
        other = torch.empty(1024, device="cuda:1")
        more = torch.empty(512, device="cuda")
        del more
    del kept, other
    first, second = readings
    assert [n_bytes for _, n_bytes in first] == [1024, 3072, 1024]
    assert [n_bytes for _, n_bytes in second] == [0, 4096]
    assert first[0][0] == before_ns < second[1][0] <= first[1][0]


def test_nobody_watches_afterwards(virtual: VirtualGpu) -> None:
    """The allocator's methods are restored, also after an error."""
    with pytest.raises(ValueError, match=r"^mine$"), watch_memory(virtual.machine) as readings:
        raise ValueError("mine")
    torch.empty(256, device="cuda")
    assert [len(each) for each in readings] == [1, 1]
    assert not {"hand_out", "release"} & set(vars(virtual.machine.gpu.memory.usage))


class History:
    """Replaces PyTorch's memory history."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, is_kept: bool) -> None:
        self.calls: list[dict[str, object]] = []
        self.trace = [
            {"action": "alloc", "size": 100, "time_us": 2},
            {"action": "segment_alloc", "size": 2**20, "time_us": 2},
            {"action": "free_requested", "size": 100, "time_us": 3.5},
            {"action": "free_completed", "size": 100, "time_us": 4},
        ]
        memory = torch.cuda.memory
        monkeypatch.setattr(memory, "_record_memory_history", self.record)
        monkeypatch.setattr(memory, "_snapshot", lambda: {"device_traces": [self.trace]})
        monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _index: 2048)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        layer = torch._C
        monkeypatch.setattr(layer, "_cuda_isHistoryEnabled", lambda: is_kept, raising=False)

    def record(self, **options: object) -> None:
        """Note the options of this call."""
        self.calls.append(options)


def test_real_memory_is_taken_from_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes are whole blocks, earlier memory counts, and the history is switched off again."""
    history = History(monkeypatch, is_kept=False)
    with watch_memory(None) as readings:
        pass
    assert readings == [[(0, 2048), (2_000, 2560), (3_500, 2048)]]
    assert history.calls == [
        {"enabled": "all", "context": None, "max_entries": 1_000_000},
        {"enabled": None},
    ]


def test_history_of_somebody_else_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A history that is already switched on is not touched, and there are no readings."""
    history = History(monkeypatch, is_kept=True)
    with watch_memory(None) as readings:
        pass
    assert (readings, history.calls) == ([], [])


def test_history_ends_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The history is switched off after an error, which reaches the caller."""
    history = History(monkeypatch, is_kept=False)
    with pytest.raises(ValueError, match=r"^mine$"), watch_memory(None):
        raise ValueError("mine")
    assert history.calls[-1] == {"enabled": None}


def test_series_from_the_start_to_the_end() -> None:
    """The value at the start counts, and changes after the end do not."""
    readings = [[(0, 512), (1_000, 1024), (2_000, 2048), (9_000, 0)], [(0, 0), (1_500, 0)]]
    (series,) = memory_series(readings, zero_ns=1_000, end_s=5e-6)
    assert (series.name, series.unit, series.device) == ("memory", "B", 0)
    assert series.times_s == pytest.approx((0.0, 1e-6))
    assert series.values == (1024, 2048)
