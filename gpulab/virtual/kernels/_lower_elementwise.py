"""Lower pointwise operators, reductions, sorts, transforms and indexing to CUDA's kernels."""

from math import ceil, prod

from gpulab.virtual.kernels._operator_call import Lowering, OperatorCall, n_indexed
from gpulab.virtual.kernels._reduction_launch import innermost_dim, reduces_innermost
from gpulab.virtual.simulator.costs import KernelWork
from gpulab.virtual.tensors import TensorLayout

# From this many elements on several blocks share one result of a reduction.
_SMALLEST_SHARED = 1 << 17
# Up to this length PyTorch sorts each row by one block.
_LONGEST_BLOCK_SORT = 4_096
# A radix sort looks at 8 bits of the key in each pass.
_KEY_BITS_PER_PASS = 8
# The driver's records of topk show this many further small kernels.
_N_TOPK_OTHERS = 7


def elementwise(call: OperatorCall) -> KernelWork:
    """Return the work of one kernel over the elements of the result."""
    family = _elementwise_family(call)
    # An operator without a table entry that returns less than it reads is no elementwise one.
    if call.n_out < call.n_in:
        family = "other"
    return call.work(family, flops=call.flops)


def _elementwise_family(call: OperatorCall) -> str:
    result = max(call.writes, key=lambda item: item.n_elements, default=None)
    if result is None:
        return "elementwise"
    # Tensors of one element are arguments of the kernel, or cost almost nothing.
    large = [item for item in call.reads if item.n_elements > 1]
    if any(item.n_elements == result.n_elements and _is_strided(item, result) for item in large):
        return "strided"
    if any(_is_repeated(item, result) for item in large):
        return "broadcast"
    if any(_is_widened(item, result) for item in large):
        return "cast"
    return "elementwise"


def _is_strided(item: TensorLayout, result: TensorLayout) -> bool:
    """Return whether neighbours in the result are not neighbours in ``item``, as after ``.T``."""
    return innermost_dim(item) != innermost_dim(result) and len(item.sizes) == len(result.sizes)


def _is_repeated(item: TensorLayout, result: TensorLayout) -> bool:
    is_dense = item.size_bytes == item.n_elements * item.dtype.itemsize == item.span_bytes
    return item.n_elements != result.n_elements or not is_dense


def _is_widened(item: TensorLayout, result: TensorLayout) -> bool:
    return item.dtype.itemsize < result.dtype.itemsize and item.dtype.is_floating_point


def _masked_fill(call: OperatorCall) -> KernelWork:
    """Return the work of a kernel that fills in place, and before it of a copy to fill."""
    if call.is_in_place:
        return call.work("elementwise")
    copy = call.step("copy", reads=True, writes=True, name="copy")
    return call.work("elementwise", before=(copy,))


def _reduction(call: OperatorCall) -> KernelWork:
    """Return the work of one kernel; blocks that share a result need a counter set to 0 first."""
    if not call.reads:
        return elementwise(call)
    source = max(call.reads, key=lambda item: item.n_elements)
    family = "reduction" if reduces_innermost(call, source) else "first axis"
    length = call.n_in // max(1, call.n_out)
    is_shared = call.n_in >= _SMALLEST_SHARED and (
        family == "first axis" or call.n_out < call.n_in // _SMALLEST_SHARED
    )
    before = (call.step("memset", name="memset"),) if is_shared and length > 1 else ()
    if call.name == "count_nonzero":
        return _count(call, family, before)
    return call.work(family, n_elements=call.n_in, before=before)


def _count(call: OperatorCall, family: str, before: tuple[KernelWork, ...]) -> KernelWork:
    """Return the work of a comparison, a cast to 8-byte numbers, and their sum."""
    n = call.n_in
    steps = (
        call.step("elementwise", n_elements=n, reads=True, scratch_bytes=n, name="ne"),
        call.step("cast", n_elements=n, scratch_bytes=9 * n, name="copy"),
    )
    return call.work(
        family, n_elements=n, reads=False, scratch_bytes=8 * n, before=(*steps, *before)
    )


def _length(call: OperatorCall) -> int:
    """Return the size of the dimension that the operator works along."""
    # The position of ``dim`` in the operator's arguments: topk and kthvalue have ``k`` before it.
    position = 2 if call.name in {"topk", "kthvalue"} else 1
    sizes = call.reads[0].sizes or (1,)
    dim = call.kwargs.get("dim", call.args[position] if len(call.args) > position else -1)
    # The argument of unique is whether to sort: True is an int in Python.
    return max(1, int(sizes[dim if type(dim) is int else -1]))


def _scan(call: OperatorCall) -> KernelWork:
    is_one_row = _length(call) == call.n_in
    return call.work("scan of one row" if is_one_row else "scan")


def _sort(call: OperatorCall) -> KernelWork:
    """Return the work of a sort: a block for each short row, otherwise a radix sort."""
    rows = call.n_in // _length(call)
    if rows > 1 and _length(call) <= _LONGEST_BLOCK_SORT:
        before = (
            call.step("copy", reads=True, host_ns=3_000, name="copy"),
            call.step("elementwise", n_elements=_length(call), host_ns=3_000, name="arange"),
            call.step("broadcast", scratch_bytes=8 * call.n_in, host_ns=3_000, name="copy"),
            call.step("copy", scratch_bytes=16 * call.n_in, host_ns=3_000, name="copy"),
        )
        return call.work("row sort", reads=False, before=before)
    return _radix_sort(call)


def _radix_sort(call: OperatorCall) -> KernelWork:
    width = call.reads[0].dtype.itemsize
    n_passes = width * 8 // _KEY_BITS_PER_PASS
    # Each pass reads and writes the keys and their 8-byte indices.
    once = 2 * call.n_in * (width + 8)
    reset = call.step("memset", host_ns=3_300, name="memset")
    turn = call.step("radix pass", scratch_bytes=once, name="radix sort pass")
    before = (
        call.step("copy", reads=True, writes=True, host_ns=7_000, name="copy"),
        call.step("broadcast", scratch_bytes=8 * call.n_in, host_ns=3_300, name="indices"),
        *(reset, reset),
        call.step("histogram", reads=True, name="radix sort histogram"),
        call.step("small step", name="radix sort sum"),
        *([reset, turn] * (n_passes - 1)),
        reset,
    )
    return call.work("radix pass", reads=False, scratch_bytes=once // 2, before=before)


def _topk(call: OperatorCall) -> KernelWork:
    """Return the work of topk: a search for the k-th value, byte by byte; then a short sort."""
    counts = call.step("digit counts", n_elements=call.n_in, reads=True, name="digit counts")
    small = call.step("digit sums", name="digit sums")
    more = call.step("digit sums within k", n_elements=call.n_in, name="counts within k")
    others = [call.step("short sort", name="short sort")] * _N_TOPK_OTHERS
    n_passes = call.reads[0].dtype.itemsize
    return call.work(
        "digit counts",
        n_elements=call.n_in,
        before=(*([counts, small, more] * n_passes), *others),
    )


def _fourier(call: OperatorCall) -> KernelWork:
    """Return the work of an FFT; for a full result of real input, half of it is a copy."""
    is_whole = call.name == "_fft_r2c" and len(call.args) > 3 and not call.args[3]  # noqa: PLR2004 # onesided
    before: tuple[KernelWork, ...] = ()
    if is_whole:
        before = (call.step("strided", n_elements=call.n_out, name="conjugate copy"),)
    return call.work("fourier", before=before)


def _factorization(call: OperatorCall) -> KernelWork:
    """Return the work of a factorization: a step for each column, for 32 matrices at a time."""
    n = call.writes[0].sizes[-1] if call.writes and call.writes[0].sizes else 1
    n_matrices = ceil(prod(call.writes[0].sizes[:-2]) / 32) if call.writes else 1
    before = (
        call.step("strided", reads=True, name="copy"),
        *[call.step("memset", name="memset") for _ in range(3)],
        call.step("strided", writes=True, host_ns=3_000, name="triangle"),
    )
    return call.work("factorization", n_steps=n * n_matrices, before=before)


def _lower_to(family: str) -> Lowering:
    return lambda call: call.work(family)


def _lower_over_inputs(family: str) -> Lowering:
    return lambda call: call.work(family, n_elements=call.n_in)


def _factory(call: OperatorCall) -> KernelWork:
    return call.work("fill", host_ns=5_900)


def _indexed_rows(family: str) -> Lowering:
    """Return a lowering for reads from a table: it touches only the rows that are asked for."""

    def lower(call: OperatorCall) -> KernelWork:
        touched = [item.size_bytes for item in call.writes]
        touched += [item.size_bytes for item in call.reads if not item.dtype.is_floating_point]
        return call.work(family, most_bytes=max(touched, default=0))

    return lower


def _index_write(call: OperatorCall) -> KernelWork:
    """Return the work of writes to a table: it touches only the elements at the index."""
    n = n_indexed(call)
    width = max(item.dtype.itemsize for item in call.reads)
    return call.work("atomic add", n_elements=n, most_bytes=max(1, n * width))


def _cat(call: OperatorCall) -> KernelWork:
    return call.work("concatenation")


def _copy(call: OperatorCall) -> KernelWork:
    """Return the work of a copy: the driver's if type and layout stay, otherwise a kernel's."""
    family = _elementwise_family(call)
    is_plain = family == "elementwise" and len({item.dtype for item in call.reads}) <= 1
    same = is_plain and all(item.dtype is call.writes[0].dtype for item in call.reads)
    return call.work("copy" if same else family)


# For each lowering the names of its operators.
_NAMES: dict[Lowering, tuple[str, ...]] = {
    _reduction: (
        *("sum", "mean", "prod", "amax", "amin", "max", "min", "argmax", "argmin", "all", "any"),
        *("var", "std", "var_mean", "std_mean", "linalg_vector_norm", "logsumexp", "nansum"),
        *("norm", "aminmax", "count_nonzero"),
    ),
    _scan: ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"),
    _sort: ("sort", "argsort", "msort", "kthvalue", "median", "nanmedian", "mode", "_unique2"),
    _topk: ("topk",),
    _fourier: ("_fft_r2c", "_fft_c2c", "_fft_c2r"),
    _factorization: (
        *("linalg_cholesky_ex", "cholesky", "linalg_lu_factor_ex", "linalg_inv_ex"),
        *("_linalg_eigh", "_linalg_svd", "linalg_qr", "_linalg_solve_ex", "linalg_eig"),
        *("_linalg_det", "_linalg_slogdet"),
    ),
    _masked_fill: ("masked_fill",),
    _cat: ("cat", "stack"),
    _copy: ("copy", "clone", "_to_copy"),
    _lower_to("fill"): ("fill", "zero"),
    _factory: ("zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "new_zeros"),
    _lower_to("error function"): (
        "gelu",
        "gelu_backward",
        "erf",
        "erfc",
        "mish",
        "digamma",
        "lgamma",
    ),
    _lower_to("index"): ("arange", "linspace", "logspace"),
    _lower_to("uniform"): (
        "bernoulli",
        "uniform",
        "rand",
        "rand_like",
        "random",
        "randint",
        "randperm",
    ),
    _lower_to("normal"): (
        "normal",
        "randn",
        "randn_like",
        "exponential",
        "geometric",
        "log_normal",
    ),
    _lower_to("dropout"): ("native_dropout",),
    _indexed_rows("rows"): ("embedding", "index_select"),
    _indexed_rows("gather"): ("gather", "index", "take", "_unsafe_index"),
    _lower_over_inputs("atomic add"): ("embedding_dense_backward",),
    _index_write: (
        *("scatter_add", "index_add", "index_put", "_index_put_impl", "scatter"),
        *("scatter_reduce", "index_copy", "index_fill", "put"),
    ),
}
ELEMENTWISE_LOWERINGS = {name: lower for lower, names in _NAMES.items() for name in names}
