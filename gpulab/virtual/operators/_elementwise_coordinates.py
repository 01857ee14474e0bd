"""Compute the coordinates of elementwise calls on their surfaces of measured efficiencies.

The models of operators name their surface and its coordinates. The fit of the surfaces (``python
-m benchmarks.fidelity fit``) uses the same functions, so a change of one needs a new fit.
"""

from math import ceil

from gpulab.virtual.operators._common_coordinates import (
    dtype_name,
    log2_alignment,
    log2_size,
)
from gpulab.virtual.operators._operator_call import Coordinates, OperatorCall

# A block of a foreach kernel processes this many elements of one tensor.
_CHUNK = 65_536


def elements(call: OperatorCall) -> Coordinates:
    """Return the elements, the bytes read and written for each, and the operator."""
    out = call.largest_written
    n = max(1, out.n_elements)
    read = sum(item.size_bytes for item in call.reads if item.n_elements > 1) / n
    written = sum(item.size_bytes for item in call.writes) / n
    return (
        log2_size(n),
        read,
        written,
        f"pow {_exponent(call)}" if call.name == "pow" else call.name,
        dtype_name(out),
        "in place" if call.is_in_place else "",
    )


def _exponent(call: OperatorCall) -> str:
    """Return which power is computed: small whole ones are products of a few factors."""
    exponent = call.args[1]
    return str(exponent) if isinstance(exponent, int) else type(exponent).__name__


def broadcast(call: OperatorCall) -> Coordinates:
    """Return the elements, the length of a row, the operator, and what is repeated."""
    out = call.largest_written
    row = out.sizes[-1] if out.sizes else 1
    width = out.dtype.itemsize
    fewer = [item for item in call.reads if 1 < item.n_elements < out.n_elements]
    repeated = {"column" if item.sizes[-1] == 1 else "row" for item in fewer if item.sizes}
    read = sum(item.size_bytes for item in call.reads if item.n_elements > 1)
    return (
        log2_size(out.n_elements),
        log2_size(row),
        log2_alignment(row * width),
        float(width),
        read / max(1, out.n_elements),
        call.name,
        " ".join(sorted(repeated)),
        "in place" if call.is_in_place else "",
        dtype_name(out),
    )


def foreach(call: OperatorCall) -> Coordinates:
    """Return the number of tensors, their mean size, the number of chunks, and the operator."""
    lists = [item for item in call.args if isinstance(item, (list, tuple)) and item]
    lists = [items for items in lists if hasattr(items[0], "numel")]
    first = lists[0] if lists else []
    n = sum(item.numel() for item in first)
    mean = n / max(1, len(first))
    inner = (
        "in place" if call.is_in_place else "",
        call.name,
        float(len(lists)),
        float(call.writes[0].dtype.itemsize) if call.writes else 0.0,
        str(call.args[1]) if len(call.args) > 1 and call.name == "_foreach_norm" else "",
    )
    return (
        log2_size(len(first)),
        log2_size(mean),
        log2_size(ceil(mean / _CHUNK) * len(first)),
        *inner,
    )
