"""Cache the results of calls, so that a call with the same inputs is computed only once.

A benchmark's loop or a training step calls the same operators again and again, in the same memory
or in memory that other tensors use in between. The first time a result is computed, and its
content gets a name. The second time it is computed again and kept, if that takes much longer than
to copy it. From then on it is copied, or left alone if it is in its place.

What a loop copies from the host has the same name each time, as long as the host does not change
it.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import torch

from gpulab.virtual.dispatch._operators import Operator
from gpulab.virtual.dispatch._value_references import Reference
from gpulab.virtual.tensors import TensorLayout, is_same, new_name

_SCALARS = (int, bool, str, type(None), torch.dtype, torch.device, torch.layout)
_PLAIN = frozenset({*_SCALARS, torch.memory_format})
_INEXACT = (float, complex)
# A training program makes new results in each step, and nobody asks for the old ones.
_MOST_RESULTS = 2_000
_MOST_KEPT_BYTES = 128 << 20
# A copy takes a processor less than this; results that take longer to compute are kept.
_COPY_S, _COPY_S_PER_BYTE = 15e-6, 0.15e-9
# A digest takes about 1 ns for each byte; a tenth of the call's own time is little.
_DIGEST_BYTES_PER_S = 0.1e9
_FREE_DIGEST_BYTES = 256
# To compare a smaller copy with the last one takes about as long as what follows from it; a larger
# one leaves no room for results.
_COMPARED_BYTES = range(16 << 10, 16 << 20)


@dataclass(slots=True)
class KnownResult:
    """The result of a call with inputs of known content.

    Attributes
    ----------
    names
        Names of the contents of its outputs; empty if they are given up.
    kept
        Copies of the outputs, or of what was copied from the host; None until the call is
        repeated.
    """

    names: tuple[Hashable, ...]
    kept: list[torch.Tensor] | None = None


@dataclass(slots=True)
class KnownResults:
    """Results by call and content of the inputs, the latest last."""

    by_key: OrderedDict[Hashable, KnownResult] = field(default_factory=OrderedDict)
    kept_bytes: int = 0

    def find(self, key: Hashable) -> KnownResult | None:
        """Return the result with this key."""
        found = self.by_key.get(key)
        if found is not None:
            self.by_key.move_to_end(key)
        return found

    def add(self, key: Hashable, n_outputs: int) -> KnownResult:
        """Note a result that is computed for the first time."""
        if len(self.by_key) >= _MOST_RESULTS:
            _, oldest = self.by_key.popitem(last=False)
            self.kept_bytes -= sum(item.nbytes for item in oldest.kept or ())
        result = self.by_key[key] = KnownResult(tuple(new_name() for _ in range(n_outputs)))
        return result

    def keep(self, result: KnownResult, outputs: list[torch.Tensor]) -> None:
        """Keep copies of the outputs of a result, if there is room."""
        size_bytes = sum(item.nbytes for item in outputs)
        if self.kept_bytes + size_bytes <= _MOST_KEPT_BYTES:
            self.kept_bytes += size_bytes
            result.kept = [item.clone() for item in outputs]

    def drop(self, result: KnownResult) -> None:
        """Give up a result whose content changes from time to time."""
        self.kept_bytes -= sum(item.nbytes for item in result.kept or ())
        result.names, result.kept = (), None

    def clear(self) -> None:
        """Forget all results."""
        self.by_key.clear()
        self.kept_bytes = 0


known_results = KnownResults()


def copy_in(target: Reference, source: torch.Tensor) -> None:
    """Write values of the host, with the same name for their content while they stay the same."""
    if source.nbytes not in _COMPARED_BYTES or source.is_neg() or source.is_conj():
        target.to_write().copy_(source)
        return
    origin = source.data_ptr(), source.dtype, source.shape, source.stride()
    key = "copy in", origin, target.layout
    result = known_results.find(key)
    if result is None:
        # No name yet: most copies do not come again, and their source is not kept.
        known_results.add(key, 1)
    elif result.kept is None:
        if result.names:
            known_results.keep(result, [source])
    elif not is_same(result.kept[0], source):
        # The host writes new values to this memory, as for the next batch, and will do so again.
        known_results.drop(result)
    if result is None or result.kept is None:
        target.to_write().copy_(source)
    elif not target.has_content(result.names[0]):
        target.to_write().copy_(source)
        target.name_content(result.names[0])


@dataclass(frozen=True, slots=True)
class KnownCall:
    """A call whose result depends on nothing but its arguments.

    Attributes
    ----------
    key
        The operator, its arguments, and the layouts of its inputs and outputs.
    reads, writes
        The inputs whose values count, and the outputs.
    """

    key: Hashable
    reads: tuple[Reference, ...]
    writes: tuple[Reference, ...]

    def run(self, compute: Callable[[], None], host_s: float) -> None:
        """Leave the result in the outputs; call ``compute`` only if it is not known.

        Parameters
        ----------
        compute
            Computes the outputs from the inputs.
        host_s
            About how long that takes.
        """
        longest = max(_FREE_DIGEST_BYTES, int(host_s * _DIGEST_BYTES_PER_S))
        key = self.key, tuple(item.content(longest) for item in self.reads)
        result = known_results.find(key)
        is_repeated = result is not None
        if result is None:
            result = known_results.add(key, len(self.writes))
        elif all(map(Reference.has_content, self.writes, result.names)):
            return
        if result.kept is None:
            # The names end first: with one, a write would look whether it changes anything.
            for item in self.writes:
                item.forget_content()
            compute()
        else:
            for item, kept in zip(self.writes, result.kept, strict=True):
                item.to_write().copy_(kept)
        for item, name in zip(self.writes, result.names, strict=True):
            item.name_content(name)
        if is_repeated and result.kept is None:
            outputs = [item.view() for item in self.writes]
            if host_s > _COPY_S + _COPY_S_PER_BYTE * sum(item.nbytes for item in outputs):
                known_results.keep(result, outputs)


def known_call(
    operator: Operator, args: list[Any], kwargs: dict[str, Any], written: Sequence[Reference]
) -> KnownCall | None:
    """Return the call for :class:`KnownResults`, or None if it must be computed each time."""
    reads: list[Reference] = []
    overwritten: list[Reference] = []
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
            tuple(item.layout for item in written),
        )
    except _NoKeyError:
        return None
    if not written:
        return None
    # Where an output overlaps an input, the order of the writes counts, except in place.
    if any(a != b and a.bytes().overlaps(b.bytes()) for a, b in product(reads, written)):
        return None
    return KnownCall(key, tuple(reads), tuple(written))


class _NoKeyError(Exception):
    """An argument has no key because its value may change unnoticed, as that of a host tensor."""


def _key(value: Any, tensors: list[Reference]) -> Hashable:
    """Return the key of an argument, and append its tensors to ``tensors``."""
    # The type is part of a number's key, because 1, 1.0 and True are equal and hash alike.
    kind = type(value)
    if kind is Reference:
        tensors.append(value)
        layout: TensorLayout = value.layout
        return layout
    if kind is list:
        return tuple(_key(item, tensors) for item in value)
    if kind in _INEXACT:
        # By its text, because 0.0 and -0.0 are equal but give different results.
        return kind, repr(value)
    if kind in _PLAIN:
        return kind, value
    raise _NoKeyError
