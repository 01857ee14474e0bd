"""The table of GPUs: peaks, bandwidth and sizes from data sheets, each with its reference."""

import json
import re
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files
from typing import Any

from gpulab.core.errors import UnknownNameError

# People write "RTX 4090", "rtx-4090" and "RTX4090".
_IGNORED = str.maketrans("", "", " -_")
_PEAKS, _PEAK_CLOCKS = "peak_flops_per_s", "peak_clock_mhz"
_LINK, _PEER = "link_bytes_per_s", "peer_bytes_per_s"
# Fields without a reference of their own. Peaks have one for each type.
_NOT_FIGURES = frozenset({"name", "driver_name", "recorded", "references", _PEAKS})
_UNCONFIRMED = "unconfirmed"
# The driver's name for a part of a GPU: "NVIDIA H200 MIG 1g.18gb".
_SLICE = re.compile(r"^(?P<whole>.+) MIG (?P<part>\S+)$")
# Names of virtual GPUs end in the memory that they have: "GRID A100-10C", "NVIDIA A10-24Q".
_SHARE = re.compile(r"-\d+[ABCQ]$")
_MEASURED_ONLY = "there is no data sheet to compare with, only roofs that are measured on it"


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """Data-sheet figures of one GPU.

    They are limits that the vendor states; programs reach less.

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
    bandwidth_bytes_per_s, link_bytes_per_s, peer_bytes_per_s
        Bandwidth of the device memory, of the link to the host, and of the link to another GPU of
        this kind, the links in one direction. A GPU without links of its own (NVLink) reaches
        another one as fast as the host.
    boost_clock_mhz, memory_clock_mhz
        Highest clock of the multiprocessors, and the clock of the device memory.
    peak_flops_per_s
        Dense peak by type: ``float16``, ``bfloat16``, ``tf32``, ``float32``, ``float64``. A type
        without units of its own has the peak of ``float32``.
    peak_clock_mhz
        Clock of the multiprocessors for which each of these peaks is stated. For most GPUs it is
        ``boost_clock_mhz``. For Hopper's tensor cores it is lower, so that such a GPU can exceed
        these peaks.
    compute_capability
        As ``(major, minor)``.
    copy_engines
        Engines that copy while kernels run, as the driver counts them.
    tdp_w
        Power limit in watts.
    idle_w
        Power at rest with a CUDA context, in watts. No data sheet states it: it was read on an
        H200, and for the other GPUs the same share of their limit is assumed.
    recorded
        Whether the model of the virtual GPU was fitted to recordings of such a GPU.
    references
        The document behind each figure, by the name of the figure; a peak is called
        ``"peak_flops_per_s.float64"``. If a reference begins with "unconfirmed", the figure is in
        no document of the vendor and was not read on such a GPU.
    """

    name: str
    driver_name: str
    n_sms: int
    memory_bytes: int
    l2_bytes: int
    bandwidth_bytes_per_s: float
    link_bytes_per_s: float
    peer_bytes_per_s: float
    boost_clock_mhz: int
    memory_clock_mhz: int
    peak_flops_per_s: dict[str, float]
    peak_clock_mhz: dict[str, int]
    compute_capability: tuple[int, int]
    copy_engines: int
    tdp_w: int
    idle_w: int
    recorded: bool
    references: dict[str, str]

    @property
    def reference(self) -> str:
        """The document that states the bandwidth and most peaks."""
        return self.references["bandwidth_bytes_per_s"]

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """The names of figures that no document and no reading confirms, sorted."""
        references = self.references.items()
        return tuple(sorted(name for name, text in references if text.startswith(_UNCONFIRMED)))

    @property
    def basis(self) -> str:
        """The basis of times that are computed for this GPU, to be shown beside them."""
        return "recorded on one" if self.recorded else "extrapolated from its data sheet"


def gpu(name: str) -> GpuSpec:
    """Return the data sheet of the GPU called ``name``; case, spaces and dashes do not matter.

    Raises
    ------
    UnknownNameError
        If the table has no such GPU; the message suggests the nearest.

    Examples
    --------
    >>> gpu("h200").n_sms, gpu("RTX 4090").n_sms
    (132, 128)
    """
    if not is_known(name):
        raise UnknownNameError("GPU", name, names())
    return _table()[_key(name)]


def is_known(name: object) -> bool:
    """Return whether the table has a GPU called ``name``."""
    return isinstance(name, str) and _key(name) in _table()


def by_driver_name(driver_name: str) -> GpuSpec | None:
    """Return the data sheet of the GPU with this driver name, or None if the table has none.

    Older drivers leave out "NVIDIA". There is no data sheet for a part of a GPU (MIG, virtual
    GPUs) or for a variant such as the one in a laptop; :func:`why_unknown` returns the reason.
    """
    return _by_driver_name().get(_bare(driver_name))


def why_unknown(driver_name: str) -> str:
    """Return why there is no data sheet for a driver name; empty if there is one."""
    if by_driver_name(driver_name) is not None:
        return ""
    if slice_match := _SLICE.match(driver_name):
        full_gpu = by_driver_name(slice_match["whole"])
        name = "whole" if full_gpu is None else full_gpu.name
        reason = (
            f"is a part of a GPU (MIG {slice_match['part']}), for which the figures of the {name}"
        )
        return f"{driver_name} {reason} do not hold: {_MEASURED_ONLY}"
    if _SHARE.search(driver_name):
        reason = "is a virtual GPU, which has a share of a real one"
        return f"{driver_name} {reason}: {_MEASURED_ONLY}"
    return f"{driver_name} is not in the table of GPUs: {_MEASURED_ONLY}"


def is_extrapolated(driver_name: str) -> bool:
    """Return whether a virtual GPU of this driver name is computed from a data sheet alone."""
    spec = by_driver_name(driver_name)
    return spec is not None and not spec.recorded


def names() -> tuple[str, ...]:
    """Return the short names of all GPUs in the table, sorted."""
    return tuple(sorted(spec.name for spec in _table().values()))


def _key(name: str) -> str:
    return name.upper().translate(_IGNORED)


def _bare(driver_name: str) -> str:
    # Older drivers leave the prefix out, so it is left out on both sides.
    return driver_name.removeprefix("NVIDIA ")


@cache
def _file() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        files("gpulab").joinpath("data/gpus.json").read_text("utf-8")
    )
    return content


@cache
def _table() -> dict[str, GpuSpec]:
    documents = _file()["documents"]
    return {_key(row["name"]): _spec(row, documents) for row in _file()["gpus"]}


@cache
def _by_driver_name() -> dict[str, GpuSpec]:
    """Return the GPUs by driver name, and boards that differ from one of them in a few figures."""
    specs = {_bare(spec.driver_name): spec for spec in _table().values()}
    for row in _file()["gpus"]:
        for name, others in row.get("also", {}).items():
            specs[_bare(name)] = replace(_table()[_key(row["name"])], driver_name=name, **others)
    return specs


def _spec(row: dict[str, Any], documents: dict[str, str]) -> GpuSpec:
    references, peaks = row["references"], row[_PEAKS]
    # Without links of its own a GPU reaches others as it reaches the host.
    if _PEER not in row:
        row = {_PEER: row[_LINK], **row}
        references = {_PEER: references.get(_LINK, references["default"]), **references}
    # "also" lists boards that differ in a few figures; they become records of their own.
    values = {key: value for key, value in row.items() if key != "also"}
    # Only Hopper's rows state another clock, and only for its tensor cores.
    at_boost = dict.fromkeys(peaks, row["boost_clock_mhz"])
    values[_PEAK_CLOCKS] = at_boost | row.get(_PEAK_CLOCKS, {})
    values["compute_capability"] = tuple(row["compute_capability"])
    figures = {name: references.get(name, references["default"]) for name in row.keys() & _FIGURES}
    # The boost clock's reference, if no document states another clock for the peaks.
    figures[_PEAK_CLOCKS] = references.get(_PEAK_CLOCKS, figures["boost_clock_mhz"])
    # A peak's own reference counts before that of all peaks, and that before the default.
    usual = references.get(_PEAKS, references["default"])
    figures |= {f"{_PEAKS}.{name}": references.get(f"{_PEAKS}.{name}", usual) for name in peaks}
    values["references"] = {name: documents[key] for name, key in sorted(figures.items())}
    return GpuSpec(**values)


_FIGURES = frozenset(field.name for field in fields(GpuSpec)) - _NOT_FIGURES
