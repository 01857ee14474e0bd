"""An entry of the log: what one kernel writes."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, eq=False)
class LogEntry:
    """What one kernel writes.

    Attributes
    ----------
    compute
        Writes it; None once it is computed or dropped.
    what
        What the kernel is, for the note of an error, such as ``aten.add.Tensor``.
    key
        The operator and its arguments, if the results depend on nothing else but what it reads.
        A call that would write the same again is recognized by it.
    host_s, held_bytes
        About how long it takes to compute, and the host memory that it needs until then.
    is_due
        Whether it must be computed before the program goes on, even if nobody reads.
    check
        Returns whether it is not due, after the bytes in ``checked`` were computed.
    checked
        What an entry that is due needs before anything else; None for all that is before it.
    number
        Its position in the log.
    needs
        The pending entries whose results it reads.
    n_uses
        How many pieces of memory contain its results, and how many pending entries read these.
    """

    compute: Callable[[], object] | None
    what: object
    key: Hashable = None
    host_s: float = 0.0
    held_bytes: int = 0
    is_due: bool = False
    checked: Sequence[Any] | None = None
    check: Callable[[], bool] | None = None
    number: int = 0
    needs: "list[LogEntry]" = field(default_factory=list)
    n_uses: int = 0

    @property
    def is_unused(self) -> bool:
        """Whether it is pending, and nobody will ever read what it would write."""
        return self.compute is not None and not self.n_uses and not self.is_due
