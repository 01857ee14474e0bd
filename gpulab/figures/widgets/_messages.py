"""What a page may tell a widget: messages, which are judged, and nothing else."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anywidget import AnyWidget


@cache  # not at import: half of the package would wait for the widgets to load
def widget_base() -> "type[AnyWidget]":
    """Return the base of all widget classes: a page cannot set their traits.

    A page asks by messages, and the kernel answers with what is shown. So no page, which may be
    older than the kernel or belong to another, can change what the others show.

    Examples
    --------
    >>> widget_base()().set_state({"layout": None})
    """
    import anywidget

    class Base(anywidget.AnyWidget):
        """A widget that hears messages only."""

        def set_state(self, sync_data: Mapping[str, Any]) -> None:
            """Ignore the traits that a page sends."""

    return Base


def listen(widget: Any, receive: Callable[[Mapping[str, Any]], object]) -> None:  # noqa: ANN401  # ipywidgets has no types
    """Call a function with each message of a page that is a dict; others are of no page of ours.

    Examples
    --------
    >>> from gpulab.figures.widgets import machine_class
    >>> machine = machine_class()()
    >>> listen(machine, print)
    >>> machine._handle_custom_msg({"do": "undo"}, [])
    {'do': 'undo'}
    >>> machine._handle_custom_msg(None, [])
    """

    def hear(_: object, content: object, __: object) -> None:
        if isinstance(content, Mapping):
            receive(content)

    widget.on_msg(hear)
