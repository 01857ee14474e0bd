"""Measure the ceilings of the GPU in use: memory, matmul, cache and the shortest kernel."""

from collections.abc import Callable, Iterator

import torch

from gpulab import device
from gpulab.core.interrupts import contextmanager
from gpulab.core.requirements import SECONDS
from gpulab.gpus import MEASURED, Roof
from gpulab.roofline._ceilings import Ceilings, ceilings
from gpulab.timing import measure
from gpulab.workloads import workload
from gpulab.workloads.sweeps import without_values

_DTYPES = {
    "float16": "float16",
    "bfloat16": "bfloat16",
    "tf32": "float32",
    "float32": "float32",
    "float64": "float64",
}
_SIDES = (8192, 4096, 2048)
_LONGEST_S = 0.02  # longest matmul; a larger one would not show a higher rate
_COPY_ELEMENTS, _COPY_SHARE = 1 << 28, 16  # source and target: at most 1/16 of the memory each
_ITEM_BYTES = 4
# On an H200, both partitions of the 60 MiB of L2 store a copy of what is read. So a copy of an
# eighth of the L2 stays inside it. The bandwidth is the difference in bytes to a copy of 1/24,
# over the difference in time, which removes the fixed costs of a kernel.
_L2_SHARES = (24, 8)


def measure_ceilings(*, max_time_s: float = 0.2) -> Ceilings:
    """Return the limits that the GPU in use reaches, and those of its data sheet and clocks.

    Peaks come from matmuls of square matrices by PyTorch's library, with the largest side of 8192,
    4096 and 2048 that takes at most 20 ms. The bandwidth is that of a copy of 1 GiB, or of a
    sixteenth of the memory if that is less; bytes read and bytes written both count. The bandwidth
    of the L2 comes from two copies that fit into it. The floor is the time of adding one element.
    Good kernels reach these values today at these clocks; a better kernel may exist.

    Parameters
    ----------
    max_time_s
        Longest time for each of the nine values, in seconds, without warm-up.

    Returns
    -------
    Ceilings
        Ceilings with ``measured``; a type that the GPU or its library does not offer has no peak.

    Examples
    --------
    ::

        with gpulab.virtual_gpu("H200"):
            print(gpulab.roofline.measure_ceilings())

    >>> import gpulab
    >>> gpulab.roofline.measure_ceilings(max_time_s=0)
    Traceback (most recent call last):
        ...
    gpulab.core.errors.InvalidOptionError: max_time_s=0; it must be a number of seconds above 0
    """
    SECONDS.check(max_time_s=max_time_s)

    def timed(work: Callable[[], object], cache: str) -> float:
        return measure(work, cache=cache, max_time_s=max_time_s, progress=False).median_s

    with device.active(), without_values(device.current()):
        # The clocks are read first: matmuls heat the GPU, and then its clock falls.
        unmeasured = ceilings()
        sides, peaks = _peaks(timed)
        n_copied = _n_copied()
        roof = Roof(
            MEASURED,
            peaks,
            _rate(timed, n_copied, "cold"),
            _l2_rate(timed),
            timed(workload("add").make(1, "float32"), "hot"),
            detail=f"matmuls of {sides}, copy of {n_copied * _ITEM_BYTES >> 20} MiB",
        )
    return Ceilings(unmeasured.device_name, unmeasured.source, (*unmeasured.roofs, roof))


MedianTimer = Callable[[Callable[[], object], str], float]


def _peaks(timed: MedianTimer) -> tuple[str, dict[str, float]]:
    """Return the sides of the matmuls as text, and their rates by the type of the arithmetic."""
    peaks: dict[str, float] = {}
    sides = set()
    for arithmetic, dtype in _DTYPES.items():
        with _tf32(allowed=arithmetic == "tf32"):
            try:
                side = _side(timed, dtype)
                matmul = workload("matmul").make(side, dtype)
                peaks[arithmetic] = workload("matmul").flops(side) / timed(matmul, "cold")
            # This is a RuntimeError too, but it does not mean that the type is missing.
            except torch.OutOfMemoryError:
                raise
            except RuntimeError:  # the library has no matmul of this type for this GPU
                continue
        sides.add(side)
    return " and ".join(map(str, sorted(sides))), peaks


def _side(timed: MedianTimer, dtype: str) -> int:
    least = _SIDES[-1]
    # The smallest is always timed; the times of the others follow from it, as n cubed.
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
    # A share of the total memory, not of the free: the result must not depend on other tensors.
    n_elements = total_bytes // _COPY_SHARE // _ITEM_BYTES
    # A power of two, so that all GPUs with enough memory copy the same amount.
    return int(min(_COPY_ELEMENTS, 1 << (n_elements.bit_length() - 1)))


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
