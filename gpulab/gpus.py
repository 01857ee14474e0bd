"""What is known of each GPU: peaks, bandwidth and sizes, every figure with its reference."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from gpulab.errors import UnknownNameError

_IGNORED = str.maketrans("", "", " -_")


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
    boost_clock_mhz, memory_clock_mhz
        Highest clock of the multiprocessors, and the clock of the device memory.
    peak_flops_per_s
        Dense peak by type: ``float16``, ``bfloat16``, ``tf32``, ``float32``, ``float64``. A type
        without units of its own has the peak of ``float32``.
    compute_capability
        As ``(major, minor)``.
    copy_engines
        Engines that copy beside the kernels, as the driver counts them.
    tdp_w
        Power limit in watts.
    idle_w
        Power at rest with a CUDA context, in watts. No data sheet states it: it was read on an
        H200, and the other GPUs take the same share of their limit.
    recorded
        Whether the model of the virtual GPU was fitted to recordings of such a GPU.
    reference
        The document that the figures come from; sizes and clocks are as drivers report them.
    """

    name: str
    driver_name: str
    n_sms: int
    memory_bytes: int
    l2_bytes: int
    bandwidth_bytes_per_s: float
    link_bytes_per_s: float
    boost_clock_mhz: int
    memory_clock_mhz: int
    peak_flops_per_s: dict[str, float]
    compute_capability: tuple[int, int]
    copy_engines: int
    tdp_w: int
    idle_w: int
    recorded: bool
    reference: str

    @property
    def basis(self) -> str:
        """What figures computed from it rest on, to be shown beside them.

        Examples
        --------
        >>> gpu("H200").basis, gpu("T4").basis
        ('recorded on one', 'extrapolated from its data sheet')
        """
        return "recorded on one" if self.recorded else "extrapolated from its data sheet"


def gpu(name: str) -> GpuSpec:
    """Return the figures of the GPU called ``name``; case, spaces and dashes do not matter.

    Raises
    ------
    UnknownNameError
        If there is no such GPU in the table; the message names the nearest.

    Examples
    --------
    >>> gpu("h200").n_sms, gpu("RTX 4090").n_sms
    (132, 128)
    """
    if not is_known(name):
        raise UnknownNameError("GPU", name, names())
    return _table()[_key(name)]


def is_known(name: object) -> bool:
    """Tell whether the table has a GPU called ``name``."""
    return isinstance(name, str) and _key(name) in _table()


def by_driver_name(driver_name: str) -> GpuSpec | None:
    """Return the figures of the GPU that the driver calls so, or None if the table has none.

    Examples
    --------
    >>> by_driver_name("NVIDIA H200").name, by_driver_name("NVIDIA Nonesuch")
    ('H200', None)
    """
    found = (spec for spec in _table().values() if spec.driver_name == driver_name)
    return next(found, None)


def is_extrapolated(driver_name: str) -> bool:
    """Tell whether a virtual GPU of this name is computed from a data sheet alone.

    Examples
    --------
    >>> is_extrapolated("Tesla T4"), is_extrapolated("NVIDIA H200")
    (True, False)
    """
    return any(spec.driver_name == driver_name and not spec.recorded for spec in _table().values())


def names() -> tuple[str, ...]:
    """Return the short names of the known GPUs, sorted."""
    return tuple(sorted(spec.name for spec in _table().values()))


def _key(name: str) -> str:
    return name.upper().translate(_IGNORED)


@cache
def _table() -> dict[str, GpuSpec]:
    rows = json.loads(files("gpulab").joinpath("data/gpus.json").read_text("utf-8"))
    return {_key(row["name"]): _spec(row) for row in rows}


def _spec(row: dict[str, object]) -> GpuSpec:
    row["compute_capability"] = tuple(row["compute_capability"])  # type: ignore[arg-type] # JSON has lists only
    return GpuSpec(**row)  # type: ignore[arg-type] # the table is checked by its tests
