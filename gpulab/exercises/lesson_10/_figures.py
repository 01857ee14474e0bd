"""The picture of lesson 10: how far three programs are above their least time, by experiment."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulab import device
from gpulab.figures import INK, PAPER, Figure, Plot, finish, legend_below, look_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_BAR = 0.26
_NEAR = 2.0  # times the least time; what is below has no gap to explain
_EXPERIMENTS = {"as given": "wait", "grown": "kernel", "rounded": "launch"}  # and their looks
_CURES = {"grown": "growing", "rounded": "rounding"}


@dataclass(frozen=True, slots=True)
class _Gaps(Plot):
    """For each program a bar as it is given, and one for each experiment."""

    record: "pd.DataFrame"

    @property
    def title(self) -> str:
        findings = "; ".join(self._finding(name) for name in self.record.index)
        return findings[0].upper() + findings[1:]

    def _finding(self, name: str) -> str:
        letter = name[0]
        for experiment, cure in _CURES.items():
            if self.record[experiment][name] < _NEAR:
                return f"{cure} helps {letter}"
        n_kernels = int(self.record["kernels"][name])
        return f"{letter} stays, with {n_kernels} kernel{'s' * (n_kernels > 1)}"

    @property
    def words(self) -> str:
        return "\n".join(
            f"{name}: "
            + ", ".join(
                f"{experiment} {row[experiment]:.1f} times its least time"
                for experiment in _EXPERIMENTS
                if row[experiment] > 0
            )
            + f"; kernels: {int(row['kernels'])}."
            for name, row in self.record.iterrows()
        )

    height_in = 3.9

    def draw(self, ax: "Axes") -> "Axes":
        names = list(self.record.index)
        for index, (experiment, role) in enumerate(_EXPERIMENTS.items()):
            look = look_of(role)
            known = self.record[experiment].dropna()
            rows = [names.index(name) + (index - 1) * _BAR for name in known.index]
            bars = ax.barh(rows, known, _BAR * 0.9, color=look.colour, label=experiment)
            for bar in bars:
                bar.set(hatch=look.hatch, edgecolor=PAPER)
            ax.bar_label(bars, [f"{times:.1f}" for times in known], padding=4)
        ax.axvline(1, color=INK, linewidth=1.5, linestyle=":")
        ax.annotate("its least time", (1, -0.47), (6, 0), textcoords="offset points", va="bottom")
        ax.set_yticks(range(len(names)), names)
        ax.set_ylim(len(names) - 0.5, -0.75)
        ax.margins(x=0.08)
        legend_below(ax)
        return finish(ax, "Bar chart", "measured time over least time (times)", "", legend=False)


def draw_gaps(gaps: "pd.DataFrame") -> Figure:
    """Return the picture of how far programs are above their least time.

    A row has a program's measured time over the least time in the columns "as given", "grown" and
    "rounded" (missing where it was not tried), and the number of its "kernels".
    """
    return _Gaps(gaps).figure(source=device.current())
