"""Which entry of the log wrote each byte of a buffer."""

from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from itertools import count

from gpulab.virtual.values._entries import LogEntry

_names = count()
# A buffer with more pieces forgets those that are computed. They only help to recognize a call
# that would write the same bytes again.
_MOST_PIECES = 1_000


class Piece:
    """A range of bytes with one content.

    Attributes
    ----------
    first, end
        The bytes from ``first`` to ``end - 1``.
    writer
        The entry that wrote them, or None if they are older than the log.
    name
        Names their content: two pieces with the same name contain the same bytes.
    last_reader
        The number of the last entry that reads any of them; 0 if none does.
    """

    __slots__ = ("end", "first", "last_reader", "name", "writer")

    def __init__(self, first: int, end: int, writer: LogEntry | None, name: Hashable) -> None:
        self.first = first
        self.end = end
        self.writer = writer
        self.name = name
        self.last_reader = 0

    def part(self, first: int, end: int) -> "Piece":
        """Return a piece for some of its bytes."""
        part = Piece(first, end, self.writer, next(_names))
        part.last_reader = self.last_reader
        return part


class BufferContents:
    """The pieces of a buffer, in the order of their addresses and without overlaps.

    Bytes between them are computed, and no pending entry reads them.

    Attributes
    ----------
    last_user
        The number of the last entry that reads or writes any of the buffer's bytes.

    Examples
    --------
    >>> contents = BufferContents()
    >>> add = LogEntry(1, lambda: None, "aten.add.Tensor")
    >>> contents.replace(0, 512, add, 0)
    []
    >>> [(piece.first, piece.end, piece.writer is add) for piece in contents.covering(256, 768)]
    [(0, 512, True), (512, 768, False)]
    """

    __slots__ = ("_firsts", "_n_before_forgetting", "_pieces", "last_user")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._pieces: list[Piece] = []
        self._n_before_forgetting = _MOST_PIECES
        self.last_user = 0

    def __len__(self) -> int:
        return len(self._pieces)

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
        gaps, at = [], first
        for piece in pieces:
            if at < piece.first:
                gaps.append(Piece(at, piece.first, None, next(_names)))
            at = piece.end
        if at < end:
            gaps.append(Piece(at, end, None, next(_names)))
        if gaps:
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
            pieces.insert(0, old[0].part(old[0].first, first))
        if old and old[-1].end > end:
            pieces.append(old[-1].part(end, old[-1].end))
        self._put(start, stop, pieces)
        _count_uses(pieces, 1)
        return _count_uses(old, -1)

    def writer_with(self, key: Hashable, first: int, end: int, index: int) -> LogEntry | None:
        """Return the entry with this key whose result ``index`` is in these bytes, or None."""
        pieces = self.over(first, end)
        if len(pieces) != 1 or pieces[0].first != first or pieces[0].end != end:
            return None
        writer = pieces[0].writer
        if writer is None or writer.key != key or pieces[0].name != (writer.number, index):
            return None
        return writer

    def clear(self) -> list[LogEntry]:
        """Forget all pieces, and return the entries that nobody uses any more."""
        pieces, self._pieces, self._firsts = self._pieces, [], []
        return _count_uses(pieces, -1)

    @property
    def is_crowded(self) -> bool:
        """Whether it has so many pieces that it should forget some."""
        return len(self._pieces) > self._n_before_forgetting

    def forget_computed(self, oldest: int) -> None:
        """Forget the pieces that no pending entry writes or reads.

        Parameters
        ----------
        oldest
            The number of the oldest pending entry.
        """
        self._pieces = [
            piece
            for piece in self._pieces
            if piece.last_reader >= oldest or (piece.writer and piece.writer.compute)
        ]
        self._firsts = [piece.first for piece in self._pieces]
        self._n_before_forgetting = _MOST_PIECES + 2 * len(self._pieces)

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


# Bytes of a buffer, from the first to before the last number. A plain tuple, because each launch
# makes one for each of its tensors.
ByteSpan = tuple[BufferContents, int, int]
