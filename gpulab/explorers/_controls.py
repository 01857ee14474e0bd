"""Controls for choices: the widget of each kind, kept in step with what is offered."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from gpulab.explorers._scene import Selector
from gpulab.widgets import chips_class

_LABEL, _SHORT_LABEL = {"description_width": "7.5em"}, {"description_width": "initial"}
_WIDE, _MENU = {"width": "100%"}, {"width": "auto", "margin": "2px 16px 2px 2px"}


class Controls:
    """One widget for each choice.

    Parameters
    ----------
    choices
        What there is to choose.
    state
        What is chosen at first.
    chosen
        Called with the name and the new value when the reader chooses.

    Attributes
    ----------
    widgets
        By name of the choice.
    """

    def __init__(
        self,
        choices: tuple[Selector, ...],
        state: object,
        chosen: Callable[[str, Hashable], object],
    ) -> None:
        self._chosen = chosen
        self._choices = {choice.name: choice for choice in choices}
        self._is_told = False
        self.widgets: Mapping[str, Any] = {
            choice.name: _widget(choice, getattr(state, choice.name)) for choice in choices
        }
        # By place, not by value: to ipywidgets a value of None is no choice.
        for name, widget in self.widgets.items():
            widget.observe(lambda change, name=name: self._notice(name, change["new"]), "index")

    @property
    def short(self) -> list[Any]:
        """The widgets that stand beside each other."""
        return [self.widgets[name] for name in self.widgets if not self._is_long(name)]

    @property
    def long(self) -> list[Any]:
        """The widgets that take a row each."""
        return [self.widgets[name] for name in self.widgets if self._is_long(name)]

    def _is_long(self, name: str) -> bool:
        return self._choices[name].kind in {"slider", "several"}

    def tell(self, choices: tuple[Selector, ...], state: object) -> None:
        """Show what is offered and chosen now."""
        self._choices = {choice.name: choice for choice in choices}
        self._is_told = True
        try:
            for choice in choices:
                _update(self.widgets[choice.name], choice, getattr(state, choice.name))
        finally:
            self._is_told = False

    def close(self) -> None:
        """Take the widgets off the page."""
        for widget in self.widgets.values():
            widget.close()

    def _notice(self, name: str, place: int | Sequence[int] | None) -> None:
        if self._is_told or place is None:
            return
        offered = self._choices[name].offered
        if isinstance(place, int):
            self._chosen(name, offered[place])
        else:
            self._chosen(name, tuple(offered[each] for each in place))


def _widget(choice: Selector, value: Hashable) -> Any:  # noqa: ANN401 # ipywidgets has no types
    import ipywidgets  # type: ignore[import-untyped] # it ships no types

    kinds: dict[str, tuple[Any, dict[str, Any]]] = {
        "menu": (ipywidgets.Dropdown, {"layout": _MENU}),
        "buttons": (ipywidgets.ToggleButtons, {"style": {**_SHORT_LABEL, "button_width": "auto"}}),
        "slider": (ipywidgets.SelectionSlider, {"layout": _WIDE, "style": _LABEL}),
    }
    if choice.kind == "several":
        return chips_class()(
            description=choice.label,
            options=list(_texts(choice)),
            index=_place(choice, value),
            families=choice.families,
        )
    make, options = kinds[choice.kind]
    return make(
        description=choice.label,
        options=_texts(choice),
        index=_place(choice, value),
        disabled=_is_settled(choice),
        **{"style": _SHORT_LABEL, **options},
    )


def _update(widget: Any, choice: Selector, value: Hashable) -> None:  # noqa: ANN401 # as above
    # Only what differs: each message makes the page lay itself out again.
    if tuple(widget.options) != _texts(choice):
        widget.options = list(_texts(choice))
    place = _place(choice, value)
    if widget.index != place:
        widget.index = place
    widget.disabled = _is_settled(choice)


def _texts(choice: Selector) -> tuple[str, ...]:
    return tuple(text for text, _ in choice.options)


def _place(choice: Selector, value: Any) -> int | list[int]:  # noqa: ANN401 # of either kind
    offered = choice.offered
    if choice.kind == "several":
        return [offered.index(each) for each in value if each in offered]
    return offered.index(value)


def _is_settled(choice: Selector) -> bool:
    """Tell whether there is one option only, which is not offered to the keyboard either."""
    return len(choice.options) == 1
