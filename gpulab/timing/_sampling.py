"""Take samples batch by batch until the stopping rule is met, and keep them on an interrupt."""

import time
from collections.abc import Callable, Sequence

from gpulab.progress import Bar
from gpulab.timing._stopping import StoppingRule


def take_in_turns(
    turns: Sequence[Callable[[int], None]],
    rule: StoppingRule,
    *,
    judged: Callable[[], Sequence[float]],
    n_next: Callable[[int, float], int],
    progress: bool = False,
) -> tuple[int, str]:
    """Return how many samples every run has taken, and the criterion that ended them.

    Parameters
    ----------
    turns
        For each run, what takes so many more samples of it. Two take turns in the order
        a b b a a b b a, so that a steady drift falls on both alike.
    rule
        When to stop.
    judged
        Returns the values whose precision counts.
    n_next
        Given the samples so far and the seconds that they took, how many to take in the next
        turn.
    progress
        Whether to show a bar after a second.

    Raises
    ------
    KeyboardInterrupt
        If it comes before the first turn of every run is over; a later one ends the sampling.
        One of two runs may then have more samples than were counted.
    """
    order, n_taken = list(turns), 0
    start_s, elapsed_s = time.perf_counter(), 0.0
    with Bar(total=rule.n_samples, desc="measuring", unit=" samples", disable=not progress) as bar:
        try:
            while not (reason := rule.reason(n_taken, elapsed_s, judged)):
                # Shown only where more is to come, so that the time limit makes no bar flash.
                bar.update(n_taken - bar.n)
                n_batch = n_next(n_taken, elapsed_s)
                for take in order:
                    take(n_batch)
                n_taken += n_batch
                order.reverse()
                elapsed_s = time.perf_counter() - start_s
        except KeyboardInterrupt:
            if n_taken == 0:
                raise
            reason = "interrupt"
    return n_taken, reason
