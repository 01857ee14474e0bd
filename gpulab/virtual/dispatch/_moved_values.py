"""Move values between host and device, and between tensors of the device."""

import math
from collections.abc import Callable
from functools import partial

import torch

from gpulab.virtual.simulator.values import ByteSpan, LogEntry
from gpulab.virtual.tensors import Reference


def put(target: Reference, source: torch.Tensor) -> None:
    """Write values of the host to a tensor of the device, as they are now."""
    if target.layout.n_elements:
        target.values.pending.event_queue.undisturbed(partial(_put, target, source))


def _put(target: Reference, source: torch.Tensor) -> None:
    pending, span = target.values.pending, target.span()
    # A copy to the host that has ended may still have to write to ``source``.
    pending.compute_due()
    # What lies between its elements stays as it is.
    reads = () if target.layout.is_dense else (span,)
    # If somebody may still need the old bytes, the new ones are held; if they are few.
    if not pending.has_room(source.nbytes):
        pending.compute_users(span[0])
    if pending.is_used(span[0]):
        copied = pending.guarded(lambda: source.detach().clone())
        entry = LogEntry(partial(_copy, target, copied), "a copy in", held_bytes=copied.nbytes)
        pending.append(entry, reads, (span,))
    else:
        entry = LogEntry(partial(_copy, target, source), "a copy in")
        pending.append(entry, reads, (span,))
        pending.compute(entry)


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


def move(target: Reference, source: Reference, name: str) -> None:
    """Write the values of one tensor of the device to another."""
    if target.layout.n_elements:
        gaps = () if target.layout.is_dense else (target.span(),)
        entry = LogEntry(lambda: target.raw().copy_(source.raw()), name)
        target.values.pending.append(entry, (source.span(), *gaps), (target.span(),))


def _copy(target: Reference, source: torch.Tensor) -> None:
    target.raw().copy_(source.detach())
