"""Compute how long copies between host and GPU would take over another link, such as PCIe 5.

These times are not measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

import torch

from gpulab import gpus
from gpulab.core.errors import InvalidOptionError, UnknownNameError
from gpulab.core.requirements import NAME, POSITIVE
from gpulab.core.units import format_rate
from gpulab.device import outside
from gpulab.roofline.scaling._curve import Curve, with_fit
from gpulab.virtual import VirtualGpu, virtual_gpu
from gpulab.workloads import workload

_IGNORED = str.maketrans("", "", " -_.")
# Measured on an H200: a copy from pinned memory reached 0.88 of the link's rate, needed 1.7 µs
# before its first byte, and took the host about 5 µs, as other launches do.
_REACHED = 0.88
_FIRST_BYTE_S = 1.7e-6
_LAUNCH_S = 5e-6
# For the pages that compute the same in the browser.
LINK_COSTS = {"reached": _REACHED, "first_byte_s": _FIRST_BYTE_S, "launch_s": _LAUNCH_S}


@dataclass(frozen=True, slots=True)
class HostLink:
    """A connection between host and GPU, with its specified rate in one direction and document."""

    name: str
    bytes_per_s: float
    reference: str

    def copy_s(self, n_bytes: int) -> float:
        """Return how many seconds a copy from pinned memory occupies the link.

        The rate is the share of the specified one that an H200 reached. Copies from pageable
        memory are slower on every link.
        """
        return _FIRST_BYTE_S + n_bytes / (_REACHED * self.bytes_per_s)

    def __str__(self) -> str:
        return f"{self.name} ({format_rate(self.bytes_per_s, 'B')})"


# Bytes per transfer of 16 lanes: 128 of each 130 bits are data, and 8 bits are a byte. A lane of
# PCIe 3, 4 and 5 makes 8, 16 and 32 billion transfers per second.
_LANES = 16 * 128 / 130 / 8
LINKS: Mapping[str, HostLink] = MappingProxyType(
    {
        link.name: link
        for link in (
            HostLink("PCIe 3", 8e9 * _LANES, "PCI Express Base Specification 3.0, 16 lanes"),
            HostLink("PCIe 4", 16e9 * _LANES, "PCI Express Base Specification 4.0, 16 lanes"),
            HostLink("PCIe 5", 32e9 * _LANES, "PCI Express Base Specification 5.0, 16 lanes"),
            HostLink("NVLink", 450e9, "NVIDIA GH200 data sheet: NVLink-C2C, 900 GB/s both ways"),
        )
    }
)


def find_link(name: str | float) -> HostLink:
    """Return the link of this name, or one of this rate in bytes per second.

    Case, spaces, dashes and dots of a name do not matter. `UnknownNameError` suggests the nearest.

    >>> print(find_link("pcie4"))
    PCIe 4 (31.5 GB/s)
    """
    if isinstance(name, int | float):
        POSITIVE.check(link=name)
        return HostLink("a link", name, "your choice")
    NAME.check(link=name)
    by_key = {_key(link.name): link for link in LINKS.values()}
    if _key(name) not in by_key:
        raise UnknownNameError("link", name, LINKS)
    return by_key[_key(name)]


def link_of(device_name: str) -> HostLink:
    """Return the link to the host by a GPU's data sheet; `InvalidOptionError` if there is none."""
    spec = gpus.by_driver_name(device_name)
    if spec is None:
        raise InvalidOptionError(
            f"link=None, and the link of {device_name!r} is not known; "
            f"name one of {', '.join(LINKS)}"
        )
    return HostLink(f"the link of the {spec.name}", spec.link_bytes_per_s, spec.reference)


def over_link(curve: Curve, name: str, dtype: str, transfers: str, link: HostLink) -> Curve:
    """Return a GPU's curve with the time of the copies over a link added to every time.

    The intervals stay as wide as they were, because the error of the link is not known. The curve
    has no transfers; ``transfers`` is ``"in"``, ``"out"`` or ``"both"``.
    """
    extra_s = [copies_s(name, size, dtype, transfers, link) for size in curve.sizes]

    def later(times_s: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(time_s + copy_s for time_s, copy_s in zip(times_s, extra_s, strict=True))

    moved = replace(
        curve,
        median_s=later(curve.median_s),
        low_s=later(curve.low_s),
        high_s=later(curve.high_s),
        how=f"transfers {transfers}, computed for {link}",
        # The line of the old times no longer fits; with_fit makes a new one.
        fit=None,
    )
    return with_fit(moved, name, dtype)


def copies_s(name: str, size: int, dtype: str, transfers: str, link: HostLink) -> float:
    """Return by how many seconds its copies make one call longer.

    The host launches the next copy while the link is busy, so only the longer of the two counts.
    In the same way the launch of the work overlaps with the copies of its inputs. It ignores that
    the copies of results could be launched while the work runs: in the cases where that would
    matter, the copies take longer than their launches.
    """
    going_in, coming_out = payload(name, size, dtype)
    host_s = link_s = 0.0
    for n_bytes in going_in if transfers in {"in", "both"} else ():
        host_s += _LAUNCH_S
        link_s = max(link_s, host_s) + link.copy_s(n_bytes)
    host_s += _LAUNCH_S  # the launch of the work, which the time without transfers includes
    link_s = max(link_s, host_s)
    for n_bytes in coming_out if transfers in {"out", "both"} else ():
        host_s += _LAUNCH_S
        link_s = max(link_s, host_s) + link.copy_s(n_bytes)
    return link_s - _LAUNCH_S


@cache
def payload(name: str, size: int, dtype: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the bytes of each input, and of each result, of a workload at one size.

    >>> payload("add", 1024, "float32")
    ((4096, 4096), (4096,))
    """
    offered = workload(name)
    problem = offered.problem(size)
    with outside(), _without_values():
        inputs = offered.setup(size, dtype)
        # A prepared problem (an optimizer) works in place, on the first of its inputs.
        results = inputs[0] if problem.prepared else problem.work(inputs)()
        listed = (results,) if isinstance(results, torch.Tensor) else tuple(results)
        return tuple(map(_n_bytes, inputs)), tuple(map(_n_bytes, listed))


@cache
def _without_values() -> VirtualGpu:
    """Return a virtual GPU that computes only shapes; their size costs no memory here.

    Tensors on the meta device would do, too, but PyTorch imports sympy and its compiler for some
    operators there: 80 MiB for the rest of the process.
    """
    # The one with the most memory, so that the tensors of every curve fit.
    largest = max(gpus.names(), key=lambda name: gpus.gpu(name).memory_bytes)
    return virtual_gpu(largest, first_use=False, max_value_elements=0)


def _n_bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _key(name: str) -> str:
    return name.upper().translate(_IGNORED)
