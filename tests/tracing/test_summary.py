"""A summary gives busy, idle and overlap times, in numbers and in words."""

from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from gpulab.tracing._summary import summarize
from tests.support.spans import US, host, work

PLACE = "virtual NVIDIA H200"
TWO_STREAMS = [
    host("launch", 0, 5, 1),
    host("launch", 5, 10, 2),
    work(10, 50, 0, 1),
    work(30, 90, 7, 2, engine="copy in"),
    host("wait", 10, 100, 3),
]


@given(st.lists(st.integers(1, 2_000), min_size=2, max_size=6))
def test_streams_in_turn_save_nothing_and_lose_nothing(durations: list[int]) -> None:
    """Sums of seconds are rounded, and no saving is below zero, or it would be "-0 %"."""
    ends = list(accumulate(durations, initial=7))
    spans = [work(start, end, end % 2) for start, end in pairwise(ends)]
    (share,) = summarize(spans, PLACE).devices
    assert 0 <= share.saved_s < 1e-9 * US


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
    waited = summarize([host("wait", 0, 4)], PLACE)
    assert waited.finding == "No GPU did any work in 4.00 µs"
    assert waited.lines() == [
        "4.00 µs on virtual NVIDIA H200: 1 wait.",
        "No GPU did any work.",
    ]
