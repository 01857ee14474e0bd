"""Move values between host and device, and between tensors of the device."""

import math
from collections.abc import Callable
from functools import partial

import torch

from gpulab.virtual.dispatch._value_references import Reference
from gpulab.virtual.tensors import is_same
from gpulab.virtual.values import ByteSpan, Obligation

# A larger copy is not compared with what it overwrites.
_COMPARED_BYTES = 16 << 20


def put(target: Reference, source: torch.Tensor) -> None:
    """Write values of the host to a tensor of the device, as they are now."""
    if target.layout.n_elements:
        pending = target.values.pending
        # A copy to the host that has ended may still have to write to ``source``.
        pending.fulfil()
        pending.undisturbed(partial(_put, target, source))


def _put(target: Reference, source: torch.Tensor) -> None:
    pending, span = target.values.pending, target.span()
    # What lies between its elements stays as it is.
    reads = () if target.layout.is_dense else (span,)
    if pending.is_used(span):
        # Somebody still needs the old bytes.
        held = pending.guarded(lambda: source.detach().clone())
        write = partial(_copy, target, held)
        pending.append(write, reads, (span,), "a copy in", held_bytes=held.nbytes)
    elif not pending.guarded(partial(_is_there, target, source)):
        pending.write(partial(_copy, target, source), reads, span, "a copy in")


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
    write = partial(pending.append, target.set_to_zero, (), (target.span(),), "zeros")
    pending.undisturbed(write)


def take(source: Reference, target: torch.Tensor) -> None:
    """Write the values of a tensor of the device to the host before the program goes on."""
    reads = (source.span(),) if source.layout.n_elements else ()
    _oblige(source, lambda: target.detach().copy_(source.raw()), reads)


def take_nothing(source: Reference, target: torch.Tensor) -> None:
    """Write nan to the host in place of values that are missing, before the program goes on."""
    _oblige(source, lambda: target.detach().fill_(math.nan), ())


def _oblige(source: Reference, write: Callable[[], object], reads: tuple[ByteSpan, ...]) -> None:
    obligation = Obligation(reads)
    source.values.pending.append(write, reads, (), "a copy out", obligation=obligation)


def move(target: Reference, source: Reference, what: str) -> None:
    """Write the values of one tensor of the device to another."""
    if target.layout.n_elements:
        reads = [source.span()]
        if not target.layout.is_dense:
            reads.append(target.span())
        write = partial(_move, target, source)
        target.values.pending.append(write, reads, (target.span(),), what)


def _copy(target: Reference, source: torch.Tensor) -> None:
    target.raw().copy_(source.detach())


def _move(target: Reference, source: Reference) -> None:
    target.raw().copy_(source.raw())
