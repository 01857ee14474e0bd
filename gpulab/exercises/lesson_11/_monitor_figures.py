"""Figures of lesson 11b: GPU-Util beside power, and the monitors of six programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulab import device
from gpulab.device.clocks import Reading
from gpulab.figures import Figure, Plot, finish, look_of, marks, source_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_UTIL, _POWER = "util_percent", "power_percent"
_SAME = 5  # percent; readings of GPU-Util that differ by less say the same
_BAR = 0.36
# Column, name and scale of each row of panels.
_ROWS = (
    ("sm_percent", "GPU-Util\n(%)", 1),
    ("pwr_w", "power\n(W)", 1),
    ("fb_mib", "memory\n(GiB)", 1024),
    ("rxpci_mbps", "from host\n(GB/s)", 1000),
)
# Height of a row of panels; shares of the width for their names, and of the height for panels.
_ROW_IN, _NAMES, _PANELS = 0.95, 0.13, 0.94


@dataclass(frozen=True, slots=True)
class _UtilAndPower(Plot):
    """GPU-Util and power of several programs, as two bars for each."""

    record: "pd.DataFrame"

    @property
    def title(self) -> str:
        utils = self.record[_UTIL]
        powers = " and ".join(f"{value:.0f}" for value in self.record[_POWER])
        if utils.max() - utils.min() < _SAME:
            both = f"GPU-Util is {utils.iloc[0]:.0f} % for both"
        else:
            both = "GPU-Util is " + " and ".join(f"{value:.0f} %" for value in utils)
        return f"{both}. They draw {powers} % of the power limit"

    @property
    def words(self) -> str:
        return "\n".join(
            f"{row.program}: GPU-Util {row.util_percent:.0f} %, power {row.power_w:.0f} W, which "
            f"is {row.power_percent:.0f} % of the limit."
            for row in self.record.itertuples()
        )

    @property
    def height_in(self) -> float:
        return 1.2 + 0.8 * len(self.record)

    def draw(self, ax: "Axes") -> "Axes":
        rows = range(len(self.record))
        for column, text, role, shift in (
            (_UTIL, "GPU-Util {:.0f} %", "host", -_BAR / 2),
            (_POWER, "power {:.0f} % of its limit", "kernel", _BAR / 2),
        ):
            look = look_of(role)
            heights = [row + shift for row in rows]
            values = self.record[column]
            bars = ax.barh(heights, values, _BAR, color=look.colour, hatch=look.hatch)
            ax.bar_label(bars, [text.format(value) for value in values], padding=4)
        ax.set_yticks(list(rows), self.record["program"])
        ax.set_ylim(len(rows) - 0.5, -0.5)
        ax.set_xlim(0, 135)  # room for the names
        ax.set_xticks(range(0, 101, 25))
        return finish(ax, "Bar chart", "percent", "", legend=False)


def util_and_power(readings: Mapping[str, Sequence[Reading]]) -> Figure:
    """Return a figure of programs' last readings: GPU-Util, and power in percent.

    The readings are those of :func:`gpulab.clocks.watch`, by the name of the program.
    """
    import pandas as pd

    rows = [
        {
            "program": name,
            _UTIL: float(series[-1].utilization or 0),
            "power_w": float(series[-1].power_w or 0),
            _POWER: 100 * float(series[-1].power_w or 0) / float(series[-1].power_limit_w or 1),
        }
        for name, series in readings.items()
    ]
    return _UtilAndPower(pd.DataFrame(rows)).figure(source=device.current())


@dataclass(frozen=True, slots=True)
class _MonitorPanels(Plot):
    """A panel for each program and each of four columns of its monitor."""

    record: "pd.DataFrame"

    @property
    def title(self) -> str:
        return f"{len(self.letters)} programs, second by second"

    @property
    def letters(self) -> list[str]:
        """The names of the programs."""
        return list(dict.fromkeys(self.record["program"]))

    @property
    def words(self) -> str:
        sentences = []
        for letter in self.letters:
            rows = self.record[self.record["program"] == letter]
            parts = [
                f"{name.replace(chr(10), ' ')} {rows[column].min() / scale:.3g} to "
                f"{rows[column].max() / scale:.3g}"
                for column, name, scale in _ROWS
            ]
            sentences.append(f"{letter}: {', '.join(parts)}.")
        return "\n".join(sentences)

    @property
    def height_in(self) -> float:
        return 0.8 + _ROW_IN * len(_ROWS)

    def draw(self, ax: "Axes") -> "Axes":
        letters = self.letters
        width, height = (1 - _NAMES) / len(letters), _PANELS / len(_ROWS)
        for row, (column, name, scale) in enumerate(_ROWS):
            low = _PANELS - (row + 1) * height
            ax.text(0, low + height * 0.45, name, va="center", fontsize="small")
            top = self.record[column].max() / scale * 1.15
            for index, letter in enumerate(letters):
                box = (_NAMES + index * width + 0.012, low + 0.08 * height)
                panel = ax.inset_axes((*box, width - 0.024, 0.78 * height))
                panel.set_in_layout(False)  # inside: measuring it takes a third of the time
                self._draw_panel(panel, letter, column, scale)
                panel.set_ylim(-0.06 * top, top)
                if index:
                    panel.set_yticklabels([])
                if not row:
                    panel.set_title(letter, fontweight="bold", fontsize="medium", pad=3)
        ax.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1))
        ax.spines[:].set_visible(False)
        return finish(ax, "Line charts", "second, from 1", "", legend=False)

    def _draw_panel(self, panel: "Axes", letter: str, column: str, scale: float) -> None:
        rows = self.record[self.record["program"] == letter]
        signs = marks(look_of("host"), source_of(rows))
        panel.plot(rows["second"], rows[column] / scale, markersize=3, linewidth=1.2, **signs)
        panel.set_xticks([])
        panel.tick_params(labelsize="x-small", length=2)
        panel.grid(visible=True, axis="y")


def monitor_panels(record: "pd.DataFrame") -> Figure:
    """Return a figure of what :func:`monitors` returns: a column of panels a program."""
    return _MonitorPanels(record).figure(source=str(record["source"].iloc[0]))
