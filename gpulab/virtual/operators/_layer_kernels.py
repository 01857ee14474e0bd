"""Name the kernels of matmuls, convolutions, losses, norms, gradients and other operators."""

from collections.abc import Callable
from math import ceil

from gpulab.virtual.operators._argument_checks import HALVES
from gpulab.virtual.operators._layer_coordinates import is_channels_last, normalizes_by_cudnn
from gpulab.virtual.operators._operator_call import (
    COPY,
    RESET,
    Names,
    OperatorCall,
    Rules,
    copied,
    is_repeated,
)
from gpulab.virtual.operators._size_coordinates import CHUNK

_WIDE = 2  # dimensions of a matrix
ATTENTION = "scaled_dot_product_attention"
ATTENTION_BACKWARD = "scaled_dot_product_attention_backward"


def _mean_loss(call: OperatorCall) -> Names | None:
    return (call.name, "reduce") if call.n_out == 1 < call.n_in else None


_LOGITS = ("one minus target", "multiply", "log sigmoid", "subtract")


def _with_logits(call: OperatorCall) -> Names | None:
    is_weighted = len(call.reads) > _WIDE
    weighted = ("subtract one", "multiply", "add one", "multiply") if is_weighted else ()
    reduced = ("mean",) if call.n_out == 1 else ()
    return (*_LOGITS, "copy", *weighted, *reduced)


def _masked_fill(call: OperatorCall) -> Names:
    if call.is_in_place:
        return ("masked_fill",)
    return ("copy" if is_repeated(call.reads[0]) else COPY, "masked_fill")


def _matmul(name: str) -> Callable[[OperatorCall], Names | None]:
    """Return a rule for a matmul, which may be split along its inner dimension."""

    def names(call: OperatorCall) -> Names | None:
        a, b = call.reads[-2:]
        if len(a.sizes) < _WIDE or len(b.sizes) < _WIDE:
            return None
        k = a.sizes[-1]
        m, n = a.n_elements // max(1, k), b.n_elements // max(1, k)
        copies = ("copy",) * sum(is_repeated(item) for item in (a, b))
        is_turned = name == "linear" and (call.name == "linear" or b.strides[-2] == 1)
        if is_turned and call.arithmetic == "float32" and min(m, n) > 1:
            n = b.sizes[0] if call.name == "linear" else n
            return (*copies, *_single_linear(m, n, k, call.name))
        if call.is_half:
            is_split = k >= _SPLIT_HALVES and m * n <= _FEW_RESULTS
        elif min(m, n) == 1 or call.arithmetic != "float32":
            is_split = False  # a matrix by a vector, TF32, or 8-byte numbers
        elif name == "linear":
            is_split = k >= _SPLIT_LINEAR and _tiles(m, n, 128) <= _FEWEST_TILES
        else:
            is_split = k >= _SPLIT_SINGLE and _tiles(m, n, 64) <= 2 * _FEW_TILES
        kernels = (*copies, call.name, *(("sum of parts",) if is_split else ()))
        # A large result of tensor cores has a counter, which the lowering sets.
        return kernels if len(kernels) > 1 or name == "linear" else None

    return names


# From these lengths on, and up to so many tiles or results, most recorded matmuls were split. The
# libraries' own rules are not published.
_SPLIT_HALVES, _SPLIT_SINGLE, _SPLIT_LINEAR = 2_700, 256, 512
_FEW_TILES, _FEWEST_TILES, _FEW_RESULTS = 100, 8, 90_000


def _single_linear(m: int, n: int, k: int, name: str) -> Names:
    """Return the kernels of a linear layer in float32: m rows, n results each, sums of k."""
    scaled = ("scale", name, "add bias")  # cuBLAS has a kernel of its own for few rows
    split = (name, "sum of parts")
    if m <= 18:  # noqa: PLR2004  # a bound from records
        return split if n <= 544 and k > 1_344 and m > 7 else (name,)  # noqa: PLR2004  # a bound from records
    if n <= 544:  # noqa: PLR2004  # a bound from records
        if m * n <= 5_472:  # noqa: PLR2004  # a bound from records
            return scaled
        return split if k > 208 else (name,)  # noqa: PLR2004  # a bound from records
    return scaled if k > 896 and _tiles(m, n, 64) <= 64 else (name,)  # noqa: PLR2004  # a bound from records


def _tiles(m: int, n: int, size: int) -> int:
    return ceil(m / size) * ceil(n / size)


def _of_dense_gradient(call: OperatorCall) -> Names | None:
    copy = copied(call)
    return (*copy, call.name) if copy else None


def _into_zeros(call: OperatorCall) -> Names:
    """Return a kernel that adds to a result of zeros."""
    return ("fill", *copied(call), call.name)


def _filled_pair(call: OperatorCall) -> Names:
    return ("fill", call.name)


def _sum(call: OperatorCall) -> Names | None:
    """Return a cast of small integers before their sum."""
    source = call.reads[0].dtype if call.reads else None
    if source is None or source.is_floating_point or source.is_complex or source.itemsize == 8:  # noqa: PLR2004 # bytes of int64
        return None
    reset = (RESET,) if call.n_in >= 1 << 17 else ()
    return ("copy", *reset, call.name)


def _normal(call: OperatorCall) -> Names | None:
    if call.is_in_place or not call.args:
        return None
    mean, std = (hasattr(item, "numel") for item in (*call.args, 1.0)[:2])
    if not std:
        return ("normal", "add") if mean else None
    fill = () if mean else ("fill",)
    return (*("min", "at least 0") * 2, *fill, "normal", "multiply", "add")


def _fourier(call: OperatorCall) -> Names | None:
    """Return a transform for each dimension, and the scaling."""
    dims, scaling = call.args[1:3]
    is_scaled = bool(scaling)
    is_whole = call.name == "_fft_r2c" and call.args[3:4] == (False,)
    names = (
        *("fourier",) * len(dims),
        *(("scale",) if is_scaled else ()),
        *(("conjugate copy",) if is_whole else ()),
    )
    return names if len(names) > 1 + is_whole else None


_FEW_PIXELS = 1_000


def _batch_norm(call: OperatorCall) -> Names | None:
    """Return PyTorch's own kernels, where cuDNN's is not used."""
    weight, mean, is_training = call.args[1], call.args[3], call.args[5]
    if normalizes_by_cudnn(call.reads[0], weight):
        return None
    if is_training:
        x = call.reads[0]
        # Several blocks share a channel, and count in memory which of them is the last.
        is_split = is_channels_last(x) and x.n_elements > _FEW_PIXELS * x.sizes[1]
        return (*("fill",) * is_split, "statistics", "update statistics", "normalize")
    is_cast = mean is not None and mean.dtype in HALVES
    return (("copy",) if is_cast else (COPY,)) + ("inverse deviations", "normalize")


def _batch_norm_backward(call: OperatorCall) -> Names | None:
    copy, x = copied(call), call.reads[1]
    is_training = call.args[7]
    if is_training and is_channels_last(x) and not normalizes_by_cudnn(x, call.args[2]):
        return (*copy, "gradient sums", call.name)
    return (*copy, call.name) if copy else None


def _group_norm(call: OperatorCall) -> Names | None:
    return ("moments", "normalize") if call.args[1] is None else None


def _complex_part(call: OperatorCall) -> Names | None:
    return (call.name, "real part") if call.reads[0].dtype.is_complex else None


def _power(call: OperatorCall) -> Names | None:
    return None if hasattr(call.args[0], "numel") else ("fill", "pow")


def _foreach_reduction(call: OperatorCall) -> Names:
    tensors = call.args[0]
    n_chunks = sum(ceil(item.numel() / CHUNK) for item in tensors)
    n_launches = max(1, ceil(len(tensors) / 110), ceil(n_chunks / 320))
    return ("fill", *(call.name,) * n_launches, "sums of chunks")


def _attention_backward(call: OperatorCall) -> Names | None:
    """Return the sums over results by their gradients, which cuDNN's kernel for halves has."""
    own = ("multiply", "sum", "copy", ATTENTION_BACKWARD)
    return own if call.arithmetic == "float32" else None


def _slice_backward(call: OperatorCall) -> Names:
    return ("fill", "copy" if is_repeated(call.reads[0]) else COPY)


def _roll(call: OperatorCall) -> Names | None:
    """Return a kernel for each dimension (TensorTransformations.cu)."""
    dims = call.args[2] if len(call.args) > _WIDE else ()
    n_dims = len(dims) if isinstance(dims, (list, tuple)) else 1
    return ("roll",) * n_dims if n_dims > 1 else None


RULES: Rules = {
    "roll": _roll,
    "masked_fill": _masked_fill,
    "mse_loss smooth_l1_loss huber_loss binary_cross_entropy multi_margin_loss": _mean_loss,
    "binary_cross_entropy_with_logits": _with_logits,
    "soft_margin_loss": ("negate", "multiply", "exp", "log1p", "mean"),
    "logsumexp": (
        *("max", "is infinite", "abs", "choose", "subtract", "exp", "sum", "log", "add"),
    ),
    "dist": ("subtract", "norm"),
    "renorm": ("norm", "scale", "multiply"),
    "eye": ("fill", "diagonal"),
    "diag_embed": ("fill", "copy"),
    "equal": ("eq", "all"),
    "sum": _sum,
    "isinf": ("abs", "eq"),
    "abs angle": _complex_part,
    "pow": _power,
    "hann_window hamming_window": ("arange", "multiply", "cos", "multiply", "add"),
    "kaiser_window": ("arange", "kaiser_window"),
    "fft_fftfreq": ("arange", "arange", "multiply"),
    "fft_rfftfreq": ("arange", "multiply"),
    "select_scatter slice_scatter": (COPY, COPY),
    "_sample_dirichlet": ("gamma", "sum", "divide"),
    "normal": _normal,
    "_fft_r2c _fft_c2c _fft_c2r": _fourier,
    "native_batch_norm": _batch_norm,
    "native_group_norm": _group_norm,
    "_foreach_norm _foreach_max": _foreach_reduction,
    "segment_reduce": (
        *("min", "sum", "compare", "fill", "cat", "start scan", "scan", "segment_reduce"),
    ),
    "embedding_renorm": (
        *("copy", "radix sort in a block", "start selection", "select", "renorm"),
    ),
    "_pack_padded_sequence": ("copy", "cat"),
    "max_unpool2d": ("fill", "max_unpool2d"),
    "_euclidean_dist": (
        *("square", "sum", "fill", "square", "sum", "fill", "multiply", "cat", "cat"),
        *("mm", "sum of parts", "clamp", "sqrt"),
    ),
    "constant_pad_nd": ("fill", "copy"),
    "block_diag": ("fill", "copy", "copy"),
    "dot vdot": ("dot", "sum of parts"),
    "im2col": lambda call: ("im2col",) * int(call.reads[0].sizes[0]),
    "upsample_bicubic2d": ("fill", "upsample_bicubic2d"),
    "mm": _matmul("mm"),
    "addmm linear": _matmul("linear"),
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
    "select_backward slice_backward": _slice_backward,
    "native_batch_norm_backward": _batch_norm_backward,
    "_softmax_backward_data _log_softmax_backward_data": _of_dense_gradient,
    "upsample_nearest2d_backward upsample_bilinear2d_backward upsample_bicubic2d_backward "
    "_adaptive_avg_pool2d_backward avg_pool2d_backward max_pool2d_with_indices_backward": (
        _into_zeros
    ),
    "mse_loss_backward smooth_l1_loss_backward huber_loss_backward grid_sampler_2d_backward "
    "multilabel_margin_loss_forward": _filled_pair,
}
