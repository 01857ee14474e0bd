"""Compute the coordinates of a call on its surface of measured efficiencies.

A coordinate is a number or a word. Calls whose kernels work alike have similar numbers (most are
logarithms of sizes) and the same words. Each kind of operator has its own coordinates, which are
the inputs of its kernels' choices as far as they are known.

One file, because the functions share their helpers and one table, which names the surface and the
function of each operator. The fit (``python -m benchmarks.fidelity fit``) uses the same functions,
so a change here needs a new fit.
"""

from collections.abc import Callable
from math import ceil, prod

from gpulab.virtual.kernels import _coordinates_of_places as place
from gpulab.virtual.kernels._coordinate_parts import (
    VECTOR,
    Coordinates,
    dtype_name,
    largest_read,
    largest_written,
    log2_alignment,
    log2_size,
)
from gpulab.virtual.kernels._operator_call import OperatorCall
from gpulab.virtual.kernels._reduction_launch import inner_results, reduction_launch
from gpulab.virtual.simulator.costs import SurfacePoint
from gpulab.virtual.tensors import TensorLayout

CoordinateFunction = Callable[[OperatorCall], Coordinates]

# PyTorch's softmax keeps rows of up to this many elements in the registers of one warp.
_WARP_ROW = 1_024
# In the recordings, cuFFT transformed lengths directly if no prime factor was larger than this.
_LARGEST_PRIME = 127
_FEW_CHANNELS_BYTES = 16
# A block of a foreach kernel processes this many elements of one tensor.
_CHUNK = 65_536
_QUERIES_PER_TILE = 128
# A usual size of a matmul's tiles; the library may have chosen another one.
_TILE = 128
# The multiprocessors of the GPU that was measured. How many of them the last wave of tiles leaves
# idle is a coordinate of matmuls.
_N_SMS = 132


def _elements(call: OperatorCall) -> Coordinates:
    """Return the elements, the bytes read and written for each, and the operator."""
    out = largest_written(call)
    n = max(1, out.n_elements)
    read = sum(item.size_bytes for item in call.reads if item.n_elements > 1) / n
    written = sum(item.size_bytes for item in call.writes) / n
    return (
        log2_size(n),
        read,
        written,
        f"pow {_exponent(call)}" if call.name == "pow" else call.name,
        dtype_name(out),
        "in place" if call.is_in_place else "",
    )


def _exponent(call: OperatorCall) -> str:
    """Return which power is computed: small whole ones are products of a few factors."""
    exponent = call.args[1]
    return str(exponent) if isinstance(exponent, int) else type(exponent).__name__


def _broadcast(call: OperatorCall) -> Coordinates:
    """Return the elements, the length of a row, the operator, and what is repeated."""
    out = largest_written(call)
    row = out.sizes[-1] if out.sizes else 1
    width = out.dtype.itemsize
    fewer = [item for item in call.reads if 1 < item.n_elements < out.n_elements]
    repeated = {"column" if item.sizes[-1] == 1 else "row" for item in fewer if item.sizes}
    read = sum(item.size_bytes for item in call.reads if item.n_elements > 1)
    return (
        log2_size(out.n_elements),
        log2_size(row),
        log2_alignment(row * width),
        float(width),
        read / max(1, out.n_elements),
        call.name,
        " ".join(sorted(repeated)),
        "in place" if call.is_in_place else "",
        dtype_name(out),
    )


def _concatenation(call: OperatorCall) -> Coordinates:
    out, parts = largest_written(call), max(1, len(call.reads))
    row = max(item.sizes[-1] if item.sizes else 1 for item in call.reads) if call.reads else 1
    width = out.dtype.itemsize
    sides = (log2_size(parts), log2_alignment(row * width, 5), float(width))
    last = out.sizes[-1] if out.sizes else 1
    words = (call.name, "last" if last != row else "other")
    return (log2_size(out.n_elements), log2_size(row), *sides, log2_size(last), *words)


def _rows(call: OperatorCall, length: int) -> Coordinates:
    """Return the rows, their length, the ratio of the two, and the alignment of a row.

    The ratio repeats what the first two say, so that the fit can give it a scale of its own.
    """
    source = largest_read(call)
    rows = source.n_elements / max(1, length)
    width = source.dtype.itemsize
    steps = (log2_size(rows) - log2_size(length), log2_alignment(length * width, 5))
    return (log2_size(rows), log2_size(length), *steps, float(width))


def _last(call: OperatorCall) -> int:
    sizes = largest_read(call).sizes
    return sizes[-1] if sizes else 1


def _along(call: OperatorCall) -> Coordinates:
    return (*_rows(call, _last(call)), call.name, dtype_name(largest_read(call)))


def _softmax(call: OperatorCall) -> Coordinates:
    length = _last(call)
    return (
        *_along(call),
        log2_size(ceil(length / _WARP_ROW)) if length > _WARP_ROW else _padding(length),
    )


def _padding(n: int) -> float:
    """Return the logarithm of the used share of the next power of two, at most 0."""
    return log2_size(n) - ceil(log2_size(n))


def _norm(call: OperatorCall) -> Coordinates:
    shape = call.args[1] if call.name in {"native_layer_norm", "_fused_rms_norm"} else call.args[2]
    return (*_rows(call, prod(shape)), call.name, dtype_name(largest_read(call)))


def _scan(call: OperatorCall) -> Coordinates:
    source, dims = largest_read(call), place.dims_of(call)
    length = source.sizes[dims[0]] if dims and source.sizes else max(1, source.n_elements)
    rows = source.n_elements // max(1, length)
    return (
        *_rows(call, length),
        "one" if rows == 1 else "many",
        # PyTorch chooses the shape of a block by this difference (ScanUtils.cuh).
        float(ceil(log2_size(rows)) - ceil(log2_size(length))),
        call.name,
        dtype_name(source),
        place.side_of(call, dims),
    )


def _fourier(call: OperatorCall) -> Coordinates:
    """Return the rows and the factors of their length, which decide on the algorithm."""
    length = _last(call)
    largest, twos, rest = _factors(length)
    whole = "whole" if call.name != "_fft_r2c" or not call.args[3] else "half"
    return (
        *_rows(call, length)[:3],
        log2_size(largest),
        float(twos),
        log2_size(rest),
        "chirp" if largest > _LARGEST_PRIME else "direct",
        whole,
    )


def _factors(n: int) -> tuple[int, int, int]:
    """Return the largest prime factor, the exponent of two, and the odd part."""
    twos = (n & -n).bit_length() - 1
    rest = odd = n >> twos
    largest, factor = (2 if twos else 1), 3
    while factor * factor <= rest:
        while rest % factor == 0:
            largest, rest = factor, rest // factor
        factor += 2
    return max(largest, rest), twos, odd


def _vector(call: OperatorCall) -> Coordinates:
    """Return the sizes of the matrix that meets a vector, and how it lies in memory."""
    a = largest_read(call)
    n = a.sizes[-1] if a.sizes else 1
    width = a.dtype.itemsize
    return (
        log2_size(a.n_elements // max(1, n)),
        log2_size(n),
        log2_size(a.n_elements),
        log2_alignment(n * width),
        call.name,
        "rows" if not a.strides or a.strides[-1] == 1 else "columns",
        call.arithmetic,
    )


def _pairs(call: OperatorCall) -> Coordinates:
    """Return the elements that a loss compares, the operator, and whether it adds them up."""
    source = largest_read(call)
    return (
        log2_size(source.n_elements),
        call.name,
        dtype_name(source),
        "each" if call.n_out == source.n_elements else "one",
    )


def _factorization(call: OperatorCall) -> Coordinates:
    sizes = largest_written(call).sizes
    return (log2_size(sizes[-1] if sizes else 1), log2_size(prod(sizes[:-2])), call.name)


def _reduction(call: OperatorCall) -> Coordinates:
    """Return how the reduction is launched, because its speed depends on that."""
    source = largest_read(call)
    launch = reduction_launch(call, source)
    return (
        log2_size(launch.n_results),
        log2_size(launch.length),
        log2_size(launch.n_blocks),
        log2_size(launch.n_per_thread),
        log2_size(launch.n_sharing),
        log2_size(launch.width),
        "along" if launch.is_along else "across",
        call.name,
        dtype_name(source),
        log2_size(source.n_elements),
        log2_size(inner_results(source)),
        dtype_name(largest_written(call)),
        "".join(str(item) for item in call.args[1:2] if isinstance(item, float)),
    )


def _channels(call: OperatorCall) -> Coordinates:
    x = call.reads[0] if call.name != "native_batch_norm_backward" else call.reads[1]
    sizes = (*x.sizes, 1, 1)
    area = prod(x.sizes[2:])
    width = x.dtype.itemsize
    sides = (
        log2_size(sizes[0]),
        log2_size(sizes[1]),
        log2_size(area),
        log2_alignment(area * width),
    )
    # Evaluation takes mean and variance as they are given.
    trains = call.args[7 if call.name.endswith("backward") else 5]
    words = (dtype_name(x), "training" if trains else "evaluation")
    return (*sides, log2_size(x.n_elements), *words)


def _groups(call: OperatorCall) -> Coordinates:
    # The gradient has the result's gradient first, and all numbers two places later.
    later = 2 if call.name.endswith("backward") else 0
    x = call.reads[1 if later else 0]
    n_groups = max(1, call.args[3 + later]) * call.args[6 + later]
    area = prod(x.sizes[2:])
    width = x.dtype.itemsize
    sides = (
        log2_size(n_groups),
        log2_size(x.n_elements / n_groups),
        log2_size(area),
        log2_alignment(area * width),
    )
    return (*sides, log2_size(x.n_elements), dtype_name(x))


def _images(call: OperatorCall) -> Coordinates:
    x, out = largest_read(call), largest_written(call)
    side = x.sizes[-1] if x.sizes else 1
    width = x.dtype.itemsize
    # The first list of whole numbers is a window, or the size of the result.
    lists = (item for item in call.args if isinstance(item, (list, tuple)) and item)
    window = next((item for item in lists if isinstance(item[0], int)), (1,))
    return (
        log2_size(out.n_elements),
        log2_size(side),
        log2_size(prod(x.sizes[:2])),
        log2_alignment(side * width),
        call.name,
        float(width),
        log2_size(out.n_elements) - log2_size(x.n_elements),
        log2_size(prod(window)),
        dtype_name(x),
    )


def _likelihood(call: OperatorCall) -> Coordinates:
    scores = largest_read(call) if call.name == "nll_loss_forward" else largest_written(call)
    classes = scores.sizes[-1] if scores.sizes else 1
    return (log2_size(scores.n_elements / max(1, classes)), log2_size(classes))


def _convolution(call: OperatorCall) -> Coordinates:
    x, weight = call.reads[0], call.reads[1]
    padding, dilation, is_transposed = call.args[4:7]
    others = (
        float(max(padding, default=0)),
        float(max(dilation, default=1)),
        "transposed" if is_transposed else f"{len(x.sizes)} dimensions",
        log2_size(x.sizes[-1]),
        log2_size(x.sizes[1] // max(1, weight.sizes[1])),
    )
    return (*_convolved(call, x, weight, largest_written(call), call.args[3]), *others)


def _convolution_backward(call: OperatorCall) -> Coordinates:
    out, x, weight = call.reads[:3]
    wanted = "".join(str(int(bool(item))) for item in call.args[10][:2])
    return (*_convolved(call, x, weight, out, call.args[4]), wanted)


def _convolved(
    call: OperatorCall, x: TensorLayout, weight: TensorLayout, out: TensorLayout, stride: object
) -> Coordinates:
    """Return a convolution's sizes, the alignment of its channels, and the memory format.

    Some sizes are there twice, as those of images and as those of the matmul that computes the
    convolution, because cuDNN chooses its algorithm by both.
    """
    width = x.dtype.itemsize
    n_in, n_out = x.sizes[1], out.sizes[1]
    taps = prod(weight.sizes[2:])
    step = stride[0] if isinstance(stride, (list, tuple)) and stride else 1
    area = prod(out.sizes[2:])
    sides = (log2_alignment(n_in * width), log2_alignment(n_out * width))
    layout = "channels" if x.strides[1] == 1 else "planes"
    fit = "aligned" if min(sides) == VECTOR else "not"
    return (
        log2_size(x.sizes[0]),
        log2_size(n_in),
        log2_size(n_out),
        log2_size(area),
        log2_size(taps),
        float(step),
        *sides,
        min(sides),
        layout,
        call.arithmetic,
        "1" if taps == 1 else "more",
        "few" if n_in * width <= _FEW_CHANNELS_BYTES else "many",
        f"{fit} {layout} {call.arithmetic}",
        log2_size(x.sizes[0] * area),
        log2_size(n_in * taps),
    )


def _matmul(call: OperatorCall) -> Coordinates:
    """Return the sizes of a matmul, the alignment of its rows, and how it fills the GPU."""
    a, b = call.reads[-2:]
    m, k, n = a.sizes[-2], a.sizes[-1], b.sizes[-1]
    batch = prod(a.sizes[:-2])
    width = a.dtype.itemsize
    sides = (log2_size(m), log2_size(n), log2_size(k), log2_size(batch))
    aligned = (
        log2_alignment(k * width, 4),
        log2_alignment(n * width, 4),
        log2_alignment(m * width, 4),
    )
    is_transposed = "rows" if b.strides[-1] == 1 else "columns"
    n_tiles = batch * ceil(m / _TILE) * ceil(n / _TILE)
    waves = n_tiles / _N_SMS
    # The coordinate is 0 for full waves and 1 for half a wave. For less than that it stays 1.
    idle = log2_size(ceil(waves) / waves) if 2 * n_tiles > _N_SMS else 1.0
    first = "rows" if a.strides[-1] == 1 else "columns"
    words = (is_transposed, call.name, first, f"{first} {is_transposed}")
    return (
        *sides,
        *aligned,
        min(aligned[:2]),
        log2_size(batch * m * n),
        *words,
        log2_size(n_tiles),
        idle,
    )


def _attention(call: OperatorCall) -> Coordinates:
    offset = 1 if call.name.endswith("backward") else 0
    query, keys = call.reads[offset], call.reads[offset + 1]
    batch, length, depth = prod(query.sizes[:-2]), query.sizes[-2], query.sizes[-1]
    # The position of the flag differs between the two operators; no other argument is True.
    is_causal = any(item is True for item in (*call.args, *call.kwargs.values()))
    return (
        log2_size(batch),
        log2_size(length),
        log2_size(keys.sizes[-2]),
        log2_size(depth),
        log2_size(batch * ceil(length / _QUERIES_PER_TILE)),
        "causal" if is_causal else "full",
        call.arithmetic,
    )


def _foreach(call: OperatorCall) -> Coordinates:
    """Return the number of tensors, their mean size, the number of chunks, and the operator."""
    lists = [item for item in call.args if isinstance(item, (list, tuple)) and item]
    lists = [items for items in lists if hasattr(items[0], "numel")]
    first = lists[0] if lists else []
    n = sum(item.numel() for item in first)
    mean = n / max(1, len(first))
    inner = (
        "in place" if call.is_in_place else "",
        call.name,
        float(len(lists)),
        float(call.writes[0].dtype.itemsize) if call.writes else 0.0,
        str(call.args[1]) if len(call.args) > 1 and call.name == "_foreach_norm" else "",
    )
    return (
        log2_size(len(first)),
        log2_size(mean),
        log2_size(ceil(mean / _CHUNK) * len(first)),
        *inner,
    )


# For each surface and its function, the names of the operators.
_NAMES: dict[tuple[str, CoordinateFunction], tuple[str, ...]] = {
    # Reductions whose kernels carry more than one number for each result.
    ("extreme", _reduction): ("max", "min", "argmax", "argmin", "aminmax"),
    ("variance", _reduction): ("var", "std", "var_mean", "std_mean"),
    ("softmax", _softmax): ("_softmax", "_log_softmax", "_safe_softmax"),
    ("softmax backward", _softmax): ("_softmax_backward_data", "_log_softmax_backward_data"),
    ("norm", _norm): ("native_layer_norm", "_fused_rms_norm"),
    ("norm backward", _norm): ("native_layer_norm_backward",),
    ("batch norm", _channels): ("native_batch_norm",),
    ("batch norm backward", _channels): ("native_batch_norm_backward",),
    ("group norm", _groups): ("native_group_norm",),
    ("group norm backward", _groups): ("native_group_norm_backward",),
    ("topk", place.largest_few): ("topk",),
    ("order", place.ordered): ("median", "nanmedian", "kthvalue", "mode"),
    ("search", place.searched): ("searchsorted", "bucketize", "isin"),
    ("selection", place.selected): (
        *("nonzero", "masked_select", "_unique2", "unique_consecutive", "bincount", "histc"),
        *("unique_dim", "_unique", "equal"),
    ),
    ("movement", place.moved): (
        *("roll", "flip", "tril", "triu", "repeat", "constant_pad_nd", "reflection_pad2d"),
        *("replication_pad2d", "pixel_shuffle", "pixel_unshuffle", "im2col", "col2im"),
        *("reflection_pad1d", "replication_pad1d", "channel_shuffle", "_pad_circular"),
    ),
    ("embedding", place.indexed): ("embedding",),
    ("index_select", place.indexed): ("index_select",),
    ("gather", place.indexed): ("gather",),
    ("index", place.indexed): ("index", "take", "_unsafe_index"),
    ("scatter", place.indexed): ("scatter_add", "scatter", "scatter_reduce"),
    ("index write", place.indexed): (
        *("index_put", "_index_put_impl", "index_copy", "index_fill", "put", "index_add"),
        "_unsafe_index_put",
    ),
    ("embedding backward", place.indexed): ("embedding_dense_backward",),
    ("likelihood", _likelihood): ("nll_loss_forward",),
    ("likelihood backward", _likelihood): ("nll_loss_backward",),
    ("pair loss", _pairs): (
        *("mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy"),
        *("binary_cross_entropy_with_logits", "soft_margin_loss"),
    ),
    ("images", _images): (
        *("max_pool2d_with_indices", "avg_pool2d", "upsample_nearest2d", "upsample_bilinear2d"),
        *("_adaptive_avg_pool2d", "adaptive_max_pool2d", "upsample_bicubic2d"),
        *("upsample_nearest1d", "upsample_linear1d", "upsample_trilinear3d", "avg_pool3d"),
        *("max_pool3d_with_indices", "_upsample_bilinear2d_aa", "_upsample_nearest_exact1d"),
        *("grid_sampler_2d", "grid_sampler_3d", "fractional_max_pool2d"),
    ),
    ("images backward", _images): (
        *("max_pool2d_with_indices_backward", "avg_pool2d_backward"),
        *("_adaptive_avg_pool2d_backward", "adaptive_max_pool2d_backward"),
        *("upsample_nearest2d_backward", "upsample_bilinear2d_backward"),
        *("upsample_bicubic2d_backward",),
    ),
    ("convolution", _convolution): ("convolution",),
    ("convolution backward", _convolution_backward): ("convolution_backward",),
    ("attention", _attention): ("_scaled_dot_product_flash_attention_for_cpu",),
    ("attention backward", _attention): ("_scaled_dot_product_flash_attention_for_cpu_backward",),
    ("foreach", _foreach): ("_fused_adam", "_fused_adamw"),
    # Measured as operators of their kinds, though not themselves.
    ("elementwise", _elements): ("glu",),
    ("reduction", _reduction): ("dist", "trace"),
    ("strided", place.strided): (
        *("diagonal_copy", "narrow_copy", "split_with_sizes_copy", "unbind_copy"),
        *("unsafe_split", "expand_copy"),
    ),
    ("vector", _vector): ("mv", "addmv", "dot", "vdot", "addr"),
    ("multinomial", _along): ("multinomial",),
    ("permutation", _elements): ("randperm",),
    ("factorization", _factorization): ("linalg_solve_triangular",),
}
_BY_NAME = {name: found for found, names in _NAMES.items() for name in names}
_MATMULS = frozenset({"mm", "bmm", "addmm", "baddbmm"})
_MATMUL_SURFACES = {
    "float16": "half product",
    "bfloat16": "half product",
    "tf32": "tf32 product",
    "float32": "single product",
    "float64": "double product",
}
_POINTWISE = ("elementwise", "fill", "copy", "cast", "error function", "index")
# All other operators are found by the family of their last kernel: operators without a name here
# run one of the common kernels.
_BY_FAMILY: dict[str, tuple[str, CoordinateFunction]] = {
    **dict.fromkeys(_POINTWISE, ("elementwise", _elements)),
    **{name: (name, _elements) for name in ("uniform", "normal", "dropout")},
    "broadcast": ("broadcast", _broadcast),
    "strided": ("strided", place.strided),
    "concatenation": ("concatenation", _concatenation),
    "scan": ("scan", _scan),
    "scan of one row": ("scan", _scan),
    "row sort": ("sort", place.ordered),
    "reduction": ("reduction", _reduction),
    "first axis": ("reduction", _reduction),
    "radix pass": ("sort", place.ordered),
    "fourier": ("fourier", _fourier),
    "factorization": ("factorization", _factorization),
}
_COPIES = frozenset({"clone", "copy", "_to_copy", "fill", "zero"})
_SOFTMAXES = frozenset({"_softmax", "_log_softmax", "_safe_softmax"})
_DEPTHWISE = frozenset({"depthwise", "depthwise in halves"})


def surface_point_of(call: OperatorCall, family: str) -> SurfacePoint | None:
    """Return the place of a call on its surface, or None if nothing like it was measured.

    Parameters
    ----------
    call
        The call.
    family
        The family of its last kernel. It selects the surface if the operator's name does not.
    """
    found = _function_for(call, family)
    if found is None or not call.writes:
        return None
    surface, coordinates = found
    if family in _DEPTHWISE:
        surface = surface.replace("convolution", "depthwise")
    # cuDNN has other kernels for the two, and smaller surfaces answer faster.
    elif surface.startswith("convolution") and call.arithmetic.endswith("16"):
        surface = f"half {surface}"
    return SurfacePoint(surface, coordinates(call))


def _function_for(call: OperatorCall, family: str) -> tuple[str, CoordinateFunction] | None:
    found = _special(call) or _BY_NAME.get(call.name)
    if found is not None:
        return found
    if call.name.startswith("_foreach"):
        return "foreach", _foreach
    if call.name in _MATMULS:
        return _MATMUL_SURFACES[call.arithmetic], _matmul
    return _BY_FAMILY.get(family)


def _special(call: OperatorCall) -> tuple[str, CoordinateFunction] | None:
    """Return the surface of a call whose arguments, and not its name, decide on its kernels."""
    if call.name in _COPIES and place.is_rearranged(call):
        return "strided", place.strided
    if call.name in _SOFTMAXES and place.side_of(call, place.dims_of(call)) != "last":
        return "softmax across", place.across
    if call.name == "index" and place.way_of(call) == "mask":
        return "selection", place.selected
    # Additions that may meet at one place are sorted first.
    if call.name in {"index_put", "_index_put_impl"} and place.way_of(call) == "add":
        return "index add", place.indexed
    return None
