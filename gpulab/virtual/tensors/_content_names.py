"""Name the content of ranges of bytes, so that calls with the same inputs can be recognized.

Bytes get a name when a call reads or writes them, and keep it until somebody writes to any of
them. If two ranges have the same name, they contain the same bytes; with different names they may,
too.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from itertools import count

# What is dropped beyond this number gets a new name when it is read again.
_MOST_NAMED = 1_000
_numbers = count()


def new_name() -> Hashable:
    """Return a name that no other content has.

    Examples
    --------
    >>> new_name() == new_name()
    False
    """
    return next(_numbers)


class ContentNames:
    """The names of the bytes of one buffer.

    Examples
    --------
    >>> contents = ContentNames()
    >>> contents.name("weights", 0, 4096)
    >>> contents.find(0, 4096)
    'weights'
    >>> contents.find(1024, 2048)  # a part of the weights
    ('weights', 1024, 2048)
    >>> contents.forget(4000, 4004)
    >>> contents.find(0, 4096) is None
    True
    """

    __slots__ = ("_firsts", "_named")

    def __init__(self) -> None:
        # In the order of the addresses, and without overlaps.
        self._firsts: list[int] = []
        self._named: list[tuple[int, Hashable]] = []

    def __len__(self) -> int:
        return len(self._firsts)

    def find(self, first: int, end: int) -> Hashable | None:
        """Return the name of the bytes from ``first`` to ``end - 1``; None if they have none."""
        index = bisect_right(self._firsts, first) - 1
        if index < 0 or end > self._named[index][0]:
            return None
        start, (stop, name) = self._firsts[index], self._named[index]
        is_whole = start == first and stop == end
        return name if is_whole else (name, first - start, end - start)

    def name(self, name: Hashable, first: int, end: int) -> None:
        """Name the bytes from ``first`` to ``end - 1``, as they are now."""
        self.forget(first, end)
        if len(self._firsts) >= _MOST_NAMED:
            del self._firsts[0], self._named[0]
        index = bisect_left(self._firsts, first)
        self._firsts.insert(index, first)
        self._named.insert(index, (end, name))

    def is_named(self, first: int, end: int) -> bool:
        """Return whether a byte from ``first`` to ``end - 1`` has a name."""
        named = self._overlapping(first, end)
        return named.start < named.stop

    def forget(self, first: int, end: int) -> None:
        """Forget the names that cover a byte from ``first`` to ``end - 1``."""
        named = self._overlapping(first, end)
        if named.start < named.stop:
            del self._firsts[named.start : named.stop], self._named[named.start : named.stop]

    def clear(self) -> None:
        """Forget all names."""
        self._firsts, self._named = [], []

    def _overlapping(self, first: int, end: int) -> range:
        index = bisect_right(self._firsts, first)
        if index and self._named[index - 1][0] > first:
            index -= 1
        return range(index, bisect_left(self._firsts, end))
