"""A plot: a frozen record that draws itself on axes, and says in words what it shows."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypedDict

from gpulab.core.foreign_text import visible
from gpulab.figures._figure import WIDTH_IN, Figure, render
from gpulab.figures._inputs import check_words, frame_of, provenance
from gpulab.figures._style import drawn_from, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT_IN = 4.2
_ONE_LINE_TITLE = 76  # characters; a longer title has its source in a second line


class FigureOptions(TypedDict, total=False):
    """The options that every plot takes for its figure.

    By default title and text alternative are computed from the record, and a figure has the width
    of a page and the height that it needs, in inches. ``source``, a ``Device`` or text, says where
    the numbers come from if the record does not.
    """

    title: str | None
    alt: str | None
    ax_size: tuple[float, float] | None
    source: object


class Plot(ABC):
    """A record with its picture; subclasses are frozen dataclasses whose first field is `record`.

    A subclass checks its record when it is made. So the picture, the title and the words can rely
    on it, and they cannot disagree, because all three are computed from the same fields. A title
    that the caller gives is a field, too: ``title: str = field()``.
    """

    __slots__ = ()
    record: object

    @property
    @abstractmethod
    def title(self) -> str:
        """What the picture shows, in one line; the figure adds the source of the numbers."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The text alternative, which the figure prints below the picture, too."""

    @property
    def height_in(self) -> float:
        """The height that the figure needs, in inches."""
        return _HEIGHT_IN

    @abstractmethod
    def draw(self, ax: "Axes") -> "Axes":
        """Draw the record on axes, without a title, and return them."""

    def figure(
        self,
        *,
        title: str | None = None,
        alt: str | None = None,
        ax_size: tuple[float, float] | None = None,
        source: object = None,
    ) -> Figure:
        """Return the picture with its text alternative and the table of its numbers.

        The parameters are those of :class:`FigureOptions`. An empty ``alt``, or numbers without a
        source, raise `InvalidOptionError`.
        """
        from matplotlib.figure import Figure as Canvas

        check_words(title=title, alt=alt, ax_size=ax_size)
        heading, origin = title or self.title, provenance(self.record, source)
        # Not pyplot, which opens windows and keeps a global list of figures.
        with style(), drawn_from(source):
            canvas = Canvas(figsize=ax_size or (WIDTH_IN, self.height_in), layout="constrained")
            ax = canvas.add_subplot()
            self.draw(ax)
            gap = "\n" if len(heading) + len(origin) > _ONE_LINE_TITLE else " "
            # A "$" in the name of a device must not start a formula.
            ax.set_title(visible(f"{heading}{gap}({origin})"), parse_math=False)
        return render(ax, alt=alt or self.words, frame=frame_of(self.record))
