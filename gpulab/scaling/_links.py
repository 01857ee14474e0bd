"""How long the copies between host and GPU would take over another link, such as PCIe 5.

These times are computed, not measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

import torch

from gpulab import gpus
from gpulab.errors import InvalidOptionError, UnknownNameError
from gpulab.requirements import NAME
from gpulab.scaling._curve import Curve, with_fit
from gpulab.units import format_rate
from gpulab.workloads import workload

_IGNORED = str.maketrans("", "", " -_.")
# All seen on an H200: a copy from pinned memory reached 0.88 of the link's rate, took 1.7 µs
# before its first byte, and kept the host for about 5 µs, as did other launches.
_REACHED = 0.88
_FIRST_BYTE_S = 1.7e-6
_LAUNCH_S = 5e-6


@dataclass(frozen=True, slots=True)
class HostLink:
    """A connection between host and GPU.

    Attributes
    ----------
    name
        As it is shown.
    bytes_per_s
        What it carries in one direction, by its specification.
    reference
        The document that the figure comes from.
    """

    name: str
    bytes_per_s: float
    reference: str

    def copy_s(self, n_bytes: int) -> float:
        """Return how long a copy from pinned memory occupies the link.

        The rate is the share of the specified one that an H200 reached. Pageable memory is
        slower, whatever the link.
        """
        return _FIRST_BYTE_S + n_bytes / (_REACHED * self.bytes_per_s)

    def __str__(self) -> str:
        return f"{self.name} ({format_rate(self.bytes_per_s, 'B')})"


# 16 lanes of 8, 16 and 32 GT/s, of which 128 in 130 bits are data.
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


def find_link(name: str) -> HostLink:
    """Return the link of this name; case, spaces, dashes and dots do not matter.

    Raises
    ------
    UnknownNameError
        If there is none; the message names the nearest.

    Examples
    --------
    >>> print(find_link("pcie4"))
    PCIe 4 (31.5 GB/s)
    """
    NAME.check(link=name)
    by_key = {_key(link.name): link for link in LINKS.values()}
    if _key(name) not in by_key:
        raise UnknownNameError("link", name, LINKS)
    return by_key[_key(name)]


def link_of(device_name: str) -> HostLink:
    """Return the link that a GPU's data sheet has.

    Raises
    ------
    InvalidOptionError
        If the GPU is not known.
    """
    spec = gpus.by_driver_name(device_name)
    if spec is None:
        raise InvalidOptionError(
            f"link=None, and the link of {device_name!r} is not known; "
            f"name one of {', '.join(LINKS)}"
        )
    return HostLink(f"the link of the {spec.name}", spec.link_bytes_per_s, spec.reference)


def over_link(curve: Curve, name: str, dtype: str, transfers: str, link: HostLink) -> Curve:
    """Return a GPU's curve with the copies over a link added to every time.

    The interval of each time stays as wide as it was: nothing is known of the error of the link.

    Parameters
    ----------
    curve
        Times without transfers.
    name, dtype
        The workload and its type.
    transfers
        ``"in"``, ``"out"`` or ``"both"``.
    link
        What the copies go over.
    """
    extra_s = [copies_s(name, size, dtype, transfers, link) for size in curve.sizes]

    def later(times_s: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(one + more for one, more in zip(times_s, extra_s, strict=True))

    moved = replace(
        curve,
        median_s=later(curve.median_s),
        low_s=later(curve.low_s),
        high_s=later(curve.high_s),
        how=f"transfers {transfers}, computed for {link}",
        fit=None,
    )
    return with_fit(moved, name, dtype)


def copies_s(name: str, size: int, dtype: str, transfers: str, link: HostLink) -> float:
    """Return by how many seconds its copies make one call longer.

    The host launches copy after copy while the link is at work, so the shorter of the two hides
    behind the longer. The work's own launch hides behind its inputs, too. That results are
    launched while the work runs is left out: where that would count, the copies take longer.
    """
    going_in, coming_out = payload(name, size, dtype)
    host_s = link_s = 0.0
    for n_bytes in going_in if transfers in {"in", "both"} else ():
        host_s += _LAUNCH_S
        link_s = max(link_s, host_s) + link.copy_s(n_bytes)
    host_s += _LAUNCH_S  # of the work itself, which the time without transfers has in it
    link_s = max(link_s, host_s)
    for n_bytes in coming_out if transfers in {"out", "both"} else ():
        host_s += _LAUNCH_S
        link_s = max(link_s, host_s) + link.copy_s(n_bytes)
    return link_s - _LAUNCH_S


@cache
def payload(name: str, size: int, dtype: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the bytes of each input, and of each result, of a workload at one size.

    Examples
    --------
    >>> payload("add", 1024, "float32")
    ((4096, 4096), (4096,))
    """
    offered = workload(name)
    # Tensors without memory: shapes are all that is asked for.
    inputs = offered.setup(size, dtype, "meta")
    problem = offered.problem(size)
    # What is prepared works in place, on the first of its inputs.
    results = inputs[0] if problem.prepared else problem.work(inputs)()
    listed = (results,) if isinstance(results, torch.Tensor) else tuple(results)
    return tuple(map(_n_bytes, inputs)), tuple(map(_n_bytes, listed))


def _n_bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _key(name: str) -> str:
    return name.upper().translate(_IGNORED)
