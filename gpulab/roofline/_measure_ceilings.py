"""Measure the ceilings of the GPU in use: memory, matmul, cache and the shortest kernel."""

from collections.abc import Callable, Iterator

import torch

from gpulab import device
from gpulab.gpus import MEASURED, Roof
from gpulab.interrupts import contextmanager
from gpulab.requirements import FLAG, SECONDS
from gpulab.roofline._ceilings import Ceilings, ceilings
from gpulab.timing import measure
from gpulab.workloads import workload

_DTYPES = {
    "float16": "float16",
    "bfloat16": "bfloat16",
    "tf32": "float32",
    "float32": "float32",
    "float64": "float64",
}
_SIDES = (8192, 4096, 2048)
_LONGEST_S = 0.02  # of one product; longer ones tell no more
_COPY_ELEMENTS, _COPY_SHARE = 1 << 28, 16  # at most this share of the memory for each side
_ITEM_BYTES = 4
# Of an H200's cache of 60 MiB two partitions hold what is read, so that a copy of an eighth of it
# stays inside, and one of a twenty-fourth takes less time by what the difference takes to move.
_L2_SHARES = (24, 8)


def measure_ceilings(*, max_time_s: float = 0.2, progress: bool = False) -> Ceilings:
    """Measure what the GPU in use reaches, beside what its data sheet and its clocks promise.

    Peaks are those of square products from PyTorch's library, the largest side of 8192, 4096
    and 2048 that takes at most 20 ms; bandwidth is that of a copy, bytes read and bytes written
    counted, of 1 GiB or what a sixteenth of the memory holds. That of the L2 is what a larger
    copy inside it takes longer than a smaller one. The floor is an addition of one element. They
    are what good kernels reach on this day and at these clocks, and a better one may exist.

    Parameters
    ----------
    max_time_s
        Seconds for each of the nine figures at most; warming up comes on top.
    progress
        Whether to show a bar for each.

    Returns
    -------
    Ceilings
        With ``measured``; a type that the GPU or its library does not offer has no peak.

    Examples
    --------
    >>> import gpulab
    >>> with gpulab.virtual_gpu("H200"):  # doctest: +SKIP
    ...     print(gpulab.roofline.measure_ceilings())
    """
    SECONDS.check(max_time_s=max_time_s)
    FLAG.check(progress=progress)

    def timed(work: Callable[[], object], cache: str) -> float:
        found = measure(work, cache=cache, max_time_s=max_time_s, progress=progress)
        return found.median_s

    with device.active():
        # The clocks are read first: products heat the GPU, and its clock falls.
        known = ceilings()
        sides, peaks = _peaks(timed)
        n_copied = _n_copied()
        roof = Roof(
            MEASURED,
            peaks,
            _rate(timed, n_copied, "cold"),
            _l2_rate(timed),
            timed(workload("add").make(1, "float32"), "hot"),
            detail=f"products of {sides}, copy of {n_copied * _ITEM_BYTES >> 20} MiB",
        )
    return Ceilings(known.device_name, known.source, (*known.roofs, roof))


MedianTimer = Callable[[Callable[[], object], str], float]


def _peaks(timed: MedianTimer) -> tuple[str, dict[str, float]]:
    """Return the sides of the products, and what they reach, by the type of the arithmetic."""
    peaks: dict[str, float] = {}
    sides = set()
    for arithmetic, dtype in _DTYPES.items():
        with _tf32(allowed=arithmetic == "tf32"):
            try:
                side = _side(timed, dtype)
                product = workload("matmul").make(side, dtype)
                peaks[arithmetic] = workload("matmul").flops(side) / timed(product, "cold")
            except torch.OutOfMemoryError:  # a RuntimeError too, and no reason to leave a type out
                raise
            except RuntimeError:  # the library has no such product for this GPU
                continue
        sides.add(side)
    return " and ".join(map(str, sorted(sides))), peaks


def _side(timed: MedianTimer, dtype: str) -> int:
    least = _SIDES[-1]
    took_s = timed(workload("matmul").make(least, dtype), "cold")
    return next(
        side for side in _SIDES if took_s * (side / least) ** 3 <= _LONGEST_S or side == least
    )


@contextmanager
def _tf32(*, allowed: bool) -> Iterator[None]:
    switch = torch.backends.cuda.matmul
    before = switch.allow_tf32
    try:
        switch.allow_tf32 = allowed
        yield
    finally:
        switch.allow_tf32 = before


def _n_copied() -> int:
    _, total_bytes = torch.cuda.mem_get_info()
    # Of the total, not of what is free: the figure should not depend on what else is held.
    room = total_bytes // _COPY_SHARE // _ITEM_BYTES
    return int(min(_COPY_ELEMENTS, 1 << (room.bit_length() - 1)))


def _rate(timed: MedianTimer, n: int, cache: str) -> float:
    copy = workload("copy")
    return copy.bytes(n, "float32") / timed(copy.make(n, "float32"), cache)


def _l2_rate(timed: MedianTimer) -> float | None:
    l2_bytes = torch.cuda.get_device_properties().L2_cache_size
    if not l2_bytes:
        return None
    copy = workload("copy")
    sizes = [l2_bytes // share // _ITEM_BYTES for share in _L2_SHARES]
    few_s, many_s = (timed(copy.make(n, "float32"), "hot") for n in sizes)
    few_bytes, many_bytes = (copy.bytes(n, "float32") for n in sizes)
    longer_s = many_s - few_s
    return (many_bytes - few_bytes) / longer_s if longer_s > 0 else None
