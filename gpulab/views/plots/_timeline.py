"""The timeline of a program, drawn on axes or as a figure of its own."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from gpulab.core.requirements import TEXT, instance_of, items_of
from gpulab.figures import Figure, FigureOptions
from gpulab.tracing import Timeline, timeline_plot
from gpulab.views.plots._draw import show, typed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TIMELINE = instance_of(Timeline, "a timeline, such as gpulab.timeline() returns")


def checked_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names as a tuple; a text is a name for each of its letters."""
    return items_of("names", list(names) if isinstance(names, str) else names, TEXT)


def named(record: Timeline, names: Sequence[str]) -> Timeline:
    """Return a timeline in which calls and their kernels have the reader's names, such as A, B, C.

    The launches are named in the order in which they were made. If there are more, because one
    call of PyTorch launches several kernels, neighbours share a name. If they cannot be shared
    evenly, everything keeps its name.
    """
    launches = sorted(
        (span for span in record.spans if span.kind == "launch"), key=lambda span: span.start_s
    )
    if not names or not launches or len(launches) % len(names):
        return record
    each = len(launches) // len(names)
    name_of: dict[int | None, str] = {
        launch.correlation: names[index // each]
        for index, launch in enumerate(launches)
        if launch.correlation is not None
    }
    spans = (replace(span, name=name_of.get(span.correlation, span.name)) for span in record.spans)
    return replace(record, spans=tuple(spans))


@typed
def timeline(
    record: Timeline,
    ax: "Axes | None" = None,
    *,
    names: Sequence[str] = (),
    **figure: Unpack[FigureOptions],
) -> "Axes | Figure":
    """Draw what host and devices did over time, one lane each.

    A row below the lanes shows each pair of events with the time that it reads; without a title
    of yours, and without pairs, a row shows when the GPU is idle.

    Parameters
    ----------
    record
        From :func:`gpulab.timeline`.
    ax
        Axes to draw on. None: return a figure that is as high as its lanes need.
    names
        Names for the launches in their order, such as ``"ABC"``, and for their kernels and copies.

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
    TIMELINE.check(record=record)
    shown = named(record, checked_names(names))
    is_titled = ax is None and figure.get("title") is None
    plot = timeline_plot(shown, has_series=False, marks_idle=is_titled)
    return show(plot, ax, figure)
