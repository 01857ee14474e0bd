"""A summary gives busy, idle and overlap times, in numbers and in words."""

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.tracing import Span
from gpulab.tracing._summary import BusyTime, summarize
from tests.support.spans import US, host, work

PLACE = "virtual NVIDIA H200"
TWO_STREAMS = [
    host("launch", 0, 5, 1),
    host("launch", 5, 10, 2),
    work(10, 50, 0, 1),
    work(30, 90, 7, 2, engine="copy in"),
    host("wait", 10, 100, 3),
]


def test_shares_of_two_streams() -> None:
    """All shares refer to the whole window, host included."""
    summary = summarize(TWO_STREAMS, PLACE)
    (share,) = summary.devices
    assert summary.window_s == pytest.approx(100 * US)
    assert share.busy_s == pytest.approx(80 * US)
    assert share.overlap_s == pytest.approx(20 * US)
    assert (share.before_s, share.after_s) == pytest.approx((10 * US, 10 * US))
    assert [part.name for part in share.streams] == ["stream 0", "stream 7"]
    assert [part.busy_s for part in share.streams] == pytest.approx([40 * US, 60 * US])
    assert [part.name for part in share.engines] == ["compute", "copy in"]


def test_possible_saving() -> None:
    """In turn it would take 100 µs, the longest stream 60, and it took 80: half is saved."""
    (share,) = summarize(TWO_STREAMS, PLACE).devices
    assert share.possible_s == pytest.approx(40 * US)
    assert share.saved_s == pytest.approx(20 * US)
    assert share.overlap_achieved == pytest.approx(0.5)


def test_copies_in_one_direction_cannot_overlap() -> None:
    """Two streams that only copy in share one engine, so nothing can be saved."""
    spans = [work(0, 10, 0, engine="copy in"), work(10, 30, 1, engine="copy in")]
    (share,) = summarize(spans, PLACE).devices
    assert share.possible_s == 0
    assert share.overlap_achieved is None


def test_kernels_of_two_streams_may_overlap() -> None:
    """Kernels can share the multiprocessors, so the compute engine sets no bound."""
    (share,) = summarize([work(0, 10, 0), work(0, 20, 1)], PLACE).devices
    assert share.possible_s == pytest.approx(10 * US)
    assert share.overlap_achieved == pytest.approx(1)
    (share,) = summarize([work(0, 10, 0), work(10, 30, 1)], PLACE).devices
    assert share.possible_s == pytest.approx(10 * US)


@given(st.lists(st.integers(1, 2_000), min_size=2, max_size=6))
def test_streams_in_turn_save_nothing_and_lose_nothing(durations: list[int]) -> None:
    """Sums of seconds are rounded, and no saving is below zero, or it would be "-0 %"."""
    ends = list(accumulate(durations, initial=7))
    spans = [work(start, end, end % 2) for start, end in pairwise(ends)]
    (share,) = summarize(spans, PLACE).devices
    assert 0 <= share.saved_s < 1e-9 * US


def test_overlap_inside_one_stream_is_none() -> None:
    """Overlap within one stream, as in a graph, does not count as overlap of streams."""
    (share,) = summarize([work(0, 10), work(5, 20)], PLACE).devices
    assert (share.busy_s, share.overlap_s) == (pytest.approx(20 * US), 0)
    assert share.streams == (BusyTime("stream 0", share.busy_s, 2),)
    assert share.overlap_achieved is None


def test_waits_of_streams_are_not_busy() -> None:
    """A waiting stream does not make the device busy."""
    spans = [work(0, 10), Span("wait", "w", "stream 0", 10 * US, 90 * US, 0)]
    (share,) = summarize(spans, PLACE).devices
    assert share.busy_s == pytest.approx(10 * US)


def test_words() -> None:
    """The text has counts, shares, idle causes and the longest gaps, word for word as here."""
    spans = [*TWO_STREAMS, host("launch", 99, 101, 4), work(104, 110, 0, 4)]
    assert str(summarize(spans, PLACE)) == (
        "110 µs on virtual NVIDIA H200: 3 launches, 2 kernels, 1 copy, 1 wait.\n"
        "cuda:0: busy 78.2 %, idle 21.8 %, streams overlap in 23.3 % of the busy time "
        "(43 % of the possible saving).\n"
        "  Streams: stream 0 41.8 %, stream 7 54.5 %.\n"
        "  Engines: compute 41.8 %, copy in 54.5 %.\n"
        "  Idle: 12.7 % synchronize, 9.1 % before the first work.\n"
        "Longest gaps:\n"
        "  54.0 µs on stream 0 from 50.0 µs: synchronize, the host was in wait\n"
        "  14.0 µs on cuda:0 from 90.0 µs: synchronize, the host was in wait"
    )


def test_words_for_two_devices_and_lost_records() -> None:
    """Each device has its own lines, and missing records are mentioned."""
    spans = [work(0, 10), work(0, 5, 0, device=1), host("host", 0, 20)]
    lines = summarize(spans, PLACE, n_missing=1).lines()
    assert lines[:3] == [
        "20.0 µs on virtual NVIDIA H200: 2 kernels, 1 host call.",
        "1 launch left no record: more ran than is shown.",
        "cuda:0: busy 50.0 %, idle 50.0 %, one stream.",
    ]
    assert "cuda:1: busy 25.0 %, idle 75.0 %, one stream." in lines


def test_words_for_nothing() -> None:
    """A timeline without spans, or without work, has a text of its own."""
    assert str(summarize([], PLACE)) == (
        "No spans on virtual NVIDIA H200: the work did nothing that leaves a trace."
    )
    assert summarize([host("wait", 0, 4)], PLACE).lines() == [
        "4.00 µs on virtual NVIDIA H200: 1 wait.",
        "No GPU did any work.",
    ]


def test_only_the_longest_gaps_are_printed() -> None:
    """The text lists the five longest gaps, and the record contains all."""
    summary = summarize([work(n * n, n * n + 1) for n in range(10)], PLACE)
    assert [round(gap.duration_s / US) for gap in summary.gaps] == [16, 14, 12, 10, 8, 6, 4, 2]
    assert len([line for line in summary.lines() if line.startswith("  ") and "from" in line]) == 5


def test_idle_time_by_cause() -> None:
    """Idle time is added up by cause, for gaps of the whole device only."""
    spans = [*TWO_STREAMS, host("launch", 99, 101, 4), work(104, 110, 0, 4), work(112, 113)]
    lost = summarize(spans, PLACE).idle_by_cause(0)
    assert lost == pytest.approx({"synchronize": 14 * US, "device": 2 * US})
    assert summarize(spans, PLACE).idle_by_cause(1) == {}
