"""Figures of lesson 05: two programs in both orders, and readings over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulab import device, virtual
from gpulab.core.units import format_ratio, format_time
from gpulab.exercises._lines import LinesBySeries
from gpulab.figures import (
    Figure,
    Plot,
    finish,
    looks,
    marks,
    only_labels,
    source_of,
    unit_of,
)
from gpulab.gpus import gpu

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_GPU = "H200"
_STEP_S, _N_STEPS = 0.02, 30
_SIZE = 8192
_MATMUL_NS = 1_430_000  # time of the matmul on an H200 at the highest clock, recorded


@dataclass(frozen=True, slots=True)
class _Orders(Plot):
    """The times of A and B, call after call, in a panel for each order."""

    record: "pd.DataFrame"

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
        return [float(median_s["B"] / median_s["A"]) for median_s in medians]

    @property
    def title(self) -> str:
        ratios = ", then ".join(format_ratio(ratio) for ratio in self.ratios)
        a_first, b_first = self.ratios
        finding = "Whichever runs second takes longer" if a_first > 1 > b_first else "Both orders"
        return f"{finding}: B / A is {ratios}"

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
            inner.set_in_layout(False)  # inside: measuring it takes a third of the time
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


def plot_over_time(record: "pd.DataFrame", column: str, label: str, *, title: str) -> Figure:
    """Return a figure of one column of readings against ``time_s``, one line per ``series``.

    A column whose name ends with ``_s`` contains seconds and is plotted in a suitable unit. The
    text alternative contains the first and the last value of each line.
    """
    source = None if "source" in record else device.current()
    when = "time since the first reading (s)"
    return LinesBySeries(record, "time_s", column, when, label, title).figure(source=source)


def asked_for(clocks_mhz: Sequence[int]) -> "pd.DataFrame":
    """Return the clock of a virtual H200 over time, while its clock is locked and matmuls run.

    Each clock gives one series. The thermal model computes it: no GPU is used or locked. How a
    real GPU behaves under a lock was not measured.
    """
    import pandas as pd

    times_s = [step * _STEP_S for step in range(_N_STEPS + 1)]
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
