"""Coordinates of calls that work along rows: softmax, norms, scans, sorts, sums and transforms."""

from math import ceil, prod

from gpulab.virtual.pricing.calls import Call
from gpulab.virtual.pricing.coordinates import (
    Coordinates,
    Finder,
    alignment,
    log,
    result_of,
    source_of,
    word,
)
from gpulab.virtual.pricing.reductions import launch_of

_WARP_ROW = 1_024  # elements of a row that a warp keeps in registers
_WARP_SORT, _BLOCK_SORT, _MANY_SEGMENTS = 32, 4_096, 128
_LONGEST_PADDED = 13  # from 2**13 on rows are not filled up to a power of two
_LARGEST_PRIME = 127  # factor of a length that is transformed directly, as recorded


def _rows(call: Call, length: int) -> Coordinates:
    """Rows and their length, twice over as they trade off, and how they are aligned."""
    source = source_of(call)
    rows = source.n_elements / max(1, length)
    width = source.dtype.itemsize
    steps = (log(rows) - log(length), alignment(length * width, 5))
    return (log(rows), log(length), *steps, float(width))


def _last(call: Call) -> int:
    sizes = source_of(call).sizes
    return sizes[-1] if sizes else 1


def _along(call: Call) -> Coordinates:
    return (*_rows(call, _last(call)), call.name, word(source_of(call)))


def _softmax(call: Call) -> Coordinates:
    length = _last(call)
    return (
        *_along(call),
        log(ceil(length / _WARP_ROW)) if length > _WARP_ROW else _padding(length),
    )


def _padding(n: int) -> float:
    """Return how much of the next power of two is used, as a small negative logarithm."""
    return log(n) - ceil(log(n))


def _norm(call: Call) -> Coordinates:
    shape = call.args[1] if call.name in {"native_layer_norm", "_fused_rms_norm"} else call.args[2]
    return (*_rows(call, prod(shape)), call.name, word(source_of(call)))


def _scan(call: Call) -> Coordinates:
    length = _last(call)
    rows = source_of(call).n_elements // max(1, length)
    return (
        *_rows(call, length),
        "one" if rows == 1 else "many",
        float(ceil(log(rows)) - ceil(log(length))),
    )


def _sort(call: Call) -> Coordinates:
    length = _last(call)
    rows = source_of(call).n_elements // max(1, length)
    padded = float(min(ceil(log(length)), _LONGEST_PADDED))
    return (*_rows(call, length), _sorter(rows, length), padded)


def _sorter(rows: int, length: int) -> str:
    """Return who sorts: PyTorch has a warp or a block for a short row, and passes for others."""
    if length <= _WARP_SORT:
        return "warp"
    if length <= _BLOCK_SORT:
        return "block"
    if rows == 1:
        return "all"
    return "segments" if rows < _MANY_SEGMENTS else "each"


def _topk(call: Call) -> Coordinates:
    return (*_rows(call, _last(call)), float(call.args[1]))


def _fourier(call: Call) -> Coordinates:
    """Lengths with a large prime factor take other algorithms."""
    length = _last(call)
    largest, twos, rest = _factors(length)
    whole = "whole" if call.name != "_fft_r2c" or not call.args[3] else "half"
    return (
        *_rows(call, length)[:3],
        log(largest),
        float(twos),
        log(rest),
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


def _factorization(call: Call) -> Coordinates:
    sizes = result_of(call).sizes
    return (log(sizes[-1] if sizes else 1), log(prod(sizes[:-2])), call.name)


def _reduction(call: Call) -> Coordinates:
    """How the reduction is launched, which is what its speed hangs on."""
    source = source_of(call)
    launch = launch_of(call, source)
    return (
        log(launch.n_results),
        log(launch.length),
        log(launch.n_blocks),
        log(launch.n_per_thread),
        log(launch.n_sharing),
        log(launch.width),
        "along" if launch.is_along else "across",
        call.name,
        word(source),
        log(source.n_elements),
    )


ROW_FAMILIES: dict[str, tuple[str, Finder]] = {
    "reduction": ("reduction", _reduction),
    "first axis": ("reduction", _reduction),
    "scan": ("scan", _scan),
    "scan of one row": ("scan", _scan),
    "row sort": ("sort", _sort),
    "radix pass": ("sort", _sort),
    "fourier": ("fourier", _fourier),
    "factorization": ("factorization", _factorization),
}
_NAMES: dict[tuple[str, Finder], tuple[str, ...]] = {
    ("softmax", _softmax): ("_softmax", "_log_softmax"),
    ("softmax backward", _softmax): ("_softmax_backward_data", "_log_softmax_backward_data"),
    ("norm", _norm): ("native_layer_norm", "_fused_rms_norm"),
    ("norm backward", _norm): ("native_layer_norm_backward",),
    ("topk", _topk): ("topk",),
}
ROWS = {name: found for found, names in _NAMES.items() for name in names}
