"""Return the point of a call on its surface of measured efficiencies.

A surface belongs to operators whose kernels work alike. An operator's model names it, or else the
table in this module, by the family of the last kernel. A point has one coordinate for each input
of these kernels' choices, as far as they are known: a number (mostly the logarithm of a size) or a
word. The functions that return coordinates are in the modules ``_..._coordinates``, one for each
subject. The fit (``python -m benchmarks.fidelity fit``) uses the same functions, so a change of
one needs a new fit.
"""

from gpulab.virtual.operators import _copy_coordinates as copies
from gpulab.virtual.operators import _elementwise_coordinates as elementwise
from gpulab.virtual.operators import _matmul_coordinates as matmuls
from gpulab.virtual.operators import _reduction_coordinates as reductions
from gpulab.virtual.operators._model import OperatorModel, Surface
from gpulab.virtual.operators._operator_call import OperatorCall
from gpulab.virtual.simulator.costs import SurfacePoint

_POINTWISE = ("elementwise", "fill", "copy", "cast", "error function", "index")
_BY_FAMILY: dict[str, Surface] = {
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
_DEPTHWISE = frozenset({"depthwise", "depthwise in halves"})


def surface_point_of(call: OperatorCall, model: OperatorModel, family: str) -> SurfacePoint | None:
    """Return the point of a call on its surface, or None if nothing like it was measured.

    Parameters
    ----------
    call
        The call.
    model
        The model of its operator.
    family
        The family of its last kernel. It selects the surface if the model does not.
    """
    by_call = model.surface_by_call(call) if model.surface_by_call is not None else None
    chosen = by_call or model.surface or _BY_FAMILY.get(family)
    if chosen is None or not call.writes:
        return None
    surface, coordinates = chosen
    if family in _DEPTHWISE:
        surface = surface.replace("convolution", "depthwise")
    # cuDNN has other kernels for the two, and smaller surfaces answer faster.
    elif surface.startswith("convolution") and call.arithmetic.endswith("16"):
        surface = f"half {surface}"
    return SurfacePoint(surface, coordinates(call))
