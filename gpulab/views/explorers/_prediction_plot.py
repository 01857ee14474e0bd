"""The figure of the roofline explorer that compares predicted with measured times."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpulab.core.units import format_ratio
from gpulab.figures import (
    MUTED,
    Plot,
    finish,
    legend_below,
    log_axis,
    look_of,
    marks,
    name_point,
    source_of,
    unit_of,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_FACTOR = 2  # predictions within this factor are in the band


@dataclass(frozen=True, slots=True)
class PredictionPlot(Plot):
    """Points of predicted against measured times; on the diagonal both agree.

    The record has the columns ``predicted_s``, ``measured_s`` and ``label``: a name, or empty.
    """

    record: "pd.DataFrame"

    @property
    def title(self) -> str:
        return f"{self.n_near} of {len(self.record)} predictions are right within a factor of 2"

    @property
    def ratios(self) -> "pd.Series[float]":
        """Measured over predicted time of each row."""
        return self.record["measured_s"] / self.record["predicted_s"]

    @property
    def n_near(self) -> int:
        """The number of predictions in the band; half and twice are equally far from it."""
        return int((np.maximum(self.ratios, 1 / self.ratios) <= _FACTOR).sum())

    @property
    def words(self) -> str:
        ratios = self.ratios
        farthest = ratios.iloc[int(np.argmax(np.maximum(ratios, 1 / ratios)))]
        return (
            f"{self.n_near} of {len(ratios)} readings lie within a factor of 2. The farthest is "
            f"{format_ratio(farthest)} times its prediction."
        )

    def draw(self, ax: "Axes") -> "Axes":
        frame = self.record
        scale, unit = unit_of([*frame["predicted_s"], *frame["measured_s"]])
        predicted, measured = frame["predicted_s"] / scale, frame["measured_s"] / scale
        ends = np.array([min(*predicted, *measured) / 2, max(*predicted, *measured) * 2])
        ax.plot(ends, ends, color=MUTED, linewidth=1.2, label="equal")
        low, high = ends / _FACTOR, ends * _FACTOR
        ax.fill_between(ends, low, high, color=MUTED, alpha=0.15, label="within 2 times")
        signs = marks(look_of("GPU"), source_of(frame)) | {"linestyle": "none"}
        ax.plot(predicted, measured, label="readings", **signs)
        for x, y, name in zip(predicted, measured, frame["label"], strict=True):
            if name:
                name_point(ax, name, (x, y))
        log_axis(ax, "x")
        log_axis(ax, "y")
        legend_below(ax)
        x_label, y_label = f"predicted ({unit})", f"measured ({unit})"
        return finish(ax, "Scatter plot", x_label, y_label, legend=False)
