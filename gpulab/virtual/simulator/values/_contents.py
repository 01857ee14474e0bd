"""Which entry of the log wrote each byte of a buffer."""

from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import count

from gpulab.virtual.simulator.values._entries import LogEntry

_names = count()
# A buffer with more pieces than this, and than twice its pending ones, forgets the others.
_MOST_PIECES = 1_000


@dataclass(slots=True, eq=False)
class Piece:
    """The content of the bytes from ``first`` to ``end - 1``.

    Pieces with the same name have the same content. The writer is None if the bytes are older than
    the log.
    """

    first: int
    end: int
    writer: LogEntry | None = None
    name: Hashable = field(default_factory=lambda: next(_names))


class BufferContents:
    """The pieces of a buffer, in the order of their addresses and without overlaps.

    Bytes between them are computed.

    Attributes
    ----------
    last_user
        The number of the last entry that reads or writes any of its bytes.
    """

    __slots__ = ("_firsts", "_most", "_pieces", "last_user")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._pieces: list[Piece] = []
        self._most = _MOST_PIECES
        self.last_user = 0

    def over(self, first: int, end: int) -> list[Piece]:
        """Return the pieces with a byte from ``first`` to ``end - 1``."""
        start, stop = self._positions(first, end)
        return self._pieces[start:stop]

    def covering(self, first: int, end: int) -> list[Piece]:
        """Return the same pieces, after bytes between them have become pieces, too."""
        start, stop = self._positions(first, end)
        pieces = self._pieces[start:stop]
        # The usual case: one tensor has been written as a whole.
        if len(pieces) == 1 and pieces[0].first <= first and pieces[0].end >= end:
            return pieces
        starts = [first, *(piece.end for piece in pieces)]
        stops = [*(piece.first for piece in pieces), end]
        gaps = [Piece(*gap) for gap in zip(starts, stops, strict=True) if gap[0] < gap[1]]
        pieces = sorted([*pieces, *gaps], key=lambda piece: piece.first)
        self._put(start, stop, pieces)
        return pieces

    def replace(self, first: int, end: int, writer: LogEntry, index: int) -> list[LogEntry]:
        """Note that ``writer`` writes these bytes, as its result number ``index``.

        Returns
        -------
        list of LogEntry
            The entries that nobody uses any more.
        """
        start, stop = self._positions(first, end)
        old = self._pieces[start:stop]
        pieces = [Piece(first, end, writer, (writer.number, index))]
        if old and old[0].first < first:
            pieces.insert(0, Piece(old[0].first, first, old[0].writer))
        if old and old[-1].end > end:
            pieces.append(Piece(end, old[-1].end, old[-1].writer))
        self._put(start, stop, pieces)
        _count_uses(pieces, 1)
        return _count_uses(old, -1)

    def contains(self, first: int, end: int, key: Hashable, index: int) -> bool:
        """Return whether these bytes are the result ``index`` of an entry with this key."""
        pieces = self.over(first, end)
        if len(pieces) != 1 or pieces[0].first != first or pieces[0].end != end:
            return False
        writer = pieces[0].writer
        return (
            writer is not None and writer.key == key and pieces[0].name == (writer.number, index)
        )

    def clear(self) -> list[LogEntry]:
        """Forget all pieces, and return the entries that nobody uses any more."""
        pieces, self._pieces, self._firsts = self._pieces, [], []
        return _count_uses(pieces, -1)

    def _positions(self, first: int, end: int) -> tuple[int, int]:
        firsts = self._firsts
        start = bisect_right(firsts, first)
        if start and self._pieces[start - 1].end > first:
            start -= 1
        # The usual case: one piece, the very same bytes.
        if start < len(firsts) and self._pieces[start].end >= end:
            return start, start + (firsts[start] < end)
        return start, bisect_left(firsts, end, start)

    def _put(self, start: int, stop: int, pieces: list[Piece]) -> None:
        self._pieces[start:stop] = pieces
        self._firsts[start:stop] = [piece.first for piece in pieces]
        if len(self._pieces) > self._most:
            # Computed ones only help to recognize a call that would write the same bytes again.
            self._pieces = [item for item in self._pieces if item.writer and item.writer.compute]
            self._firsts = [piece.first for piece in self._pieces]
            self._most = _MOST_PIECES + 2 * len(self._pieces)


def _count_uses(pieces: list[Piece], n: int) -> list[LogEntry]:
    """Count ``n`` more uses of each piece's writer, and return the writers without any."""
    unused = []
    for piece in pieces:
        writer = piece.writer
        if writer is not None:
            writer.n_uses += n
            if not writer.n_uses:
                unused.append(writer)
    return unused


# The bytes of a buffer from the first number to before the last. A plain tuple, because each
# launch makes one for each of its tensors.
ByteSpan = tuple[BufferContents, int, int]
