"""Move values between host and device, and between tensors of the device."""

import math
from collections.abc import Callable
from functools import partial

import torch

from gpulab.virtual.dispatch._value_references import Reference
from gpulab.virtual.simulator.values import ByteSpan, LogEntry
from gpulab.virtual.tensors import is_same

# A larger copy is not compared with what it overwrites.
_COMPARED_BYTES = 16 << 20


def put(target: Reference, source: torch.Tensor) -> None:
    """Write values of the host to a tensor of the device, as they are now."""
    if target.layout.n_elements:
        pending = target.values.pending
        # A copy to the host that has ended may still have to write to ``source``.
        pending.compute_due()
        pending.event_queue.undisturbed(partial(_put, target, source))


def _put(target: Reference, source: torch.Tensor) -> None:
    pending, span = target.values.pending, target.span()
    # What lies between its elements stays as it is.
    reads = () if target.layout.is_dense else (span,)
    if pending.is_used(span[0]):
        # Somebody may still need the old bytes.
        held = pending.guarded(lambda: source.detach().clone())
        write = partial(_copy, target, held)
        pending.append(LogEntry(write, "a copy in", held_bytes=held.nbytes), reads, (span,))
    elif not pending.guarded(partial(_is_there, target, source)):
        entry = LogEntry(partial(_copy, target, source), "a copy in")
        pending.append(entry, reads, (span,))
        pending.compute(entry)


def _is_there(target: Reference, source: torch.Tensor) -> bool:
    """Return whether a tensor contains these values; False if that is hard to say."""
    # A host that copies the same batch again leaves all that was computed from it as it is.
    is_lazy = source.is_neg() or source.is_conj() or source._is_zerotensor()  # noqa: SLF001 # torch has no public name
    if is_lazy or source.nbytes > _COMPARED_BYTES or not target.layout.is_dense:
        return False
    return is_same(target.raw(), source)


def clear(target: Reference) -> None:
    """Write zeros to a tensor of the device whose elements have no gaps between them."""
    pending = target.values.pending
    entry = LogEntry(target.set_to_zero, "zeros")
    pending.event_queue.undisturbed(lambda: pending.append(entry, (), (target.span(),)))


def take(source: Reference, target: torch.Tensor) -> None:
    """Write the values of a tensor of the device to the host before the program goes on."""
    reads = (source.span(),) if source.layout.n_elements else ()
    _take(source, lambda: target.detach().copy_(source.raw()), reads)


def take_nothing(source: Reference, target: torch.Tensor) -> None:
    """Write nan to the host in place of values that are missing, before the program goes on."""
    _take(source, lambda: target.detach().fill_(math.nan), ())


def _take(source: Reference, write: Callable[[], object], reads: tuple[ByteSpan, ...]) -> None:
    entry = LogEntry(write, "a copy out", is_due=True, checked=reads)
    source.values.pending.append(entry, reads, ())


def move(target: Reference, source: Reference, what: str) -> None:
    """Write the values of one tensor of the device to another."""
    if target.layout.n_elements:
        gaps = () if target.layout.is_dense else (target.span(),)
        entry = LogEntry(lambda: target.raw().copy_(source.raw()), what)
        target.values.pending.append(entry, (source.span(), *gaps), (target.span(),))


def _copy(target: Reference, source: torch.Tensor) -> None:
    target.raw().copy_(source.detach())
