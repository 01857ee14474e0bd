"""The axes of a drawn prediction in a notebook, on which the learner draws."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpulab.core import palette
from gpulab.core.foreign_text import visible
from gpulab.core.markup import clean
from gpulab.exercises._page_form import PageForm
from gpulab.figures import widgets

if TYPE_CHECKING:
    from gpulab.exercises._drawings import DrawnPrediction


class DrawingForm(PageForm):
    """The axes on the page; without a kernel one can still draw on them."""

    kind = "sketch"

    def __init__(self, drawing: "DrawnPrediction") -> None:
        super().__init__(drawing.name)
        self._drawing = drawing
        self._answered = 0  # the number of the page's last message

    def view(self) -> dict[str, Any]:
        """Return the axes and the curves."""
        drawing = self._drawing
        names = drawing.axes.curves
        return {
            "question": visible(drawing.question),
            "axes": drawing.axes.view(),
            "curves": [
                {"name": name, "colour": colour, "values": drawing.values[name]}
                for name, colour in zip(names, _colours(names), strict=True)
            ],
            "answer": self._answered,
            "said": drawing.note,
            "still": self.still_class,
        }

    def words(self) -> dict[str, str]:
        """Return a page to draw on without a kernel, and for pages without scripts the words."""
        words = f"<p>{clean(str(self._drawing))}</p>"
        page = widgets.page_html("sketch", self.still_class, self.view(), words)
        html = f'<div class="{self.still_class}">{page}</div>'
        return {"text/html": html, "text/plain": str(self._drawing)}

    def receive(self, content: Mapping[str, Any]) -> None:
        """Store what the learner drew at once: the cell that runs may ask for it."""
        try:
            self._drawing.give({str(name): values for name, values in content["drawn"]})
        except (LookupError, TypeError, ValueError):  # no drawing: a page may be older than we are
            return
        self._drawing.keep()
        number = content.get("number")
        self._answered = number if isinstance(number, int) else 0
        for form in self.named(self.name):
            form.follow(self._drawing)

    def follow(self, drawn: "DrawnPrediction") -> None:
        """Show what was drawn last for the same question, here or in another output."""
        if self._drawing.axes == drawn.axes:
            self._drawing.values = {name: [*values] for name, values in drawn.values.items()}
            self.show()


def _colours(names: Sequence[str]) -> Iterator[str]:
    """Yield the colour of each curve as a CSS value for light and dark themes."""
    others = iter(palette.SERIES)
    for name in names:
        has_role = name in palette.ROLES
        light, dark = palette.ROLES[name].colour if has_role else next(others)
        yield f"light-dark({light}, {dark})"
