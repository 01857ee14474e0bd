"""The timeline of a program, drawn on axes or as a figure of its own."""

from typing import TYPE_CHECKING, Unpack

from gpulab.figures import Figure, FigureOptions
from gpulab.tracing import timeline_plot
from gpulab.views.plots._draw import show, typed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpulab.tracing import Timeline


@typed
def timeline(
    record: "Timeline", ax: "Axes | None" = None, **figure: Unpack[FigureOptions]
) -> "Axes | Figure":
    """Draw what host and devices did over time, one lane each.

    Parameters
    ----------
    record
        From :func:`gpulab.timeline`.
    ax
        Axes to draw on. None: return a figure that is as high as its lanes need.

    Raises
    ------
    InvalidOptionError
        If the timeline has no spans.

    Examples
    --------
    >>> import torch, gpulab
    >>> from gpulab import plots
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(64, 64, device="cuda")
    ...     record = gpulab.timeline(lambda: a @ a)
    >>> plots.timeline(record, title="A matmul").title
    'A matmul (virtual NVIDIA H200)'
    """
    return show(timeline_plot(record), ax, figure)
