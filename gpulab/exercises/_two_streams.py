"""A picture of two streams: what each of their kernels does, and which of them is too early."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from gpulab.core.units import format_time
from gpulab.figures import INK, MUTED, Plot, finish, look_of, unit_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from gpulab.tracing import Span, Timeline

_BAR = 0.4  # height, in rows; the arrow and its text fit between two
_LEAST = 0.012  # width that can be seen, as a share of the picture
_MARGIN = 0.1
_EDGE = 0.15  # of the picture: a centred name would leave it, and two names cover one another


class StreamLane(NamedTuple):
    """The kernels of one stream, and the names of some of them: text, span and role of each."""

    name: str
    spans: "Sequence[Span]"
    named: "Sequence[tuple[str, Span, str]]"


@dataclass(frozen=True, slots=True)
class TwoStreams(Plot):
    """Two lanes, from below, with an arrow of the time by which a kernel is too early.

    ``early`` has the two ends of the arrow in seconds and its text; None if nothing is too early.
    """

    record: "Timeline"
    lanes: tuple[StreamLane, StreamLane]
    early: tuple[float, float, str] | None
    title: str = field()

    @property
    def words(self) -> str:
        """When each kernel with a name ran, lane by lane."""
        return "\n".join(
            f"{lane.name}: "
            + ", then ".join(
                f"{name} from {format_time(span.start_s)} to {format_time(span.end_s)}"
                for name, span, _ in lane.named
            )
            + "."
            for lane in self.lanes
        )

    height_in = 2.9

    def draw(self, ax: "Axes") -> "Axes":
        """Draw a bar for each kernel, with the names and the arrow."""
        end_s = max(span.end_s for lane in self.lanes for span in lane.spans)
        scale, unit = unit_of([end_s])
        for row, lane in enumerate(self.lanes):
            looks = {id(span): (name, role) for name, span, role in lane.named}
            above = 1 if row else -1
            last_name = -end_s / scale
            for span in lane.spans:
                name, role = looks.get(id(span), ("", "kernel"))
                start, width = span.start_s / scale, max(span.duration_s, _LEAST * end_s) / scale
                colour = look_of(role).colour if role else MUTED
                ax.barh(row, width, _BAR, start, color=colour, align="center")
                ink = colour if role else INK
                style: Any = {"textcoords": "offset points", "fontweight": "bold", "color": ink}
                if start - last_name < _EDGE * end_s / scale:
                    # Above the bar it would cover the name before it.
                    ax.annotate(
                        name, (start + width, row), (4, 0), ha="left", va="center", **style
                    )
                    continue
                is_first = start < _EDGE * end_s / scale
                ax.annotate(
                    name,
                    (start + (0 if is_first else width / 2), row + above * _BAR / 2),
                    (0, 4 * above),
                    ha="left" if is_first else "center",
                    va="bottom" if row else "top",
                    **style,
                )
                last_name = start if name else last_name
        if self.early is not None:
            self._bracket(ax, scale, *self.early)
        ax.set_yticks([0, 1], [lane.name for lane in self.lanes])
        ax.set_ylim(-0.75, 1.75)
        ax.set_xlim(0, (1 + _MARGIN) * end_s / scale)
        return finish(ax, "Timeline", f"time ({unit})", "", legend=False)

    @staticmethod
    def _bracket(ax: "Axes", scale: float, start_s: float, end_s: float, text: str) -> None:
        start, end = start_s / scale, end_s / scale
        arrow = {"arrowstyle": "<->", "color": INK, "lw": 1.8}
        ax.annotate("", (end, 0.5), (start, 0.5), arrowprops=arrow)
        ax.annotate(
            text,
            ((start + end) / 2, 0.5),
            (0, 4),
            textcoords="offset points",
            ha="center",
            va="bottom",
        )


def kernels_of(record: "Timeline") -> "list[Span]":
    """Return the kernels of a timeline in the order in which they were launched."""
    kernels = [span for span in record.spans if span.kind == "kernel"]
    return sorted(kernels, key=lambda span: span.correlation or 0)
