"""What lesson 05 draws: readings over time, and a model's clock under a lock."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpulab import device, virtual
from gpulab.figures import Figure, finish, looks, marks, need, source_of, unit_of
from gpulab.gpus import gpu
from gpulab.live import shade_reasons
from gpulab.plots import draw
from gpulab.units import format_time

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_GPU = "H200"
_STEP_S = 0.02
_SIZE = 8192
_MATMUL_NS = 1_430_000  # of an H200 at the highest clock, recorded


def plot_over_time(record: "pd.DataFrame", column: str, label: str, *, title: str) -> Figure:
    """Return a figure of one column of readings against time, one line a series.

    The text alternative gives the first and the last value of each line.

    Parameters
    ----------
    record
        Columns ``time_s`` and ``column``; ``series`` names the lines when present.
    column, label
        What to draw, and what to write beside it.
    title
        Title of the figure.
    """
    need(record, ("time_s", column))
    series = record["series"] if "series" in record else [label] * len(record)
    ends = [
        f"{name}: from {_written(part[column].iloc[0], column)} at the first reading to "
        f"{_written(part[column].iloc[-1], column)} at the last."
        for name, part in record.groupby(series, sort=False)
    ]
    own_source = None if "source" in record else device.current()
    return draw(
        over_time,
        record,
        title=title,
        alt="\n".join(ends),
        source=own_source,
        column=column,
        label=label,
    )


def _written(value: float, column: str) -> str:
    return format_time(value) if column.endswith("_s") else f"{value:,.4g}"


def over_time(
    record: "pd.DataFrame",
    ax: "Axes",
    *,
    column: str = "sm_mhz",
    label: str = "clock (MHz)",
) -> "Axes":
    """Draw one column of readings against time, one line a series.

    For a single series, the times at which the driver named a reason are shaded. Readings are up
    to 0.1 s old, and between two of them the value may have been anything.

    Parameters
    ----------
    record
        Columns ``time_s`` and ``column``; ``series`` names the lines and ``reasons`` the reasons
        when present. A column that ends with ``_s`` holds seconds and is drawn in a fitting unit.
    ax
        Axes to draw on.
    column, label
        What to draw, and what to write beside it.
    """
    need(record, ("time_s", column))
    scale, label = _scaled(record, column, label)
    series = record["series"] if "series" in record else [""] * len(record)
    for (name, part), look in zip(record.groupby(series, sort=False), looks(), strict=False):
        ax.plot(
            part["time_s"],
            part[column] / scale,
            markersize=4,
            label=str(name) or label,
            **marks(look, source_of(part)),
        )
    if "reasons" in record and "series" not in record:
        shade_reasons(record, ax)
    ax.grid(visible=True)
    return finish(ax, "Line chart", "time since the first reading (s)", label)


def _scaled(record: "pd.DataFrame", column: str, label: str) -> tuple[float, str]:
    if not column.endswith("_s"):
        return 1.0, label
    scale, unit = unit_of(record[column])
    return scale, f"{label} ({unit})"


def asked_for(clocks_mhz: Sequence[int], duration_s: float = 0.6) -> "pd.DataFrame":
    """Return the clock of a virtual H200 that is asked for a clock while matmuls run.

    Computed by the model of heat alone: no GPU is touched, and none is locked. What a real one
    does when it is locked was not measured.

    Parameters
    ----------
    clocks_mhz
        The clocks asked for, in MHz; each is one series.
    duration_s
        How long the matmuls run, in seconds.
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
