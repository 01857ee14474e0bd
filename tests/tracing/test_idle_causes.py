"""Why a device was idle: each cause in the smallest timeline that shows it."""

import pytest

from gpulab.tracing import Span
from gpulab.tracing._idle_causes import CAUSES, Gap, gaps, merged
from tests.support.spans import US, host, mark, work

AHEAD = host("launch", -20, -15, 2)  # its work was in the queue before the gap


def only(spans: list[Span]) -> Gap:
    """Return the only gap."""
    (gap,) = gaps(spans)
    assert gap.cause in CAUSES
    return gap


def before(*others: Span, **options: object) -> list[Span]:
    """Return work, a gap from 10 to 30 µs, and more work with the number 2."""
    return [work(0, 10, 0, 1), work(30, 40, 0, 2, **options), *others]


def test_late_launch() -> None:
    """A gap before a late launch is "host late" if no call blocked the host."""
    gap = only(before(host("launch", 20, 27, 2, name="cudaLaunchKernel")))
    assert (gap.start_s, gap.end_s, gap.duration_s) == (10 * US, 30 * US, pytest.approx(20 * US))
    assert (gap.cause, gap.detail) == ("host late", "cudaLaunchKernel for kernel came late")
    assert (gap.lane, gap.device) == ("cuda:0", 0)


def test_launch_that_returns_after_its_work_began() -> None:
    """A launch that returns after its kernel began is still late."""
    assert only(before(host("launch", 20, 35, 2))).cause == "host late"


def test_wait_of_the_host() -> None:
    """A gap is due to a synchronize if the host was in one during the gap."""
    spans = before(host("wait", 5, 13, name="cudaDeviceSynchronize"), host("launch", 20, 27, 2))
    gap = only(spans)
    assert (gap.cause, gap.detail) == ("synchronize", "the host was in cudaDeviceSynchronize")


def test_wait_that_was_over_before_the_gap() -> None:
    """A synchronize that ended before the gap is not its cause."""
    assert only(before(host("wait", 5, 9), host("launch", 20, 27, 2))).cause == "host late"


def test_other_call_of_the_host() -> None:
    """A call that took most of the time until the launch is named as the cause."""
    gap = only(before(host("host", 11, 19, name="cudaMalloc"), host("launch", 20, 27, 2)))
    assert (gap.cause, gap.detail) == ("host call", "the host was in cudaMalloc")


def test_short_call_of_the_host() -> None:
    """A call that took less than half of that time is not the cause."""
    assert only(before(host("host", 11, 15), host("launch", 20, 27, 2))).cause == "host late"


def test_other_launch_of_the_host() -> None:
    """A host that was busy with other launches is late, not blocked."""
    other = host("launch", 11, 19, 9, name="cudaLaunchKernel")
    assert only(before(other, host("launch", 20, 27, 2))).cause == "host late"


def test_call_of_another_thread() -> None:
    """A call of another thread does not block the host."""
    other = Span("host", "cudaMalloc", "host thread 2", 11 * US, 19 * US)
    assert only(before(other, host("launch", 20, 27, 2))).cause == "host late"


def test_copy_that_blocks_the_host() -> None:
    """If the copy's call returned only after the copy, the copy blocked the host."""
    call = host("launch", 0, 12, 1, name="cudaMemcpyAsync")
    gap = only(before(call, host("launch", 20, 27, 2)))
    assert (gap.cause, gap.detail) == ("blocking copy", "the host was in cudaMemcpyAsync")


def test_copy_that_does_not_block_the_host() -> None:
    """A copy on another stream whose call returned while it ran is not the cause."""
    call = host("launch", 5, 12, 9, name="cudaMemcpyAsync")
    spans = before(call, host("launch", 20, 27, 2), work(9, 40, 1, 9, engine="copy in"))
    assert only(spans).cause == "host late"


def test_copy_that_the_host_must_prepare() -> None:
    """A copy from pageable memory keeps the host busy, and that is the cause."""
    name = "Memcpy HtoD (Pageable -> Device)"
    call = host("launch", 5, 29, 2, name="cudaMemcpyAsync")
    gap = only(before(call, engine="copy in", name=name))
    assert (gap.cause, gap.detail) == (
        "blocking copy",
        f"the host prepared {name} in cudaMemcpyAsync",
    )


def test_copy_of_pinned_memory_is_only_late() -> None:
    """A copy from pinned memory needs no preparation, so the host is only late."""
    call = host("launch", 5, 29, 2, name="cudaMemcpyAsync")
    assert only(before(call, engine="copy in")).cause == "host late"


def test_event_of_another_stream() -> None:
    """If the launch was in time and the stream waited for an event, the event is the cause."""
    spans = before(
        AHEAD,
        mark("wait", 10, 28, 0, 3, waits_for=4),
        mark("event", 28, 28, 1, 4),
    )
    gap = only(spans)
    assert (gap.cause, gap.detail) == ("event", "waited for an event of stream 1")


def test_event_that_nobody_saw() -> None:
    """Without a record of the event, its stream is not named."""
    gap = only(before(AHEAD, mark("wait", 10, 28, 0, 3, waits_for=4)))
    assert gap.detail == "waited for an event"


def test_event_that_was_done_already() -> None:
    """An event that had passed before the gap is not the cause."""
    spans = before(AHEAD, mark("wait", 10, 11, 0, 3, waits_for=4), mark("event", 8, 8, 1, 4))
    assert only(spans).cause == "device"


def test_engine_in_use() -> None:
    """A stream's gap while another stream used the same engine is "engine busy"."""
    spans = [
        work(0, 10, 0, 1, engine="copy in"),
        work(5, 29, 1, 5, engine="copy in", name="large"),
        work(30, 40, 0, 2, engine="copy in"),
        AHEAD,
    ]
    device, stream = gaps(spans)[1], gaps(spans)[0]
    assert (stream.cause, stream.detail) == (
        "engine busy",
        "large of stream 1 used the engine for copy in",
    )
    assert (stream.lane, stream.device) == ("stream 0", None)
    assert (device.start_s, device.end_s, device.device) == (29 * US, 30 * US, 0)


def test_other_work_that_ended_long_before() -> None:
    """Work that ended long before the gap's end is not the cause."""
    spans = [work(0, 10, 0, 1), work(5, 25, 1, 5), work(30, 40, 0, 2), AHEAD]
    assert {gap.cause for gap in gaps(spans)} == {"device"}


def test_other_device_is_not_the_cause() -> None:
    """Work on another device uses other engines, so it is not the cause."""
    spans = [*before(AHEAD), work(0, 29, 5, 9, device=1)]
    assert only(spans).cause == "device"


def test_gap_without_a_cause() -> None:
    """If everything was ready, the cause is the device itself."""
    gap = only(before(AHEAD))
    assert (gap.cause, gap.detail) == ("device", "from one work to the next")
    assert only([work(0, 10), work(30, 40)]).cause == "device"


def test_last_release_is_the_cause() -> None:
    """Of a launch and an event, the later one is the cause."""
    event = mark("event", 28, 28, 1, 4)
    wait = mark("wait", 10, 28, 0, 3, waits_for=4)
    assert only(before(host("launch", 11, 20, 2), wait, event)).cause == "event"
    early = mark("event", 12, 12, 1, 4)
    wait = mark("wait", 10, 12, 0, 3, waits_for=4)
    assert only(before(host("launch", 11, 20, 2), wait, early)).cause == "host late"


def test_work_side_by_side_leaves_no_gap() -> None:
    """The device has no gap while a long kernel covers the pauses of another stream."""
    spans = [work(0, 100, 1), work(5, 10, 0), work(20, 30, 0), work(100, 110, 0)]
    assert [(gap.lane, gap.device) for gap in gaps(spans)] == [("stream 0", None)] * 2


def test_union_of_intervals() -> None:
    """Touching intervals are merged, and one inside another adds nothing."""
    assert merged([(5, 6), (0, 2), (1, 3), (3, 4), (1, 2)]) == [(0, 4), (5, 6)]
    assert merged([(0, 9), (1, 2)]) == [(0, 9)]
