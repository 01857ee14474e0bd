"""Compute the coordinates of a call on its surface of measured efficiencies.

A coordinate is a number or a word. Calls whose kernels work alike have similar numbers (most are
logarithms of sizes) and the same words. Each kind of operator has its own coordinates, which are
the inputs of its kernels' choices as far as they are known.

One file, because the functions share their helpers and one table, which names the surface and the
function of each operator. The fit (``python -m benchmarks.fidelity fit``) uses the same functions,
so a change here needs a new fit.
"""

from collections.abc import Callable
from math import ceil, log2, prod

from gpulab.virtual.kernels._operator_call import OperatorCall
from gpulab.virtual.kernels._reduction_launch import reduction_launch
from gpulab.virtual.simulator.costs import Coordinate, SurfacePoint
from gpulab.virtual.tensors import TensorLayout

Coordinates = tuple[Coordinate, ...]
CoordinateFunction = Callable[[OperatorCall], Coordinates]

# The widest load of a thread is 16 bytes, which is 2**4.
_VECTOR = 4
# PyTorch's softmax keeps rows of up to this many elements in the registers of one warp.
_WARP_ROW = 1_024
# PyTorch sorts rows of up to 32 elements by a warp and of up to 4,096 by a block. For longer rows
# the algorithm depends on whether there are at least 128.
_WARP_SORT, _BLOCK_SORT, _MANY_SEGMENTS = 32, 4_096, 128
# Rows of up to 2**13 elements are padded to a power of two before they are sorted.
_LONGEST_PADDED = 13
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


def log2_size(n: float) -> float:
    """Return the logarithm of a size to the base 2; an empty size counts as 1."""
    return log2(max(n, 1))


def log2_alignment(n_bytes: int, most: int = _VECTOR) -> float:
    """Return the logarithm of the largest power of two that divides ``n_bytes``.

    It says how wide the loads of a kernel can be. ``most`` is the highest result.
    """
    return float(min((n_bytes & -n_bytes).bit_length() - 1, most)) if n_bytes else float(most)


def _dtype_name(item: TensorLayout) -> str:
    """Return the name of a tensor's type."""
    return str(item.dtype).removeprefix("torch.")


def _largest(items: list[TensorLayout]) -> TensorLayout:
    return max(items, key=lambda item: item.n_elements)


def _largest_read(call: OperatorCall) -> TensorLayout:
    """Return the largest tensor that a call reads."""
    return _largest(call.reads or call.writes)


def _largest_written(call: OperatorCall) -> TensorLayout:
    """Return the largest tensor that a call writes."""
    return _largest(call.writes)


def _elements(call: OperatorCall) -> Coordinates:
    """Return the elements, the bytes read and written for each, and the operator."""
    out = _largest_written(call)
    n = max(1, out.n_elements)
    read = sum(item.size_bytes for item in call.reads if item.n_elements > 1) / n
    written = sum(item.size_bytes for item in call.writes) / n
    return (
        log2_size(n),
        read,
        written,
        call.name,
        _dtype_name(out),
        "in place" if call.is_in_place else "",
    )


def _broadcast(call: OperatorCall) -> Coordinates:
    out = _largest_written(call)
    row = out.sizes[-1] if out.sizes else 1
    width = out.dtype.itemsize
    return (
        log2_size(out.n_elements),
        log2_size(row),
        log2_alignment(row * width),
        float(width),
        call.name,
    )


def _strided(call: OperatorCall) -> Coordinates:
    """Return the elements, and the lengths of contiguous runs in source and result."""
    out, source = _largest_written(call), _largest_read(call)
    inner = [n for n, step in zip(source.sizes, source.strides, strict=True) if step == 1]
    length = inner[0] if inner else 1
    row = out.sizes[-1] if out.sizes else 1
    width = out.dtype.itemsize
    sides = (log2_alignment(length * width), log2_alignment(row * width))
    return (log2_size(out.n_elements), log2_size(length) - log2_size(row), *sides, float(width))


def _concatenation(call: OperatorCall) -> Coordinates:
    out, parts = _largest_written(call), max(1, len(call.reads))
    row = max(item.sizes[-1] if item.sizes else 1 for item in call.reads) if call.reads else 1
    width = out.dtype.itemsize
    sides = (log2_size(parts), log2_alignment(row * width, 5), float(width))
    return (log2_size(out.n_elements), log2_size(row), *sides)


def _rows(call: OperatorCall, length: int) -> Coordinates:
    """Return the rows, their length, the ratio of the two, and the alignment of a row.

    The ratio repeats what the first two say, so that the fit can give it a scale of its own.
    """
    source = _largest_read(call)
    rows = source.n_elements / max(1, length)
    width = source.dtype.itemsize
    steps = (log2_size(rows) - log2_size(length), log2_alignment(length * width, 5))
    return (log2_size(rows), log2_size(length), *steps, float(width))


def _last(call: OperatorCall) -> int:
    sizes = _largest_read(call).sizes
    return sizes[-1] if sizes else 1


def _along(call: OperatorCall) -> Coordinates:
    return (*_rows(call, _last(call)), call.name, _dtype_name(_largest_read(call)))


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
    return (*_rows(call, prod(shape)), call.name, _dtype_name(_largest_read(call)))


def _scan(call: OperatorCall) -> Coordinates:
    length = _last(call)
    rows = _largest_read(call).n_elements // max(1, length)
    return (
        *_rows(call, length),
        "one" if rows == 1 else "many",
        # PyTorch chooses the shape of a block by this difference (ScanUtils.cuh).
        float(ceil(log2_size(rows)) - ceil(log2_size(length))),
    )


def _sort(call: OperatorCall) -> Coordinates:
    length = _last(call)
    rows = _largest_read(call).n_elements // max(1, length)
    padded = float(min(ceil(log2_size(length)), _LONGEST_PADDED))
    return (*_rows(call, length), _sorter(rows, length), padded)


def _sorter(rows: int, length: int) -> str:
    """Return which of PyTorch's sorts is used: a warp or a block for each row, or passes."""
    if length <= _WARP_SORT:
        return "warp"
    if length <= _BLOCK_SORT:
        return "block"
    if rows == 1:
        return "all"
    return "segments" if rows < _MANY_SEGMENTS else "each"


def _topk(call: OperatorCall) -> Coordinates:
    return (*_rows(call, _last(call)), float(call.args[1]))


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


def _factorization(call: OperatorCall) -> Coordinates:
    sizes = _largest_written(call).sizes
    return (log2_size(sizes[-1] if sizes else 1), log2_size(prod(sizes[:-2])), call.name)


def _reduction(call: OperatorCall) -> Coordinates:
    """Return how the reduction is launched, because its speed depends on that."""
    source = _largest_read(call)
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
        _dtype_name(source),
        log2_size(source.n_elements),
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
    return (*sides, log2_size(x.n_elements), _dtype_name(x))


def _groups(call: OperatorCall) -> Coordinates:
    x = call.reads[0]
    n_groups = max(1, call.args[3]) * call.args[6]
    area = prod(x.sizes[2:])
    width = x.dtype.itemsize
    sides = (
        log2_size(n_groups),
        log2_size(x.n_elements / n_groups),
        log2_size(area),
        log2_alignment(area * width),
    )
    return (*sides, log2_size(x.n_elements), _dtype_name(x))


def _images(call: OperatorCall) -> Coordinates:
    x, out = _largest_read(call), _largest_written(call)
    side = x.sizes[-1] if x.sizes else 1
    width = x.dtype.itemsize
    return (
        log2_size(out.n_elements),
        log2_size(side),
        log2_size(prod(x.sizes[:2])),
        log2_alignment(side * width),
        call.name,
        float(width),
    )


def _table(call: OperatorCall) -> Coordinates:
    out = _largest_written(call)
    row = out.sizes[-1] if out.sizes else 1
    rows = out.n_elements / max(1, row)
    width = out.dtype.itemsize
    sides = (
        log2_alignment(row * width),
        log2_alignment(row * width * int(max(rows, 1))),
        float(width),
    )
    return (log2_size(rows), log2_size(row), log2_size(out.n_elements), *sides)


def _scattered(call: OperatorCall) -> Coordinates:
    source = _largest_read(call)
    row = source.sizes[-1] if source.sizes else 1
    return (
        log2_size(source.n_elements / max(1, row)),
        log2_size(row),
        _dtype_name(_largest_written(call)),
        call.name,
    )


def _gradient_of_table(call: OperatorCall) -> Coordinates:
    given, index = call.reads[0], call.reads[-1]
    row = given.sizes[-1] if given.sizes else 1
    return (
        log2_size(index.n_elements),
        log2_size(row),
        log2_alignment(row * given.dtype.itemsize),
        _dtype_name(given),
    )


def _likelihood(call: OperatorCall) -> Coordinates:
    scores = _largest_read(call) if call.name == "nll_loss_forward" else _largest_written(call)
    classes = scores.sizes[-1] if scores.sizes else 1
    return (log2_size(scores.n_elements / max(1, classes)), log2_size(classes))


def _convolution(call: OperatorCall) -> Coordinates:
    x, weight = call.reads[0], call.reads[1]
    return _convolved(call, x, weight, _largest_written(call), call.args[3])


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
    fit = "aligned" if min(sides) == _VECTOR else "not"
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
    words = (is_transposed, call.name)
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
    inner = ("in place" if call.is_in_place else "", call.name, float(len(lists)))
    return (
        log2_size(len(first)),
        log2_size(mean),
        log2_size(ceil(mean / _CHUNK) * len(first)),
        *inner,
    )


# For each surface and its function, the names of the operators.
_NAMES: dict[tuple[str, CoordinateFunction], tuple[str, ...]] = {
    ("softmax", _softmax): ("_softmax", "_log_softmax"),
    ("softmax backward", _softmax): ("_softmax_backward_data", "_log_softmax_backward_data"),
    ("norm", _norm): ("native_layer_norm", "_fused_rms_norm"),
    ("norm backward", _norm): ("native_layer_norm_backward",),
    ("topk", _topk): ("topk",),
    ("batch norm", _channels): ("native_batch_norm",),
    ("batch norm backward", _channels): ("native_batch_norm_backward",),
    ("group norm", _groups): ("native_group_norm",),
    ("embedding", _table): ("embedding",),
    ("index_select", _table): ("index_select",),
    ("gather", _table): ("gather",),
    ("scatter", _scattered): ("scatter_add",),
    ("embedding backward", _gradient_of_table): ("embedding_dense_backward",),
    ("likelihood", _likelihood): ("nll_loss_forward",),
    ("likelihood backward", _likelihood): ("nll_loss_backward",),
    ("images", _images): (
        *("max_pool2d_with_indices", "avg_pool2d", "upsample_nearest2d", "upsample_bilinear2d"),
    ),
    ("convolution", _convolution): ("convolution",),
    ("convolution backward", _convolution_backward): ("convolution_backward",),
    ("attention", _attention): ("_scaled_dot_product_flash_attention_for_cpu",),
    ("attention backward", _attention): ("_scaled_dot_product_flash_attention_for_cpu_backward",),
    ("foreach", _foreach): ("_fused_adam", "_fused_adamw"),
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
    "strided": ("strided", _strided),
    "concatenation": ("concatenation", _concatenation),
    "reduction": ("reduction", _reduction),
    "first axis": ("reduction", _reduction),
    "scan": ("scan", _scan),
    "scan of one row": ("scan", _scan),
    "row sort": ("sort", _sort),
    "radix pass": ("sort", _sort),
    "fourier": ("fourier", _fourier),
    "factorization": ("factorization", _factorization),
}
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
    return SurfacePoint(surface, coordinates(call))


def _function_for(call: OperatorCall, family: str) -> tuple[str, CoordinateFunction] | None:
    if call.name in _BY_NAME:
        return _BY_NAME[call.name]
    if call.name.startswith("_foreach"):
        return "foreach", _foreach
    if call.name in _MATMULS:
        return _MATMUL_SURFACES[call.arithmetic], _matmul
    return _BY_FAMILY.get(family)
