"""Draw a GPU's clock and power under load: two panels over one time axis."""

from typing import TYPE_CHECKING, Any, NamedTuple

from gpulab.core.errors import InvalidOptionError
from gpulab.figures import (
    MUTED,
    finish,
    look_of,
    marks,
    source_of,
    write_beside,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gpulab.views.live._records import Trace


LOAD_SIZE_IN = (9.0, 4.6)
UNDER_LOAD = "The GPU under load"
_NOTICED = 0.02  # a share of the clock; a smaller change is none
_TIME = "time since the first reading (s)"
_HEADROOM = 1.15  # times the highest value, so that a line at the limit is not at the edge


class _Panel(NamedTuple):
    """One panel: a column of the frame, its label, and the column of its limit."""

    column: str
    label: str
    limit: str | None = None
    limit_name: str = ""


# Large enough to compare on one screen. The others are in the words and in the table.
PANELS = (
    _Panel("sm_mhz", "clock (MHz)", "max_sm_mhz", "highest"),
    _Panel("power_w", "power (W)", "power_limit_w", "limit"),
)
_IN_WORDS = (
    *PANELS,
    _Panel("temperature_c", "temperature (°C)"),
    _Panel("utilization", "utilization (%)"),
)


def live(record: "Trace", ax: "Axes") -> "Axes":
    """Draw clock and power of a GPU under load in two panels, the clock in the given axes.

    Readings are up to 0.1 s old, and the power is an average over the last second, so that an
    effect can appear before its cause. If the driver has no value, the panel is empty and says so.
    """
    frame = record.to_frame()
    for panel, axes in zip(PANELS, _panels(ax), strict=True):
        _draw(frame, axes, panel, record)
    if _shade_reasons(frame, ax):
        legend = ax.legend(frameon=False, loc="lower right")
        # Otherwise text of the driver between two dollar signs is read as a formula.
        for text in legend.get_texts():
            text.set_parse_math(False)
    ax.tick_params(labelbottom=False)
    ax.get_xaxis().get_label().set_visible(False)
    return ax


def finding_of(record: "Trace") -> str:
    """Return how the clock changes under the load, for a title."""
    clocks_mhz = record.to_frame()["sm_mhz"].dropna()
    if clocks_mhz.empty:
        return UNDER_LOAD
    first, last = clocks_mhz.iloc[[0, -1]]
    if abs(last - first) < _NOTICED * first:
        return f"Under load the clock stays at {last:,.0f} MHz"
    verb = "falls" if last < first else "rises"
    return f"Under load the clock {verb} from {first:,.0f} to {last:,.0f} MHz"


def alt_of(record: "Trace") -> str:
    """Return in words how all readings changed from first to last, or why there are none."""
    frame = record.to_frame()
    parts = (_range(frame, panel) for panel in _IN_WORDS)
    words = record.missing or f"{', '.join(parts)}; {record.regime}"
    return f"{words[0].upper()}{words[1:]}."


def _panels(ax: "Axes") -> list["Axes"]:
    spec = ax.get_subplotspec()
    if spec is None or ax.figure is None:
        raise InvalidOptionError(
            "the axes are in no grid, which their two panels share; make them with add_subplot()"
        )
    # The given axes become the top panel, so that a title which is set later is above all panels.
    rows = spec.subgridspec(len(PANELS), 1, hspace=0.08)
    ax.set_subplotspec(rows[0])
    below = (rows[number] for number in range(1, len(PANELS)))
    return [ax, *(ax.figure.add_subplot(row, sharex=ax) for row in below)]


def _draw(frame: "pd.DataFrame", ax: "Axes", panel: _Panel, record: "Trace") -> None:
    values = frame[panel.column].astype(float)
    if values.notna().any():
        ax.plot(frame["time_s"], values, markersize=3, **marks(look_of("GPU"), source_of(record)))
        _mark_limit(frame, ax, panel)
        # From zero: a clock that falls by a quarter should not look as if it stopped.
        ax.set_ylim(0, _HEADROOM * ax.dataLim.y1 or 1)
    else:
        reason = (
            "nothing can be read" if record.missing else "this GPU or its driver reports no value"
        )
        ax.text(0.5, 0.5, reason, transform=ax.transAxes, ha="center", va="center")
        ax.set_yticks([])
    ax.grid(visible=True)
    is_last = panel is PANELS[-1]
    finish(ax, "Line charts", _TIME, panel.label, legend=False)
    ax.get_yaxis().get_label().set_fontsize("small")  # two labels, one above the other, need room
    ax.tick_params(labelsize="small")
    ax.tick_params(labelbottom=is_last)
    # Hidden and not removed: the text description reads the label of the top panel's axis.
    ax.get_xaxis().get_label().set_visible(is_last)


def _mark_limit(frame: "pd.DataFrame", ax: "Axes", panel: _Panel) -> None:
    if panel.limit is None or frame[panel.limit].isna().all():
        return
    ax.axhline(float(frame[panel.limit].max()), color=MUTED, linewidth=1.2)
    beside: Any = {"xycoords": ("axes fraction", "data"), "annotation_clip": False}
    # Beside the axes: the readings may lie on the limit.
    end = (1.0, float(frame[panel.limit].max()))
    write_beside(ax, panel.limit_name, end, (4, 0), fontsize="small", **beside)


def _shade_reasons(frame: "pd.DataFrame", ax: "Axes") -> bool:
    """Shade the times at which the driver gives a reason for a lower clock; return if it does."""
    named = frame["reasons"].fillna("") != ""
    if not named.any():
        return False
    words = ", ".join(dict.fromkeys(frame["reasons"][named]))
    values = ax.dataLim.intervaly.copy()
    ax.fill_between(
        frame["time_s"],
        0,
        1,
        where=named,
        transform=ax.get_xaxis_transform(),
        color=MUTED,
        hatch="//",
        alpha=0.2,
        linewidth=0,
        label=f"the driver names: {words}",
    )
    ax.dataLim.intervaly = values  # matplotlib 3.10 counts the shade's height among the data
    return True


def _range(frame: "pd.DataFrame", panel: _Panel) -> str:
    values = frame[panel.column].dropna()
    name, _, unit = panel.label.partition(" (")
    if values.empty:
        return f"{name} not reported"
    first, last = values.iloc[[0, -1]]
    return f"{name} from {first:.0f} to {last:.0f} {unit.rstrip(')')}"
