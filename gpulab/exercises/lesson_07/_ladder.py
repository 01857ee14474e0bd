"""Find the rung of a ladder that changes the reading most."""

from collections.abc import Iterable

import pandas as pd


def largest_step(medians: pd.Series, rungs: Iterable[str]) -> str:
    """Return the rung whose median differs most from that of the rung below it.

    >>> import pandas as pd
    >>> medians = pd.Series({"naive": 9e-6, "events": 8e-6, "graph": 2e-6})
    >>> largest_step(medians, ["events", "graph"])
    'graph'
    """
    steps = medians.diff().abs()
    return max(rungs, key=lambda rung: float(steps[rung]))
