"""The catalogue of workloads: those listed by hand, and those drawn at random."""

from collections import Counter
from itertools import chain

from benchmarks.fidelity.dense import dense, focused
from benchmarks.fidelity.listed import listed
from benchmarks.fidelity.unseen import SEEDS, Draw, draws, unseen
from benchmarks.fidelity.wide import wide, wide_draws
from benchmarks.fidelity.workload import EARLIER, UNSEEN, Workload

# For each seed, the draws that the model was fitted to at that time. Their workloads must not come
# again, or the seed's workloads would not be unseen.
_FITTED = ((), (dense,), (dense, focused), (dense, focused, wide))
# The first seeds drew from fewer families.
_N_NARROW_SEEDS = 3


def catalogue(seeds: tuple[int, ...] = SEEDS) -> list[Workload]:
    """Return all workloads.

    Parameters
    ----------
    seeds
        Seeds of the draws; the workloads of the last one are unseen.

    Raises
    ------
    ValueError
        If two have the same name.
    """
    found = list(listed())
    for index, seed in enumerate(seeds):
        fitted = chain.from_iterable(draw() for draw in _FITTED[min(index, len(_FITTED) - 1)])
        role = UNSEEN if seed == seeds[-1] else EARLIER
        found += list(unseen([*found, *fitted], role, seed, _drawn_from(index)))
    counts = Counter(workload.name for workload in found)
    twice = [name for name, n in counts.items() if n > 1]
    if twice:
        raise ValueError(f"two workloads are named {twice[0]!r}")
    return found


def _drawn_from(index: int) -> list[Draw]:
    added = [] if index < _N_NARROW_SEEDS else [draw for _, draw in wide_draws()]
    return [*draws(), *added]
