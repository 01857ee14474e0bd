"""Lower matmuls, convolutions and attention to the kernels that CUDA runs."""

from dataclasses import replace
from math import ceil, prod

from gpulab.virtual.operators import _layer_coordinates as layers
from gpulab.virtual.operators._argument_checks import (
    INTEGERS,
    check_convolution,
    factors,
    refuse,
)
from gpulab.virtual.operators._elementwise import elementwise
from gpulab.virtual.operators._matmul_coordinates import surface_of_matmul
from gpulab.virtual.operators._model import Autocast, Models, OperatorModel
from gpulab.virtual.operators._operator_call import ADD_BIAS, RESET, OperatorCall
from gpulab.virtual.simulator.costs import KernelWork, MatmulShape
from gpulab.virtual.tensors import TensorLayout

# Tensor-core kernels load 16 bytes at a time, so rows must begin at multiples of that.
_ALIGNED_BYTES = 16
# From this many elements on the library gives out tiles by a counter; a memset sets it to 0 first.
_LARGE_RESULT = 1 << 23
# The driver's records show further small kernels for a linear layer with at most this many rows.
_FEW_ROWS = 64
_MANY_FILTERS = 128
_LARGE_PATCH = 256
_LONG_ROW = 16_384
_QUERIES_PER_TILE = 128


def _matmul(call: OperatorCall, family: str, matmul: MatmulShape) -> KernelWork:
    n_out = matmul.batch * matmul.m * matmul.n
    is_quick = call.is_half or call.arithmetic == "tf32"
    if min(matmul.m, matmul.n) == 1 and not is_quick:
        # Matrix times vector uses every element of the matrix once, so tiles would save nothing.
        return call.work(family, flops=call.flops or matmul.flops, n_elements=n_out * matmul.k)
    before: tuple[KernelWork, ...] = ()
    if is_quick and n_out >= _LARGE_RESULT:
        before = (call.step("memset", name=RESET, host_ns=400),)
    elif family == "linear" and not is_quick and matmul.m <= _FEW_ROWS:
        before = (call.step("small step", host_ns=1_200, name="bias"),) * 2
    return call.work(
        family, flops=call.flops or matmul.flops, n_elements=n_out, matmul=matmul, before=before
    )


def _mm(call: OperatorCall) -> KernelWork:
    return _matmul(call, "gemm", _matmul_shape(call, "gemm"))


def _addmm(call: OperatorCall) -> KernelWork:
    return _matmul(call, "linear", _matmul_shape(call, "linear"))


def _matmul_shape(call: OperatorCall, kind: str) -> MatmulShape:
    # From the end, because addmm and baddbmm have the bias before the two factors.
    a, b = call.reads[-2:]
    n = b.sizes[0] if call.name == "linear" else b.sizes[-1]
    # Rows of results that do not begin at multiples of 16 bytes matter, too. For short ones the
    # correction by sizes says how much; long ones, such as scores of words, were not measured.
    has_odd_rows = n > _LONG_ROW and n * a.dtype.itemsize % _ALIGNED_BYTES != 0
    is_aligned = _is_aligned(a) and _is_aligned(b) and not has_odd_rows
    # Its input may have any number of dimensions, and its weight is (n, k).
    if call.name == "linear":
        return MatmulShape(1, prod(a.sizes[:-1]), n, a.sizes[-1], kind, is_aligned)
    m, k = a.sizes[-2], a.sizes[-1]
    return MatmulShape(prod(a.sizes[:-2]), m, n, k, kind, is_aligned)


def _mv(call: OperatorCall) -> KernelWork:
    a = max(call.reads, key=lambda item: item.n_elements)
    k = a.sizes[-1] if a.sizes else 1
    return _matmul(call, "gemm", MatmulShape(1, a.n_elements // max(1, k), 1, k))


def _is_aligned(item: TensorLayout) -> bool:
    width = item.dtype.itemsize
    return all(step == 1 or step * width % _ALIGNED_BYTES == 0 for step in item.strides)


def _convolution(call: OperatorCall) -> KernelWork:
    x, weight, out = call.reads[0], call.reads[1], call.writes[0]
    groups = call.args[8]
    n_taps = prod(weight.sizes[2:])
    # One input channel for each filter leaves nothing to multiply as matrices.
    is_own = layers.is_by_pytorch(x, weight, groups, call.args[3])
    if layers.is_depthwise(weight, groups):
        family = _depthwise(call, is_own=is_own)
        work = call.work(family, n_elements=out.n_elements * n_taps, flops=call.flops)
    else:
        work = _implicit_gemm(call, x, weight, out, groups)
    if len(call.reads) == 2 or is_own:  # noqa: PLR2004 # images and weights
        return work
    # Kernels for halves load them one by one, which makes the floor higher.
    slow = (call.step("small step", name=ADD_BIAS),) * call.is_half
    bias = call.step("broadcast", n_elements=out.n_elements, name=ADD_BIAS)
    return replace(work, before=(*work.before, *slow, bias))


def _depthwise(call: OperatorCall, *, is_own: bool) -> str:
    """Return the family of cuDNN's kernels, or of PyTorch's own, which are as fast in any type."""
    return "depthwise in halves" if call.is_half and not is_own else "depthwise"


def _implicit_gemm(
    call: OperatorCall, x: TensorLayout, weight: TensorLayout, out: TensorLayout, groups: int
) -> KernelWork:
    """Return the work of a convolution as a matmul: pixels by filters, summed over the taps."""
    n_taps = prod(weight.sizes[2:])
    # cuDNN pads the channels to 16 bytes, and multiplies the zeros like everything else. For large
    # patches of halves it takes 32 channels at a time, however few there are.
    is_large = n_taps >= _LARGE_PATCH and out.sizes[1] > _LARGE_PATCH
    is_patch = is_large and x.dtype.itemsize == 2  # noqa: PLR2004 # bytes of halves
    lane = 32 if is_patch else _ALIGNED_BYTES // x.dtype.itemsize
    n_in = ceil(weight.sizes[1] / lane) * lane
    m, n, k = out.n_elements // out.sizes[1], out.sizes[1] // groups, n_in * n_taps
    is_half = call.is_half
    if groups > 1 and is_half:
        if layers.runs_by_group(x, weight, groups, "convolution"):
            matmul = MatmulShape(1, m, n, k, "conv")
            before = _by_group(call, matmul, groups)
            return call.work("conv", flops=call.flops, matmul=matmul, before=before)
        if weight.sizes[1] <= 2:  # noqa: PLR2004 # nothing to multiply as matrices
            n_products = out.n_elements * n_taps * weight.sizes[1]
            return call.work("depthwise", n_elements=n_products, flops=call.flops)
    matmul = MatmulShape(groups, m, n, k, "conv")
    # A filter of one tap is a plain matmul in either format, so nothing is copied.
    before = _relayouts(call, x, weight, out) if n_taps > 1 else ()
    if groups > 1 and not is_half:
        before += (call.step("small step", name="groups"),) * 2
    if layers.is_converted(weight, groups):
        converted = (weight,) if x.strides[1] != 1 else (weight, x, out)
        before += tuple(_converted(call, item) for item in converted)
    return call.work("conv", flops=call.flops, matmul=matmul, before=before)


def _by_group(call: OperatorCall, matmul: MatmulShape, n_groups: int) -> tuple[KernelWork, ...]:
    """Return one convolution after another, with copies to and from each, but the last one."""
    images, out = (call.reads[0], call.writes[0]) if call.name == "convolution" else call.reads[:2]
    # A group's channels are short pieces of memory, which takes twice the bytes.
    copies = tuple(_relayout(call, item, 2 / n_groups) for item in (images, out))
    others = (*copies, call.step("conv", matmul=matmul, name="group")) * (n_groups - 1)
    return (*others, *copies)


def _converted(call: OperatorCall, item: TensorLayout) -> KernelWork:
    return call.step("conversion", n_elements=item.n_elements, name="convert")


def _relayouts(
    call: OperatorCall, x: TensorLayout, weight: TensorLayout, out: TensorLayout
) -> tuple[KernelWork, ...]:
    """Return the copies into channels-last format and back, which cuDNN's kernels need.

    Images that are in this format already need none.
    """
    if x.strides[1] == 1:
        return (call.step("memset", name=RESET, host_ns=400),)
    steps = [_relayout(call, x), _relayout(call, weight)]
    if call.is_half or out.sizes[1] >= _MANY_FILTERS:
        steps.append(_relayout(call, out))
    return tuple(steps)


def _relayout(call: OperatorCall, item: TensorLayout, part: float = 1) -> KernelWork:
    return call.step(
        "relayout",
        n_elements=item.n_elements,
        scratch_bytes=round(2 * item.size_bytes * part),
        name="relayout",
    )


def _convolution_backward(call: OperatorCall) -> KernelWork:
    """Return one matmul for the gradient of the images and one for that of the weights.

    Images that are not in channels-last format are copied, as in the forward pass.
    """
    out, x, weight = call.reads[:3]
    groups = call.args[9]
    # PyTorch's output_mask: whether the gradients of images, weights and bias are needed.
    wanted = call.args[10]
    n_taps = prod(weight.sizes[2:])
    # cuDNN leaves the bias to PyTorch, which adds up the gradient.
    of_bias = (call.step("relayout", scratch_bytes=out.size_bytes, name="sum"),) * wanted[2]
    if layers.is_depthwise(weight, groups):
        n = out.n_elements * n_taps
        is_own = layers.is_by_pytorch(x, weight, groups, call.args[4])
        family = _depthwise(call, is_own=is_own)
        if not wanted[0]:
            return call.work(family, n_elements=2 * n, flops=call.flops, before=of_bias)
        weights = (call.step(family, n_elements=2 * n, name="weights"),) * bool(wanted[1])
        return call.work(family, n_elements=n, flops=call.flops, before=(*of_bias, *weights))
    m, n_out, n_in = out.n_elements // out.sizes[1], out.sizes[1] // groups, weight.sizes[1]
    shapes = {
        "weights": (n_in * n_taps, n_out, m, "weights"),
        "images": (x.n_elements // x.sizes[1], n_in, n_out * n_taps, "conv"),
    }
    steps = [*of_bias]
    if x.strides[1] != 1 and n_taps > 1:
        copied = (weight, out, x, x, out) if wanted[1] else (weight, out, x)
        steps += [_relayout(call, item) for item in copied]
    if layers.is_converted(weight, groups):
        converted = (weight, weight) if x.strides[1] != 1 else (weight, x, out, x, out)
        steps += [_converted(call, item) for item in converted]
    is_split = groups > 1 and call.is_half
    parts = ["weights"] * bool(wanted[1]) + ["images"] * bool(wanted[0])
    for part in parts:
        by_group = is_split and layers.runs_by_group(x, weight, groups, part)
        matmul = MatmulShape(1 if by_group else groups, *shapes[part])
        if by_group:
            steps += _by_group(call, matmul, groups)
        elif groups > 1:  # those that an H100 recorded took twice the time of one matmul
            steps.append(call.step("conv", matmul=matmul, name="groups"))
        if part != parts[-1]:
            steps.append(call.step("conv", matmul=matmul, host_ns=12_000, name="weights"))
    return call.work("conv", flops=call.flops, matmul=matmul, before=tuple(steps))


def _attention(call: OperatorCall) -> KernelWork:
    query, keys = call.reads[0], call.reads[1]
    matmul = _attention_matmul(query, keys, is_causal=layers.is_causal(call))
    before = (call.step("memset", name=RESET, host_ns=400),) if call.is_half else ()
    return call.work(
        "attention",
        flops=matmul.flops,
        matmul=matmul,
        before=before,
        host_ns=None if call.is_half else 9_200,
        name="scaled_dot_product_attention",
    )


def _multi_head(call: OperatorCall) -> KernelWork:
    """Return the work of a whole attention layer: projections before and after."""
    x, width, n_heads = call.reads[0], call.args[3], max(1, call.args[4])
    n_rows, length = x.n_elements // max(1, width), x.sizes[-2]
    inner = MatmulShape(
        n_rows // max(1, length) * n_heads, length, width // n_heads, 2 * length, "attention"
    )
    before = (
        call.step("linear", matmul=MatmulShape(1, n_rows, 3 * width, width), name="linear"),
        call.step("attention", matmul=inner, name="scaled_dot_product_attention"),
    )
    last = MatmulShape(1, n_rows, width, width)
    return call.work("linear", matmul=last, name="linear", before=before)


def _attention_matmul(query: TensorLayout, keys: TensorLayout, *, is_causal: bool) -> MatmulShape:
    batch, length, depth = prod(query.sizes[:-2]), query.sizes[-2], query.sizes[-1]
    n_seen = keys.sizes[-2]
    if is_causal:
        # A tile of queries sees on average half of the keys, and always its own tile in full.
        n_seen = (n_seen + _QUERIES_PER_TILE) // 2
    # Two matmuls of equal size: queries with keys, and attention weights with values.
    return MatmulShape(batch, length, depth, 2 * n_seen, "attention")


def _attention_backward(call: OperatorCall) -> KernelWork:
    query, keys = call.reads[1], call.reads[2]
    forward = _attention_matmul(query, keys, is_causal=layers.is_causal(call))
    # The backward pass has five matmuls of this size, the forward pass two.
    matmul = replace(forward, k=forward.k * 5 // 2, kind="attention backward")
    steps = [call.step("relayout", scratch_bytes=2 * query.size_bytes, name="sums of rows")]
    if call.is_half:
        steps.append(call.step("memset", name=RESET, host_ns=400))
        steps.append(call.step("relayout", scratch_bytes=3 * query.size_bytes, name="convert"))
    return call.work(
        "attention backward",
        flops=matmul.flops,
        matmul=matmul,
        before=tuple(steps),
        name="scaled_dot_product_attention_backward",
    )


_NO_INTEGERS = refuse("addmm_cuda", INTEGERS)
_NO_INTEGERS_IN_BATCHES = refuse("baddbmm_cuda", INTEGERS)
_LOWER = OperatorModel(autocast=Autocast.LOWER)
# A CPU takes a hundred times as long for matmuls in half precision as in float32.
_MATMUL = replace(_LOWER, lowering=_mm, surface=surface_of_matmul, tf32="matmul", is_widened=True)
_VECTOR = OperatorModel(lowering=_mv, surface="vector")
_MATRIX_BY_VECTOR = replace(_VECTOR, tf32="matmul", autocast=Autocast.LOWER)
_CONVOLUTION = OperatorModel(tf32="conv", is_widened=True)
MODELS: Models = {
    "mm": replace(_MATMUL, checks=(_NO_INTEGERS, factors(0, 1, of_matrices="mm"))),
    "addmm": replace(
        _MATMUL, lowering=_addmm, checks=(_NO_INTEGERS, factors(1, 2, of_matrices="addmm"))
    ),
    "bmm": replace(_MATMUL, checks=(_NO_INTEGERS_IN_BATCHES, factors(0, 1))),
    "baddbmm": replace(_MATMUL, checks=(_NO_INTEGERS_IN_BATCHES, factors(1, 2))),
    "addbmm": replace(_LOWER, lowering=_addmm, tf32="matmul", checks=(_NO_INTEGERS,)),
    "linear": replace(_LOWER, lowering=_addmm, tf32="matmul"),
    "mv": replace(_MATRIX_BY_VECTOR, checks=(refuse("addmv_impl_cuda", INTEGERS), factors(0, 1))),
    "addmv": replace(_MATRIX_BY_VECTOR, checks=(refuse("addmv_impl_cuda", INTEGERS),)),
    "dot vdot": replace(_VECTOR, checks=(refuse("dot", INTEGERS),), autocast=Autocast.WIDEST),
    "addr": replace(_VECTOR, lowering=elementwise, autocast=Autocast.LOWER),
    "_trilinear": OperatorModel(checks=(_NO_INTEGERS_IN_BATCHES,)),
    "matmul einsum": _LOWER,
    "bilinear tensordot": OperatorModel(autocast=Autocast.WIDEST),
    # Convolutions
    "convolution": replace(
        _CONVOLUTION,
        lowering=_convolution,
        surface=layers.surface_of_convolution,
        keeps_channels_last=True,
        checks=(check_convolution,),
        autocast=Autocast.LOWER,
    ),
    "_convolution": replace(_LOWER, lowering=_convolution, tf32="conv"),
    "convolution_backward": replace(
        _CONVOLUTION,
        lowering=_convolution_backward,
        surface=layers.surface_of_convolution,
    ),
    "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d": _LOWER,
    "cudnn_convolution cudnn_convolution_transpose": _LOWER,
    # Attention
    "_scaled_dot_product_flash_attention_for_cpu": OperatorModel(
        lowering=_attention, surface="attention"
    ),
    "_scaled_dot_product_flash_attention_for_cpu_backward": OperatorModel(
        lowering=_attention_backward, surface="attention backward"
    ),
    "scaled_dot_product_attention _scaled_dot_product_flash_attention": _LOWER,
    "_native_multi_head_attention": OperatorModel(n_inside=7, lowering=_multi_head),
}
