"""Which bytes a call reads and writes, and by what a repetition of it is recognized."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, cast

import torch

from gpulab.virtual.dispatch._operators import Operator
from gpulab.virtual.dispatch._plans import SHAPED_LIKE
from gpulab.virtual.dispatch._value_references import Reference
from gpulab.virtual.simulator.values import ByteSpan

_PLAIN = frozenset(
    {int, bool, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format}
)
_INEXACT = frozenset({float, complex})


class Effects(NamedTuple):
    """The bytes that a call reads and writes, and its key, as a :class:`LogEntry` has it.

    What it writes only in part counts as read, too.
    """

    reads: tuple[ByteSpan, ...]
    writes: tuple[ByteSpan, ...]
    key: Hashable


def effects_of(
    operator: Operator, args: list[Any], kwargs: dict[str, Any], written: Sequence[Reference]
) -> Effects:
    """Return the effects of a call that writes these tensors."""
    read: list[Reference] = []
    ignored: list[Reference] = []
    ignores_first = operator.overwrites or operator.name in SHAPED_LIKE
    key = (
        operator,
        [
            _key(arg, ignored if ignores_first and not position else read)
            for position, arg in enumerate(args)
        ],
        [
            (name, _key(arg, ignored if name in operator.out_names else read))
            for name, arg in kwargs.items()
        ],
        [item.layout for item in written],
    )
    # What lies between the elements of an output stays as it is.
    read += [item for item in written if not item.layout.is_dense]
    reads, writes = _spans(read), _spans(written)
    is_repeatable = writes and not operator.is_random and not _overlap(reads, writes)
    return Effects(reads, writes, key if is_repeatable else None)


def _key(value: Any, tensors: list[Reference]) -> Hashable:
    """Return the key of an argument, and append its tensors to ``tensors``."""
    # The type is part of a number's key, because 1, 1.0 and True are equal.
    kind = type(value)
    if kind is Reference:
        tensors.append(value)
        return cast("Hashable", value.layout)
    if kind is list:
        return tuple([_key(item, tensors) for item in value])
    if kind in _INEXACT:
        # By its text, because 0.0 and -0.0 are equal but give different results.
        return kind, repr(value)
    # A call with a host tensor is like no other call.
    return kind, value if kind in _PLAIN else object()


def _spans(tensors: Sequence[Reference]) -> tuple[ByteSpan, ...]:
    return tuple([item.span() for item in tensors if item.layout.n_elements])


def _overlap(first: Sequence[ByteSpan], second: Sequence[ByteSpan]) -> bool:
    return any(
        contents is others and start < stop and begin < end
        for contents, start, end in first
        for others, begin, stop in second
    )
