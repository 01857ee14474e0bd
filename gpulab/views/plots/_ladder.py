"""Draw a ladder: one row per rung, and the driver's records as vertical lines."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import one_line
from gpulab.core.requirements import instance_of
from gpulab.core.units import format_percent, format_time
from gpulab.device.measurement import Measurement
from gpulab.figures import (
    PAPER,
    Figure,
    FigureOptions,
    Plot,
    finish,
    legend_below,
    log_axis,
    look_of,
    looks,
    marks,
    unit_of,
    write_beside,
)
from gpulab.timing import Ladder, Rung
from gpulab.views.plots._basic import error_bar
from gpulab.views.plots._draw import show, typed

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_LADDER = instance_of(Ladder, "a ladder, such as gpulab.ladder() returns")
_CACHES = ("hot", "cold")
_HEIGHT_IN = 5.6


@dataclass(frozen=True, slots=True)
class _Ladder(Plot):
    record: Ladder

    def __post_init__(self) -> None:
        _LADDER.check(record=self.record)
        if not self.timed:
            raise InvalidOptionError("no rung was timed; there is nothing to draw")

    @property
    def timed(self) -> list[tuple[Rung, Measurement]]:
        """The rungs that were timed."""
        return [(rung, rung.record) for rung in self.record.rungs if rung.record is not None]

    @property
    def title(self) -> str:
        return f"{self.record.label or 'One piece of work'} by every method"

    @property
    def words(self) -> str:
        return "\n".join(
            f"{one_line(rung.name)}: {format_time(measurement.median_s)}"
            + (
                ""
                if rung.error is None
                else f" ({format_percent(rung.error, 1, sign='+')} from the driver's records)"
            )
            + "."
            for rung, measurement in self.timed
        )

    height_in = _HEIGHT_IN

    def draw(self, ax: "Axes") -> "Axes":
        timed = self.timed
        scale, unit = unit_of([measurement.median_s for _, measurement in timed])
        for cache in _CACHES:
            # A set, because rungs with the same state of the cache share one time of the records.
            referees_s = {rung.referee_s for rung, m in timed if m.conditions.cache == cache}
            colour, label = look_of(cache).colour, f"driver's records, {cache}"
            for referee_s in referees_s - {None}:
                ax.axvline((referee_s or 0.0) / scale, color=colour, linewidth=1.5, label=label)
        for row, (rung, measurement) in enumerate(timed):
            error = "" if rung.error is None else f", {format_percent(rung.error, 1, sign='+')}"
            _dot(ax, row, measurement, scale, error)
        ax.set_yticks(range(len(timed)), [one_line(rung.name) for rung, _ in timed])
        # Reversed, so that the first rung is at the top.
        ax.set_ylim(len(timed) - 0.4, -0.8)
        ax.grid(visible=True, axis="x")
        # Room for the texts, which stand to the right of their points.
        ax.margins(x=0.3)
        log_axis(ax, "x")
        legend_below(ax)
        return finish(ax, "Dot plot", f"time per call ({unit})", "", legend=False)


@typed
def ladder(
    record: Ladder, ax: "Axes | None" = None, **figure: Unpack[FigureOptions]
) -> "Axes | Figure":
    """Draw one row per rung: its median with the 95 % interval, and its error.

    Lines mark the times of the driver's records, hot and cold. A rung that is far from its line is
    not wrong: it may time something else, such as the launch.

    Examples
    --------
    >>> import torch, gpulab
    >>> from gpulab import plots
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(64, 64, device="cuda")
    ...     taken = gpulab.ladder(lambda: a @ a, progress=False)
    >>> plots.ladder(taken, title="A matmul").title
    'A matmul (virtual NVIDIA H200)'
    """
    return show(_Ladder(record), ax, figure)


def _dot(ax: "Axes", row: int, measurement: Measurement, scale: float, error: str) -> None:
    signs = marks(next(looks([measurement.conditions.cache])), measurement.source)
    error_bar(ax, row, measurement, scale, **signs)
    # The lines of the driver's records cross the text.
    paper = {"facecolor": PAPER, "edgecolor": "none", "pad": 1, "alpha": 0.85}
    text = f"{format_time(measurement.median_s)}{error}"
    point = measurement.median_s / scale, row
    write_beside(ax, text, point, (8, 0), fontsize="small", bbox=paper)
