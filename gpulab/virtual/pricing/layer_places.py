"""Coordinates of layers: images, tables, losses, convolutions, attention and lists of tensors."""

from math import ceil, prod

from gpulab.virtual.pricing.calls import Call
from gpulab.virtual.pricing.coordinates import (
    VECTOR,
    Coordinates,
    Finder,
    alignment,
    log,
    result_of,
    source_of,
    word,
)
from gpulab.virtual.storage import Layout

_FEW_CHANNELS_BYTES = 16
_CHUNK = 65_536  # elements of one tensor that a block of a foreach kernel takes
_QUERIES_PER_TILE = 128
_TILE = 128  # of a product; a usual one, whichever the library takes
_N_SMS = 132  # of the GPU that was measured: what its last wave of tiles leaves idle


def _channels(call: Call) -> Coordinates:
    x = call.reads[0] if call.name != "native_batch_norm_backward" else call.reads[1]
    sizes = (*x.sizes, 1, 1)
    area = prod(x.sizes[2:])
    width = x.dtype.itemsize
    sides = (log(sizes[0]), log(sizes[1]), log(area), alignment(area * width))
    return (*sides, log(x.n_elements), word(x))


def _groups(call: Call) -> Coordinates:
    x = call.reads[0]
    n_groups = max(1, call.args[3]) * call.args[6]
    area = prod(x.sizes[2:])
    width = x.dtype.itemsize
    sides = (log(n_groups), log(x.n_elements / n_groups), log(area), alignment(area * width))
    return (*sides, log(x.n_elements), word(x))


def _images(call: Call) -> Coordinates:
    x, out = source_of(call), result_of(call)
    side = x.sizes[-1] if x.sizes else 1
    width = x.dtype.itemsize
    return (
        log(out.n_elements),
        log(side),
        log(prod(x.sizes[:2])),
        alignment(side * width),
        call.name,
        float(width),
    )


def _table(call: Call) -> Coordinates:
    out = result_of(call)
    row = out.sizes[-1] if out.sizes else 1
    rows = out.n_elements / max(1, row)
    width = out.dtype.itemsize
    sides = (alignment(row * width), alignment(row * width * int(max(rows, 1))), float(width))
    return (log(rows), log(row), log(out.n_elements), *sides)


def _scattered(call: Call) -> Coordinates:
    source = source_of(call)
    row = source.sizes[-1] if source.sizes else 1
    return (log(source.n_elements / max(1, row)), log(row), word(result_of(call)), call.name)


def _gradient_of_table(call: Call) -> Coordinates:
    given, index = call.reads[0], call.reads[-1]
    row = given.sizes[-1] if given.sizes else 1
    return (
        log(index.n_elements),
        log(row),
        alignment(row * given.dtype.itemsize),
        word(given),
    )


def _likelihood(call: Call) -> Coordinates:
    scores = source_of(call) if call.name == "nll_loss_forward" else result_of(call)
    classes = scores.sizes[-1] if scores.sizes else 1
    return (log(scores.n_elements / max(1, classes)), log(classes))


def _convolution(call: Call) -> Coordinates:
    x, weight = call.reads[0], call.reads[1]
    return _convolved(call, x, weight, result_of(call), call.args[3])


def _convolution_backward(call: Call) -> Coordinates:
    out, x, weight = call.reads[:3]
    wanted = "".join(str(int(bool(item))) for item in call.args[10][:2])
    return (*_convolved(call, x, weight, out, call.args[4]), wanted)


def _convolved(call: Call, x: Layout, weight: Layout, out: Layout, stride: object) -> Coordinates:
    """Sizes as of a product and as of images; what cuDNN can load in vectors; the layout."""
    width = x.dtype.itemsize
    n_in, n_out = x.sizes[1], out.sizes[1]
    taps = prod(weight.sizes[2:])
    step = stride[0] if isinstance(stride, (list, tuple)) and stride else 1
    area = prod(out.sizes[2:])
    sides = (alignment(n_in * width), alignment(n_out * width))
    layout = "channels" if x.strides[1] == 1 else "planes"
    fit = "aligned" if min(sides) == VECTOR else "not"
    return (
        log(x.sizes[0]),
        log(n_in),
        log(n_out),
        log(area),
        log(taps),
        float(step),
        *sides,
        min(sides),
        layout,
        call.arithmetic,
        "1" if taps == 1 else "more",
        "few" if n_in * width <= _FEW_CHANNELS_BYTES else "many",
        f"{fit} {layout} {call.arithmetic}",
        log(x.sizes[0] * area),
        log(n_in * taps),
    )


def product(call: Call) -> Coordinates:
    """Return the sizes of a product of matrices, how rows are aligned, and how it fills waves."""
    a, b = call.reads[-2:]
    m, k, n = a.sizes[-2], a.sizes[-1], b.sizes[-1]
    batch = prod(a.sizes[:-2])
    width = a.dtype.itemsize
    sides = (log(m), log(n), log(k), log(batch))
    aligned = (alignment(k * width, 4), alignment(n * width, 4), alignment(m * width, 4))
    is_transposed = "rows" if b.strides[-1] == 1 else "columns"
    n_tiles = batch * ceil(m / _TILE) * ceil(n / _TILE)
    waves = n_tiles / _N_SMS
    idle = log(ceil(waves) / waves) if 2 * n_tiles > _N_SMS else 1.0
    words = (is_transposed, call.name)
    return (*sides, *aligned, min(aligned[:2]), log(batch * m * n), *words, log(n_tiles), idle)


def _attention(call: Call) -> Coordinates:
    offset = 1 if call.name.endswith("backward") else 0
    query, keys = call.reads[offset], call.reads[offset + 1]
    batch, length, depth = prod(query.sizes[:-2]), query.sizes[-2], query.sizes[-1]
    is_causal = any(item is True for item in (*call.args, *call.kwargs.values()))
    return (
        log(batch),
        log(length),
        log(keys.sizes[-2]),
        log(depth),
        log(batch * ceil(length / _QUERIES_PER_TILE)),
        "causal" if is_causal else "full",
        call.arithmetic,
    )


def foreach(call: Call) -> Coordinates:
    """Return how many tensors there are, how large, how many chunks, and the operator."""
    lists = [item for item in call.args if isinstance(item, (list, tuple)) and item]
    lists = [items for items in lists if hasattr(items[0], "numel")]
    first = lists[0] if lists else []
    n = sum(item.numel() for item in first)
    mean = n / max(1, len(first))
    inner = ("in place" if call.is_in_place else "", call.name, float(len(lists)))
    return (log(len(first)), log(mean), log(ceil(mean / _CHUNK) * len(first)), *inner)


_NAMES: dict[tuple[str, Finder], tuple[str, ...]] = {
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
    ("foreach", foreach): ("_fused_adam", "_fused_adamw"),
}
LAYER_PLACES = {name: found for found, names in _NAMES.items() for name in names}
