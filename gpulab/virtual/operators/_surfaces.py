"""Find a call on the surfaces of measured efficiencies: its surface, and its coordinates there.

The fit of the surfaces (``python -m benchmarks.fidelity fit``) chooses which coordinates each one
uses, and the file of surfaces has their positions. So a change of a function of coordinates needs
a new fit, or new positions in the file.
"""

from collections.abc import Callable
from functools import partial

from gpulab.virtual.operators import _layer_coordinates as layers
from gpulab.virtual.operators import _row_coordinates as rows
from gpulab.virtual.operators._index_coordinates import indexed
from gpulab.virtual.operators._matmul_coordinates import matmul
from gpulab.virtual.operators._model import OperatorModel
from gpulab.virtual.operators._operator_call import Coordinates, OperatorCall
from gpulab.virtual.operators._size_coordinates import concatenation, foreach, sizes, strided
from gpulab.virtual.simulator.costs import SurfacePoint

# The surfaces of operators whose models name none, by the family of their last kernel.
_BY_FAMILY = {
    **dict.fromkeys(
        ("elementwise", "fill", "copy", "cast", "error function", "index"), "elementwise"
    ),
    **{name: name for name in ("uniform", "normal", "dropout", "broadcast", "strided")},
    **{name: name for name in ("concatenation", "fourier", "factorization", "foreach")},
    **dict.fromkeys(("scan", "scan of one row"), "scan"),
    **dict.fromkeys(("row sort", "radix pass"), "sort"),
    **dict.fromkeys(("reduction", "first axis"), "reduction"),
}
# The coordinates of calls that are not described by their sizes.
_COORDINATES: dict[str, Callable[[OperatorCall], Coordinates]] = {
    "foreach": foreach,
    "concatenation": concatenation,
    "strided": strided,
    **dict.fromkeys(("reduction", "extreme", "variance"), rows.reduction),
    **dict.fromkeys(("softmax", "softmax backward", "multinomial"), rows.along_last),
    **dict.fromkeys(("likelihood", "likelihood backward"), rows.along_last),
    **dict.fromkeys(("scan", "sort", "order", "topk"), rows.along_dimension),
    **dict.fromkeys(("norm", "norm backward"), rows.norm),
    "softmax across": rows.across,
    "fourier": rows.fourier,
    **dict.fromkeys(
        ("index", "gather", "index_select", "embedding"), partial(indexed, is_read=True)
    ),
    "embedding backward": partial(indexed, is_gradient=True),
    **dict.fromkeys(("index write", "index add", "scatter"), indexed),
    **dict.fromkeys(("half product", "tf32 product", "single product", "double product"), matmul),
    **dict.fromkeys(("convolution", "half convolution", "depthwise"), layers.convolution),
    **dict.fromkeys(
        ("convolution backward", "half convolution backward", "depthwise backward"),
        layers.convolution_backward,
    ),
    **dict.fromkeys(("batch norm", "batch norm backward"), layers.channels),
    **dict.fromkeys(("group norm", "group norm backward"), layers.groups),
    **dict.fromkeys(("attention", "attention backward"), layers.attention),
}


def surface_point(call: OperatorCall, model: OperatorModel, family: str) -> SurfacePoint | None:
    """Return the point of a call whose last kernel is of a family; None if it is like no other."""
    if not call.writes:
        return None
    surface = model.surface(call) if callable(model.surface) else model.surface
    name = surface or _BY_FAMILY.get(family)
    if name is None:
        return None
    return SurfacePoint(name, _COORDINATES.get(name, sizes)(call))
