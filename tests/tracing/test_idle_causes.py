"""Why a device was idle: each cause in the smallest timeline that shows it."""

import pytest

from gpulab.tracing import Span
from gpulab.tracing._idle_causes import Gap, gaps
from tests.support.spans import US, host, mark, work

AHEAD = host("launch", -20, -15, 2)  # its work was in the queue before the gap


def only(spans: list[Span]) -> Gap:
    """Return the only gap."""
    (gap,) = gaps(spans)
    return gap


def before(*others: Span, **options: object) -> list[Span]:
    """Return work, a gap from 10 to 30 µs, and more work with the number 2."""
    return [work(0, 10, 0, 1), work(30, 40, 0, 2, **options), *others]


LATE = host("launch", 20, 27, 2, name="cudaLaunchKernel")
PAGEABLE = "Memcpy HtoD (Pageable -> Device)"
HELD = host("launch", 5, 29, 2, name="cudaMemcpyAsync")  # a copy that the host is busy with
NO_WORK = "from one work to the next"


@pytest.mark.parametrize(
    ("spans", "cause", "detail"),
    [
        (before(LATE), "host late", "cudaLaunchKernel for kernel came late"),
        # It returns after its kernel began, and is still late.
        (before(host("launch", 20, 35, 2)), "host late", ""),
        (
            before(host("wait", 5, 13, name="cudaDeviceSynchronize"), LATE),
            "synchronize",
            "the host was in cudaDeviceSynchronize",
        ),
        (before(host("wait", 5, 9), LATE), "host late", ""),  # it was over before the gap
        (
            before(host("host", 11, 19, name="cudaMalloc"), LATE),
            "host call",
            "the host was in cudaMalloc",
        ),
        (before(host("host", 11, 15), LATE), "host late", ""),  # less than half of the time
        # Another launch does not block the host, and nor does a call of another thread.
        (before(host("launch", 11, 19, 9, name="cudaLaunchKernel"), LATE), "host late", ""),
        (
            before(Span("host", "cudaMalloc", "host thread 2", 11 * US, 19 * US), LATE),
            "host late",
            "",
        ),
        # A copy blocked the host if its call returned only after it.
        (
            before(host("launch", 0, 12, 1, name="cudaMemcpyAsync"), LATE),
            "blocking copy",
            "the host was in cudaMemcpyAsync",
        ),
        (
            before(
                host("launch", 5, 12, 9, name="cudaMemcpyAsync"),
                LATE,
                work(9, 40, 1, 9, engine="copy in"),
            ),
            "host late",
            "",
        ),
        (
            before(HELD, engine="copy in", name=PAGEABLE),
            "blocking copy",
            f"the host prepared {PAGEABLE} in cudaMemcpyAsync",
        ),
        (before(HELD, engine="copy in"), "host late", ""),  # pinned: nothing to prepare
        (
            before(AHEAD, mark("wait", 10, 28, 0, 3, waits_for=4), mark("event", 28, 28, 1, 4)),
            "event",
            "waited for an event of stream 1",
        ),
        (before(AHEAD, mark("wait", 10, 28, 0, 3, waits_for=4)), "event", "waited for an event"),
        # The event had passed before the gap.
        (
            before(AHEAD, mark("wait", 10, 11, 0, 3, waits_for=4), mark("event", 8, 8, 1, 4)),
            "device",
            NO_WORK,
        ),
        # Work on another device uses other engines.
        ([*before(AHEAD), work(0, 29, 5, 9, device=1)], "device", NO_WORK),
        (before(AHEAD), "device", NO_WORK),
        ([work(0, 10), work(30, 40)], "device", NO_WORK),
    ],
)
def test_the_cause_of_a_gap(spans: list[Span], cause: str, detail: str) -> None:
    """Each cause is found in the smallest timeline that has it, and not in one much like it."""
    gap = only(spans)
    assert (gap.start_s, gap.end_s, gap.duration_s) == (10 * US, 30 * US, pytest.approx(20 * US))
    assert gap.cause == cause
    assert gap.detail == detail or not detail


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
    assert (device.lane, device.device) == ("cuda:0", 0)
    assert (device.start_s, device.end_s) == (29 * US, 30 * US)
