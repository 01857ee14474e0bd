"""Draw the random numbers of a repeated call only when somebody reads them.

A call repeats an earlier one if it has the same operator and arguments, and the same bytes as
inputs and outputs, and nobody has written to any of those bytes since. So a loop that draws again
and again computes only the numbers of the last call, and only if somebody uses the bytes.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from gpulab.virtual.dispatch._operators import Operator
from gpulab.virtual.dispatch._result_cache import known_call
from gpulab.virtual.dispatch._value_references import Reference
from gpulab.virtual.simulator.memory import BLOCK_BYTES
from gpulab.virtual.tensors import ByteRange, ComputedResult


@dataclass(frozen=True, slots=True)
class Repetition:
    """A call that can be recognized when it is repeated.

    Attributes
    ----------
    key
        The operator, its arguments, and the bytes of its inputs and outputs.
    reads, writes
        The bytes of inputs and outputs, which do not overlap.
    """

    key: Hashable
    reads: tuple[ByteRange, ...]
    writes: tuple[ByteRange, ...]

    def result(self) -> ComputedResult | None:
        """Return the result of the call if it is in memory."""
        # Any of its buffers would do, because each lists the result while it holds.
        return self.writes[0].buffer.results.find(self.key)

    def keep(self) -> None:
        """Note that the result is in memory, until somebody writes to an input or an output."""
        result = ComputedResult(self.key)
        for span in (*self.reads, *self.writes):
            span.buffer.results.add(result, span.first, span.end)

    def put_off(self, result: ComputedResult, compute: Callable[[], None]) -> bool:
        """Compute a result again when somebody uses its bytes; return False if that is too late.

        Parameters
        ----------
        result
            The result of an earlier call.
        compute
            Computes the present one.
        """
        for span in self.writes:
            span.buffer.results.forget(span.first, span.end, but=result)
        # One of the results that were forgotten may have used this one.
        if result.holds:
            result.compute = compute
            for span in (*self.reads, *self.writes):
                span.buffer.results.is_behind = True
        return result.holds


def _joined(spans: Iterable[ByteRange]) -> list[ByteRange]:
    """Return the same bytes in few ranges: each buffer searches a list of them."""
    joined: list[ByteRange] = []
    for span in sorted(spans, key=lambda span: (span.buffer.number, span.first)):
        last = joined[-1] if joined else None
        # The bytes between two tensors that follow each other are usually the unused end of a
        # block. If another tensor uses them, a write to it ends the result too early, no more.
        if last and last.buffer is span.buffer and span.first < last.end + BLOCK_BYTES:
            joined[-1] = last._replace(end=max(last.end, span.end))
        else:
            joined.append(span)
    return joined


def repetition_of(
    operator: Operator, args: list[Any], kwargs: dict[str, Any], written: Sequence[Reference]
) -> Repetition | None:
    """Return the repetition that a call belongs to, or None if it must be computed each time."""
    call = known_call(operator, args, kwargs, written)
    if call is None:
        return None
    # The addresses are part of the key: in other memory the same call has not been computed.
    reads, writes = ([item.bytes() for item in each] for each in (call.reads, call.writes))
    addresses = tuple((span.buffer.number, span.first) for span in (*reads, *writes))
    read, written_to = _joined(reads), _joined(writes)
    # A call that changes its own input gives another result each time.
    if any(a.overlaps(b) for a, b in product(read, written_to)):
        return None
    return Repetition((call.key, addresses), tuple(read), tuple(written_to))
