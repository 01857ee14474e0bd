"""Recognize a repeated call whose result is already in memory.

The earlier call had the same operator and arguments, and the same bytes as inputs and outputs, and
since then nobody has written to any of those bytes. So the values in a benchmark's loop are
computed once, and random numbers are drawn when they are used. In-place operators, which change
their own input, are computed each time.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch

from gpulab.virtual.dispatch._operators import Operator
from gpulab.virtual.dispatch._references import Reference
from gpulab.virtual.simulator.memory import BLOCK_BYTES
from gpulab.virtual.tensors import ByteRange, ComputedResult

_SCALARS = (int, bool, str, type(None), torch.dtype, torch.device, torch.layout)
_PLAIN = frozenset({*_SCALARS, torch.memory_format})
_INEXACT = (float, complex)


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
        for place in (*self.reads, *self.writes):
            place.buffer.results.add(result, place.first, place.end)

    def put_off(self, result: ComputedResult, compute: Callable[[], None]) -> bool:
        """Compute a result again when somebody uses its bytes; return False if that is too late.

        Parameters
        ----------
        result
            The result of an earlier call.
        compute
            Computes the present one.
        """
        for place in self.writes:
            place.buffer.results.forget(place.first, place.end, but=result)
        # One of the results that were forgotten may have used this one.
        if result.holds:
            result.compute = compute
            for place in (*self.reads, *self.writes):
                place.buffer.results.is_behind = True
        return result.holds


def _joined(places: Iterable[ByteRange]) -> list[ByteRange]:
    """Return the same bytes in few ranges: each buffer searches a list of them."""
    joined: list[ByteRange] = []
    for place in sorted(places, key=lambda place: (place.buffer.number, place.first)):
        last = joined[-1] if joined else None
        # The bytes between two tensors that follow each other are usually the unused end of a
        # block. If another tensor uses them, a write to it ends the result too early, no more.
        if last and last.buffer is place.buffer and place.first < last.end + BLOCK_BYTES:
            joined[-1] = last._replace(end=max(last.end, place.end))
        else:
            joined.append(place)
    return joined


def repetition_of(
    operator: Operator, args: list[Any], kwargs: dict[str, Any], written: Iterable[Reference]
) -> Repetition | None:
    """Return the repetition that a call belongs to, or None if it must be computed each time."""
    reads: list[ByteRange] = []
    overwritten: list[ByteRange] = []
    try:
        key = (
            operator,
            tuple(
                _key(arg, overwritten if operator.overwrites and not i else reads)
                for i, arg in enumerate(args)
            ),
            tuple(
                (name, _key(arg, overwritten if name in operator.out_names else reads))
                for name, arg in kwargs.items()
            ),
        )
    except _NoKeyError:
        return None
    writes: list[ByteRange] = []
    # The outputs are part of the key: the same call into other memory has not been computed there.
    places = _key(list(written), writes)
    read, written_to = _joined(reads), _joined(writes)
    # A call that changes its own input gives another result each time.
    if not writes or any(a.overlaps(b) for a, b in product(read, written_to)):
        return None
    return Repetition((*key, places), tuple(read), tuple(written_to))


class _NoKeyError(Exception):
    """An argument has no key because its value may change unnoticed, as that of a host tensor."""


def _key(value: Any, places: list[ByteRange]) -> Hashable:
    """Return the key of an argument, and append the bytes that it covers to ``places``."""
    # The type is part of a number's key, because 1, 1.0 and True are equal and hash alike.
    kind = type(value)
    if kind is Reference:
        place = value.bytes()
        places.append(place)
        return place.buffer.number, place.first, value.layout
    if kind is list:
        return tuple(_key(item, places) for item in value)
    if kind in _INEXACT:
        # By its text, because 0.0 and -0.0 are equal but give different results.
        return kind, repr(value)
    if kind in _PLAIN:
        return kind, value
    raise _NoKeyError
