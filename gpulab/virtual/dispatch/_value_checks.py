"""Find a wrong index when a kernel ends, although nobody reads its results.

A kernel of CUDA has assertions, and the next call that waits raises their error. Here most of them
need only a look at the index; the results themselves may wait.
"""

from functools import partial
from typing import Any

from gpulab.virtual.operators import IndexRange, Operator
from gpulab.virtual.simulator.values import LogEntry
from gpulab.virtual.tensors import Reference


def note_check(entry: LogEntry, operator: Operator, args: list[Any]) -> None:
    """Make the entry of a call due: the call is an assertion, or may find a wrong value."""
    entry.is_due = True
    if operator.model.index_ranges is not None:
        ranges = operator.model.index_ranges(args)
        indices = [item.tensor for item in ranges if isinstance(item.tensor, Reference)]
        entry.checked = [item.span() for item in indices if item.layout.n_elements]
        entry.check = partial(_hold, ranges)


def _hold(ranges: list[IndexRange]) -> bool:
    return all(item.holds() for item in ranges)
