"""The catalogue of workloads: those listed by hand, and those drawn at random."""

from collections import Counter

from fidelity_dense import dense
from fidelity_listed import listed
from fidelity_unseen import EARLIER_SEED, SEED, unseen
from fidelity_workload import EARLIER, UNSEEN, Workload


def catalogue() -> list[Workload]:
    """Return all workloads.

    Raises
    ------
    ValueError
        If two have the same name.
    """
    by_hand = list(listed())
    earlier = list(unseen(by_hand, EARLIER, EARLIER_SEED))
    found = [*by_hand, *earlier]
    found += unseen([*found, *dense()], UNSEEN, SEED)
    counts = Counter(workload.name for workload in found)
    twice = [name for name, n in counts.items() if n > 1]
    if twice:
        raise ValueError(f"two workloads are named {twice[0]!r}")
    return found
