"""What is known of each GPU: peaks, bandwidth and sizes, every figure with its reference."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from gpulab.errors import UnknownNameError


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """Data-sheet figures of one GPU.

    They are limits that the vendor states, not what a program reaches.

    Attributes
    ----------
    name
        Short name, e.g. ``"H200"``.
    driver_name
        The name that the driver reports, e.g. ``"NVIDIA H200"``.
    n_sms
        Streaming multiprocessors.
    memory_bytes, l2_bytes
        Sizes of the device memory and of the L2 cache, as the driver reports them.
    bandwidth_bytes_per_s, link_bytes_per_s
        Device memory, and the link to the host in one direction.
    boost_clock_mhz
        Highest clock of the multiprocessors.
    peak_flops_per_s
        Dense peak by type: ``float16``, ``bfloat16``, ``tf32``, ``float32``, ``float64``.
    compute_capability
        As ``(major, minor)``.
    reference
        The document that the figures come from.
    """

    name: str
    driver_name: str
    n_sms: int
    memory_bytes: int
    l2_bytes: int
    bandwidth_bytes_per_s: float
    link_bytes_per_s: float
    boost_clock_mhz: int
    peak_flops_per_s: dict[str, float]
    compute_capability: tuple[int, int]
    reference: str


def gpu(name: str) -> GpuSpec:
    """Return the figures of the GPU called ``name``, in any case.

    Raises
    ------
    UnknownNameError
        If there is no such GPU in the table; the message names the nearest.

    Examples
    --------
    >>> gpu("h200").n_sms
    132
    """
    key = name.upper() if isinstance(name, str) else name
    if key not in _table():
        raise UnknownNameError("GPU", name, names())
    return _table()[key]


def names() -> tuple[str, ...]:
    """Return the short names of the known GPUs, sorted."""
    return tuple(sorted(_table()))


@cache
def _table() -> dict[str, GpuSpec]:
    rows = json.loads(files("gpulab").joinpath("data/gpus.json").read_text("utf-8"))
    return {row["name"]: _spec(row) for row in rows}


def _spec(row: dict[str, object]) -> GpuSpec:
    row["compute_capability"] = tuple(row["compute_capability"])  # type: ignore[arg-type] # JSON has lists only
    return GpuSpec(**row)  # type: ignore[arg-type] # the table is checked by its tests
