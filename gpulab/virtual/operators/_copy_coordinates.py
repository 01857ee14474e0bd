"""Compute the coordinates of calls that only move elements: copies, concatenations and flips.

The models of operators name their surface and its coordinates. The fit of the surfaces (``python
-m benchmarks.fidelity fit``) uses the same functions, so a change of one needs a new fit.
"""

from gpulab.virtual.operators._common_coordinates import (
    dtype_name,
    largest,
    log2_alignment,
    log2_size,
)
from gpulab.virtual.operators._operator_call import Coordinates, OperatorCall, Surface
from gpulab.virtual.tensors import TensorLayout


def concatenation(call: OperatorCall) -> Coordinates:
    """Return the elements, the parts that are joined, the rows of them and of the result."""
    out, parts = call.largest_written, max(1, len(call.reads))
    row = max(item.sizes[-1] if item.sizes else 1 for item in call.reads) if call.reads else 1
    width = out.dtype.itemsize
    sides = (log2_size(parts), log2_alignment(row * width, 5), float(width))
    last = out.sizes[-1] if out.sizes else 1
    words = (call.name, "last" if last != row else "other")
    return (log2_size(out.n_elements), log2_size(row), *sides, log2_size(last), *words)


def moved(call: OperatorCall) -> Coordinates:
    """Return the sizes of a call that only moves elements, and along which dimensions."""
    source, out = call.largest_read, call.largest_written
    rows = [item.sizes[-1] if item.sizes else 1 for item in (source, out)]
    width = out.dtype.itemsize
    return (
        log2_size(out.n_elements),
        log2_size(source.n_elements),
        *(log2_size(row) for row in rows),
        *(log2_alignment(row * width) for row in rows),
        float(width),
        call.name,
        "" if call.dim is None else call.side,
    )


def strided(call: OperatorCall) -> Coordinates:
    """Return how the elements of a call's source lie in memory, in the order of its result.

    Dimensions whose elements follow one another in both are taken as one, as PyTorch does.
    """
    out, source = call.largest_written, _unlike(call)
    steps = _common_steps(out, source)
    (n, _, step), *rest = steps
    n_next, _, step_next = rest[0] if rest else (1, 0, 0)
    # The dimension along which the source's elements are neighbours.
    run, apart = next(((size, own) for size, own, other in steps if other == 1), (1, 0))
    width = out.dtype.itemsize
    return (
        log2_size(out.n_elements),
        float(len(steps)),
        log2_size(n),
        _step(step),
        log2_size(n_next),
        _step(step_next),
        log2_size(run),
        _step(apart),
        log2_alignment(n * width),
        log2_alignment(run * width),
        float(width),
        "copy" if call.name in {"clone", "copy", "_to_copy"} else "other",
        dtype_name(source),
    )


def is_rearranged(call: OperatorCall) -> bool:
    """Return whether a call's source or result has gaps, or their elements another order."""
    return len(_common_steps(call.largest_written, _unlike(call))) > 1


def _unlike(call: OperatorCall) -> TensorLayout:
    """Return the largest tensor among those that do not lie in memory as the result does."""
    out = call.largest_written
    others = [item for item in call.reads if item.strides != out.strides]
    return largest(others or call.reads or call.writes)


def _step(step: int) -> float:
    """Return the logarithm of a stride; a repeated element counts as less than the next one."""
    return log2_size(step) if step else -1.0


def _common_steps(out: TensorLayout, source: TensorLayout) -> list[tuple[int, int, int]]:
    """Return size, stride in the result and stride in the source of each common dimension."""
    missing = len(out.sizes) - len(source.sizes)
    sizes = (*(1,) * missing, *source.sizes)
    strides = (*(0,) * missing, *source.strides)
    steps: list[tuple[int, int, int]] = []
    # What is repeated along a dimension has no step there.
    theirs = [0 if size == 1 else step for size, step in zip(sizes, strides, strict=False)]
    for n, own, step in sorted(zip(out.sizes, out.strides, theirs, strict=False), key=_by_stride):
        if n == 1:
            continue
        if steps and steps[-1][0] * steps[-1][1] == own and steps[-1][0] * steps[-1][2] == step:
            size, before, other = steps[-1]
            steps[-1] = (size * n, before, other)
        else:
            steps.append((n, own, step))
    return steps or [(1, 1, 1)]


def _by_stride(item: tuple[int, int, int]) -> int:
    return item[1]


def surface_of_copy(call: OperatorCall) -> Surface | None:
    """Return the surface of a copy that changes the order of elements; None for others."""
    return ("strided", strided) if is_rearranged(call) else None
