"""Remember which bytes are the result of which call, so that a repeated call computes nothing.

A benchmark calls an operator a hundred thousand times on the same tensors. If a call with the same
arguments, inputs and outputs was computed before, and nobody has written to any of those bytes
since, computing it again would write the bytes that are there already.
"""

from collections.abc import Hashable

# Enough for the calls in the body of a benchmark's loop. Each write to a buffer searches the list,
# so a longer one would make every write slower.
_MOST_KEPT = 64


class ComputedResult:
    """The result of a call, which is in memory as long as nobody writes to its bytes.

    Attributes
    ----------
    key
        The operator, its arguments, and the bytes of its inputs and outputs.
    holds
        False after a write to one of its inputs or outputs.

    Examples
    --------
    >>> ComputedResult("add of two tensors").holds
    True
    """

    __slots__ = ("holds", "key")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.holds = True


class ComputedResults:
    """The computed results whose inputs or outputs are in one buffer, at most 64."""

    __slots__ = ("_watched",)

    def __init__(self) -> None:
        self._watched: list[tuple[int, int, ComputedResult]] = []

    def __len__(self) -> int:
        return len(self._watched)

    def has(self, key: Hashable) -> bool:
        """Return whether a result with this key is still in memory."""
        return any(result.holds and result.key == key for _, _, result in self._watched)

    def add(self, result: ComputedResult, first: int, end: int) -> None:
        """Remember ``result`` until a byte from ``first`` to ``end - 1`` is written."""
        # A result is in the lists of several buffers, and a write to any of them ends it. So the
        # ones that have ended are removed first, and only then the oldest.
        if len(self._watched) >= _MOST_KEPT:
            self._watched = [entry for entry in self._watched if entry[2].holds]
        # The oldest is ended and not only removed, because a write here would no longer find it.
        if len(self._watched) >= _MOST_KEPT:
            _, _, oldest = self._watched.pop(0)
            oldest.holds = False
        self._watched.append((first, end, result))

    def forget(self, first: int, end: int) -> None:
        """Forget the results that use a byte from ``first`` to ``end - 1``."""
        for entry in self._watched:
            if entry[0] < end and first < entry[1]:
                entry[2].holds = False
        self._watched = [entry for entry in self._watched if entry[2].holds]
