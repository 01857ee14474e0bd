"""Compute the coordinates of calls whose sizes and layouts decide how fast they are."""

from math import ceil, log2, prod

from gpulab.virtual.operators._operator_call import Coordinates, OperatorCall, largest
from gpulab.virtual.tensors import TensorLayout

# A block of a foreach kernel processes this many elements of one tensor.
CHUNK = 65_536
# The widest load of a thread is 16 bytes, which is 2**4.
VECTOR = 4


def log2_size(n: float) -> float:
    """Return the logarithm of a size to the base 2; an empty size counts as 1."""
    return log2(max(n, 1))


def log2_alignment(n_bytes: int, most: int = VECTOR) -> float:
    """Return the logarithm of the largest power of two that divides ``n_bytes``.

    It says how wide the loads of a kernel can be. ``most`` is the highest result.
    """
    return float(min((n_bytes & -n_bytes).bit_length() - 1, most)) if n_bytes else float(most)


def dtype_name(item: TensorLayout) -> str:
    """Return the name of a tensor's type."""
    return str(item.dtype).removeprefix("torch.")


def last_size(item: TensorLayout) -> int:
    """Return the size of a tensor's last dimension."""
    return item.sizes[-1] if item.sizes else 1


def window_size(call: OperatorCall) -> int:
    """Return the elements of the window that is pooled, or of the size that is asked for; or 1."""
    lists = (item for item in call.args if isinstance(item, (list, tuple)) and item)
    window = next((item for item in lists if isinstance(item[0], int)), (1,))
    # Pooling accepts one number for all dimensions of the window.
    if len(window) == 1 and "_pool" in call.name:
        return int(window[0] ** (3 if "3d" in call.name else 2))
    return prod(window)


def sizes(call: OperatorCall) -> Coordinates:
    """Return the elements, rows, bytes and types of what a call reads and writes."""
    source, out = call.largest_read, call.largest_written
    n_written = max(1, out.n_elements)
    row, source_row = last_size(out), last_size(source)
    width, source_width = out.dtype.itemsize, source.dtype.itemsize
    # Tensors of one element are arguments of the kernel.
    read_bytes = sum(item.size_bytes for item in call.reads if item.n_elements > 1)
    written_bytes = sum(item.size_bytes for item in call.writes)
    return (
        log2_size(n_written),
        log2_size(row),
        log2_alignment(row * width),
        float(width),
        log2_size(prod(out.sizes[:-2])),
        log2_size(source.n_elements),
        log2_size(source_row),
        log2_alignment(source_row * source_width),
        float(source_width),
        log2_size(source.n_elements // max(1, source_row)),
        log2_size(prod(source.sizes[:2])),
        log2_size(n_written) - log2_size(source.n_elements),
        log2_size(min((item.n_elements for item in call.reads), default=1)),
        read_bytes / n_written,
        written_bytes / n_written,
        f"pow {_exponent(call)}" if call.name == "pow" else call.name,
        dtype_name(out),
        dtype_name(source),
        "in place" if call.is_in_place else "",
        "" if call.dim is None else call.side,
        "rows" if not source.strides or source.strides[-1] == 1 else "columns",
        call.arithmetic,
        "each" if out.n_elements == source.n_elements else "one",
        log2_size(window_size(call)),
    )


def _exponent(call: OperatorCall) -> str:
    """Return which power is computed: small whole ones are products of a few factors."""
    exponent = call.args[1]
    return str(exponent) if isinstance(exponent, int) else type(exponent).__name__


def foreach(call: OperatorCall) -> Coordinates:
    """Return the number of tensors, their mean size, the number of chunks, and the operator."""
    lists = [item for item in call.args if isinstance(item, (list, tuple)) and item]
    lists = [items for items in lists if hasattr(items[0], "numel")]
    first = lists[0] if lists else []
    n = sum(item.numel() for item in first)
    mean = n / max(1, len(first))
    return (
        log2_size(len(first)),
        log2_size(mean),
        log2_size(ceil(mean / CHUNK) * len(first)),
        call.name,
        float(len(lists)),
        float(call.writes[0].dtype.itemsize) if call.writes else 0.0,
        str(call.args[1]) if len(call.args) > 1 and call.name == "_foreach_norm" else "",
    )


def concatenation(call: OperatorCall) -> Coordinates:
    """Return the elements, the parts that are joined, the rows of them and of the result."""
    out, parts = call.largest_written, max(1, len(call.reads))
    row = max((last_size(item) for item in call.reads), default=1)
    width = out.dtype.itemsize
    sides = (log2_size(parts), log2_alignment(row * width, 5), float(width))
    last = last_size(out)
    words = (call.name, "last" if last != row else "other")
    return (log2_size(out.n_elements), log2_size(row), *sides, log2_size(last), *words)


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
    return (
        log2_size(out.n_elements),
        float(len(steps)),
        log2_size(n),
        _step(step),
        log2_size(n_next),
        _step(step_next),
        log2_size(run),
        _step(apart),
        float(out.dtype.itemsize),
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


def surface_of_copy(call: OperatorCall) -> str | None:
    """Return the surface of a copy that changes the order of elements; None for others."""
    return "strided" if is_rearranged(call) else None
