"""Bars on lanes over time: the one way in which figures, films and stills draw them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from gpulab.core.foreign_text import one_line, shortened, visible_row
from gpulab.core.palette import ROLES
from gpulab.figures._style import (
    INK,
    MUTED,
    PAPER,
    Look,
    finish,
    legend_below,
    look_of,
    write_beside,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_BAR, _LEVEL = 0.7, 0.8  # of the height of a row
# Most characters of a lane's name: very long text takes matplotlib minutes and leaves no space for
# the picture.
_MOST_NAME = 60
# A bar below the first width has no white edge; the second is about the width of a character.
_THIN, _CHARACTER = 0.01, 0.0125  # shares of the width of the axes
_LEAST_ROOM = 4  # characters; a narrower bar shows no name, unless the name is shorter
_LEAST_SHORTENED = 7  # a name cut to "lau…" says less than the colour of the bar does
# What the host does has long names in CUDA, and "cudaDevic…" says less than "wait".
_PLAIN_NAMES = ("launch", "wait", "host")
_LATE = 0.6  # of the width; to the right of it a text would leave the axes
_MICRO = 1e6
_ABOVE_ARROWS = 5.0  # z-order of names, because matplotlib draws arrows over text otherwise
_PLAIN = {"ink": Look(INK, "", ""), "muted": Look(MUTED, "", "")}


@dataclass(frozen=True, slots=True)
class Strip:
    """A bar in a row: something that lasts from one time to another, or a moment, in seconds.

    Rows count from the top. ``role`` is one of :data:`gpulab.core.palette.ROLES`, which gives the
    look, or ``"ink"`` or ``"muted"``. The label is cut, or left out, where it has no room.
    ``is_wrong`` marks an error, such as a race.
    """

    row: int
    role: str
    label: str
    start_s: float
    end_s: float
    is_wrong: bool = False


@dataclass(frozen=True, slots=True)
class Level:
    """A quantity over time in a row, drawn as an area with straight lines between its points.

    A point has seconds and the share of the largest value, 0 to 1, which the row's name states.
    """

    row: int
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Arrow:
    """An arrow from a time in one row to a time in another one, dashed for a wait."""

    from_s: float
    from_row: int
    to_s: float
    to_row: int
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class Lanes:
    """A picture of bars on lanes from 0 s on.

    ``names`` has the name of each lane by its row; that of a lane of two rows is between them.
    """

    names: Mapping[float, str]
    n_rows: int
    strips: tuple[Strip, ...]
    length_s: float
    levels: tuple[Level, ...] = ()
    arrows: tuple[Arrow, ...] = ()

    @classmethod
    def in_rows(
        cls,
        names: Sequence[str],
        strips: Iterable[Strip],
        length_s: float,
        levels: Iterable[Level] = (),
    ) -> "Lanes":
        """Return lanes of one row each, without arrows."""
        named: dict[float, str] = dict(enumerate(names))
        return cls(named, len(names), tuple(strips), length_s, tuple(levels))

    def draw(self, ax: "Axes") -> "Axes":
        """Draw everything on axes, with time in microseconds and a legend of the roles."""
        length_us = (self.length_s or 1e-6) * _MICRO  # a picture of one event has length 0
        self._name_roles(ax)
        self._draw_strips(ax, length_us)
        for arrow in self.arrows:
            _draw_arrow(ax, arrow)
        for level in self.levels:
            _draw_level(ax, level)
        texts = [shortened(one_line(name), _MOST_NAME) for name in self.names.values()]
        ax.set_yticks(list(self.names), texts)
        ax.set_ylim(self.n_rows - 0.5, -0.5)  # reversed: the first row is at the top
        # A margin, so that a moment at either end is not cut.
        ax.set_xlim(-0.01 * length_us, 1.01 * length_us)
        ax.xaxis.set_major_formatter("{x:,.6g}")
        legend_below(ax)
        return finish(ax, "Timeline", "time (µs)", "", legend=False)

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with a row for each strip."""
        import pandas as pd

        rows = [visible_row(asdict(strip)) for strip in self.strips]
        return pd.DataFrame(rows, columns=[field.name for field in fields(Strip)])

    def _name_roles(self, ax: "Axes") -> None:
        # Bars of no size give the legend an entry for each role, in the order of their starts.
        ordered = sorted(self.strips, key=lambda strip: strip.start_s)
        for role in dict.fromkeys(strip.role for strip in ordered if strip.role in ROLES):
            look = look_of(role)
            ax.bar(0, 0, 0, color=look.colour, hatch=look.hatch, ec=PAPER, label=role)

    def _draw_strips(self, ax: "Axes", length_us: float) -> None:
        # One collection for each row and look: matplotlib draws a few large collections much
        # faster than thousands of single bars. A collection has one width of edge.
        groups: dict[tuple[int, str, bool, bool], list[Strip]] = {}
        for strip in self.strips:
            is_thin = (strip.end_s - strip.start_s) * _MICRO <= _THIN * length_us
            key = (strip.row, strip.role, is_thin, strip.is_wrong)
            groups.setdefault(key, []).append(strip)
        for (row, role, is_thin, is_wrong), strips in groups.items():
            look, is_moment = _look(role), role == "event"
            ax.broken_barh(
                [(s.start_s * _MICRO, (s.end_s - s.start_s) * _MICRO) for s in strips],
                (row - _BAR / 2, _BAR),
                facecolor=look.colour,
                hatch="///" if is_wrong else look.hatch,
                # A white edge would hide a bar that is hardly wider than the edge. A moment has no
                # width, so only an edge in its own colour makes it visible.
                edgecolor=look.colour if is_moment else PAPER,
                linewidth=1.0 if not is_thin or is_moment else 0.0,
            )
        for strip in self.strips:
            room = int((strip.end_s - strip.start_s) * _MICRO / (_CHARACTER * length_us))
            if strip.label and room >= min(_LEAST_ROOM, len(strip.label) + 1):
                _write(ax, strip, room)
            elif strip.label and strip.role == "ink":
                _write_beside(ax, strip, length_us)


def _look(role: str) -> Look:
    return look_of(role) if role in ROLES else _PLAIN[role]


def _write(ax: "Axes", strip: Strip, room: int) -> None:
    """Write the label, shortened if needed, into a bar with space for ``room`` characters."""
    label = one_line(strip.label)
    if len(label) > room >= len(strip.role) and strip.role in _PLAIN_NAMES:
        label = strip.role
    if len(label) > room and room < _LEAST_SHORTENED:
        return
    middle_us = (strip.start_s + strip.end_s) / 2 * _MICRO
    text = ax.text(
        middle_us,
        strip.row,
        shortened(label, room),
        ha="center",
        va="center",
        fontsize="small",
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.0},
    )
    text.set_zorder(_ABOVE_ARROWS)


def _write_beside(ax: "Axes", strip: Strip, length_us: float) -> None:
    """Write the label of a mark that is too narrow for it to its right, or left if it is late."""
    start_us, end_us = strip.start_s * _MICRO, strip.end_s * _MICRO
    is_late = end_us > _LATE * length_us
    point = (start_us if is_late else end_us, strip.row)
    write_beside(ax, one_line(strip.label), point, (-6 if is_late else 6, 0), fontsize="small")


def _draw_arrow(ax: "Axes", arrow: Arrow) -> None:
    down = 1 if arrow.to_row > arrow.from_row else -1
    # Launches are many and short, so their arrows are thinner than those of waits.
    style = {
        "arrowstyle": "-|>",
        "color": MUTED,
        "linewidth": 1.0 if arrow.is_dashed else 0.7,
        "linestyle": "--" if arrow.is_dashed else "-",
        "shrinkA": 0,
        "shrinkB": 0,
        "mutation_scale": 7,
    }
    head = (arrow.to_s * _MICRO, arrow.to_row - down * _BAR / 2)
    tail = (arrow.from_s * _MICRO, arrow.from_row + down * _BAR / 2)
    ax.annotate("", head, tail, arrowprops=style)


def _draw_level(ax: "Axes", level: Level) -> None:
    """Draw a level as an area; its greatest value reaches the top of the row."""
    bottom = level.row + _LEVEL / 2
    times_us = [time_s * _MICRO for time_s, _ in level.points]
    heights = [bottom - _LEVEL * share for _, share in level.points]
    ax.fill_between(times_us, heights, bottom, facecolor=MUTED, alpha=0.45, linewidth=0)
