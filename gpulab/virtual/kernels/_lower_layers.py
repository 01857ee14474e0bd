"""Lower softmax, norms, losses, pooling and optimizers to the kernels that CUDA runs."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, log2, prod

from gpulab.virtual.kernels._operator_call import Lowering, OperatorCall
from gpulab.virtual.simulator.costs import KernelWork

# Host time of a foreach call, and its additional time for each tensor.
_FOREACH_NS, _FOREACH_TENSOR_NS = 6_500, 650
# Norms take more for each tensor, because each result is a tensor of its own.
_NORM_TENSOR_NS = 2_200
_FUSED_NS = 28_000
# A read from memory takes as long as this many additions of a loss's inner loop.
_STEPS_A_ROW = 65
# PyTorch's softmax kernels (aten/src/ATen/native/cuda/SoftMax.cu): a warp keeps a short row in
# registers, and a block of 1,024 threads a longer one, with at most 9 elements a thread. A still
# longer row is kept in shared memory if it fits and consists of whole vectors of 16 bytes. A block
# has 48 KiB unless it asks for more, and its 32 warps need 4 bytes each. Other rows are read again
# from memory.
_WARP_ROW = 1_024
_REGISTER_ROW = 9 * 1_024
_SHARED_ROW_BYTES = 48 * 1024 - 32 * 4
_VECTOR_BYTES = 16
# A block of a foreach kernel processes this many elements of one tensor.
_CHUNK = 65_536
# Pointers to tensors are arguments of the kernel, which limits the tensors of one foreach launch.
# With more lists of tensors there is room for fewer. These are PyTorch's numbers for 4 KiB of
# arguments (aten/src/ATen/native/cuda/MultiTensorApply.cuh), and torch 2.11 for CUDA 13, which was
# recorded, launched as many kernels as they give. Later versions take up to 256 tensors in 32 KiB.
_MOST_TENSORS = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}
_MOST_CHUNKS = 320


def _softmax(call: OperatorCall) -> KernelWork:
    source = max(call.reads, key=lambda item: item.n_elements)
    dim = call.args[1] if len(call.args) > 1 and isinstance(call.args[1], int) else -1
    length = source.sizes[dim] if source.sizes else 1
    n_rows = source.n_elements // max(1, length)
    if length <= _WARP_ROW:
        return call.work("softmax", n_rows=n_rows)
    row_bytes = length * source.dtype.itemsize
    is_shared = row_bytes < _SHARED_ROW_BYTES and row_bytes % _VECTOR_BYTES == 0
    if length <= _REGISTER_ROW or is_shared:
        return call.work("softmax in shared memory", n_rows=n_rows)
    return call.work("softmax of long rows", n_rows=n_rows)


def _softmax_backward(call: OperatorCall) -> KernelWork:
    return call.work("softmax backward")


def _layer_norm(call: OperatorCall) -> KernelWork:
    family = "norm" if call.name == "native_layer_norm" else "root mean square"
    return call.work(family, n_rows=_n_rows(call, call.args[1]))


def _n_rows(call: OperatorCall, normalized: Sequence[int]) -> int:
    return call.n_out // max(1, prod(normalized))


def _layer_norm_backward(call: OperatorCall) -> KernelWork:
    """Return the work for the gradient of the input, and before it that of weight and bias."""
    columns = call.step(
        "column sums", n_elements=call.n_out, reads=True, host_ns=9_000, name="for the weights"
    )
    return call.work("norm", n_rows=_n_rows(call, call.args[2]), before=(columns,))


def _batch_norm(call: OperatorCall) -> KernelWork:
    x = call.reads[0]
    # In evaluation mean and variance are given, so there is one elementwise kernel.
    is_training = call.name != "cudnn_batch_norm" and bool(call.args[5])
    if not is_training or len(x.sizes) < 2:  # noqa: PLR2004 # batch and channels
        return call.work("elementwise", host_ns=12_000)
    # The kernel reads its input twice. A large one is not in the cache the second time.
    again = x.size_bytes if x.size_bytes > 1 << 24 else 0
    return call.work("channel", n_rows=x.sizes[1], scratch_bytes=again)


def _batch_norm_backward(call: OperatorCall) -> KernelWork:
    x = call.reads[0]
    n_channels = x.sizes[1] if len(x.sizes) > 1 else 1
    return call.work("channel", n_rows=n_channels, scratch_bytes=2 * x.size_bytes)


def _group_norm(call: OperatorCall) -> KernelWork:
    n_groups = call.args[3] * call.args[6]
    before = (
        call.step("moments", n_elements=call.n_in, n_rows=n_groups, reads=True, name="moments"),
        call.step("small step", name="scale and shift"),
    )
    return call.work("broadcast", before=before, host_ns=3_000)


def _loss(call: OperatorCall) -> KernelWork:
    """Return the work of a loss: one block, about 16 rows for each thread, then one sum."""
    n_rows = max(1, call.reads[1].n_elements)
    # PyTorch's own rule (``nll_loss_threads`` in its CUDA code).
    n_threads = min(max(1 << round(log2(max(1, n_rows / 16))), 32), 1_024)
    n_steps = ceil(n_rows / n_threads) * _STEPS_A_ROW + n_threads
    return call.work("losses", n_steps=n_steps, reads=False)


def _loss_backward(call: OperatorCall) -> KernelWork:
    n_rows = max(item.n_elements for item in call.reads if not item.dtype.is_floating_point)
    fill = call.step("fill", writes=True, host_ns=4_400, name="fill")
    return call.work("small step", n_elements=n_rows, reads=False, writes=False, before=(fill,))


def _pool(call: OperatorCall) -> KernelWork:
    kernel = call.args[1]
    # PyTorch accepts one number for a square window.
    n_taps = prod(kernel) if len(kernel) > 1 else kernel[0] ** 2
    return call.work("windows", n_elements=n_taps * call.n_out)


def _nearest(call: OperatorCall) -> KernelWork:
    return call.work("resize", n_elements=max(call.n_out, call.n_in))


def _scaled(n_taps: int) -> Lowering:
    return lambda call: call.work("windows", n_elements=n_taps * max(call.n_out, call.n_in))


def foreach(call: OperatorCall) -> KernelWork:
    """Return the work of an operator on lists of tensors, with all of its launches.

    Each chunk of a tensor is processed by one block of threads. So a few small tensors leave most
    of the GPU idle.
    """
    lists = [item for item in call.args if isinstance(item, (list, tuple)) and item]
    lists = [items for items in lists if hasattr(items[0], "numel")]
    first = lists[0] if lists else []
    is_fused = call.name.startswith("_fused")
    # Results are one more list, except for norms. The step counters of a fused optimizer are a
    # list among the arguments that takes no room in the launch.
    has_results = not call.is_in_place and call.name != "_foreach_norm"
    depth = len(lists) + (-1 if is_fused else has_results)
    n_chunks = sum(ceil(item.numel() / _CHUNK) for item in first)
    n_most = _MOST_TENSORS.get(depth, min(_MOST_TENSORS.values()))
    n_launches = max(1, ceil(len(first) / n_most), ceil(n_chunks / _MOST_CHUNKS))
    family = "fused optimizer" if is_fused else "foreach"
    host_ns = _FOREACH_NS + _FOREACH_TENSOR_NS * len(first) + (_FUSED_NS if is_fused else 0)
    return call.work(
        family,
        n_elements=sum(item.numel() for item in first),
        # The chunks of one launch only, because launches come one after another.
        n_rows=max(1, n_chunks // n_launches),
        host_ns=host_ns,
        before=(call.step(family, n_elements=1, host_ns=3_000),) * (n_launches - 1),
    )


def _foreach_norm(call: OperatorCall) -> KernelWork:
    """Return the work of norms: one pass over the chunks, then a small kernel for their sums."""
    work = foreach(call)
    tidy = call.step("small step", host_ns=3_000, name="sums of chunks")
    host_ns = _FOREACH_NS + _NORM_TENSOR_NS * len(call.args[0])
    return replace(work, host_ns=host_ns, before=(*work.before, tidy))


_NAMES: dict[Lowering, tuple[str, ...]] = {
    _softmax: ("_softmax", "_log_softmax", "_safe_softmax"),
    _softmax_backward: ("_softmax_backward_data", "_log_softmax_backward_data"),
    _layer_norm: ("native_layer_norm", "_fused_rms_norm"),
    _layer_norm_backward: ("native_layer_norm_backward", "_fused_rms_norm_backward"),
    _batch_norm: ("native_batch_norm",),
    _batch_norm_backward: ("native_batch_norm_backward",),
    _group_norm: ("native_group_norm",),
    _loss: ("nll_loss_forward",),
    _loss_backward: ("nll_loss_backward",),
    _pool: ("max_pool2d_with_indices", "avg_pool2d"),
    _nearest: ("upsample_nearest2d", "upsample_nearest1d", "upsample_nearest2d_backward"),
    _scaled(4): ("upsample_bilinear2d", "upsample_bilinear2d_backward"),
    _foreach_norm: ("_foreach_norm",),
    foreach: ("_fused_adam", "_fused_adamw", "_fused_sgd", "_fused_adagrad"),
}
LAYER_LOWERINGS = {name: lower for lower, names in _NAMES.items() for name in names}
