"""Name the kernels of sorts, selections, draws and writes by an index, by PyTorch's rules."""

from dataclasses import replace
from math import ceil, log, log2

from gpulab.virtual.operators._operator_call import COPY, RESET, Names, OperatorCall, Rules, copied

_WIDE = 2  # dimensions of a matrix
# CUB sorts and counts so many elements in one block.
_ONE_BLOCK = 4_096
_BLOCK_SORT = 4_096  # the longest row that PyTorch sorts in a block
_MANY_SEGMENTS = 128  # from so many long rows on, each is sorted for itself


def _mask_steps(call: OperatorCall) -> Names:
    """Return the kernels that find the elements that are not zero."""
    mask = call.largest_read
    return _selection_steps(mask.n_elements, len(mask.sizes))


def _selection_steps(n: int, n_dims: int) -> Names:
    partial = ("partial counts",) if n > _ONE_BLOCK else ()
    places = ("write places",) if n_dims > 1 else ()
    return (*partial, "count", "start selection", "select", *places)


def _nonzero(call: OperatorCall) -> Names:
    return _selection_steps(call.n_in, len(call.reads[0].sizes))


def _index(call: OperatorCall) -> Names | None:
    masks = [item for item in call.reads[1:] if item.dtype.itemsize == 1]
    return (*_mask_steps(replace(call, reads=masks)), "index") if masks else None


def _n_rows(call: OperatorCall) -> int:
    return max(1, call.n_in // call.length)


def _radix_sort(n: int, width: int) -> Names:
    """Return the kernels of CUB's radix sort: one block, or a pass for each byte of the key."""
    if n <= _ONE_BLOCK:
        return ("radix sort in a block",)
    turn = (RESET, "radix sort pass")
    return (RESET, RESET, "radix sort histogram", "radix sort sums", *turn * width)


def _sort(call: OperatorCall) -> Names | None:
    if not call.reads or call.reads[0].sizes == ():
        return None
    n, rows = call.length, _n_rows(call)
    if n > _BLOCK_SORT:
        # Several long rows are sorted as one, and then by their row (Sort.cu).
        passes = (RESET, "radix sort pass") * 8
        is_joined = 1 < rows < _MANY_SEGMENTS
        return (
            (COPY, "segment of each", "radix sort histogram", "sums", *passes)
            if is_joined
            else None
        )
    spread = (COPY, COPY) if rows == 1 else ("copy indices", COPY)
    return (COPY, "arange", *spread, "block sort")


def _median(call: OperatorCall) -> Names | None:
    if len(call.writes) > 1:
        return ("median of each row",)
    width = call.reads[0].dtype.itemsize
    looked = ("is nan", "any", "count", "subtract", "divide") if call.name == "nanmedian" else ()
    return (*_whole_sort(call.n_in, width), *looked, "find nan", "choose")


def _whole_sort(n: int, width: int) -> Names:
    if n <= _BLOCK_SORT:
        return (COPY, "arange", COPY, COPY, "block sort")
    return (COPY, "reverse indices", *_radix_sort(n, width))


# PyTorch's rule for several blocks for each row of topk (TensorTopK.cu): at least so many rows,
# and from this length on.
_SEVERAL_BLOCKS = (
    (4_001, 400),
    (800, 800),
    (200, 3_000),
    (81, 5_000),
    (41, 8_000),
    (21, 10_000),
    (0, 20_000),
)


def _topk(call: OperatorCall) -> Names | None:
    n, rows = call.length, _n_rows(call)
    least = next(least for n_rows, least in _SEVERAL_BLOCKS if rows >= n_rows)
    return None if n >= least else ("find and gather the k largest", "block sort")


def _unique(call: OperatorCall) -> Names:
    source = call.reads[0]
    # The inverse and the counts need the places of the elements, so these are sorted, too.
    options = [item for item in call.args[1:] if isinstance(item, bool)]
    has_inverse = len(options) > 1 and options[1]
    select = ("start selection", "select")
    if str(source.dtype) == "torch.bool":
        return ("count", "write")
    sort = _radix_sort(source.n_elements, source.dtype.itemsize)
    if has_inverse:
        return ("arange", *sort, "differences", "start scan", "scan", "scatter", *select)
    return (*sort, *select)


def _unique_consecutive(call: OperatorCall) -> Names:
    if any(isinstance(item, int) and not isinstance(item, bool) for item in call.args[1:]):
        return ("arange", "differences", "gather", "select")
    return ("start selection", "select")


def _extremes(call: OperatorCall) -> Names:
    reset = (RESET,) if call.n_in > 1 << 17 else ()
    return (*reset, "min", *reset, "max")


def _bincount(call: OperatorCall) -> Names:
    return (*_extremes(call), "fill", "histogram")


def _histc(call: OperatorCall) -> Names:
    bounds = [item for item in call.args[2:4] if isinstance(item, (int, float))]
    is_given = len(bounds) == _WIDE and bounds[0] != bounds[1]
    before = () if is_given else _extremes(call)
    return (*before, "fill", "histogram")


def _isin(call: OperatorCall) -> Names:
    """Return a comparison with each element, or, for many, two sorts (TensorCompare.cpp)."""
    if len(call.reads) < _WIDE:  # a number
        return ("eq",)
    elements, tested = call.reads[0], call.reads[-1]
    if tested.n_elements < 10 * elements.n_elements**0.145:
        return ("fill", "eq", "any")
    n = elements.n_elements + tested.n_elements
    sort = _radix_sort(n, elements.dtype.itemsize)
    return ("arange", *sort, *("find equal neighbours",) * (17 - (n <= _ONE_BLOCK)))


def _repeats(call: OperatorCall) -> Names:
    """Return the kernels of ``repeat_interleave``, which first adds up the repeats."""
    is_known = call.kwargs.get("output_size") is not None or len(call.args) > _WIDE
    return ("start scan", "scan", *(() if is_known else ("least", "at least 0")), "repeat")


def _embedding_backward(call: OperatorCall) -> Names:
    """Return a kernel for few indices, or a sort of many (Embedding.cu)."""
    n = call.reads[1].n_elements
    if n <= _FEW_INDICES and not any(item is True for item in call.args):
        return (*copied(call), "fill", call.name)
    return (*copied(call), "arange", *_radix_sort(n, 5), *_BY_SORTED_INDEX)


def _bag_backward(call: OperatorCall) -> Names:
    if call.args[8:9] == (2,):  # the largest of each bag
        return (*copied(call), "fill", call.name)
    sort = _radix_sort(call.reads[1].n_elements, 5)
    return (*copied(call), "arange", *sort, "fill", *_BY_SORTED_INDEX[5:])


_FEW_INDICES = 3_072
_BY_SORTED_INDEX = (
    *("start counts", "counts", "start counts back", "counts back", "fill"),
    *("start selection", "select segments", "partial segments", "start scan", "scan"),
    *("number of partial segments", "places of partial segments", "sum of segments", "add up"),
)


def _index_put(call: OperatorCall) -> Names | None:
    if not any(item is True for item in call.args[3:4]):
        return None
    indices = [item for item in call.args[1] if item is not None]
    n_indices = len(indices)
    n = max(item.n_elements for item in call.reads[1 : 1 + n_indices])
    # Autograd's own sum of gradients checks no index, and is the one that is not in place.
    is_unsafe = not call.is_in_place or call.args[4:5] == (True,)
    checks = () if is_unsafe else ("max", "compare", "assert", "min", "compare", "assert")
    each = (*checks, "wrap", "times stride")
    joined = ("add", "wrap") * (n_indices - 1)
    return (
        *copied(call, at=-1 % len(call.reads)),
        *(each * n_indices),
        *joined,
        "divide",
        "arange",
        *_radix_sort(n, 8),
        "add sorted values",
    )


def _scan(call: OperatorCall) -> Names | None:
    if call.n_in <= 1 or call.length != call.n_in:
        copy = copied(call)
        return (*copy, call.name) if copy else None
    is_cast = call.reads[0].dtype is not call.writes[0].dtype
    return (*(("copy",) if is_cast else ()), "start scan", "scan")


_CHECKS = ("min", "at least 0", "max", "finite", "both", "assert")


def _multinomial(call: OperatorCall) -> Names:
    source = call.reads[0]
    is_one_row = len(source.sizes) < _WIDE
    n_drawn, replaces = call.args[1], any(item is True for item in call.args[2:3])
    if replaces and n_drawn > 1:
        scan = ("start scan", "scan") if is_one_row else ("scan",)
        return (COPY, COPY, "normalize rows", *scan, "draw")
    any_row = () if is_one_row else ("any",)
    pick = ("argmax",) if n_drawn == 1 else ("find and gather the k largest", "block sort")
    sums = ("sum", "is zero", *any_row, "not", "assert")
    return (*_CHECKS, *sums, "exponential", "divide", *pick)


def _mode(call: OperatorCall) -> Names:
    is_turned = call.side == "other"
    return (*(("copy",) if is_turned else ()), "mode of each row")


def _searchsorted(call: OperatorCall) -> Names | None:
    has_sorter = call.kwargs.get("sorter") is not None
    return ("smallest and largest", "searchsorted") if has_sorter else None


def _permutation(call: OperatorCall) -> Names:
    """Return a sort by random keys, with as many bits as keep equal ones rare (Randperm.cpp)."""
    n = call.n_out
    n_bits = ceil(log2(n + (6 * n * n + 1) / (-12 * log(0.9)))) if n else 0
    sort = _radix_sort(n, ceil(n_bits / 8))
    return ("fill", "arange", "random keys", *sort, "resolve equal keys")


RULES: Rules = {
    "sort argsort msort": _sort,
    "topk": _topk,
    "kthvalue": ("k-th value of each row",),
    "mode": _mode,
    "median nanmedian": _median,
    "nonzero": _nonzero,
    "masked_select": lambda call: (*_mask_steps(call), "gather"),
    "index": _index,
    "_unique _unique2": _unique,
    "unique_dim": ("arange", "merge sort", "differences", "gather", "select"),
    "unique_consecutive": _unique_consecutive,
    "bincount": _bincount,
    "histc": _histc,
    "nonzero_static": ("count", "start scan", "scan", "places", "fill"),
    "masked_scatter": ("copy mask", "start scan", "scan", "masked_scatter"),
    "cumsum cumprod": _scan,
    "multinomial": _multinomial,
    "searchsorted": _searchsorted,
    "isin": _isin,
    "repeat_interleave": _repeats,
    "randperm": _permutation,
    "embedding_dense_backward": _embedding_backward,
    "_embedding_bag_backward _embedding_bag_dense_backward": _bag_backward,
    "index_put _index_put_impl": _index_put,
}
