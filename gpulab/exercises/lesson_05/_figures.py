"""Figures of lesson 05: readings over time, and the simulated clock of a locked GPU."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpulab import device, virtual
from gpulab.core.units import format_time
from gpulab.figures import Figure, Plot, finish, looks, marks, need, source_of, unit_of
from gpulab.gpus import gpu
from gpulab.views.live import shade_reasons

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_GPU = "H200"
_STEP_S = 0.02
_SIZE = 8192
_MATMUL_NS = 1_430_000  # time of the matmul on an H200 at the highest clock, recorded


@dataclass(frozen=True, slots=True)
class _OverTime(Plot):
    """One column of readings against time, one line per series.

    For a single series, the times at which the driver named a reason are shaded. Readings are up
    to 0.1 s old, and nothing is known about the time between two of them.
    """

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
        if "reasons" in self.record and "series" not in self.record:
            shade_reasons(self.record, ax)
        ax.grid(visible=True)
        return finish(ax, "Line chart", "time since the first reading (s)", label)


def plot_over_time(record: "pd.DataFrame", column: str, label: str, *, title: str) -> Figure:
    """Return a figure of one column of readings against time, one line per series.

    The text alternative contains the first and the last value of each line.

    Parameters
    ----------
    record
        Table with the columns ``time_s`` and ``column``, and optionally ``series`` (names of the
        lines) and ``reasons``. A column whose name ends with ``_s`` contains seconds and is
        plotted in a suitable unit.
    column, label
        Name of the column to plot, and the label of its axis.
    title
        Title of the figure.

    Examples
    --------
    >>> from gpulab.exercises import lesson_05 as lab
    >>> clock = lab.asked_for([1200])
    >>> lab.plot_over_time(clock, "sm_mhz", "clock (MHz)", title="A lock").caption
    'asked for 1200 MHz: from 1,200 at the first reading to 1,200 at the last.'
    """
    source = None if "source" in record else device.current()
    return _OverTime(record, column, label, title).figure(source=source)


def asked_for(clocks_mhz: Sequence[int], duration_s: float = 0.6) -> "pd.DataFrame":
    """Return the clock of a virtual H200 over time, while its clock is locked and matmuls run.

    The thermal model computes it: no GPU is used or locked. How a real GPU behaves under a lock
    was not measured.

    Parameters
    ----------
    clocks_mhz
        The clocks to lock, in MHz; each gives one series.
    duration_s
        How long the matmuls run, in seconds.

    Examples
    --------
    >>> from gpulab.exercises import lesson_05 as lab
    >>> int(lab.asked_for([1200])["sm_mhz"].iloc[-1])
    1200
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
    spec = gpu(_GPU)
    regime = virtual.SimulatedRegime(spec)
    regime.lock(0, asked_mhz)
    n_bytes = 3 * 2 * _SIZE**2
    regime.start(0, virtual.power_draw("float16", 2 * _SIZE**3, n_bytes, _MATMUL_NS, spec))
    return [regime.clock_mhz(round(time_s * 1e9)) for time_s in times_s]
