"""Turn plots into figures: `show` for the shipped ones, `draw` for functions of your own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, overload

from gpulab import device
from gpulab.core.requirements import FUNCTION, TEXT, instance_of
from gpulab.core.tracebacks import UsersTraceback
from gpulab.figures import (
    Figure,
    FigureOptions,
    Plot,
    check_words,
    has_provenance,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class PlotFunction(Protocol):
    """A function that returns the figure of a record; with axes it draws on these."""

    __name__: str

    @overload
    def __call__(self, record: Any, ax: "Axes", **options: Any) -> "Axes": ...  # noqa: ANN401  # as the plot has it
    @overload
    def __call__(self, record: Any, ax: None = None, **options: Any) -> Figure: ...  # noqa: ANN401  # as above


def typed(function: "Callable[..., Axes | Figure]") -> PlotFunction:
    """Return the function itself; a type checker then knows what a call with axes returns."""
    same: Any = function
    return same  # type: ignore[no-any-return]  # the protocol has both kinds of calls


def show(plot: Plot, ax: "Axes | None", options: FigureOptions) -> "Axes | Figure":
    """Draw a plot on axes and return them, or return its figure.

    If its record does not say where its numbers come from, the figure names the current GPU.
    """
    source = options.get("source")
    if ax is None and source is None and not has_provenance(plot.record):
        options = {**options, "source": device.current()}
    if ax is None:
        return plot.figure(**options)
    words = {"title": None, "alt": None, "ax_size": None, **options}
    words.pop("source", None)
    check_words(**words)
    from matplotlib.axes import Axes

    instance_of(Axes, "axes of matplotlib, such as plt.subplots()[1]").check(ax=ax)
    return plot.draw(ax)


@dataclass(frozen=True, slots=True)
class _OwnPlot(Plot):
    """A record that a function of the caller draws, with the caller's words."""

    record: object
    function: "Callable[..., Axes]"
    options: Mapping[str, object]

    title, words = "", ""  # the caller gives them to figure()

    def draw(self, ax: "Axes") -> "Axes":
        return self.function(self.record, ax, **self.options)


def draw(  # noqa: PLR0913  # what a figure needs is keyword-only
    plot: "Callable[..., Axes]",
    record: object,
    *,
    title: str,
    alt: str,
    ax_size: tuple[float, float] | None = None,
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
        Width and height, in inches; None: the width of a page, 4.2 inches high.
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
    with UsersTraceback():
        FUNCTION.check(plot=plot)
        TEXT.check(title=title, alt=alt)
        own = _OwnPlot(record, plot, options)
        return own.figure(title=title, alt=alt, ax_size=ax_size, source=source)
