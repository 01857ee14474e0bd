"""Where a call lies on the surface of measured efficiencies: its coordinates, by operator.

A coordinate is a number that is near that of calls whose kernels work alike (most are logarithms
of sizes), or a word, which is the same or another.
"""

from gpulab.virtual.core.surfaces import Place
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
from gpulab.virtual.pricing.layer_places import LAYER_PLACES, foreach, product
from gpulab.virtual.pricing.row_places import ROW_FAMILIES, ROWS

_DEPTHWISE = frozenset({"depthwise", "depthwise in halves"})


def place_of(call: Call, family: str) -> Place | None:
    """Return the place of a call among those measured, or None if nothing like it was.

    Parameters
    ----------
    family
        That of the call's last kernel, which decides where no name does.
    """
    found = _finder(call, family)
    if found is None or not call.writes:
        return None
    surface, coordinates = found
    if family in _DEPTHWISE:
        surface = surface.replace("convolution", "depthwise")
    return Place(surface, coordinates(call))


def _finder(call: Call, family: str) -> tuple[str, Finder] | None:
    if call.name in _NAMED:
        return _NAMED[call.name]
    if call.name.startswith("_foreach"):
        return "foreach", foreach
    if call.name in _PRODUCTS:
        return _KIND_OF[call.arithmetic], product
    return _BY_FAMILY.get(family)


def _elements(call: Call) -> Coordinates:
    """Elements, the bytes of each that are read and written, and the operator."""
    out = result_of(call)
    n = max(1, out.n_elements)
    read = sum(item.size_bytes for item in call.reads if item.n_elements > 1) / n
    written = sum(item.size_bytes for item in call.writes) / n
    return (log(n), read, written, call.name, word(out), "in place" if call.is_in_place else "")


def _broadcast(call: Call) -> Coordinates:
    out = result_of(call)
    row = out.sizes[-1] if out.sizes else 1
    width = out.dtype.itemsize
    return (log(out.n_elements), log(row), alignment(row * width), float(width), call.name)


def _strided(call: Call) -> Coordinates:
    """Elements, and how many lie side by side in what is read and in what is written."""
    out, source = result_of(call), source_of(call)
    inner = [n for n, step in zip(source.sizes, source.strides, strict=True) if step == 1]
    length = inner[0] if inner else 1
    row = out.sizes[-1] if out.sizes else 1
    width = out.dtype.itemsize
    sides = (alignment(length * width), alignment(row * width))
    return (log(out.n_elements), log(length) - log(row), *sides, float(width))


def _concatenation(call: Call) -> Coordinates:
    out, parts = result_of(call), max(1, len(call.reads))
    row = max(item.sizes[-1] if item.sizes else 1 for item in call.reads) if call.reads else 1
    width = out.dtype.itemsize
    sides = (log(parts), alignment(row * width, 5), float(width))
    return (log(out.n_elements), log(row), *sides)


_PRODUCTS = frozenset({"mm", "bmm", "addmm", "baddbmm"})
_KIND_OF = {
    "float16": "half product",
    "bfloat16": "half product",
    "tf32": "tf32 product",
    "float32": "single product",
    "float64": "double product",
}
_POINTWISE = ("elementwise", "fill", "copy", "cast", "error function", "index")
_BY_FAMILY: dict[str, tuple[str, Finder]] = {
    **dict.fromkeys(_POINTWISE, ("elementwise", _elements)),
    **{name: (name, _elements) for name in ("uniform", "normal", "dropout")},
    "broadcast": ("broadcast", _broadcast),
    "strided": ("strided", _strided),
    "concatenation": ("concatenation", _concatenation),
    **ROW_FAMILIES,
}
_NAMED = ROWS | LAYER_PLACES
