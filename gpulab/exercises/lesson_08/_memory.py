"""The figure of lesson 08b: memory that is written again before another stream has read it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulab.core.units import format_time
from gpulab.figures import INK, MUTED, Figure, Plot, finish, look_of, unit_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpulab.tracing import Span, Timeline


_BAR = 0.5  # height, in rows
_LEAST = 0.012  # width that can be seen, as a share of the picture
_LANES = ("side", "default stream")
_MARGIN = 0.1


@dataclass(frozen=True, slots=True)
class _Reuse(Plot):
    """Two streams: one makes x and then the sevens, the other one is busy and then adds up x."""

    record: "Timeline"

    @property
    def lanes(self) -> "tuple[list[Span], list[Span]]":
        """The kernels of the second stream and of the default one, in order."""
        kernels = [span for span in self.record.spans if span.kind == "kernel"]
        kernels.sort(key=lambda span: span.start_s)
        own = kernels[0].stream
        return (
            [span for span in kernels if span.stream != own],
            [span for span in kernels if span.stream == own],
        )

    @property
    def early_s(self) -> float:
        """Seconds from the sevens' end to the sum's start; negative if the sum came first."""
        side, default = self.lanes
        return side[-1].start_s - default[-1].end_s

    @property
    def title(self) -> str:
        if self.early_s < 0:
            return "side has added up the ones before the sevens are written"
        return f"The sevens are in the memory {format_time(self.early_s)} before side adds it up"

    @property
    def words(self) -> str:
        names = ("still busy", "x.sum()"), ("ones", "sevens")
        return "\n".join(
            f"{lane}: "
            + ", then ".join(
                f"{name} from {format_time(span.start_s)} to {format_time(span.end_s)}"
                for name, span in zip(said, (spans[0], spans[-1]), strict=True)
            )
            + "."
            for lane, said, spans in zip(_LANES, names, self.lanes, strict=True)
        )

    height_in = 2.9

    def draw(self, ax: "Axes") -> "Axes":
        side, default = self.lanes
        end_s = max(span.end_s for span in self.record.spans if span.kind == "kernel")
        scale, unit = unit_of([end_s])
        kernel = look_of("kernel").colour
        shown = (
            (0, side[0], "still busy", MUTED),
            (0, side[-1], "x.sum()", kernel),
            (1, default[0], "ones", kernel),
            (1, default[-1], "sevens", look_of("copy").colour),
        )
        for row, span, name, colour in shown:
            start, width = span.start_s / scale, max(span.duration_s, _LEAST * end_s) / scale
            ax.barh(row, width, _BAR, start, color=colour, align="center")
            above = 1 if row else -1
            ax.annotate(
                name,
                (start + width / 2, row + above * _BAR / 2),
                (0, 4 * above),
                textcoords="offset points",
                ha="center",
                va="bottom" if row else "top",
                fontweight="bold",
                color=colour if colour != MUTED else INK,
            )
        if self.early_s > 0:
            self._bracket(ax, default[-1].end_s / scale, side[-1].start_s / scale)
        ax.set_yticks([0, 1], _LANES)
        ax.set_ylim(-0.75, 1.75)
        ax.set_xlim(0, (1 + _MARGIN) * end_s / scale)
        return finish(ax, "Timeline", f"time ({unit})", "", legend=False)

    def _bracket(self, ax: "Axes", start: float, end: float) -> None:
        arrow = {"arrowstyle": "<->", "color": INK, "lw": 1.8}
        ax.annotate("", (end, 0.5), (start, 0.5), arrowprops=arrow)
        ax.annotate(
            f"{format_time(self.early_s)}: x.sum() has not begun",
            ((start + end) / 2, 0.5),
            (0, 4),
            textcoords="offset points",
            ha="center",
            va="bottom",
        )


def draw_reuse(record: "Timeline") -> Figure:
    """Return the figure of memory that is written again while another stream still needs it.

    The timeline has two kernels in the default stream, ones and sevens, and at least two in
    another stream, the last of which reads the ones.
    """
    return _Reuse(record).figure(source=record.place)
