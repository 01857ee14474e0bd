"""Figures of lesson 06: speed against the working set, and what hardware counters saw."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpulab import device
from gpulab.figures import (
    INK,
    MUTED,
    Figure,
    Plot,
    finish,
    log_axis,
    looks,
    marks,
    need,
    size_ticks,
    source_of,
)
from gpulab.gpus import by_driver_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_HEADROOM = 1.15  # the axis ends 15 % above the highest point, which leaves room for texts
_GIGA, _MIB = 1e9, 2**20
_SIZE_LABEL = "working set (MiB)"


@dataclass(frozen=True, slots=True)
class _Speeds(Plot):
    """Bytes per second against size, one line per series, with the memory's speed as a limit."""

    record: "pd.DataFrame"
    memory_bytes_per_s: float | None = field()
    l2_mib: float | None = field()

    def __post_init__(self) -> None:
        need(self.record, ("size_mib", "bytes_per_s", "series"))

    @property
    def title(self) -> str:
        first = str(self.record["series"].iloc[0])
        fastest = self.record["bytes_per_s"].max() / _GIGA
        if self.memory_bytes_per_s is None:
            return f"{first} reaches {fastest:,.0f} GB/s"
        # Only of the first series: a cold kernel can come out a little above the memory, because a
        # part of its result is still in the cache when it ends.
        series = self.record[self.record["series"] == first]
        above = series[series["bytes_per_s"] > self.memory_bytes_per_s]
        if above.empty:
            return "Nothing is faster than the memory"
        low, high = (f"{above['size_mib'].agg(pick):g}" for pick in ("min", "max"))
        sizes = f"From {low} to {high} MiB" if low != high else f"At {low} MiB"
        return f"{sizes}, a {first} kernel is faster than the memory can be"

    @property
    def words(self) -> str:
        sentences = []
        for name, part in self.record.groupby("series", sort=False):
            low, high = (part["bytes_per_s"].agg(pick) / _GIGA for pick in ("min", "max"))
            sentences.append(f"{name}: from {low:,.0f} to {high:,.0f} GB/s.")
        if self.memory_bytes_per_s is not None:
            sentences.append(f"The memory: {self.memory_bytes_per_s / _GIGA:,.0f} GB/s.")
        return "\n".join(sentences)

    def draw(self, ax: "Axes") -> "Axes":
        names = map(str, self.record["series"].unique())
        groups = self.record.groupby("series", sort=False)
        top = _HEADROOM * float(self.record["bytes_per_s"].max()) / _GIGA
        for (name, part), look in zip(groups, looks(names), strict=False):
            signs = marks(look, source_of(part))
            ax.plot(part["size_mib"], part["bytes_per_s"] / _GIGA, label=str(name), **signs)
        log_axis(ax, "x")
        size_ticks(ax, self.record["size_mib"])
        ax.set_ylim(0, top)
        if self.memory_bytes_per_s is not None:
            self._mark_memory(ax, top)
        if self.l2_mib is not None:
            ax.axvline(self.l2_mib, color=MUTED, zorder=1)
            _note(ax, "size of the L2", (self.l2_mib, 0.0), (5, 4))
        ax.grid(visible=True)
        return finish(ax, "Line chart", _SIZE_LABEL, "bytes moved (GB/s)")

    def _mark_memory(self, ax: "Axes", top: float) -> None:
        limit = (self.memory_bytes_per_s or 0.0) / _GIGA
        ax.axhline(limit, color=INK, linestyle=":", zorder=1)
        ax.axhspan(limit, top, color=MUTED, alpha=0.12, linewidth=0)
        ax.annotate(  # at the top left, where small working sets leave room
            f"the memory gives {limit:,.0f} GB/s at most",
            (0.0, 1.0),
            (8, -6),
            xycoords="axes fraction",
            textcoords="offset points",
            va="top",
        )


def plot_speeds(sizes_mib: Sequence[float], bytes_per_s: Mapping[str, Sequence[float]]) -> Figure:
    """Return a figure of the bytes that a kernel moves each second, against its working set.

    A dotted line marks the speed of the memory by the data sheet of the GPU in use, if it is
    known. What lies above it cannot come from the memory.
    """
    import pandas as pd

    gpu = device.current()
    spec = by_driver_name(gpu.name)
    rows = [
        (size, speed, name)
        for name, speeds in bytes_per_s.items()
        for size, speed in zip(sizes_mib, speeds, strict=True)
    ]
    frame = pd.DataFrame(rows, columns=["size_mib", "bytes_per_s", "series"])
    memory, l2 = (spec.bandwidth_bytes_per_s, spec.l2_bytes / _MIB) if spec else (None, None)
    return _Speeds(frame, memory, l2).figure(source=gpu)


def _note(
    ax: "Axes", text: str, point: tuple[float, float], shift: tuple[float, float], ha: str = "left"
) -> None:
    ax.annotate(
        text,
        point,
        shift,
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        color=MUTED,
        ha=ha,
    )


def draw_shares(record: "pd.DataFrame", column: str, *, title: str) -> Figure:
    """Return a figure of a share in percent, such as ``from_memory_percent``, for each work.

    ``record`` has the readings of ``06.staircase``.
    """
    from gpulab.views import plots

    shares = record.pivot_table(column, "working_set_mib", "work", sort=False)
    origin = record[["source", "device_name"]].iloc[0]
    return plots.line(shares.add_suffix("_percent").reset_index().assign(**origin), title=title)
