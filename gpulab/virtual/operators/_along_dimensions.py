"""Operators along dimensions: reductions, scans, sorts, selections, Fourier; and their kernels."""

from dataclasses import replace

from gpulab.virtual.operators._argument_checks import (
    HALVES,
    NOT_FLOATING,
    check_median,
    check_multinomial,
    refuse,
)
from gpulab.virtual.operators._elementwise import elementwise
from gpulab.virtual.operators._host_reads import (
    BY_THRUST,
    COUNT,
    SIZE,
    HostRead,
    When,
    check_lengths,
    check_sorter,
    has_elements,
    has_long_rows,
    has_sorter,
    is_sorted,
)
from gpulab.virtual.operators._model import Alert, Autocast, DryRun, Models, OperatorModel
from gpulab.virtual.operators._operator_call import COPY, RESET, OperatorCall
from gpulab.virtual.operators._reduction_launch import reduces_innermost
from gpulab.virtual.simulator.costs import KernelWork

# From this many elements on several blocks share one result of a reduction.
_SMALLEST_SHARED = 1 << 17
# Up to this length PyTorch sorts each row by one block.
_LONGEST_BLOCK_SORT = 4_096
# A radix sort looks at 8 bits of the key in each pass.
_KEY_BITS_PER_PASS = 8
# The driver's records of topk show this many further small kernels.
_N_TOPK_OTHERS = 7


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
    before = (call.step("memset", name=RESET),) if is_shared and length > 1 else ()
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


def _scan(call: OperatorCall) -> KernelWork:
    is_one_row = call.length == call.n_in
    return call.work("scan of one row" if is_one_row else "scan")


def _sort(call: OperatorCall) -> KernelWork:
    """Return the work of a sort: a block for each short row, otherwise a radix sort."""
    rows = call.n_in // call.length
    if rows > 1 and call.length <= _LONGEST_BLOCK_SORT:
        before = (
            call.step("copy", reads=True, host_ns=3_000, name=COPY),
            call.step("elementwise", n_elements=call.length, host_ns=3_000, name="arange"),
            call.step("broadcast", scratch_bytes=8 * call.n_in, host_ns=3_000, name="copy"),
            call.step("copy", scratch_bytes=16 * call.n_in, host_ns=3_000, name=COPY),
        )
        return call.work("row sort", reads=False, before=before)
    return _radix_sort(call)


def _radix_sort(call: OperatorCall) -> KernelWork:
    width = call.reads[0].dtype.itemsize
    n_passes = width * 8 // _KEY_BITS_PER_PASS
    # Each pass reads and writes the keys and their 8-byte indices.
    once = 2 * call.n_in * (width + 8)
    reset = call.step("memset", host_ns=3_300, name=RESET)
    turn = call.step("radix pass", scratch_bytes=once, name="radix sort pass")
    before = (
        call.step("copy", reads=True, writes=True, host_ns=7_000, name=COPY),
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


_LENGTHS = HostRead(When.BEFORE, lambda call: call("lengths") is not None and not call("unsafe"))
_PLACES = HostRead(When.BEFORE, has_sorter)
_SUM = OperatorModel(lowering=_reduction, autocast=Autocast.FLOAT32_RESULT)
_MEDIAN = OperatorModel(
    lowering=_sort,
    surface="order",
    checks=(check_median,),
    nondeterministic=Alert(
        "median CUDA with indices output", lambda call: call("dim") is not None
    ),
)
MODELS: Models = {
    # Reductions; the kernels of some carry more than one number for each result.
    "mean amax amin all any nansum count_nonzero": OperatorModel(lowering=_reduction),
    "sum prod linalg_vector_norm": _SUM,
    "logsumexp": replace(_SUM, autocast=Autocast.FLOAT32),
    "norm": replace(_SUM, autocast=Autocast.NORM),
    "max min argmax argmin aminmax": OperatorModel(lowering=_reduction, surface="extreme"),
    "var std var_mean std_mean": OperatorModel(lowering=_reduction, surface="variance"),
    # Measured as operators of their kinds, though not themselves.
    "trace": OperatorModel(surface="reduction", widens_bool=True),
    "dist": OperatorModel(
        surface="reduction",
        autocast=Autocast.FLOAT32,
        host_numbers=("other",),
    ),
    "segment_reduce": OperatorModel(
        checks=(refuse("segment_reduce_cuda", NOT_FLOATING),),
        host_reads=(_LENGTHS, replace(_LENGTHS, check=check_lengths)),  # the least, and the sums
        may_find_wrong_values=True,
        dry_run=DryRun.OF_TYPES,
    ),
    "_segment_reduce_backward": OperatorModel(dry_run=DryRun.OF_TYPES),
    # Scans
    "cumsum cumprod": OperatorModel(lowering=_scan, autocast=Autocast.FLOAT32_RESULT),
    "logcumsumexp cummax cummin": OperatorModel(lowering=_scan),
    # Order
    "sort argsort msort": OperatorModel(lowering=_sort),
    "topk": OperatorModel(lowering=_topk, surface="topk"),
    "kthvalue": OperatorModel(lowering=_sort, surface="order"),
    "median": replace(_MEDIAN, widens_bool=True),
    "nanmedian": _MEDIAN,
    "mode": OperatorModel(
        lowering=_sort,
        surface="order",
        host_reads=(HostRead(When.AFTER, has_long_rows),),
    ),
    "_unique": OperatorModel(surface="selection", host_reads=(COUNT,)),
    "_unique2": OperatorModel(lowering=_sort, surface="selection", host_reads=(COUNT,)),
    "unique_dim": OperatorModel(surface="selection", host_reads=(BY_THRUST,)),
    "unique_consecutive": OperatorModel(
        surface="selection",
        host_reads=(
            replace(COUNT, condition=lambda call: call("dim") is None and has_elements(call)),
            replace(BY_THRUST, condition=lambda call: call("dim") is not None),
        ),
    ),
    "searchsorted": OperatorModel(
        surface="search",
        host_reads=(_PLACES, replace(_PLACES, check=check_sorter)),  # the least and the largest
    ),
    "bucketize": OperatorModel(surface="search"),
    "isin": OperatorModel(
        surface="search",
        # How many of the elements differ, and how many of the test elements.
        host_reads=(HostRead(When.BEFORE, is_sorted),) * 2,
    ),
    # Results whose size depends on values
    "nonzero masked_select": OperatorModel(surface="selection", host_reads=(SIZE,)),
    "equal": OperatorModel(host_numbers=(), surface="selection", host_reads=(SIZE,)),
    "bincount": OperatorModel(
        surface="selection",
        host_reads=(COUNT,),
        nondeterministic=Alert("_bincount_cuda", lambda call: call("weights") is not None),
    ),
    "histc": OperatorModel(
        surface="selection",
        checks=(refuse("histc", HALVES),),
        host_reads=(
            HostRead(
                When.FOR_SIZE, lambda call: call("min") == call("max") and has_elements(call)
            ),
        ),
        nondeterministic=Alert(
            "_histc_cuda with floating point input",
            lambda call: call("self").is_floating_point(),
        ),
    ),
    "histogram _histogramdd_bin_edges _histogramdd_from_bin_cts _histogramdd_from_bin_tensors": (
        OperatorModel(is_on_cpu_alone=True)
    ),
    "repeat_interleave": OperatorModel(
        host_reads=(
            HostRead(
                When.FOR_SIZE, lambda call: call("output_size") is None and has_elements(call)
            ),
        ),
        dry_run=DryRun.OF_TYPES,
    ),
    # A draw for each row
    "multinomial": OperatorModel(
        surface="multinomial",
        n_inside=10,
        checks=(check_multinomial,),
        may_find_wrong_values=True,
    ),
    # Transforms and distances
    "_fft_r2c _fft_c2c _fft_c2r": OperatorModel(lowering=_fourier),
    "_euclidean_dist": OperatorModel(n_inside=10),
    "_cdist_forward _pdist_forward": OperatorModel(has_halves=False),
    "cdist pdist cosine_similarity frobenius_norm nuclear_norm": OperatorModel(
        autocast=Autocast.FLOAT32
    ),
    "linalg_matrix_norm": OperatorModel(autocast=Autocast.FLOAT32_RESULT),
}
