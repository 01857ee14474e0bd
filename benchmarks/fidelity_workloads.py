"""The catalogue of workloads: those listed by hand, and those drawn at random."""

from collections import Counter

from fidelity_listed import listed
from fidelity_unseen import unseen
from fidelity_workload import Workload


def catalogue() -> list[Workload]:
    """Return all workloads.

    Raises
    ------
    ValueError
        If two have the same name.
    """
    by_hand = list(listed())
    found = [*by_hand, *unseen(by_hand)]
    counts = Counter(workload.name for workload in found)
    twice = [name for name, n in counts.items() if n > 1]
    if twice:
        raise ValueError(f"two workloads are named {twice[0]!r}")
    return found
