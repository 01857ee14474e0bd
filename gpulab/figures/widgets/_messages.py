"""What a page may tell a widget: messages, which are judged, and nothing else."""

from collections.abc import Callable, Mapping
from typing import Any


def ignore_state(widget: object, sync_data: Mapping[str, Any]) -> None:
    """Keep a widget's traits: the method ``set_state`` of each widget class.

    A page asks by messages, and the kernel answers with what is shown. So no page, which may be
    older than the kernel or belong to another, can change what the others show.
    """


def listen(widget: Any, receive: Callable[[Mapping[str, Any]], object]) -> None:  # noqa: ANN401  # ipywidgets has no types
    """Call a function with each message of a page that is a dict; others are not from ours."""

    def handle(_: object, content: object, __: object) -> None:
        if isinstance(content, Mapping):
            receive(content)

    widget.on_msg(handle)
