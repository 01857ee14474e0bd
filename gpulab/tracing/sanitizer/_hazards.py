"""``hazards()``: find the waits that a program lacks, on a CUDA GPU or on the virtual one."""

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from itertools import chain, repeat
from typing import TYPE_CHECKING, NamedTuple

from gpulab import device
from gpulab.core.foreign_text import visible_row
from gpulab.core.interrupts import contextmanager, step
from gpulab.core.markup import PrettyPrinter, clean
from gpulab.happens_before import Checker, Hazard, Operation, StreamKey
from gpulab.tracing.sanitizer._cuda_program import watched

if TYPE_CHECKING:
    import pandas as pd

    from gpulab.virtual import VirtualGpu

__all__ = ["Hazards", "hazards"]


class _Counts(NamedTuple):
    """What a checker has found so far, and its operations by stream."""

    hazards: tuple[Hazard, ...]
    operations: Counter[StreamKey]

    @classmethod
    def of(cls, checker: Checker) -> "_Counts":
        return cls(checker.hazards, checker.operations)


class Hazards:
    """The hazards of a block so far; it grows until the block ends.

    No hazard does not mean that the program is correct: only what ran was checked, and only what
    the checker can see.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"), gpulab.hazards() as hazards:
    ...     a = torch.ones(64, 64, device="cuda")
    ...     with torch.cuda.stream(torch.cuda.Stream()):
    ...         b = a + 1  # nothing makes it wait for the ones
    >>> len(hazards.found)
    1
    """

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        # A block inside another one shares its checker.
        self._at_begin = _Counts.of(checker)
        self._at_end: _Counts | None = None

    @property
    def found(self) -> tuple[Hazard, ...]:
        """The hazards, one for each kind and pair of lines, in the order of discovery."""
        before = chain((hazard.count for hazard in self._at_begin.hazards), repeat(0))
        return tuple(
            replace(hazard, count=hazard.count - count)
            for hazard, count in zip(self._counts().hazards, before, strict=False)
            if hazard.count > count
        )

    @property
    def n_operations(self) -> int:
        """Number of kernels and copies that were checked."""
        return self._operations().total()

    @property
    def n_streams(self) -> int:
        """Number of streams with checked operations."""
        return len(self._operations())

    def _operations(self) -> Counter[StreamKey]:
        # A difference of counters has no streams without operations.
        return self._counts().operations - self._at_begin.operations

    def _counts(self) -> _Counts:
        return self._at_end or _Counts.of(self._checker)

    def _end(self) -> None:
        """Let the report grow no more."""
        self._at_end = _Counts.of(self._checker)

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Hazard]:
        return iter(self.found)

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with one row for each hazard.

        Columns are ``kind``, ``tensor``, ``cure``, ``count``, and for the ``first`` and the
        ``second`` operation ``first_name``, ``first_stream``, ``first_does``, ``first_place``.
        """
        import pandas as pd

        fields = Operation.__dataclass_fields__
        pairs = [f"{which}_{name}" for which in ("first", "second") for name in fields]
        columns = ["kind", "tensor", *pairs, "cure", "count"]
        return pd.DataFrame([visible_row(_row(hazard)) for hazard in self.found], columns=columns)

    def __str__(self) -> str:
        numbered = [f"{index}. {hazard}" for index, hazard in enumerate(self.found, start=1)]
        return "\n".join([self._summary(), *numbered])

    def _repr_pretty_(self, printer: PrettyPrinter, _cycle: object) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        items = [f"<li>{clean(str(hazard)).replace(chr(10), '<br/>')}</li>" for hazard in self]
        listed = ["<ol>", *items, "</ol>"] if items else []
        summary = f"<p><strong>{clean(self._summary())}</strong></p>"
        return "\n".join(['<div class="gpulab-hazards">', summary, *listed, "</div>"])

    def _summary(self) -> str:
        amount = (
            f"{_counted(self.n_operations, 'operation')} on {_counted(self.n_streams, 'stream')}"
        )
        return f"{_counted(len(self), 'hazard')} in {amount}"


@contextmanager
def hazards() -> Iterator[Hazards]:
    """Find pairs of operations in the block that lack a wait between them.

    Two operations are a hazard if both touch the same bytes, at least one writes, and the program
    makes neither wait for the other. Then the next run, or another GPU, may run them in another
    order. The checker follows streams, events and the host's own accesses to pinned memory. It
    also finds memory that the allocator hands out again while another stream still uses it, which
    ``record_stream`` prevents.

    A ``query()`` that returned True counts as a wait only if the program decides something by the
    answer. An answer that it drops, prints or stores without further use orders nothing; the
    checker reads that from the program's source. An answer that becomes an attribute or goes to
    another function counts as used, and a used answer counts for everything after it, also
    outside the branch.

    On a virtual GPU it sees all work. On a CUDA GPU it sees what passes through PyTorch's
    dispatcher on this thread and in its backward passes, and the waits of ``torch.cuda``. There
    it does not see kernels of other libraries (Triton, CuPy, extensions), the capture and the
    replay of a CUDA graph, waits through ``torch.Event``, ``torch.Stream`` or other libraries,
    and later reads of a NumPy array that shares pinned memory. A backward pass counts as ordered,
    also with the stream that calls it, because autograd makes its streams wait. Work from before
    the block counts as done. Each launch takes longer, so do not time anything inside the block.

    Yields
    ------
    Hazards
        The report; you can read it after the block, too. What a block inside another one reports
        is in the report of the outer one, too.

    Raises
    ------
    UnsupportedVersionError
        If Python or torch is outside the supported range.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"), hazards() as found:
    ...     side = torch.cuda.Stream()
    ...     x = torch.ones(1024, device="cuda")
    ...     with torch.cuda.stream(side):
    ...         y = x * 2
    >>> [hazard.kind for hazard in found]
    ['read before the write is done']
    """
    running = _running[-1] if _running else None
    if running is not None:
        inner = Hazards(running)
        try:
            yield inner
        finally:
            inner._end()  # noqa: SLF001 # of this module
        return
    checker = Checker()
    report = Hazards(checker)
    try:
        _running.append(checker)
        with device.active() as in_use, _attached(in_use, checker):
            yield report
    finally:
        # By identity, so that a step that is repeated after an interrupt removes nothing else.
        _running[:] = [other for other in _running if other is not checker]
        # The report may be kept for long; the records of memory are of no use any more.
        checker.clear()


def _attached(in_use: device.Device, checker: Checker) -> AbstractContextManager[object]:
    if in_use.virtual is None:
        return watched(checker)
    return _OnMachine(in_use.virtual, checker)


class _OnMachine:
    """Reports a virtual GPU's accesses to memory to a checker."""

    def __init__(self, gpu: "VirtualGpu", checker: Checker) -> None:
        self._machine, self._checker = gpu.machine, checker

    @step
    def __enter__(self) -> None:
        self._machine.hazards = self._checker

    @step
    def __exit__(self, *error: object) -> None:
        self._machine.hazards = None


# At most one. With two, waits inside the inner block would reach only the inner checker, and the
# outer one would report hazards that are none.
_running: list[Checker] = []


def _row(hazard: Hazard) -> dict[str, object]:
    parts = {"first": hazard.first, "second": hazard.second}
    named = {
        f"{which}_{name}": value
        for which, operation in parts.items()
        for name, value in asdict(operation).items()
    }
    plain = {name: getattr(hazard, name) for name in ("kind", "tensor", "cure", "count")}
    return {**plain, **named}


def _counted(n: int, noun: str) -> str:
    return f"{n or 'no'} {noun}{'' if n == 1 or (not n and noun == 'hazard') else 's'}"
