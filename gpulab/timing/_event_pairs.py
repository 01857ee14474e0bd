"""Pairs of CUDA events around a piece of work: made first, then recorded, read after one wait."""

import torch

# "a resolution of around 0.5 microseconds": CUDA Runtime API, cudaEventElapsedTime.
# An H200's events move in steps of 32 ns (docs/floor.md); for GPUs in general only this is
# documented.
EVENT_RESOLUTION_S = 0.5e-6

Pair = tuple[torch.cuda.Event, torch.cuda.Event]


def new_event(*, external: bool = False) -> torch.cuda.Event:
    """Return an event that stores the time at which the device reaches it.

    If an ``external`` event is recorded while a graph is captured, it becomes part of the graph,
    and every replay of the graph records it again.
    """
    return torch.cuda.Event(enable_timing=True, external=external)  # type: ignore[no-untyped-call]  # torch's gap


def new_pairs(n_pairs: int) -> list[Pair]:
    """Return ``n_pairs`` pairs of events, each event recorded once."""
    pairs = [(new_event(), new_event()) for _ in range(n_pairs)]
    # The driver creates an event at its first record, which must not fall into a timed interval.
    for start, end in pairs:
        start.record()
        end.record()
    torch.cuda.synchronize()
    return pairs


def elapsed_s(pair: Pair) -> float:
    """Return the seconds from the first event of a pair to the second; both must be done."""
    start, end = pair
    return float(start.elapsed_time(end)) * 1e-3  # CUDA answers in milliseconds
