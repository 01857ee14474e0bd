"""The three rooflines of a GPU: from its data sheet, from its clocks now, and as measured."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpulab import device, gpus
from gpulab.core.errors import InvalidOptionError, RecordingError
from gpulab.core.foreign_text import one_line, visible, visible_row
from gpulab.core.requirements import check_fields, instance_of
from gpulab.core.units import format_rate, format_time
from gpulab.device import clocks
from gpulab.gpus import BASES, DATA_SHEET, LIVE, MEASURED, GpuSpec, Roof, at_clocks, data_sheet
from gpulab.gpus.provenance import check_source, device_label
from gpulab.workloads import workload
from gpulab.workloads.recordings import Recording

if TYPE_CHECKING:
    import pandas as pd


_MEMORY, _L2, _FLOOR = "memory", "L2", "floor"
_UNITS = {_MEMORY: "B/s", _L2: "B/s", _FLOOR: "s"}
_FLOPS = "FLOP/s"
# An idle GPU may have a low clock, so it is read under load. A driver updates the clocks that it
# reports every 0.1 s, so the load must last longer.
_LOOK_S, _LOAD_ELEMENTS = 0.25, 1 << 24


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Up to three roofs of one GPU, each with limits of one kind only.

    Attributes
    ----------
    device_name
        As the driver reports it.
    source
        Where the clocks and the measured roof come from: ``"measured"``, ``"recorded"`` or
        ``"virtual"``; empty if there is only a data sheet.
    roofs
        At most one each: data sheet, data sheet at the current clocks, and measured.

    Examples
    --------
    >>> from gpulab.roofline import Ceilings, ceilings
    >>> sheet = ceilings("A100").data_sheet
    >>> Ceilings("my A100", "", (sheet,)).measured is None
    True
    """

    device_name: str
    source: str
    roofs: tuple[Roof, ...]

    def __post_init__(self) -> None:
        check_fields(self)
        if self.source:
            check_source(self.source)
        bases = [roof.basis for roof in self.roofs]
        if len(set(bases)) < len(bases) or not set(bases) <= set(BASES):
            raise InvalidOptionError(
                f"roofs of {', '.join(bases)}; give at most one each of {', '.join(BASES)}"
            )

    @property
    def data_sheet(self) -> Roof | None:
        """The roof that the vendor states; None if no data sheet is known."""
        return self._of(DATA_SHEET)

    @property
    def live(self) -> Roof | None:
        """The roof of the data sheet at the GPU's clocks; None if they cannot be read."""
        return self._of(LIVE)

    @property
    def measured(self) -> Roof | None:
        """The roof that kernels reach; None if it was not measured."""
        return self._of(MEASURED)

    def _of(self, basis: str) -> Roof | None:
        return next((roof for roof in self.roofs if roof.basis == basis), None)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one plain row per value, as a recording stores them."""
        return [row for roof in self.roofs for row in _rows_of(roof)]

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with one row per value.

        Columns are ``roof``, ``quantity``, ``value``, ``unit`` and ``detail``.
        """
        import pandas as pd

        table = pd.DataFrame(
            map(visible_row, self.to_rows()),
            columns=["roof", "quantity", "value", "unit", "detail"],
        )
        return table.assign(source=self.source, device_name=visible(self.device_name))

    def __str__(self) -> str:
        name = device_label(self.device_name, self.source) if self.source else self.device_name
        lines = [f"Ceilings of {name}"]
        why = gpus.why_unknown(self.device_name)
        lines += [why] if why else []
        lines += [_line(roof) for roof in self.roofs]
        return "\n".join(map(one_line, lines))

    __repr__ = __str__


CEILINGS = instance_of(Ceilings, "the ceilings of a GPU, such as ceilings('H200')")


def ceilings(gpu: str | GpuSpec | None = None) -> Ceilings:
    """Return the roofs of a GPU that need no measurement of bandwidth or arithmetic.

    Parameters
    ----------
    gpu
        Name of a GPU: its data sheet alone. None: the GPU in use, with its data sheet, also at the
        clocks that it has under a light load of a quarter of a second. Work at the power limit
        has lower clocks. A GPU without a known data sheet has no roof, and ``str`` of the result
        says so; use :func:`measure_ceilings`.

    Raises
    ------
    UnknownNameError
        If there is no GPU of that name.

    Examples
    --------
    >>> import gpulab
    >>> gpulab.roofline.ceilings("H200").device_name
    'NVIDIA H200'
    """
    if gpu is not None:
        instance_of((str, GpuSpec), "the name of a GPU, a GpuSpec, or None").check(gpu=gpu)
        spec = gpu if isinstance(gpu, GpuSpec) else gpus.by_driver_name(gpu) or gpus.gpu(gpu)
        # No source: a data sheet is neither measured nor computed.
        return Ceilings(spec.driver_name, "", (data_sheet(spec),))
    with device.active() as in_use:
        spec_in_use = gpus.by_driver_name(in_use.name)
        roofs = () if spec_in_use is None else (data_sheet(spec_in_use), *_live(spec_in_use))
        return Ceilings(in_use.name, in_use.source, roofs)


def _live(spec: GpuSpec) -> Iterator[Roof]:
    # Asked first, so that a machine without NVML need not run the load.
    if clocks.try_read() is None:
        return
    load = workload("copy").make(_LOAD_ELEMENTS, "float32")
    # The last reading counts: the first ones may still show the clocks of an idle GPU.
    *_, reading = clocks.watch(load, duration_s=_LOOK_S, parts=("sm_mhz", "memory_mhz"))
    if reading.sm_mhz and reading.memory_mhz:
        yield at_clocks(spec, reading.sm_mhz, reading.memory_mhz)


def ceilings_of(recording: Recording) -> Ceilings:
    """Return the roofs that a recording contains.

    Raises
    ------
    UnknownNameError
        If it has no section of ceilings.
    RecordingError
        If a row of that section is not a value of a roof.

    Examples
    --------
    >>> import gpulab
    >>> recorded = gpulab.recordings.load("h200-sxm-2026-11")
    >>> gpulab.roofline.ceilings_of(recorded).measured is None
    False
    """
    instance_of(Recording, "a recording, such as recordings.load() returns").check(
        recording=recording
    )
    rows = [
        {str(name): value for name, value in row.items()}
        for row in recording.section("ceilings").to_dict("records")
    ]
    for row in rows:
        if not _is_figure(row):
            raise RecordingError(
                f"{recording.name} is damaged: {row} in its section of ceilings is not a value of "
                "a roof, above 0; take the original again, or make a new one: "
                "gpulab record --out FILE"
            )
    source = "virtual" if recording.is_virtual else "recorded"
    return Ceilings(str(recording.provenance.get("gpu")), source, tuple(_roofs_of(rows)))


def _is_figure(row: dict[str, Any]) -> bool:
    value = row.get("value")
    return (
        isinstance(row.get("roof"), str)
        and isinstance(row.get("quantity"), str)
        and isinstance(value, int | float)
        and 0 < value < math.inf
    )


def _rows_of(roof: Roof) -> Iterator[dict[str, Any]]:
    figures = {
        **roof.peak_flops_per_s,
        _MEMORY: roof.bandwidth_bytes_per_s,
        _L2: roof.l2_bytes_per_s,
        _FLOOR: roof.floor_s,
    }
    for quantity, value in figures.items():
        if value is not None:
            yield {
                "roof": roof.basis,
                "quantity": quantity,
                "value": value,
                "unit": _UNITS.get(quantity, _FLOPS),
                "detail": roof.detail,
            }


def _roofs_of(rows: Iterable[dict[str, Any]]) -> Iterator[Roof]:
    every_row = list(rows)
    # Unknown rows, such as those of a later version, are ignored.
    for basis in BASES:
        values = {
            row["quantity"]: float(row["value"]) for row in every_row if row["roof"] == basis
        }
        # Every roof has a bandwidth, so without one there is no roof of this kind.
        if _MEMORY not in values:
            continue
        peaks = {name: value for name, value in values.items() if name not in _UNITS}
        detail = next(str(row.get("detail", "")) for row in every_row if row["roof"] == basis)
        yield Roof(basis, peaks, values[_MEMORY], values.get(_L2), values.get(_FLOOR), detail)


def _line(roof: Roof) -> str:
    detail = f" ({roof.detail})" if roof.detail else ""
    return f"{roof.basis}: {', '.join(map(_figure, _rows_of(roof)))}{detail}"


def _figure(row: dict[str, Any]) -> str:
    quantity, value, unit = row["quantity"], row["value"], row["unit"]
    is_time = quantity == _FLOOR
    return f"{quantity} {format_time(value) if is_time else format_rate(value, unit[:-2])}"
