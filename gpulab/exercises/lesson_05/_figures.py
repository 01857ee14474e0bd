"""Figures of lesson 05: two programs in both orders, clock and power, and locked clocks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from gpulab import device, virtual
from gpulab.core.units import format_ratio, format_time
from gpulab.figures import (
    INK,
    MUTED,
    Figure,
    Plot,
    finish,
    looks,
    marks,
    need,
    only_labels,
    source_of,
    unit_of,
)
from gpulab.gpus import gpu

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_GPU = "H200"
_STEP_S = 0.02
_SIZE = 8192
_MATMUL_NS = 1_430_000  # time of the matmul on an H200 at the highest clock, recorded
_FALLEN = 0.97  # of the highest clock; a clock at rest moves by 1 or 2 %
_PERCENT = 100


@dataclass(frozen=True, slots=True)
class _Orders(Plot):
    """The times of A and B, call after call, in a panel for each order."""

    record: "pd.DataFrame"

    def __post_init__(self) -> None:
        need(self.record, ("order", "program", "call", "duration_s"))

    @property
    def panels(self) -> "list[tuple[str, pd.DataFrame]]":
        """Name and rows of each order."""
        return [(str(name), part) for name, part in self.record.groupby("order", sort=False)]

    @property
    def ratios(self) -> list[float]:
        """B / A in each order."""
        medians = [
            part.groupby("program")["duration_s"].median().to_dict() for _, part in self.panels
        ]
        return [float(each["B"] / each["A"]) for each in medians]

    @property
    def title(self) -> str:
        said = ", then ".join(format_ratio(ratio) for ratio in self.ratios)
        a_first, b_first = self.ratios
        finding = "Whichever runs second takes longer" if a_first > 1 > b_first else "Both orders"
        return f"{finding}: B / A is {said}"

    @property
    def words(self) -> str:
        return "\n".join(
            f"{order}: "
            + ", then ".join(
                f"{program} from {format_time(part['duration_s'].iloc[0])} to "
                f"{format_time(part['duration_s'].iloc[-1])}"
                for program, part in panel.groupby("program", sort=False)
            )
            + "."
            for order, panel in self.panels
        )

    height_in = 3.4

    def draw(self, ax: "Axes") -> "Axes":
        scale, unit = unit_of(self.record["duration_s"])
        limits = self.record["duration_s"].quantile((0.01, 0.99)) / scale
        for index, (order, panel) in enumerate(self.panels):
            inner = ax.inset_axes((0.03 + index * 0.5, 0.1, 0.46, 0.76))
            for (program, part), look in zip(
                sorted(panel.groupby("program")), looks(), strict=False
            ):
                signs = marks(look, source_of(part)) | {"linestyle": "none", "markersize": 4}
                inner.plot(part["call"], part["duration_s"] / scale, **signs)
                middle = (part["call"].mean(), float(limits.max()) * 1.02)
                inner.text(
                    *middle, str(program), color=look.colour, ha="center", fontweight="bold"
                )
            inner.set_ylim(float(limits.min()) * 0.98, float(limits.max()) * 1.06)
            inner.set_title(order, fontsize="medium")
            inner.grid(visible=True, axis="y")
        only_labels(ax, self.record["call"], self.record["duration_s"] / scale)
        return finish(
            *(ax, "Scatter plots", "call, in the order made", f"time per call ({unit})"),
            legend=False,
        )


def draw_orders(times_ms: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> Figure:
    """Return a figure of two programs, A and B, that ran one after the other.

    ``times_ms`` has, for "A first" and "B first", the times of each call of A and of B.
    """
    import pandas as pd

    rows = []
    for order, (a_ms, b_ms) in times_ms.items():
        pairs = [("A", a_ms), ("B", b_ms)]
        both = [
            (name, ms) for name, times in pairs[:: -1 if order[0] == "B" else 1] for ms in times
        ]
        rows += [(order, name, call, ms / 1e3) for call, (name, ms) in enumerate(both, start=1)]
    frame = pd.DataFrame(rows, columns=["order", "program", "call", "duration_s"])
    return _Orders(frame).figure(source=device.current())


class _Panel(NamedTuple):
    """One quantity of the readings, and the highest value that it may have."""

    name: str
    unit: str
    column: str
    most: str
    top: str


_PANELS = (
    _Panel("clock", "MHz", "sm_mhz", "max_sm_mhz", "highest"),
    _Panel("power", "W", "power_w", "power_limit_w", "limit"),
)


@dataclass(frozen=True, slots=True)
class _ClockAndPower(Plot):
    """Clock and power over time, one above the other, with the moment when the clock fell."""

    record: "pd.DataFrame"

    def __post_init__(self) -> None:
        need(self.record, ("time_s", "sm_mhz", "max_sm_mhz", "power_w", "power_limit_w"))

    @property
    def fallen(self) -> "pd.Series[float] | None":
        """The first reading with a lower clock, or None."""
        lower = self.record[self.record["sm_mhz"] < _FALLEN * self.record["max_sm_mhz"]]
        return None if lower.empty else lower.iloc[0]

    @property
    def title(self) -> str:
        fallen = self.fallen
        if fallen is None:
            return "The clock did not fall"
        lost = 1 - fallen["sm_mhz"] / fallen["max_sm_mhz"]
        share = fallen["power_w"] / fallen["power_limit_w"]
        return (
            f"The clock falls by {lost * _PERCENT:.0f} % "
            f"while the power reads {share * _PERCENT:.0f} % of its limit"
        )

    @property
    def words(self) -> str:
        ends = [self.record[column].iloc[[0, -1]] for column in ("sm_mhz", "power_w")]
        (clock, last_clock), (power, last_power) = ends
        text = (
            f"Clock: {clock:,.0f} MHz at the first reading, {last_clock:,.0f} MHz at the last. "
            f"Power: {power:,.0f} W at the first, {last_power:,.0f} W at the last."
        )
        fallen = self.fallen
        if fallen is None:
            return text
        return f"{text} The clock is lower from {format_time(fallen['time_s'])} on."

    height_in = 4.8

    def draw(self, ax: "Axes") -> "Axes":
        record, fallen = self.record, self.fallen
        panels = [ax.inset_axes((0.03, bottom, 0.95, 0.4)) for bottom in (0.56, 0.08)]
        near: dict[str, Any] = {"textcoords": "offset points", "va": "top"}
        for panel, part, look in zip(panels, _PANELS, looks(), strict=False):
            signs = marks(look, source_of(record)) | {"markersize": 4}
            panel.plot(record["time_s"], record[part.column], **signs)
            top = float(record[part.most].iloc[-1])
            end = (float(record["time_s"].max()), top)
            panel.axhline(top, color=MUTED, linestyle=":")
            # Above the line: below it is the curve, at one end or the other.
            text = f"{part.top}: {top:,.0f} {part.unit}"
            panel.annotate(text, end, (0, 3), ha="right", textcoords="offset points")
            panel.set_ylim(0, 1.3 * top)
            panel.set_ylabel(f"{part.name} ({part.unit})", fontsize="small")
            panel.grid(visible=True, axis="y")
            if fallen is not None:
                drop = (fallen["time_s"], fallen[part.column])
                text = f"{fallen[part.column]:,.0f} {part.unit}"
                panel.axvline(fallen["time_s"], color=INK, linewidth=1.2)
                panel.annotate(text, drop, (8, -4), fontweight="bold", **near)
        panels[0].set_xticklabels([])
        only_labels(ax, record["time_s"], record["sm_mhz"])
        return finish(ax, "Line charts", "time since the first reading (s)", "", legend=False)


def draw_clock_and_power(record: "pd.DataFrame") -> Figure:
    """Return a figure of clock and power over time, with the moment when the clock fell.

    The readings are as ``clocks.to_frame`` returns them.
    """
    return _ClockAndPower(record).figure(source=device.current())


@dataclass(frozen=True, slots=True)
class _OverTime(Plot):
    """One column of readings against time, one line per series."""

    record: "pd.DataFrame"
    column: str
    label: str
    title: str = field()

    def __post_init__(self) -> None:
        need(self.record, ("time_s", self.column))

    @property
    def parts(self) -> "list[tuple[str, pd.DataFrame]]":
        """Name and rows of each line."""
        record = self.record
        series = record["series"] if "series" in record else [self.label] * len(record)
        return [(str(name), part) for name, part in record.groupby(series, sort=False)]

    @property
    def words(self) -> str:
        sentences = []
        for name, part in self.parts:
            first, last = (self._written(part[self.column].iloc[end]) for end in (0, -1))
            sentences.append(f"{name}: from {first} at the first reading to {last} at the last.")
        return "\n".join(sentences)

    def _written(self, value: float) -> str:
        return format_time(value) if self.column.endswith("_s") else f"{value:,.4g}"

    def draw(self, ax: "Axes") -> "Axes":
        scale, label = 1.0, self.label
        if self.column.endswith("_s"):
            scale, unit = unit_of(self.record[self.column])
            label = f"{label} ({unit})"
        for (name, part), look in zip(self.parts, looks(), strict=False):
            signs = marks(look, source_of(part))
            ax.plot(part["time_s"], part[self.column] / scale, markersize=4, label=name, **signs)
        ax.grid(visible=True)
        return finish(ax, "Line chart", "time since the first reading (s)", label)


def plot_over_time(record: "pd.DataFrame", column: str, label: str, *, title: str) -> Figure:
    """Return a figure of one column of readings against ``time_s``, one line per ``series``.

    A column whose name ends with ``_s`` contains seconds and is plotted in a suitable unit. The
    text alternative contains the first and the last value of each line.
    """
    source = None if "source" in record else device.current()
    return _OverTime(record, column, label, title).figure(source=source)


def asked_for(clocks_mhz: Sequence[int], duration_s: float = 0.6) -> "pd.DataFrame":
    """Return the clock of a virtual H200 over time, while its clock is locked and matmuls run.

    Each clock gives one series. The thermal model computes it: no GPU is used or locked. How a
    real GPU behaves under a lock was not measured.
    """
    import pandas as pd

    n_steps = round(duration_s / _STEP_S)
    times_s = [step * _STEP_S for step in range(n_steps + 1)]
    rows = [
        (time_s, clock_mhz, f"asked for {asked_mhz} MHz", asked_mhz)
        for asked_mhz in clocks_mhz
        for time_s, clock_mhz in zip(times_s, _clocks(asked_mhz, times_s), strict=True)
    ]
    frame = pd.DataFrame(rows, columns=["time_s", "sm_mhz", "series", "asked_mhz"])
    return frame.assign(source="virtual", device_name=gpu(_GPU).driver_name)


def _clocks(asked_mhz: int, times_s: list[float]) -> list[int]:
    """Return the clock in MHz at each time of a run of matmuls, with the clock locked."""
    spec = gpu(_GPU)
    regime = virtual.SimulatedRegime(spec)
    regime.lock(0, asked_mhz)
    n_bytes = 3 * 2 * _SIZE**2
    regime.start(0, virtual.power_draw("float16", 2 * _SIZE**3, n_bytes, _MATMUL_NS, spec))
    return [regime.clock_mhz(round(time_s * 1e9)) for time_s in times_s]
