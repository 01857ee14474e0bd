"""An entry of the log: what one kernel writes."""

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gpulab.virtual.values._contents import ByteSpan

Compute = Callable[[], object]


class Obligation(NamedTuple):
    """What must be done about an entry before the program goes on, even if nobody reads.

    Attributes
    ----------
    first
        The bytes that must be computed first; None if the entry itself must be.
    check
        Called then: returns whether the entry may wait like any other. It is computed if not.

    Examples
    --------
    >>> Obligation(None).check is None
    True
    """

    first: "Sequence[ByteSpan] | None"
    check: Callable[[], bool] | None = None


class LogEntry:
    """What one kernel writes.

    Attributes
    ----------
    number
        Its position in the log.
    compute
        Writes it; None once it is computed or dropped.
    what
        What the kernel is, for the note of an error, such as ``aten.add.Tensor``.
    key
        What the result depends on, so that a call that would write the same is recognized; or
        None.
    host_s, held_bytes
        About how long it takes to compute, and the host memory that it needs until then.
    obligation
        What must be done about it before the program goes on, or None.
    needs
        The pending entries whose results it reads.
    n_uses
        How many pieces of memory contain its results, and how many pending entries read these.

    Examples
    --------
    >>> LogEntry(1, lambda: None, "aten.add.Tensor").n_uses
    0
    """

    __slots__ = (
        *("compute", "held_bytes", "host_s", "key", "n_uses", "needs", "number", "obligation"),
        "what",
    )

    def __init__(  # noqa: PLR0913 # a plain record with slots
        self,
        number: int,
        compute: Compute,
        what: object,
        *,
        key: Hashable = None,
        host_s: float = 0.0,
        held_bytes: int = 0,
        obligation: Obligation | None = None,
    ) -> None:
        self.number = number
        self.compute: Compute | None = compute
        self.what = what
        self.key = key
        self.host_s = host_s
        self.held_bytes = held_bytes
        self.obligation = obligation
        self.needs: list[LogEntry] = []
        self.n_uses = 0

    @property
    def is_unused(self) -> bool:
        """Whether it is pending, and nobody will ever read what it would write."""
        return self.compute is not None and not self.n_uses and self.obligation is None
