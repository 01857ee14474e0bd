"""The widgets of questions: small forms, for the mouse and for keys."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gpulab.figures.widgets._messages import ignore_state
from gpulab.figures.widgets._script import script

if TYPE_CHECKING:
    from anywidget import AnyWidget

_FOLDER = Path(__file__).parent / "forms"


@cache  # not at import: half of the package would wait for the widgets to load
def form_class(kind: Literal["guess", "answer"]) -> "type[AnyWidget]":
    """Return the class of a form's widget.

    Its trait ``view`` has all that the form shows, and ``still``: the form hides elements of this
    class, which say the same on a page without a kernel. ``forms/guess.js`` and
    ``forms/answer.js`` say what else is in it, and what the browser sends.

    Examples
    --------
    >>> form_class("guess")().view
    {}
    """
    import anywidget
    import traitlets

    class Form(anywidget.AnyWidget):
        """A form in the browser."""

        set_state = ignore_state
        _esm = script(_FOLDER / f"{kind}.js")
        view: Any = traitlets.Dict().tag(sync=True)

    return Form


def answer_form(widget: Any, view: dict[str, Any]) -> None:  # noqa: ANN401  # ipywidgets has no types
    """Let a form show a view, and know that what it sent has arrived.

    Examples
    --------
    >>> form = form_class("guess")(view={"said": ""})
    >>> answer_form(form, {"said": ""})
    >>> form.view
    {'said': '', 'n_answers': 1}
    """
    # A view that does not change would not be sent, and the page would wait for it.
    widget.view = {**view, "n_answers": widget.view.get("n_answers", 0) + 1}
