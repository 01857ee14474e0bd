"""Pairs of CUDA events round a piece of work: made beforehand, recorded, read after one wait."""

import torch

# "a resolution of around 0.5 microseconds": CUDA Runtime API, cudaEventElapsedTime.
EVENT_RESOLUTION_S = 0.5e-6

Pair = tuple[torch.cuda.Event, torch.cuda.Event]


def new_event(*, external: bool = False) -> torch.cuda.Event:
    """Return an event that keeps the time at which the device reaches it.

    An ``external`` one that is recorded while a graph is captured becomes a part of that graph,
    and every replay of the graph records it anew.
    """
    return torch.cuda.Event(enable_timing=True, external=external)  # type: ignore[no-untyped-call]  # torch's gap


def new_pairs(n_pairs: int) -> list[Pair]:
    """Return so many pairs of events that have each been recorded once."""
    pairs = [(new_event(), new_event()) for _ in range(n_pairs)]
    # The driver makes an event at its first record: outside of the intervals, then.
    for start, end in pairs:
        start.record()
        end.record()
    torch.cuda.synchronize()
    return pairs


def elapsed_s(pair: Pair) -> float:
    """Return the seconds from the first event to the second, both of them done."""
    start, end = pair
    return float(start.elapsed_time(end)) * 1e-3  # CUDA answers in milliseconds
