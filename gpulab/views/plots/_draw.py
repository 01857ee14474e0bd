"""Turn plots into figures: `draw` for functions of your own, one call for the shipped ones."""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, overload

from gpulab import device
from gpulab.core.foreign_text import visible
from gpulab.core.requirements import TEXT, Requirement
from gpulab.figures import (
    SIZE_IN,
    WIDTH_IN,
    Figure,
    check_axes,
    check_words,
    drawn_from,
    frame_of,
    has_provenance,
    provenance,
    render,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ONE_LINE_TITLE = 76  # characters; a longer title has its source in a second line
_HEIGHT_IN = 4.2  # inches; a figure of rows computes its own


_PLOT = Requirement("a function of gpulab.plots, or any f(record, ax)", callable)


class Words(NamedTuple):
    """Title and text alternative of a figure, and the height that it needs."""

    title: str
    alt: str
    height_in: float = _HEIGHT_IN


class Plot(Protocol):
    """A plot that returns a figure of its record; with axes it draws on these."""

    __name__: str

    @overload
    def __call__(self, record: Any, ax: "Axes", **options: Any) -> "Axes": ...  # noqa: ANN401  # as the plot has it
    @overload
    def __call__(  # what a figure needs is keyword-only
        self,
        record: Any,  # noqa: ANN401  # as above
        ax: None = None,
        *,
        title: str | None = None,
        alt: str | None = None,
        ax_size: tuple[float, float] | None = None,
        source: object = None,
        **options: Any,  # noqa: ANN401  # as above
    ) -> Figure: ...


def check_figure(plot: object, *, title: str, alt: str, ax_size: object) -> None:
    """Raise an error if an argument of :func:`draw` is wrong, before anything is measured.

    Raises
    ------
    InvalidOptionError
        If ``plot`` cannot be called, a text is empty or not a text, or the size is not two
        lengths.

    Examples
    --------
    >>> from gpulab import plots
    >>> check_figure(plots.line, title="Time", alt="It grows.", ax_size=(9.0, 4.2))
    """
    _PLOT.check(plot=plot)
    TEXT.check(title=title, alt=alt)
    check_words(title=title, alt=alt, ax_size=None)
    SIZE_IN.check(ax_size=ax_size)


def draw(  # noqa: PLR0913  # what a figure needs is keyword-only
    plot: "Callable[..., Axes]",
    record: object,
    *,
    title: str,
    alt: str,
    ax_size: tuple[float, float] = (WIDTH_IN, _HEIGHT_IN),
    source: object = None,
    **options: object,
) -> Figure:
    """Draw a record with a function of your own, and return a figure with a text alternative.

    The functions of this module need less: ``plots.samples(record)`` is a figure already.

    Parameters
    ----------
    plot
        Any ``f(record, ax, **options) -> Axes``.
    record
        What it draws.
    title
        Title; the source of the numbers is added to it.
    alt
        What the figure shows, in a sentence or two; axes, units and ranges are added to it.
    ax_size
        Width and height, in inches.
    source
        Where the numbers come from, if the record does not say: a ``Device`` or text.
    **options
        Passed to ``plot``.

    Returns
    -------
    Figure
        Picture, description and table of the data.

    Raises
    ------
    InvalidOptionError
        If ``alt`` is empty, or nothing says where the numbers come from.

    Examples
    --------
    >>> from gpulab import plots
    >>> def dots(record, ax):
    ...     ax.plot(record, "o")
    ...     return ax
    >>> plots.draw(dots, [1.0, 2.0], title="Two", alt="Two dots.", source="virtual").title
    'Two (virtual)'
    """
    from matplotlib.figure import Figure as Canvas

    check_figure(plot, title=title, alt=alt, ax_size=ax_size)
    origin = provenance(record, source)
    # Not pyplot, which opens windows and keeps a global list of figures.
    with style(), drawn_from(source):
        canvas = Canvas(figsize=ax_size, layout="constrained")
        ax = canvas.add_subplot()
        plot(record, ax, **options)
        gap = "\n" if len(title) + len(origin) > _ONE_LINE_TITLE else " "
        ax.set_title(visible(f"{title}{gap}({origin})"), parse_math=False)
    return render(ax, alt=alt, frame=frame_of(record))


def one_call(words: Callable[..., Words]) -> "Callable[[Callable[..., Axes]], Plot]":
    """Return a decorator that lets a plot be called with its record alone.

    Without axes the plot returns a figure as wide as a notebook's page. ``words`` computes its
    title and text alternative from the record, so that they cannot disagree with it. If a record
    does not say its source, the figure names the current GPU.
    """

    def decorate(plot: "Callable[..., Axes]") -> Plot:
        def call(  # noqa: PLR0913  # what a figure needs is keyword-only
            record: object,
            ax: "Axes | None" = None,
            *,
            title: str | None = None,
            alt: str | None = None,
            ax_size: tuple[float, float] | None = None,
            source: object = None,
            **options: object,
        ) -> "Axes | Figure":
            check_words(title=title, alt=alt, ax_size=ax_size)
            if ax is not None:
                check_axes(ax)
                return plot(record, ax, **options)
            # Before drawing: words check the record and raise the clearer error.
            said = words(record, **options)
            if source is None and not has_provenance(record):
                source = device.current()
            return draw(
                plot,
                record,
                title=said.title if title is None else title,
                alt=said.alt if alt is None else alt,
                ax_size=(WIDTH_IN, said.height_in) if ax_size is None else ax_size,
                source=source,
                **options,
            )

        return _named_after(plot, call)

    return decorate


def _named_after(plot: "Callable[..., Axes]", call: Callable[..., Any]) -> Plot:
    """Give ``call`` the name and the docstring of ``plot``, and the parameters of both."""
    # Not functools.wraps: help() would then show the parameters of the plot alone.
    own, added = (inspect.signature(function).parameters for function in (plot, call))
    merged = [own["record"], added["ax"]]
    merged += [option for name, option in own.items() if name not in {"record", "ax"}]
    merged += [added[name] for name in ("title", "alt", "ax_size", "source")]
    call.__annotations__ = {option.name: option.annotation for option in merged}
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(call, name, getattr(plot, name))
    signature = inspect.Signature(merged, return_annotation="Axes | Figure")
    call.__signature__ = signature  # type: ignore[attr-defined]  # inspect reads it
    return call
