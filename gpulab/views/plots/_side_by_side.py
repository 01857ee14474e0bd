"""Timelines of several programs under each other, on one axis of time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Unpack

from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import one_line
from gpulab.core.requirements import mapping_to
from gpulab.core.units import counted, format_ratio, format_time
from gpulab.figures import Figure, FigureOptions, Lanes, Plot, Strip
from gpulab.tracing import Span, Timeline
from gpulab.views.plots._draw import show, typed
from gpulab.views.plots._timeline import TIMELINE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_ROW_IN, _MARGIN_IN = 0.36, 1.7
_MOST = 0.5  # of the kernels' time: below that a title does not say that they run during a copy
# Row of each kind of span, from the top. Rows that stay empty are left out. A wait of a stream is
# in none of them: it is no time of the host.
_ROWS = {"host": ("launch", "wait"), "copies": ("copy",), "kernels": ("kernel",)}


@dataclass(frozen=True, slots=True)
class _SideBySide(Plot):
    """What host and GPU do in each program; a kernel in any stream is in the row of kernels."""

    record: "pd.DataFrame"
    programs: Mapping[str, Sequence[Span]] = field()

    @property
    def title(self) -> str:
        shares = [(name, _share_beside_copies(spans)) for name, spans in self.programs.items()]
        known = [(name, share) for name, share in shares if share is not None]
        if len(known) == len(shares):
            during = [f"{name} ({100 * share:.0f} %)" for name, share in known if share >= _MOST]
            if not during:
                return "No kernel runs during a copy"
            only = "" if len(during) == len(known) else "only "
            return f"Kernels run during a copy {only}in: {', '.join(during)}"
        longest, shortest = (pick(self.programs, key=self._length_s) for pick in (max, min))
        least_s = self._length_s(shortest)
        ratio = format_ratio(self._length_s(longest) / least_s) if least_s > 0 else "1"
        if ratio == "1":
            return "All programs take the same time"
        return f"{longest}: {ratio} times as long as {shortest}"

    def _length_s(self, name: str) -> float:
        return max(span.end_s for span in self.programs[name])

    @property
    def words(self) -> str:
        sentences = []
        for name, spans in self.programs.items():
            n_launches, n_kernels = (
                sum(span.kind == kind for span in spans) for kind in ("launch", "kernel")
            )
            sentences.append(
                f"{name}: {format_time(self._length_s(name))}, {counted(n_launches, 'call')} that "
                f"{'launches' if n_launches == 1 else 'launch'}, {counted(n_kernels, 'kernel')}."
            )
        return "\n".join(sentences)

    @property
    def height_in(self) -> float:
        return _MARGIN_IN + _ROW_IN * self._n_rows

    @property
    def _rows(self) -> dict[str, int]:
        """The rows of each program that contain something, and an empty one between programs."""
        rows, row = {}, 0
        for name, spans in self.programs.items():
            for row_name in _ROWS:
                if any(_in_row(spans, row_name)):
                    rows[f"{one_line(name)}: {row_name}"] = row
                    row += 1
            row += 1
        return rows

    @property
    def _n_rows(self) -> int:
        return max(self._rows.values()) + 1

    def draw(self, ax: "Axes") -> "Axes":
        strips = tuple(self._strips())
        names: dict[float, str] = {row: name for name, row in self._rows.items()}
        length_s = max(strip.end_s for strip in strips)
        return Lanes(names, self._n_rows, strips, length_s).draw(ax)

    def _strips(self) -> Iterator[Strip]:
        rows = self._rows
        for name, spans in self.programs.items():
            for row_name in _ROWS:
                for span in _in_row(spans, row_name):
                    label = span.name if span.kind == "kernel" else span.kind
                    row = rows[f"{one_line(name)}: {row_name}"]
                    yield Strip(row, span.kind, label, span.start_s, span.end_s)


def _in_row(spans: Sequence[Span], row_name: str) -> Iterator[Span]:
    is_host = row_name == "host"
    return (x for x in spans if x.kind in _ROWS[row_name] and x.is_on_host is is_host)


def _share_beside_copies(spans: Sequence[Span]) -> float | None:
    """Return which share of the kernels' time lies within copies; None without copies."""
    copies = sorted((span.start_s, span.end_s) for span in spans if span.kind == "copy")
    kernels = [span for span in spans if span.kind == "kernel"]
    kernels_s = sum(kernel.duration_s for kernel in kernels)
    if not copies or kernels_s <= 0:
        return None
    beside_s, seen_s = 0.0, float("-inf")
    for start_s, end_s in copies:
        new_s = max(start_s, seen_s)  # the part of each copy that no copy before it covers
        beside_s += sum(
            max(0.0, min(end_s, kernel.end_s) - max(new_s, kernel.start_s)) for kernel in kernels
        )
        seen_s = max(end_s, seen_s)
    return beside_s / kernels_s


@typed
def side_by_side(
    record: Mapping[str, Timeline], ax: "Axes | None" = None, **figure: Unpack[FigureOptions]
) -> "Axes | Figure":
    """Draw timelines of several programs under each other, on one axis of time.

    Each program has a row for the host, and one for its copies and its kernels, in whatever stream
    they are. The title says what differs: in which programs the kernels run during a copy and for
    what share of their time or, without copies, how long the programs take.

    Parameters
    ----------
    record
        Timelines by the names of the programs.
    ax
        Axes to draw on. None: return a figure that is as high as its rows need.

    Raises
    ------
    InvalidOptionError
        If there is no timeline, or one of them has no launches, copies or kernels.

    Examples
    --------
    >>> import torch, gpulab
    >>> from gpulab import plots
    >>> with gpulab.virtual_gpu("H200"):
    ...     x = torch.ones(64, device="cuda")
    ...     once = gpulab.timeline(lambda: x.exp())
    ...     twice = gpulab.timeline(lambda: x.exp().exp())
    >>> plots.side_by_side({"one": once, "two": twice}).caption.splitlines()[0].partition(", ")[2]
    '1 call that launches, 1 kernel.'
    """
    import pandas as pd

    mapping_to(TIMELINE, "timelines by the names of the programs").check(record=record)
    empty = [
        one_line(name)
        for name, timeline in record.items()
        if not any(any(_in_row(timeline.spans, row_name)) for row_name in _ROWS)
    ]
    if empty or not record:
        raise InvalidOptionError(
            f"{', '.join(empty) or 'record'} has no launches, copies or kernels; "
            "there is nothing to draw"
        )
    frames = [timeline.to_frame().assign(program=name) for name, timeline in record.items()]
    programs = {name: timeline.spans for name, timeline in record.items()}
    return show(_SideBySide(pd.concat(frames), programs), ax, figure)
