"""Return the point of a call on its surface of measured efficiencies.

A surface belongs to operators whose kernels work alike; a table in this module names the surface
of each operator. A point has one coordinate for each input of these kernels' choices, as far as
they are known: a number (mostly the logarithm of a size) or a word. The functions that return
coordinates are in the modules ``_..._coordinates``, one for each subject. The fit (``python -m
benchmarks.fidelity fit``) uses the same functions, so a change of one needs a new fit.
"""

from collections.abc import Callable

from gpulab.virtual.kernels import _copy_coordinates as copies
from gpulab.virtual.kernels import _elementwise_coordinates as elementwise
from gpulab.virtual.kernels import _index_coordinates as indexing
from gpulab.virtual.kernels import _layer_coordinates as layers
from gpulab.virtual.kernels import _matmul_coordinates as matmuls
from gpulab.virtual.kernels import _reduction_coordinates as reductions
from gpulab.virtual.kernels._common_coordinates import Coordinates, dims_of, side_of
from gpulab.virtual.kernels._operator_call import OperatorCall
from gpulab.virtual.simulator.costs import SurfacePoint

CoordinateFunction = Callable[[OperatorCall], Coordinates]

# For each surface and its function, the names of the operators.
_NAMES: dict[tuple[str, CoordinateFunction], tuple[str, ...]] = {
    # Reductions whose kernels carry more than one number for each result.
    ("extreme", reductions.reduction): ("max", "min", "argmax", "argmin", "aminmax"),
    ("variance", reductions.reduction): ("var", "std", "var_mean", "std_mean"),
    ("softmax", reductions.softmax): ("_softmax", "_log_softmax", "_safe_softmax"),
    ("softmax backward", reductions.softmax): (
        *("_softmax_backward_data", "_log_softmax_backward_data"),
    ),
    ("norm", reductions.norm): ("native_layer_norm", "_fused_rms_norm"),
    ("norm backward", reductions.norm): ("native_layer_norm_backward",),
    ("batch norm", layers.channels): ("native_batch_norm",),
    ("batch norm backward", layers.channels): ("native_batch_norm_backward",),
    ("group norm", layers.groups): ("native_group_norm",),
    ("group norm backward", layers.groups): ("native_group_norm_backward",),
    ("topk", reductions.largest_few): ("topk",),
    ("order", reductions.ordered): ("median", "nanmedian", "kthvalue", "mode"),
    ("search", indexing.searched): ("searchsorted", "bucketize", "isin"),
    ("selection", indexing.selected): (
        *("nonzero", "masked_select", "_unique2", "unique_consecutive", "bincount", "histc"),
        *("unique_dim", "_unique", "equal"),
    ),
    ("movement", copies.moved): (
        *("roll", "flip", "tril", "triu", "repeat", "constant_pad_nd", "reflection_pad2d"),
        *("replication_pad2d", "pixel_shuffle", "pixel_unshuffle", "im2col", "col2im"),
        *("reflection_pad1d", "replication_pad1d", "channel_shuffle", "_pad_circular"),
    ),
    ("embedding", indexing.indexed): ("embedding",),
    ("index_select", indexing.indexed): ("index_select",),
    ("gather", indexing.indexed): ("gather",),
    ("index", indexing.indexed): ("index", "take", "_unsafe_index"),
    ("scatter", indexing.indexed): ("scatter_add", "scatter", "scatter_reduce"),
    ("index write", indexing.indexed): (
        *("index_put", "_index_put_impl", "index_copy", "index_fill", "put", "index_add"),
        "_unsafe_index_put",
    ),
    ("embedding backward", indexing.indexed): ("embedding_dense_backward",),
    ("likelihood", layers.likelihood): ("nll_loss_forward",),
    ("likelihood backward", layers.likelihood): ("nll_loss_backward",),
    ("pair loss", layers.pairs): (
        *("mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy"),
        *("binary_cross_entropy_with_logits", "soft_margin_loss"),
    ),
    ("images", layers.images): (
        *("max_pool2d_with_indices", "avg_pool2d", "upsample_nearest2d", "upsample_bilinear2d"),
        *("_adaptive_avg_pool2d", "adaptive_max_pool2d", "upsample_bicubic2d"),
        *("upsample_nearest1d", "upsample_linear1d", "upsample_trilinear3d", "avg_pool3d"),
        *("max_pool3d_with_indices", "_upsample_bilinear2d_aa", "_upsample_nearest_exact1d"),
        *("grid_sampler_2d", "grid_sampler_3d", "fractional_max_pool2d"),
    ),
    ("images backward", layers.images): (
        *("max_pool2d_with_indices_backward", "avg_pool2d_backward"),
        *("_adaptive_avg_pool2d_backward", "adaptive_max_pool2d_backward"),
        *("upsample_nearest2d_backward", "upsample_bilinear2d_backward"),
        *("upsample_bicubic2d_backward",),
    ),
    ("convolution", layers.convolution): ("convolution",),
    ("convolution backward", layers.convolution_backward): ("convolution_backward",),
    ("attention", layers.attention): ("_scaled_dot_product_flash_attention_for_cpu",),
    ("attention backward", layers.attention): (
        "_scaled_dot_product_flash_attention_for_cpu_backward",
    ),
    ("foreach", elementwise.foreach): ("_fused_adam", "_fused_adamw"),
    # Measured as operators of their kinds, though not themselves.
    ("elementwise", elementwise.elements): ("glu",),
    ("reduction", reductions.reduction): ("dist", "trace"),
    ("strided", copies.strided): (
        *("diagonal_copy", "narrow_copy", "split_with_sizes_copy", "unbind_copy"),
        *("unsafe_split", "expand_copy"),
    ),
    ("vector", matmuls.vector): ("mv", "addmv", "dot", "vdot", "addr"),
    ("multinomial", reductions.along): ("multinomial",),
    ("permutation", elementwise.elements): ("randperm",),
    ("factorization", matmuls.factorization): ("linalg_solve_triangular",),
}
_BY_NAME = {name: found for found, names in _NAMES.items() for name in names}
_MATMULS = frozenset({"mm", "bmm", "addmm", "baddbmm"})
# The file of surfaces that gpulab ships has these names, so "product" stays.
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
    **dict.fromkeys(_POINTWISE, ("elementwise", elementwise.elements)),
    **{name: (name, elementwise.elements) for name in ("uniform", "normal", "dropout")},
    "broadcast": ("broadcast", elementwise.broadcast),
    "strided": ("strided", copies.strided),
    "concatenation": ("concatenation", copies.concatenation),
    "scan": ("scan", reductions.scan),
    "scan of one row": ("scan", reductions.scan),
    "row sort": ("sort", reductions.ordered),
    "reduction": ("reduction", reductions.reduction),
    "first axis": ("reduction", reductions.reduction),
    "radix pass": ("sort", reductions.ordered),
    "fourier": ("fourier", reductions.fourier),
    "factorization": ("factorization", matmuls.factorization),
}
_COPIES = frozenset({"clone", "copy", "_to_copy", "fill", "zero"})
_SOFTMAXES = frozenset({"_softmax", "_log_softmax", "_safe_softmax"})
_DEPTHWISE = frozenset({"depthwise", "depthwise in halves"})


def surface_point_of(call: OperatorCall, family: str) -> SurfacePoint | None:
    """Return the point of a call on its surface, or None if nothing like it was measured.

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
        return "foreach", elementwise.foreach
    if call.name in _MATMULS:
        return _MATMUL_SURFACES[call.arithmetic], matmuls.matmul
    return _BY_FAMILY.get(family)


def _special(call: OperatorCall) -> tuple[str, CoordinateFunction] | None:
    """Return the surface of a call whose arguments, and not its name, decide on its kernels."""
    if call.name in _COPIES and copies.is_rearranged(call):
        return "strided", copies.strided
    if call.name in _SOFTMAXES and side_of(call, dims_of(call)) != "last":
        return "softmax across", reductions.across
    if call.name == "index" and indexing.way_of(call) == "mask":
        return "selection", indexing.selected
    # Additions that may meet at one element are sorted first.
    if call.name in {"index_put", "_index_put_impl"} and indexing.way_of(call) == "add":
        return "index add", indexing.indexed
    return None
