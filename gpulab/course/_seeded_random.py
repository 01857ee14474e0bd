"""Random numbers from a text: the same text gives the same numbers on every version of Python."""

import hashlib
from collections.abc import Sequence
from itertools import count
from typing import TypeVar

T = TypeVar("T")


class SeededDraw:
    """A random generator that is seeded by texts, such as a token, a learner and a question."""

    # Python's `random` is not used: learner and grader may run different versions of Python, and
    # only `random.random()` is promised to give the same numbers in all of them.
    def __init__(self, *parts: str) -> None:
        self._seed = "\0".join(parts).encode()
        self._counter = count()

    def below(self, n: int) -> int:
        """Return a whole number from 0 to ``n - 1``."""
        block = self._seed + next(self._counter).to_bytes(4, "big")
        # The remainder of a number of 256 bits is uniform enough for every purpose here.
        return int.from_bytes(hashlib.sha256(block).digest(), "big") % n

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in another order."""
        remaining = list(items)
        return [remaining.pop(self.below(len(remaining))) for _ in items]

    def number(self, low: int, high: int, step: int = 1) -> int:
        """Return a whole number from ``low`` to ``high``, in steps."""
        return low + step * self.below((high - low) // step + 1)
