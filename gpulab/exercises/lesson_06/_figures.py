"""Figures of lesson 06: speed against the working set, and what hardware counters saw."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gpulab import device
from gpulab.exercises._lines import LinesBySeries
from gpulab.figures import INK, MUTED, Figure
from gpulab.gpus import by_driver_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gpulab.gpus import GpuSpec

_HEADROOM = 1.15  # the axis ends 15 % above the highest point, which leaves room for texts
_GIGA, _MIB = 1e9, 2**20


def plot_speeds(sizes_mib: Sequence[float], bytes_per_s: Mapping[str, Sequence[float]]) -> Figure:
    """Return a figure of the bytes that a kernel moves each second, against its working set.

    A dotted line marks the speed of the memory by the data sheet of the GPU in use, if it is
    known. What lies above it cannot come from the memory; the title says whether the first kernel
    does.
    """
    import pandas as pd

    from gpulab.views import plots

    gpu = device.current()
    spec = by_driver_name(gpu.name)
    speeds = pd.DataFrame(bytes_per_s) / _GIGA
    sentences = [
        f"{name}: from {s.min():,.0f} to {s.max():,.0f} GB/s." for name, s in speeds.items()
    ]
    # Only of the first series: a cold kernel can come out a little above the memory, because a
    # part of its result is still in the cache when it ends.
    first = speeds.iloc[:, 0]
    title = f"{first.name} reaches {first.max():,.0f} GB/s"
    if spec is not None:
        memory = spec.bandwidth_bytes_per_s / _GIGA
        sentences.append(f"The memory: {memory:,.0f} GB/s.")
        above = [size for size, speed in zip(sizes_mib, first, strict=True) if speed > memory]
        title = "Nothing is faster than the memory"
        if above:
            sizes = f"From {min(above):g} to {max(above):g} MiB"
            title = f"{sizes}, a {first.name} kernel is faster than the memory can be"
    speeds.insert(0, "working_set_mib", sizes_mib)
    return plots.draw(
        _speeds, speeds, title=title, alt="\n".join(sentences), source=gpu, spec=spec
    )


def _speeds(record: "pd.DataFrame", ax: "Axes", *, spec: "GpuSpec | None") -> "Axes":
    """Plot speeds, with those above the memory shaded and the size of the L2."""
    from gpulab.views import plots

    plots.line(record, ax, log="x")
    ax.set_ylabel("bytes moved (GB/s)")
    top = _HEADROOM * float(record.iloc[:, 1:].to_numpy().max())
    ax.set_ylim(0, top)
    if spec is not None:
        memory, l2_mib = spec.bandwidth_bytes_per_s / _GIGA, spec.l2_bytes / _MIB
        ax.axhline(memory, color=INK, linestyle=":", zorder=1)
        ax.axhspan(memory, top, color=MUTED, alpha=0.12, linewidth=0)
        ax.axvline(l2_mib, color=MUTED, zorder=1)
        limit = f"the memory gives {memory:,.0f} GB/s at most"
        # At the top left, where small working sets leave room.
        for text, at, shift, va in (
            (limit, (record["working_set_mib"].min(), top), (0, -6), "top"),
            ("size of the L2", (l2_mib, 0), (5, 4), "bottom"),
        ):
            ax.annotate(text, at, shift, textcoords="offset points", va=va)
    return ax


def draw_shares(
    record: "pd.DataFrame", column: str, label: str = "share", *, title: str
) -> Figure:
    """Return a figure of a share in percent, such as ``from_memory_percent``, for each work.

    ``record`` has the readings of ``06.staircase``, and ``label`` says of what the share is.
    """
    shares = record.assign(series=record["work"])
    return LinesBySeries(
        shares, "working_set_mib", column, "working set (MiB)", f"{label} (%)", title
    ).figure()
