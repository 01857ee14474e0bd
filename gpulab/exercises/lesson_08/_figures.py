"""The figure of lesson 08: time that overlap saved, and time that it could save."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpulab.figures import INK, PAPER, Figure, Plot, finish, legend_below, looks, unit_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from matplotlib.axes import Axes

    from gpulab.exercises.lesson_08.pipelines import PipelineRun


_BAR = 0.6
_WRONG_HATCH = "//"
_LABELS = ("saved, values right", "saved, on wrong data")


@dataclass(frozen=True, slots=True)
class _Overlap(Plot):
    """For each program the time that overlap saved, and the most that it could save.

    Programs that computed on wrong data are hatched: a full bar does not mean right values.
    """

    record: "pd.DataFrame"
    words: str = field()

    @property
    def title(self) -> str:
        record = self.record
        shares = record["hidden_s"] / record["possible_s"].where(record["possible_s"] > 0)
        right = shares[record["n_wrong"] == 0].dropna()
        if right.empty:
            return "No program that overlaps has right values"
        program = record["program"].loc[right.index[int(right.argmax())]]
        percent = f"{100 * right.max():.0f} %"
        return f"With right values, {program} saves most: {percent} of what overlap can"

    @property
    def height_in(self) -> float:
        return 1.5 + 0.5 * len(self.record)

    def draw(self, ax: "Axes") -> "Axes":
        record = self.record
        scale, unit = unit_of(record["possible_s"])
        possible, hidden = record["possible_s"] / scale, record["hidden_s"] / scale
        is_wrong = record["n_wrong"] > 0
        for wrong, look, label in zip((False, True), looks(), _LABELS, strict=False):
            chosen = record.index[is_wrong == wrong]
            if len(chosen):
                hatch = _WRONG_HATCH if wrong else None
                bars = ax.barh(chosen, hidden[chosen], _BAR, color=look.colour, label=label)
                for bar in bars:
                    bar.set(hatch=hatch, edgecolor=PAPER)
        rows = range(len(record))
        ax.barh(rows, possible, _BAR, fill=False, edgecolor=INK, label="possible")
        for row, share in enumerate(hidden / possible):
            end = (possible.iloc[row], row)
            ax.annotate(
                f"{100 * share:.0f} %", end, (6, 0), textcoords="offset points", va="center"
            )
        ax.set_yticks(rows, record["program"])
        ax.set_ylim(len(record) - 0.5, -0.5)
        ax.set_xlim(0, 1.25 * possible.max())
        legend_below(ax)
        return finish(ax, "Bar chart", f"time saved by overlap ({unit})", "", legend=False)


def draw_overlap(runs: "Mapping[str, PipelineRun]") -> Figure:
    """Return a figure of the time that overlap saved in some programs, by their names."""
    import pandas as pd

    columns = ["hidden_s", "possible_s", "n_wrong"]
    rows = [(name, *(getattr(run, column) for column in columns)) for name, run in runs.items()]
    # Without the place, which is in the title.
    words = (f"{name}: {run.words}." for name, run in runs.items())
    frame = pd.DataFrame(rows, columns=["program", *columns])
    plot = _Overlap(frame, "\n".join(words))
    return plot.figure(source=next(iter(runs.values())).place)
