"""Name the kernels of cuDNN's convolutions and of their gradients: copies, casts, sums of parts.

cuDNN chooses by rules that are not published. These follow 2,200 calls that an H200's driver
recorded with torch 2.11 (cuDNN 9.19), where simple bounds of sizes tell most of them apart.
"""

from dataclasses import dataclass
from math import prod

from gpulab.virtual.operators._layer_coordinates import (
    is_by_pytorch,
    is_converted,
    runs_by_group,
)
from gpulab.virtual.operators._operator_call import ADD_BIAS, Names, OperatorCall, Rules
from gpulab.virtual.tensors import TensorLayout

_HALVES = frozenset({"float16", "bfloat16"})
_ALIGNED_BYTES = 16  # rows of channels must begin there

_TO_LAST, _TO_FIRST = "to channels last", "to channels first"
_PAD, _CUT, _CONVERT, _PARTS = "pad", "cut", "convert", "sum of parts"
FORWARD, IMAGES, WEIGHTS = "convolution", "convolution_backward", "weights"

_FEW_CHANNELS = 8  # images with fewer have kernels of their own
_SQUARE = 9  # taps of a filter of 3 by 3, the most usual one


@dataclass(frozen=True, slots=True)
class _Sizes:
    """The sizes of a convolution by which cuDNN's choices differ.

    Attributes
    ----------
    n_in, n_out, n_taps
        Channels of the images, filters, and the taps of a filter.
    n_pixels
        Pixels of all results.
    n_read
        Elements of the images.
    stride
        The largest step of the filters.
    is_half, is_last
        Whether the type has two bytes, and whether channels are the last in memory.
    is_odd_in, is_odd_out
        Whether rows of channels do not begin at multiples of 16 bytes.
    """

    n_in: int
    n_out: int
    n_taps: int
    n_pixels: int
    n_read: int
    stride: int
    is_half: bool
    is_last: bool
    is_odd_in: bool
    is_odd_out: bool

    @property
    def n_summed(self) -> int:
        """How many products each result adds up."""
        return self.n_in * self.n_taps

    @property
    def n_products(self) -> int:
        """How many products there are."""
        return self.n_pixels * self.n_out * self.n_summed


def _sizes(
    call: OperatorCall, x: TensorLayout, weight: TensorLayout, out: TensorLayout, stride: list[int]
) -> _Sizes:
    lane = _ALIGNED_BYTES // x.dtype.itemsize
    n_in, n_out = x.sizes[1], out.sizes[1]
    return _Sizes(
        n_in,
        n_out,
        prod(weight.sizes[2:]),
        out.n_elements // n_out,
        x.n_elements,
        max(stride),
        call.arithmetic in _HALVES,
        x.strides[1] == 1 and n_in > 1,
        n_in % lane != 0,
        n_out % lane != 0,
    )


def _convolution(call: OperatorCall) -> Names:
    x, weight, out = call.reads[0], call.reads[1], call.writes[0]
    stride, n_groups = call.args[3], call.args[8]
    has_bias = len(call.reads) > 2 and not is_by_pytorch(x, weight, n_groups, stride)  # noqa: PLR2004 # images, weights
    bias = (ADD_BIAS,) * has_bias
    if n_groups > 1:
        return (*_grouped(call, x, weight, n_groups), *bias)
    return (*_forward(_sizes(call, x, weight, out, stride)), *bias)


def _grouped(
    call: OperatorCall, x: TensorLayout, weight: TensorLayout, n_groups: int, part: str = FORWARD
) -> Names:
    """Return the kernels of a grouped convolution, or for one of its gradients."""
    n_channels = weight.sizes[1]
    is_last, is_half = x.strides[1] == 1, call.arithmetic in _HALVES
    is_thin = n_channels <= 2  # noqa: PLR2004 # nothing to multiply as matrices
    turned = (_TO_LAST, _TO_LAST, part, _TO_FIRST)
    if is_half and n_channels > 1 and runs_by_group(x, weight, n_groups, part):
        group: Names = (_PAD, part, _CUT) if is_last else turned
        return ((part,) if is_thin else group) * n_groups
    if n_channels == 1 or (is_thin and is_half and not is_last):
        return (part,)
    if is_converted(weight, n_groups):
        if is_last:
            return (_CONVERT, _CONVERT, part, _CONVERT)
        return (_TO_LAST, _CONVERT, part, _TO_FIRST)
    if not is_last:
        return turned
    return (*(_CONVERT,) * 2 * (part == WEIGHTS and not is_half), part)


def _forward(sizes: _Sizes) -> Names:
    if sizes.n_taps == 1 and sizes.stride == 1:  # a plain matmul in either format
        return (FORWARD,)
    if sizes.is_last:
        return _forward_last(sizes)
    return _forward_first(sizes)


def _forward_last(sizes: _Sizes) -> Names:
    if sizes.n_taps == 1:
        if sizes.is_half and sizes.is_odd_out and sizes.n_in > 20:  # noqa: PLR2004  # a bound from records
            return (*(_PAD,) * sizes.is_odd_in, _PAD, FORWARD, _CUT)
        return (FORWARD,)
    if sizes.n_in < _FEW_CHANNELS:
        n_touched = sizes.n_pixels * sizes.n_summed
        is_large = n_touched > 2e6  # noqa: PLR2004  # a bound from records
        return (_CONVERT, _CONVERT, FORWARD) if is_large and not sizes.is_half else (FORWARD,)
    if sizes.is_odd_in or sizes.is_odd_out:
        n_pads = 2 if sizes.is_odd_in else 1
        return (*(_PAD,) * n_pads, FORWARD, *(_CUT,) * sizes.is_odd_out)
    is_long = sizes.n_taps > 37 or sizes.n_summed > 5_400  # noqa: PLR2004  # a bound from records
    return (_CONVERT, _CONVERT, FORWARD) if is_long and not sizes.is_half else (FORWARD,)


def _forward_first(sizes: _Sizes) -> Names:
    whole: Names = (_TO_LAST, _PAD if sizes.is_odd_out else _TO_LAST, FORWARD, _TO_FIRST)
    is_odd = sizes.is_odd_in or sizes.is_odd_out
    if sizes.n_taps == 1:
        is_direct = sizes.n_in <= 16  # noqa: PLR2004  # a bound from records
        whole = (_TO_LAST, *(_PAD,) * is_odd, FORWARD, _TO_FIRST)
    elif sizes.n_in < _FEW_CHANNELS:
        n_touched = sizes.n_pixels * sizes.n_summed
        is_patch = sizes.n_taps == sizes.stride**2
        # Large patches become many numbers in a vision transformer's first layer.
        is_large = sizes.n_taps >= 256 and sizes.n_out > 256  # noqa: PLR2004  # a bound from records
        is_small = n_touched <= 5.5e6 or is_patch  # noqa: PLR2004  # a bound from records
        is_direct = not sizes.is_half or (is_small and not is_large)
    elif sizes.is_half:
        is_direct = sizes.n_summed <= 188  # noqa: PLR2004  # a bound from records
    elif is_odd:
        is_direct = sizes.n_in <= 23  # noqa: PLR2004  # a bound from records
    else:
        is_square = sizes.n_taps <= _SQUARE
        is_direct = sizes.n_summed <= 252 and (is_square or sizes.n_out > 92)  # noqa: PLR2004  # a bound from records
    if is_direct:
        return (FORWARD,)
    if sizes.is_half or is_odd or sizes.n_taps != _SQUARE:
        return whole
    is_turned_back = sizes.n_products > 2.4e8 and (  # noqa: PLR2004  # a bound from records
        sizes.n_summed > 588 or sizes.n_out <= 104  # noqa: PLR2004  # a bound from records
    )
    return whole if is_turned_back else whole[:-1]


def _gradients(call: OperatorCall) -> Names | None:
    """Return the kernels for the gradients of bias, images and weights, as far as wanted."""
    out, x, weight = call.reads[:3]
    of_images, of_weights, of_bias = call.args[10]
    names = ("sum",) * bool(of_bias)
    n_groups = call.args[9]
    if n_groups > 1:
        for wanted, part in ((of_images, IMAGES), (of_weights, WEIGHTS)):
            if wanted:
                names += _grouped(call, x, weight, n_groups, part)
        is_split = x.strides[1] == 1 and out.n_elements // out.sizes[1] > 1_176  # noqa: PLR2004  # a bound from records
        return (*names, *(_PARTS,) * bool(is_split and of_weights and weight.sizes[1] == 1))
    sizes = _sizes(call, x, weight, out, call.args[4])
    if of_images:
        names += _of_images(sizes)
    if of_weights:
        names += _of_weights(sizes)
    return names or None


def _of_images(sizes: _Sizes) -> Names:
    if sizes.n_taps == 1 and sizes.stride == 1:
        return (IMAGES,)
    if sizes.is_last:
        if not (sizes.is_odd_in or sizes.is_odd_out):
            return (IMAGES,)
        n_pads = 2 if sizes.is_odd_out else 1
        return (*(_PAD,) * n_pads, IMAGES, *(_CUT,) * sizes.is_odd_in)
    if sizes.n_taps == 1:
        return (_TO_LAST, IMAGES, _TO_FIRST) if sizes.is_half else (IMAGES,)
    if not sizes.is_half and sizes.n_read <= 111_000:  # noqa: PLR2004  # a bound from records
        return ("scale", IMAGES)
    return (_PAD if sizes.is_odd_out else _TO_LAST, _TO_LAST, IMAGES, _TO_FIRST)


def _of_weights(sizes: _Sizes) -> Names:
    if sizes.is_last:
        return _of_weights_last(sizes)
    if sizes.n_taps == 1:
        if sizes.stride == 1:
            return (WEIGHTS, _PARTS)
        is_small = sizes.n_pixels * sizes.n_out <= 660_000  # noqa: PLR2004  # a bound from records
        return (WEIGHTS,) if is_small else (_TO_LAST, _TO_LAST, WEIGHTS)
    whole = (_TO_LAST, _TO_LAST, WEIGHTS, _PARTS, _TO_FIRST)
    if sizes.is_half:
        if sizes.n_pixels <= 6_144 and sizes.n_summed <= 252:  # noqa: PLR2004  # a bound from records
            return (WEIGHTS,)
        is_split = sizes.n_pixels > 6_144 and sizes.n_in <= 460  # noqa: PLR2004  # a bound from records
    else:
        if sizes.n_products <= 8.4e7:  # noqa: PLR2004  # a bound from records
            return (WEIGHTS,)
        is_split = sizes.n_pixels * sizes.n_out > 324_000  # noqa: PLR2004  # a bound from records
    return whole if is_split else (*whole[:3], _TO_FIRST)


def _of_weights_last(sizes: _Sizes) -> Names:
    if sizes.n_taps == 1:
        is_split = sizes.n_pixels > 4_640 or sizes.stride > 1  # noqa: PLR2004  # a bound from records
        return (WEIGHTS, _PARTS) if is_split else (WEIGHTS,)
    n_pads = sizes.is_odd_in + sizes.is_odd_out
    before = (_PAD,) * n_pads
    after = (_CUT,) * bool(n_pads)
    if sizes.is_half:
        is_split = sizes.n_pixels > 1_824 and sizes.n_out * sizes.n_summed <= 271_000  # noqa: PLR2004  # a bound from records
        return (*before, WEIGHTS, *(_PARTS,) * is_split, *after)
    if sizes.n_pixels * sizes.n_summed <= 458_000:  # noqa: PLR2004  # a bound from records
        return (*before, WEIGHTS, *after)
    is_long = sizes.n_taps > 37 or sizes.n_in <= 52  # noqa: PLR2004  # a bound from records
    converts = (_CONVERT,) * (2 if is_long and not n_pads else 0)
    return (*before, *converts, WEIGHTS, _PARTS, *after)


RULES: Rules = {"convolution": _convolution, "convolution_backward": _gradients}
