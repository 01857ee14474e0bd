"""Operators that compute element by element, fill, copy, move or draw, and their kernels."""

from dataclasses import replace

from gpulab.virtual.operators._argument_checks import HALVES, NOT_FLOATING, refuse
from gpulab.virtual.operators._elementwise import elementwise_family
from gpulab.virtual.operators._host_reads import (
    HostRead,
    When,
    check_deviations,
    check_number,
    has_deviations,
    on_device,
)
from gpulab.virtual.operators._model import (
    USE_DENSE,
    Autocast,
    DryRun,
    Models,
    OperatorModel,
)
from gpulab.virtual.operators._operator_call import COPY, Lowering, OperatorCall
from gpulab.virtual.operators._size_coordinates import surface_of_copy
from gpulab.virtual.simulator.costs import KernelWork
from gpulab.virtual.tensors import TensorLayout


def _masked_fill(call: OperatorCall) -> KernelWork:
    """Return the work of a kernel that fills in place, and before it of a copy to fill."""
    if call.is_in_place:
        return call.work("elementwise")
    copy = call.step("copy", reads=True, writes=True, name="copy")
    return call.work("elementwise", before=(copy,))


def _copy(call: OperatorCall) -> KernelWork:
    """Return the work of a copy: the driver's if type and layout stay, otherwise a kernel's."""
    family = elementwise_family(call)
    is_plain = family == "elementwise" and len({item.dtype for item in call.reads}) <= 1
    same = is_plain and all(item.dtype is call.writes[0].dtype for item in call.reads)
    source, target = call.reads[-1], call.writes[0]
    by_driver = same and _is_one_piece(source) and _is_one_piece(target)
    by_driver = by_driver and _steps(source) == _steps(target)
    return call.work("copy" if same else family, name=COPY if by_driver else "")


def _steps(item: TensorLayout) -> list[int]:
    """Return the strides of the dimensions of more than one element."""
    return [step for size, step in zip(item.sizes, item.strides, strict=True) if size > 1]


def _is_one_piece(item: TensorLayout) -> bool:
    return item.span_bytes == item.n_elements * item.dtype.itemsize


def _factory(call: OperatorCall) -> KernelWork:
    return call.work("fill", host_ns=5_900)


def _lower_to(family: str) -> Lowering:
    return lambda call: call.work(family)


_FILL, _SPECIAL = _lower_to("fill"), _lower_to("error function")
_UNIFORM, _NORMAL = _lower_to("uniform"), _lower_to("normal")
_BOUNDS = tuple(HostRead(When.BEFORE, on_device(name)) for name in ("start", "end"))
_FLOAT32, _WIDEST = (OperatorModel(autocast=each) for each in (Autocast.FLOAT32, Autocast.WIDEST))
_WITHOUT_HALVES = OperatorModel(has_halves=False)  # as an H100 showed
_MOVING = OperatorModel(surface="movement")
MODELS: Models = {
    # Memory
    "empty empty_like empty_permuted empty_strided new_empty new_empty_strided": OperatorModel(
        allocates=True
    ),
    # They compare shapes and launch nothing.
    "is_same_size _has_same_storage_numel": OperatorModel(allocates=True),
    "zeros": OperatorModel(lowering=_factory, fills_with=0),
    "ones": OperatorModel(lowering=_factory, fills_with=1),
    "full": OperatorModel(lowering=_factory),
    "zeros_like new_zeros": OperatorModel(lowering=_factory, fills_with=0, takes_shape_alone=True),
    "ones_like": OperatorModel(lowering=_factory, fills_with=1, takes_shape_alone=True),
    "new_ones": OperatorModel(fills_with=1, takes_shape_alone=True),
    "full_like": OperatorModel(lowering=_factory, takes_shape_alone=True),
    "new_full": OperatorModel(takes_shape_alone=True),
    "zero": OperatorModel(
        lowering=_FILL,
        surface=surface_of_copy,
        fills_with=0,
        overwrites=True,
        may_write_twice=True,
    ),
    "fill": OperatorModel(
        lowering=_FILL,
        surface=surface_of_copy,
        overwrites=True,
        may_write_twice=True,
        host_numbers=("value",),
    ),
    "copy": OperatorModel(
        lowering=_copy,
        surface=surface_of_copy,
        overwrites=True,
        host_numbers=("src",),
    ),
    "clone _to_copy": OperatorModel(lowering=_copy, surface=surface_of_copy),
    "arange": OperatorModel(lowering=_lower_to("index")),
    "linspace logspace": OperatorModel(lowering=_lower_to("index"), host_reads=_BOUNDS),
    "cat stack": OperatorModel(lowering=_lower_to("concatenation")),
    "diagonal_copy expand_copy narrow_copy split_with_sizes_copy unbind_copy unsafe_split": (
        OperatorModel(surface="strided")
    ),
    "roll flip tril triu repeat constant_pad_nd pixel_shuffle pixel_unshuffle channel_shuffle": (
        _MOVING
    ),
    "im2col col2im reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d": _MOVING,
    "_pad_circular": _MOVING,
    # Random numbers
    "rand randint": OperatorModel(lowering=_UNIFORM),
    "rand_like": OperatorModel(lowering=_UNIFORM, takes_shape_alone=True),
    "randint_like": OperatorModel(takes_shape_alone=True),
    "random uniform": OperatorModel(lowering=_UNIFORM, overwrites=True),
    "bernoulli": OperatorModel(
        lowering=_UNIFORM, overwrites=True, may_find_wrong_values=True, host_numbers=("p",)
    ),
    "randperm": OperatorModel(lowering=_UNIFORM, surface="permutation"),
    "randn geometric log_normal": OperatorModel(lowering=_NORMAL),
    "randn_like": OperatorModel(lowering=_NORMAL, takes_shape_alone=True),
    "exponential": OperatorModel(lowering=_NORMAL, overwrites=True),
    "normal": OperatorModel(
        lowering=_NORMAL,
        overwrites=True,
        host_reads=(HostRead(When.BEFORE, has_deviations, check_deviations),),
    ),
    "poisson": OperatorModel(may_find_wrong_values=True),
    "native_dropout": OperatorModel(
        lowering=_lower_to("dropout"), checks=(refuse("fused_dropout", NOT_FLOATING),)
    ),
    "native_dropout_backward": OperatorModel(checks=(refuse("masked_scale", NOT_FLOATING),)),
    # Functions of numbers
    "gelu gelu_backward erf erfc mish digamma lgamma": OperatorModel(lowering=_SPECIAL),
    "silu_backward": OperatorModel(is_fused=True),
    # Measured as an operator of its kind, though not itself.
    "glu": OperatorModel(surface="elementwise"),
    "masked_fill": OperatorModel(
        lowering=_masked_fill,
        may_write_twice=True,
        host_numbers=("value",),
        host_reads=(HostRead(When.BEFORE, on_device("value"), check=check_number),),
    ),
    "masked_scatter": OperatorModel(may_find_wrong_values=True),
    "abs": OperatorModel(widens_bool=True),
    **{
        name: OperatorModel(
            has_halves=False, checks=(refuse(f"{name}_cuda", HALVES),), host_numbers=()
        )
        for name in ("angle", "igamma", "igammac")
    },
    "polar": replace(_WITHOUT_HALVES, host_numbers=()),
    "special_airy_ai special_erfcx special_log_ndtr special_ndtri special_zeta": (_WITHOUT_HALVES),
    "special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1": _WITHOUT_HALVES,
    "special_chebyshev_polynomial_t special_chebyshev_polynomial_u": _WITHOUT_HALVES,
    "special_chebyshev_polynomial_v": _WITHOUT_HALVES,
    "acos asin cosh erfinv exp expm1 log log10 log1p log2 pow reciprocal rsqrt sinh tan": _FLOAT32,
    "softplus renorm": _FLOAT32,
    "prelu": OperatorModel(autocast=Autocast.LOWER),
    "atan2 cross": _WIDEST,
    "addcmul": replace(_WIDEST, host_numbers=("tensor2",)),
    "addcdiv": replace(_WIDEST, host_numbers=()),
    "lerp": OperatorModel(host_numbers=("weight",)),
    "floor_divide": OperatorModel(host_numbers=("other",)),
    # CUDA's kernels of these check the devices, although PyTorch marks them as pointwise.
    "clamp clamp_max clamp_min complex gcd lcm ldexp logaddexp logaddexp2 nextafter": (
        OperatorModel(host_numbers=())
    ),
    # A GradScaler asks by it whether a gradient overflowed. The flag has values even if the
    # gradients have none: nothing overflowed, so the optimizer takes its step.
    "_amp_foreach_non_finite_check_and_unscale": OperatorModel(flag_at=1),
    # Assertions
    "_assert_async _functional_assert_async": OperatorModel(dry_run=DryRun.OF_TYPES),
    # Sparse tensors
    "_to_sparse": OperatorModel(refusal=("torch.Tensor.to_sparse", USE_DENSE)),
    **{
        f"_to_sparse_{kind}": OperatorModel(refusal=(f"torch.Tensor.to_sparse_{kind}", USE_DENSE))
        for kind in ("bsc", "bsr", "csc", "csr")
    },
}
