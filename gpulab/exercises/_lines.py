"""A plot of one column of a table over another, with a line for each series."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpulab.core.units import format_time
from gpulab.figures import Plot, finish, looks, marks, need, source_of, unit_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class LinesBySeries(Plot):
    """Column ``y`` of a table over ``x``, with a line for each value of a column ``series``.

    A column whose name ends with ``_s`` contains seconds and is drawn in a suitable unit.
    """

    record: "pd.DataFrame"
    x: str
    y: str
    x_label: str
    y_label: str
    title: str = field()

    def __post_init__(self) -> None:
        need(self.record, (self.x, self.y))

    @property
    def parts(self) -> "list[tuple[str, pd.DataFrame]]":
        """Name and rows of each line."""
        record = self.record
        series = record["series"] if "series" in record else [self.y_label] * len(record)
        return [(str(name), part) for name, part in record.groupby(series, sort=False)]

    @property
    def words(self) -> str:
        sentences = []
        for name, part in self.parts:
            first, last = (self._written(part[self.y].iloc[end]) for end in (0, -1))
            sentences.append(f"{name}: from {first} at first to {last} at last.")
        return "\n".join(sentences)

    def _written(self, value: float) -> str:
        return format_time(value) if self.y.endswith("_s") else f"{value:,.4g}"

    def draw(self, ax: "Axes") -> "Axes":
        scale, label = 1.0, self.y_label
        if self.y.endswith("_s"):
            scale, unit = unit_of(self.record[self.y])
            label = f"{label} ({unit})"
        for (name, part), look in zip(self.parts, looks(), strict=False):
            signs = marks(look, source_of(part))
            ax.plot(part[self.x], part[self.y] / scale, markersize=4, label=name, **signs)
        ax.grid(visible=True)
        return finish(ax, "Line chart", self.x_label, label)
