"""Operators whose result has a shape that depends on values: masks, ``unique``, packed sequences.

PyTorch waits for the device in most of them. Packing a sequence does not wait, because the lengths
of the sequences are on the host; its second result stays there, too.
"""

from contextlib import nullcontext
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from gpulab.virtual.dispatch._copies import require_values
from gpulab.virtual.dispatch._deferred_values import conjugating_lazily, has_complex
from gpulab.virtual.dispatch._dispatched_call import DispatchedCall
from gpulab.virtual.dispatch._execute import kernel_task
from gpulab.virtual.dispatch._moved_values import put
from gpulab.virtual.dispatch._plain_shapes import without_symbols
from gpulab.virtual.operators import Operator, lower, operator_of
from gpulab.virtual.simulator import CacheAccess, SimulatedGpu, active
from gpulab.virtual.tensors import Storage, VirtualTensor, layout_of, reference, wrap

aten = torch.ops.aten


def host_result(func: Any, args: tuple[Any, ...], n_leading: int) -> torch.Tensor:
    """Return the second result of packing or padding, which PyTorch leaves on the host.

    ``n_leading`` leading dimensions of the data are steps and sequences; the others are features.
    """
    # It depends on the lengths only, so it is computed with a single feature.
    data: torch.Tensor = args[0]
    thin = torch.empty((*data.shape[:n_leading], 1), dtype=data.dtype, device="cpu")
    result: torch.Tensor = func(thin, *args[1:])[1]
    return result


def run_data_dependent(call: DispatchedCall, *, by_library: bool) -> Any:
    """Wait for the inputs, compute the result on the host, and return it as a virtual tensor."""
    tensors, gpu = call.tensors, call.gpu
    for tensor in tensors:
        require_values(tensor)
    _wait_for_inputs(gpu, by_library=by_library)
    host_args, options = tree_map_only(
        VirtualTensor, lambda item: reference(item).view(), (call.args, call.kwargs)
    )
    with conjugating_lazily() if has_complex(tensors) else nullcontext():
        out = call.operator.compute(*host_args, **options)
    results = [item for item in tree_leaves(out) if isinstance(item, torch.Tensor)]
    _take_time(call.operator, host_args, options, (tensors, results), gpu)
    return tree_map_only(torch.Tensor, lambda item: _known_result(gpu, item), out)


def find_selected(mask: VirtualTensor) -> None:
    """Take the time that finding the selected elements takes, and wait as PyTorch does.

    Nobody looks at the result. So it needs no values, and takes as long with and without them.
    """
    gpu = mask.storage_block.gpu
    _wait_for_inputs(gpu, by_library=False)
    with without_symbols():
        # How many are selected makes little difference to the kernel.
        indices = torch.empty((mask.numel() // 2, mask.dim()), dtype=torch.int64, device="meta")
    _take_time(operator_of(aten.nonzero.default), (mask,), {}, ([mask], [indices]), gpu)


def _wait_for_inputs(gpu: SimulatedGpu, *, by_library: bool) -> None:
    # On a CUDA GPU the host waits, too: it must know the size of the result to allocate it.
    machine = active()
    if not by_library:
        machine.note_hidden_wait()
    machine.host.charge("operator with a size from values")
    machine.wait_for_stream(gpu.stream)


def _take_time(
    operator: Operator,
    args: Any,
    kwargs: Any,
    tensors: tuple[list[VirtualTensor], list[torch.Tensor]],
    gpu: SimulatedGpu,
) -> None:
    """Launch the operator's kernels and wait for them; the host has computed their values."""
    reads, results = tensors
    layouts = ([item.layout_key for item in reads], [layout_of(item) for item in results])
    work = lower(operator, args, kwargs, results, layouts)
    accesses = [
        CacheAccess(item.storage_block.address, item.layout_key.size_bytes, is_write=False)
        for item in reads
    ]
    machine = active()
    for kernel in (*work.before, work):
        machine.launch(kernel_task(operator, kernel, gpu.stream, accesses), kernel.launch_ns)
    machine.wait_for_stream(gpu.stream)


def _known_result(gpu: SimulatedGpu, value: torch.Tensor) -> VirtualTensor:
    key = layout_of(value)
    result = wrap(key, Storage(active(), gpu, key.span_bytes))
    # At once: the time of the kernels that write it has passed.
    put(reference(result), value)
    return result
