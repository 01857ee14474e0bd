"""Track which results of earlier calls are still in memory, until a write ends them.

A benchmark calls an operator that draws random numbers a hundred thousand times on the same
tensors. As long as nobody has written to the bytes of its inputs and outputs, only the last call
counts, and its numbers are drawn when somebody uses the bytes.
"""

from collections.abc import Callable, Hashable

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
    compute
        Writes the random numbers of the last repetition; None if they are in memory.

    Examples
    --------
    >>> ComputedResult("add of two tensors").holds
    True
    """

    __slots__ = ("compute", "holds", "key")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.holds = True
        self.compute: Callable[[], None] | None = None

    def settle(self) -> None:
        """Compute what was put off, if anything was."""
        # Set first, because computing reads and writes the bytes of this result.
        compute, self.compute = self.compute, None
        if compute is not None:
            compute()


class ComputedResults:
    """The computed results whose inputs or outputs are in one buffer, at most 64.

    Attributes
    ----------
    is_behind
        Whether some of them may not have been computed yet.
    """

    __slots__ = ("_watched", "is_behind")

    def __init__(self) -> None:
        self._watched: list[tuple[int, int, ComputedResult]] = []
        self.is_behind = False

    def __len__(self) -> int:
        return len(self._watched)

    def find(self, key: Hashable) -> ComputedResult | None:
        """Return the result with this key, or None if it is not in memory any more."""
        found = (result for _, _, result in self._watched if result.holds and result.key == key)
        return next(found, None)

    def add(self, result: ComputedResult, first: int, end: int) -> None:
        """Remember ``result`` until a byte from ``first`` to ``end - 1`` is written."""
        # A result is in the lists of several buffers, and a write to any of them ends it. So the
        # ones that have ended are removed first, and only then the oldest.
        if len(self._watched) >= _MOST_KEPT:
            self._watched = [entry for entry in self._watched if entry[2].holds]
        # The oldest is ended and not only removed, because a write here would no longer find it.
        if len(self._watched) >= _MOST_KEPT:
            _, _, oldest = self._watched.pop(0)
            oldest.settle()
            oldest.holds = False
        self._watched.append((first, end, result))

    def uses(self, first: int, end: int) -> bool:
        """Return whether a result uses a byte from ``first`` to ``end - 1``."""
        return bool(self._using(first, end))

    def settle(self, first: int, end: int) -> None:
        """Compute what was put off and uses a byte from ``first`` to ``end - 1``."""
        for result in self._using(first, end):
            result.settle()
        self.is_behind = any(result.compute is not None for _, _, result in self._watched)

    def forget(self, first: int, end: int, *, but: ComputedResult | None = None) -> None:
        """Forget the results that use a byte from ``first`` to ``end - 1``, except one."""
        ended = [result for result in self._using(first, end) if result is not but]
        # What was put off needs the bytes as they are now.
        for result in ended:
            result.settle()
        for result in ended:
            result.holds = False
        self._watched = [entry for entry in self._watched if entry[2].holds]

    def clear(self) -> None:
        """Forget all results, and what was put off: nobody will read these bytes."""
        # What was put off refers to the buffer, and the buffer to its results.
        for _, _, result in self._watched:
            result.holds, result.compute = False, None
        self._watched = []

    def _using(self, first: int, end: int) -> list[ComputedResult]:
        return [entry[2] for entry in self._watched if entry[0] < end and first < entry[1]]
