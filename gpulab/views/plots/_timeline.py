"""The timeline of a program, drawn on axes or as a figure of its own."""

from typing import TYPE_CHECKING, overload

from gpulab.figures import Figure, check_words
from gpulab.tracing import draw_timeline, timeline_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpulab.tracing import Timeline


@overload
def timeline(record: "Timeline", ax: "Axes") -> "Axes": ...
@overload
def timeline(
    record: "Timeline",
    ax: None = None,
    *,
    title: str | None = None,
    alt: str | None = None,
    ax_size: tuple[float, float] | None = None,
) -> Figure: ...
def timeline(
    record: "Timeline",
    ax: "Axes | None" = None,
    *,
    title: str | None = None,
    alt: str | None = None,
    ax_size: tuple[float, float] | None = None,
) -> "Axes | Figure":
    """Draw what host and devices did over time, one lane each.

    Parameters
    ----------
    record
        From :func:`gpulab.timeline`.
    ax
        Axes to draw on. None: return a figure that is as high as its lanes need.
    title, alt
        Title and text alternative of the figure. None: computed from the record.
    ax_size
        Width and height of the figure, in inches.

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
    check_words(title=title, alt=alt, ax_size=ax_size)
    if ax is not None:
        return timeline_axes(record, ax)
    return draw_timeline(
        record, title="Timeline" if title is None else title, alt=alt, ax_size=ax_size
    )
