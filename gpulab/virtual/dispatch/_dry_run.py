"""Find errors of arguments at the line of the call: run PyTorch's CPU kernel on made-up values.

PyTorch's functions for meta tensors check shapes, but few types and options. Its kernels check
these, and would raise only when the values are computed: at a later line, or never where a tensor
has no values. So a call is tried once, when its plan is made.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from gpulab.core.torch_private import disable_dispatch, has_shape_function
from gpulab.virtual.dispatch._cpu_errors import (
    NO_KERNEL,
    as_on_cuda,
    is_about_arguments,
    is_of_the_cpu,
)
from gpulab.virtual.dispatch._meta_execution import shapes_alone
from gpulab.virtual.operators import MASKS, DryRun, Operator, When
from gpulab.virtual.tensors import TensorLayout, VirtualTensor

_CPU, _META = torch.device("cpu"), torch.device("meta")
# A call with more elements is tried with smaller tensors, so that it takes microseconds.
_MOST_ELEMENTS = 1 << 14
_SMALL_SIZE, _OTHER_SIZE = 4, 6


def dry_run(
    operator: Operator,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tensors: Sequence[VirtualTensor],
    n_results: int,
) -> bool:
    """Run a call on the CPU with made-up values, and raise the error that CUDA would raise.

    Parameters
    ----------
    operator, args, kwargs
        The operator and its arguments.
    tensors
        The virtual tensors among the arguments.
    n_results
        Number of elements of the new results.

    Returns
    -------
    bool
        Whether the CPU can compute the values only with wider types.

    Raises
    ------
    RuntimeError
        The error of PyTorch's kernel, or one of its subclasses.
    """
    model = operator.model
    if model.dry_run is DryRun.NEVER:
        return False
    trial = _DryRun(operator, args, kwargs, tensors)
    n_elements = n_results + sum(item.layout_key.n_elements for item in tensors)
    least = 0 if n_elements <= _MOST_ELEMENTS else _SMALL_SIZE
    if least and not _checks_sizes(operator):
        return False
    error = trial.error(least)
    if error is None:
        return False
    # CUDA may have a kernel where the CPU has none, so the call is also tried with wider types.
    wider = model.wider_types
    may_differ = model.mixes_types or is_of_the_cpu(error)
    may_differ = may_differ and any(item.dtype in wider for item in tensors)
    if may_differ and model.has_halves and trial.error(least, wider) is None:
        return True
    if not is_about_arguments(error) or (least and trial.is_of_sizes(error)):
        return False
    # After its kernels PyTorch reads whether a factorization failed, as made-up values may do.
    has_status = any(read.when is When.AFTER for read in operator.host_reads)
    # Through a mask, as many elements are written as it selects.
    is_by_mask = model.takes_host_indices and _selects_by_mask(args[1])
    is_of_values = has_status or is_by_mask or model.dry_run is DryRun.OF_TYPES
    if is_of_values and NO_KERNEL not in str(error):
        return False
    # Without the lines of the dry run, which say nothing to the program's author.
    raise as_on_cuda(error) from None


class _DryRun:
    """Runs a call with tensors of the same types on the CPU, of the same or of smaller sizes."""

    def __init__(
        self,
        operator: Operator,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        tensors: Sequence[VirtualTensor],
    ) -> None:
        self._call = operator, args, kwargs
        self._tensors = tensors
        self._shared = overlaps(tensors, is_out=bool(operator.out_names))

    def error(
        self,
        least: int,
        types: dict[torch.dtype, torch.dtype] | None = None,
        device: torch.device = _CPU,
    ) -> Exception | None:
        """Return the error of the call, or None.

        Sizes become small numbers from ``least`` on; 0 keeps them. ``types`` are replaced by
        others.
        """
        operator, args, kwargs = self._call
        sizes = _smaller_sizes(self._tensors, [args, kwargs], least) if least else {}
        made_up = _MadeUpTensors(self._tensors, sizes, types or {}, self._shared, device)
        inputs = [made_up.of(arg) for arg in args]
        options = {name: made_up.of(arg) for name, arg in kwargs.items() if name != "pin_memory"}
        if "device" in options:
            options["device"] = device
        with (
            shapes_alone() if device is _META else _undispatched(),
            torch.random.fork_rng(devices=()) if operator.is_random else nullcontext(),
        ):
            try:
                operator.compute(*inputs, **options)
            except Exception as error:  # noqa: BLE001 # the caller decides
                # Its frames refer to it and to the arguments, and so to the graph of autograd,
                # which must end when the program drops it.
                return error.with_traceback(None)
        return None

    def is_of_sizes(self, error: Exception) -> bool:
        """Return whether an error may come from the smaller sizes alone."""
        message = str(error)
        if NO_KERNEL in message:
            return False
        # It does if it changes with the sizes.
        if message != str(self.error(_OTHER_SIZE)) or "to be true, but got false" in message:
            return True
        # Or if the sizes do not fit each other any more; but shared memory may not fit on purpose.
        return not self._shared and self.error(_SMALL_SIZE, device=_META) is not None


def _checks_sizes(operator: Operator) -> bool:
    """Return whether an operator checks all sizes before it reads or writes an element.

    Those that programs call do, and those with a shape function. Others rely on what was checked
    before, and with other sizes could read and write outside of their tensors.
    """
    is_inner = operator.name.startswith("_") or "backward" in operator.name
    return has_shape_function(operator.func) or not is_inner


def _selects_by_mask(indices: Iterable[Any]) -> bool:
    return any(item is not None and item.dtype in MASKS for item in indices)


def overlaps(
    tensors: Sequence[VirtualTensor], *, is_out: bool = False
) -> tuple[tuple[int, int, int], ...]:
    """Return which tensors share memory: two indices, and how far the second one is ahead.

    Tensors with gaps are left out, as PyTorch's own check leaves them out.

    With ``is_out`` neighbours in the same storage count, too, because ``out=`` may grow.
    """
    if len({id(item.storage_block) for item in tensors}) == len(tensors):
        return ()
    return tuple(
        (i, j, second.offset - first.offset)
        for j, second in enumerate(tensors)
        for i, first in enumerate(tensors[:j])
        if first.storage_block is second.storage_block and (is_out or _overlap(first, second))
    )


def _overlap(first: VirtualTensor, second: VirtualTensor) -> bool:
    """Return whether two tensors of one storage overlap, and neither of them has gaps."""
    if not (first.layout_key.is_dense and second.layout_key.is_dense):
        return False
    starts = [item.offset * item.layout_key.dtype.itemsize for item in (first, second)]
    ends = [
        start + item.layout_key.span_bytes
        for start, item in zip(starts, (first, second), strict=True)
    ]
    return starts[0] < ends[1] and starts[1] < ends[0]


def _smaller_sizes(
    tensors: Iterable[VirtualTensor], args: list[Any], least: int
) -> dict[int, int]:
    """Return a small number for each large size, in the same order."""
    sizes = {n for item in tensors for n in item.layout_key.sizes}
    # Arguments may be compared with sizes, such as the k of topk.
    sizes.update(n for n in tree_leaves(args) if type(n) is int)
    large = sorted(n for n in sizes if n > _SMALL_SIZE)
    return {n: least + 1 + rank for rank, n in enumerate(large)}


class _MadeUpTensors:
    """Makes tensors in place of virtual ones: zeros, or ones where a value may be a divisor."""

    def __init__(
        self,
        tensors: Sequence[VirtualTensor],
        sizes: dict[int, int],
        types: dict[torch.dtype, torch.dtype],
        shared: Iterable[tuple[int, int, int]],
        device: torch.device,
    ) -> None:
        self._sizes, self._types, self._device = sizes, types, device
        self._made: dict[int, torch.Tensor] = {}
        for i, j, n_ahead in shared:
            self._share(tensors[i], tensors[j], n_ahead)
        for item in tensors:
            if id(item) not in self._made:
                sizes_, strides, dtype = self._layout(item.layout_key)
                self._made[id(item)] = _filled(
                    torch.empty_strided(sizes_, strides, dtype=dtype, device=device)
                )

    def of(self, value: Any) -> Any:
        """Return an argument with made-up tensors."""
        kind = type(value)
        if kind is VirtualTensor:
            return self._made[id(value)]
        if kind is list or kind is tuple:
            return [self.of(item) for item in value]
        if kind is int:
            return self._sizes.get(value, value)
        if kind is torch.dtype:
            return self._types.get(value, value)
        return value

    def _layout(self, key: TensorLayout) -> tuple[tuple[int, ...], tuple[int, ...], torch.dtype]:
        dtype = self._types.get(key.dtype, key.dtype)
        if not self._sizes:
            return key.sizes, key.strides, dtype
        sizes = tuple(self._sizes.get(n, n) for n in key.sizes)
        strides = [0] * len(sizes)
        stride = 1
        # In the same order as before; an expanded dimension stays expanded.
        for dim in sorted(range(len(sizes)), key=lambda dim: key.strides[dim]):
            if key.strides[dim]:
                strides[dim] = stride
                stride *= max(sizes[dim], 1)
        return sizes, tuple(strides), dtype

    def _share(self, first: VirtualTensor, second: VirtualTensor, n_ahead: int) -> None:
        """Make up two tensors that share memory."""
        if id(first) in self._made or id(second) in self._made or abs(n_ahead) > _MOST_ELEMENTS:
            return
        layouts = [self._layout(item.layout_key) for item in (first, second)]
        if layouts[0][2] != layouts[1][2]:
            return
        if self._sizes:
            n_ahead = max(-1, min(n_ahead, 1))
        ends = [_end(sizes, strides) for sizes, strides, _ in layouts]
        shared = _filled(
            torch.empty(max(ends) + abs(n_ahead), dtype=layouts[0][2], device=self._device)
        )
        for item, (sizes, strides, _), offset in zip(
            (first, second), layouts, (max(0, -n_ahead), max(0, n_ahead)), strict=True
        ):
            self._made[id(item)] = shared.as_strided(sizes, strides, offset)


def _end(sizes: Sequence[int], strides: Sequence[int]) -> int:
    return 1 + sum((n - 1) * stride for n, stride in zip(sizes, strides, strict=True))


def _filled(tensor: torch.Tensor) -> torch.Tensor:
    # Integers may be indices, of which only 0 is in range of each size. Other numbers may be
    # divisors or probabilities.
    is_number = tensor.is_floating_point() or tensor.is_complex()
    return tensor.fill_(1) if is_number else tensor.zero_()


@contextmanager
def _undispatched() -> Iterator[None]:
    guard = disable_dispatch()
    try:
        yield
    finally:
        del guard
