"""Lower softmax, norms, losses, pooling and optimizers to the kernels that CUDA runs."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, log2, nan, prod, sqrt
from typing import Any

import torch

from gpulab.virtual.operators import _layer_coordinates as layers
from gpulab.virtual.operators._argument_checks import (
    INTEGERS,
    check_batch_norm,
    check_layer_norm,
    check_rms_norm,
    refuse,
)
from gpulab.virtual.operators._index_ranges import of_classes
from gpulab.virtual.operators._model import (
    Alert,
    Autocast,
    DryRun,
    Models,
    OperatorModel,
)
from gpulab.virtual.operators._operator_call import CallArguments, Lowering, OperatorCall
from gpulab.virtual.operators._row_coordinates import surface_of_softmax
from gpulab.virtual.operators._size_coordinates import CHUNK, window_size
from gpulab.virtual.simulator.costs import KernelWork
from gpulab.virtual.tensors import TensorLayout

aten = torch.ops.aten

# Host time of a foreach call, and its additional time for each tensor in each list and for each
# new result: 200 tensors in place took 35 us on an H200's host, 400 pairs 125 us on an H100's, and
# 128 new results 184 us.
_FOREACH_NS, _FOREACH_TENSOR_NS, _NEW_TENSOR_NS = 6_000, 140, 1_350
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
# Pointers to tensors are arguments of the kernel, which limits the tensors of one foreach launch.
# With more lists of tensors there is room for fewer. These are PyTorch's numbers for 4 KiB of
# arguments (aten/src/ATen/native/cuda/MultiTensorApply.cuh), and torch 2.11 for CUDA 13, which was
# recorded, launched as many kernels as they give. Later versions take up to 256 tensors in 32 KiB.
_MOST_TENSORS = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}
_MOST_WITH_SCALARS = 96  # a number for each tensor is an argument, too
_MOST_CHUNKS = 320
_CUDNN_CHANNELS = 1024  # cuDNN samples a grid of at most so many


def _softmax(call: OperatorCall) -> KernelWork:
    source = max(call.reads, key=lambda item: item.n_elements)
    length = source.sizes[(call.dims() or [-1])[0]] if source.sizes else 1
    n_rows = source.n_elements // max(1, length)
    if length <= _WARP_ROW:
        return call.work("softmax", n_rows=n_rows)
    row_bytes = length * source.dtype.itemsize
    is_shared = row_bytes < _SHARED_ROW_BYTES and row_bytes % _VECTOR_BYTES == 0
    if length <= _REGISTER_ROW or is_shared:
        return call.work("softmax in shared memory", n_rows=n_rows)
    return call.work("softmax of long rows", n_rows=n_rows)


def _safe_softmax(call: OperatorCall) -> KernelWork:
    """Return a softmax with the kernels that make rows of minus infinity alone to zeros."""
    n_rows = call.n_out // max(1, call.reads[0].sizes[-1] if call.reads[0].sizes else 1)
    steps = (
        call.step("elementwise", reads=True, name="isneginf"),
        call.step("reduction", n_rows=n_rows, name="all"),
        call.step("fill", n_elements=1, name="fill"),
        call.step("elementwise", reads=True, name="where"),
    )
    return replace(_softmax(call), before=steps)


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
    if layers.is_channels_last(x):
        return _channels_last_norm(call, x, call.args[1], is_training=is_training)
    if not is_training or len(x.sizes) < 2:  # noqa: PLR2004 # batch and channels
        return call.work("elementwise", host_ns=12_000)
    # The kernel reads its input twice. A large one is not in the cache the second time.
    again = x.size_bytes if x.size_bytes > 1 << 24 else 0
    return call.work("channel", n_rows=x.sizes[1], scratch_bytes=again)


def _channels_last_norm(
    call: OperatorCall, x: TensorLayout, weight: Any, *, is_training: bool
) -> KernelWork:
    """Return the work of a batch norm, forward or backward, with channels side by side."""
    n_steps = 0
    before: tuple[KernelWork, ...] = ()
    if not layers.normalizes_by_cudnn(x, weight):
        # Statistics or sums come first, in a kernel of their own.
        before = (call.step("channels last"),) * is_training
    elif not is_training:
        # cuDNN's kernel for it gives few blocks to each image; in clocks, fitted on an H100.
        n_pixels = prod(x.sizes[2:])
        n_steps = max(0, min(n_pixels * x.sizes[1] // 11, 19 * n_pixels) - 10_000)
    return call.work("channels last", n_steps=n_steps, before=before)


def _batch_norm_backward(call: OperatorCall) -> KernelWork:
    x = call.reads[1]
    if layers.is_channels_last(x) and call.args[7]:
        return _channels_last_norm(call, x, call.args[2], is_training=True)
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
    return call.work("windows", n_elements=window_size(call) * call.n_out)


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
    has_scalars = any(isinstance(items[0], (int, float)) for items in lists)
    lists = [items for items in lists if hasattr(items[0], "numel")]
    first = lists[0] if lists else []
    is_fused = call.name.startswith("_fused")
    # Results are one more list, except for norms. The step counters of a fused optimizer are a
    # list among the arguments that takes no room in the launch.
    has_results = not call.is_in_place and call.name != "_foreach_norm"
    depth = len(lists) + (-1 if is_fused else has_results)
    n_chunks = sum(ceil(item.numel() / CHUNK) for item in first)
    n_most = _MOST_TENSORS.get(depth, min(_MOST_TENSORS.values()))
    if has_scalars:
        n_most = min(n_most, _MOST_WITH_SCALARS)
    n_launches = max(1, ceil(len(first) / n_most), ceil(n_chunks / _MOST_CHUNKS))
    # Small tensors beside a large one leave most of the GPU idle, because the longest block
    # decides. What an H100 recorded lies between that and blocks of equal length.
    n_elements = sum(item.numel() for item in first)
    n_full = n_elements / max(1, min(CHUNK, max((item.numel() for item in first), default=1)))
    n_blocks = sqrt(n_chunks * n_full)
    family = "fused optimizer" if is_fused else "foreach"
    n_new = 0 if call.is_in_place or is_fused else len(first)
    host_ns = _FOREACH_NS + _NEW_TENSOR_NS * n_new + (_FUSED_NS if is_fused else 0)
    host_ns += _FOREACH_TENSOR_NS * sum(map(len, lists))
    return call.work(
        family,
        n_elements=n_elements,
        # The blocks of one launch only, because launches come one after another.
        n_rows=max(1, round(n_blocks / n_launches)),
        host_ns=host_ns,
        before=(call.step(family, n_elements=1, host_ns=3_000),) * (n_launches - 1),
    )


def _foreach_norm(call: OperatorCall) -> KernelWork:
    """Return the work of norms: one pass over the chunks, then a small kernel for their sums."""
    work = foreach(call)
    tidy = call.step("small step", host_ns=3_000, name="sums of chunks")
    return replace(work, before=(*work.before, tidy))


def _is_by_pytorch(call: CallArguments) -> bool:
    """Return whether PyTorch's own kernel samples the grid; cuDNN's is not refused."""
    is_possible = torch.backends.cudnn.enabled and call("align_corners")
    is_plain = call("interpolation_mode") == call("padding_mode") == 0
    return not (is_possible and is_plain and call("input").shape[1] <= _CUDNN_CHANNELS)


# PyTorch's messages name the function after the operator, with "out" if it gets its result.
_BY_NAME, _BY_NAME_OUT = Alert("{}_cuda"), Alert("{}_out_cuda")
_NORM = OperatorModel(lowering=_layer_norm, surface="norm")
_SOFTMAX = OperatorModel(
    lowering=_softmax,
    surface=surface_of_softmax,
)
# A CPU takes no float32 statistics beside half precision, as a GPU does.
_MIXED = OperatorModel(mixes_types=True)
_MIXED_BACKWARD = replace(_MIXED, is_widened=True)
_BATCH_NORM = replace(_MIXED, checks=(check_batch_norm,), updates_statistics=True)
_IMAGES = OperatorModel(surface="images")
_RESIZED = replace(_IMAGES, autocast=Autocast.FLOAT32)
_BICUBIC, _BILINEAR = (
    replace(_RESIZED, checks=(refuse(f"upsample_{kind}2d_out_frame", INTEGERS),))
    for kind in ("bicubic", "bilinear")
)


def _sampled_backward(
    grad: torch.Tensor, image: torch.Tensor, grid: torch.Tensor, *options: Any
) -> tuple[torch.Tensor, ...]:
    """Return the gradients of ``grid_sample``.

    The CPU's code ends the process for positions that are not finite, so they become far ones.
    """
    near = grid.nan_to_num(0.0).clamp(-_FAR, _FAR)
    of_image, of_grid = aten.grid_sampler_2d_backward.default(grad, image, near, *options)
    return of_image, of_grid.masked_fill(grid.isnan(), nan)


_FAR = 1e4  # in halves of an image
_IMAGES_BACKWARD = OperatorModel(surface="images backward")
_PAIR_LOSS = OperatorModel(surface="pair loss", autocast=Autocast.FLOAT32)
_MARGIN_LOSS = OperatorModel(may_find_wrong_values=True)
_LOWER, _FLOAT32, _WIDEST = (
    OperatorModel(autocast=each) for each in (Autocast.LOWER, Autocast.FLOAT32, Autocast.WIDEST)
)
MODELS: Models = {
    # Softmax and norms
    "_softmax _log_softmax": _SOFTMAX,
    "_safe_softmax": replace(_SOFTMAX, lowering=_safe_softmax),
    "_softmax_backward_data _log_softmax_backward_data": OperatorModel(
        lowering=_softmax_backward, surface="softmax backward"
    ),
    "softmax log_softmax": OperatorModel(autocast=Autocast.FLOAT32_RESULT),
    "native_layer_norm": replace(_NORM, checks=(check_layer_norm,), autocast=Autocast.FLOAT32),
    "native_layer_norm_backward": replace(
        _MIXED_BACKWARD,
        lowering=_layer_norm_backward,
        surface="norm backward",
    ),
    "_fused_rms_norm": replace(_NORM, is_fused=True, checks=(check_rms_norm,)),
    "_fused_rms_norm_backward": OperatorModel(lowering=_layer_norm_backward),
    "native_batch_norm": replace(
        _BATCH_NORM,
        lowering=_batch_norm,
        surface=layers.surface_of_batch_norm,
    ),
    "native_batch_norm_backward": replace(
        _MIXED_BACKWARD,
        lowering=_batch_norm_backward,
        surface=layers.surface_of_batch_norm,
    ),
    "cudnn_batch_norm": _BATCH_NORM,
    "batch_norm_backward": _MIXED_BACKWARD,
    "cudnn_batch_norm_backward batch_norm_elemt _native_batch_norm_legit": _MIXED,
    "_native_batch_norm_legit_no_training _batch_norm_with_update": _MIXED,
    "_batch_norm_with_update_functional": _MIXED,
    "native_group_norm": OperatorModel(lowering=_group_norm, surface="group norm"),
    "native_group_norm_backward": replace(_MIXED, surface="group norm backward"),
    "layer_norm rms_norm group_norm": _FLOAT32,
    # Losses
    "nll_loss_forward": OperatorModel(
        lowering=_loss, surface="likelihood", index_ranges=of_classes(0)
    ),
    "nll_loss_backward": OperatorModel(
        lowering=_loss_backward,
        surface="likelihood backward",
        index_ranges=of_classes(1),
    ),
    "nll_loss2d_forward": OperatorModel(
        index_ranges=of_classes(0),
        nondeterministic=Alert(
            "nll_loss2d_forward_out_cuda_template", lambda call: call("reduction") != 0
        ),
    ),
    "nll_loss2d_backward": OperatorModel(index_ranges=of_classes(1)),
    "mse_loss smooth_l1_loss huber_loss soft_margin_loss binary_cross_entropy_with_logits": (
        _PAIR_LOSS
    ),
    "binary_cross_entropy": replace(
        _PAIR_LOSS, may_find_wrong_values=True, autocast=Autocast.REFUSED
    ),
    "multi_margin_loss": replace(_MARGIN_LOSS, autocast=Autocast.FLOAT32),
    "multi_margin_loss_backward multilabel_margin_loss_forward multilabel_margin_loss_backward "
    "_linear_cross_entropy_batch_chunked _linear_cross_entropy_batch_chunked_no_reduction": (
        _MARGIN_LOSS
    ),
    "_ctc_loss": replace(_MARGIN_LOSS, dry_run=DryRun.NEVER),
    "_ctc_loss_backward": OperatorModel(
        dry_run=DryRun.NEVER, nondeterministic=Alert("ctc_loss_backward_gpu")
    ),
    "nll_loss nll_loss2d l1_loss kl_div poisson_nll_loss triplet_margin_loss": _FLOAT32,
    "cosine_embedding_loss hinge_embedding_loss margin_ranking_loss": _FLOAT32,
    "multilabel_margin_loss": _FLOAT32,
    # Images
    "max_pool2d_with_indices": replace(
        _IMAGES,
        lowering=_pool,
        checks=(refuse("max_pool2d_with_indices_out_cuda_frame", INTEGERS),),
    ),
    "avg_pool2d": replace(
        _IMAGES, lowering=_pool, checks=(refuse("avg_pool2d_out_cuda_frame", INTEGERS),)
    ),
    "avg_pool3d": replace(_IMAGES, checks=(refuse("avg_pool3d_out_cuda", INTEGERS),)),
    "max_pool3d_with_indices": replace(
        _IMAGES, checks=(refuse("max_pool3d_with_indices_out_frame", INTEGERS),)
    ),
    "_adaptive_avg_pool2d adaptive_max_pool2d fractional_max_pool2d": _IMAGES,
    "grid_sampler_2d grid_sampler_3d": _IMAGES,
    "grid_sampler": _WIDEST,
    "upsample_nearest1d upsample_nearest2d": replace(_RESIZED, lowering=_nearest),
    "upsample_bilinear2d": replace(_BILINEAR, lowering=_scaled(4)),
    "_upsample_bilinear2d_aa": _BILINEAR,
    "upsample_bicubic2d": _BICUBIC,
    "_upsample_bicubic2d_aa": replace(_BICUBIC, surface=None),
    "upsample_linear1d upsample_trilinear3d _upsample_nearest_exact1d": _RESIZED,
    "upsample_nearest3d _upsample_nearest_exact2d _upsample_nearest_exact3d": _FLOAT32,
    "max_pool2d_with_indices_backward avg_pool2d_backward": _IMAGES_BACKWARD,
    "upsample_nearest2d_backward": replace(_IMAGES_BACKWARD, lowering=_nearest),
    "upsample_bilinear2d_backward": replace(
        _IMAGES_BACKWARD,
        lowering=_scaled(4),
        nondeterministic=_BY_NAME_OUT,
    ),
    "upsample_bicubic2d_backward": replace(_IMAGES_BACKWARD, nondeterministic=_BY_NAME_OUT),
    "_adaptive_avg_pool2d_backward adaptive_max_pool2d_backward": replace(
        _IMAGES_BACKWARD, nondeterministic=_BY_NAME
    ),
    "_adaptive_avg_pool3d_backward avg_pool3d_backward grid_sampler_3d_backward "
    "replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward": (
        OperatorModel(nondeterministic=_BY_NAME)
    ),
    "fractional_max_pool2d_backward fractional_max_pool3d_backward": OperatorModel(
        may_find_wrong_values=True, nondeterministic=_BY_NAME
    ),
    "grid_sampler_2d_backward": OperatorModel(
        compute=_sampled_backward, nondeterministic=Alert("{}_cuda", _is_by_pytorch)
    ),
    "upsample_linear1d_backward upsample_trilinear3d_backward reflection_pad1d_backward "
    "reflection_pad3d_backward _upsample_bilinear2d_aa_backward _upsample_bicubic2d_aa_backward": (
        OperatorModel(nondeterministic=_BY_NAME_OUT)
    ),
    **{
        f"max_unpool{n}d": OperatorModel(
            may_find_wrong_values=True, nondeterministic=Alert(f"max_unpooling{n}d_forward_out")
        )
        for n in (2, 3)
    },
    # Optimizers
    "_foreach_norm": OperatorModel(lowering=_foreach_norm),
    "_fused_adam _fused_adamw": OperatorModel(
        lowering=foreach, surface="foreach", host_numbers=("lr",)
    ),
    "_fused_sgd _fused_adagrad": OperatorModel(lowering=foreach, host_numbers=("lr",)),
    # Sequences. On CUDA a recurrent layer is one operator of cuDNN. Its weights are cast in every
    # call, and to float16 even if autocast is for another type, as seen on an H200.
    "lstm gru rnn_tanh rnn_relu": OperatorModel(takes_lengths=True, autocast=Autocast.FLOAT16),
    "_pack_padded_sequence _pack_padded_sequence_backward _pad_packed_sequence": OperatorModel(
        takes_lengths=True
    ),
    "_thnn_fused_lstm_cell": replace(_LOWER, takes_lengths=True),
    "_thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell": _LOWER,
    "_transformer_encoder_layer_fwd": OperatorModel(n_inside=13),
}
# From 2.13 on PyTorch's documentation lists it among those that act deterministically.
if torch.__version__ < (2, 13):  # type: ignore[operator] # torch compares it with numbers
    MODELS["max_pool3d_with_indices_backward"] = OperatorModel(nondeterministic=_BY_NAME)
