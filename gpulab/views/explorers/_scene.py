"""The records between an explorer's model and its page: choices, scenes, steps to measure."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gpulab.core.errors import InvalidOptionError, shown
from gpulab.figures import INK
from gpulab.roofline import Ceilings
from gpulab.workloads.sweeps import Point, Task

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


State = TypeVar("State")
Measured = Point | Ceilings


@dataclass(frozen=True, slots=True)
class CeilingsStep:
    """The step that measures the roofs of the GPU in use."""

    def __str__(self) -> str:
        return "roofs of the GPU"


Step = Task | CeilingsStep


@dataclass(frozen=True, slots=True)
class Selector:
    """One choice with its options.

    Attributes
    ----------
    name
        Field of the state that it sets.
    label
        The label of its control.
    kind
        ``"menu"``, ``"buttons"``, ``"slider"``, or ``"several"`` for a list with several selected.
    options
        Text and value of each option.
    families
        For ``"several"``: the name of each family with the texts in it.
    """

    name: str
    label: str
    kind: str
    options: tuple[tuple[str, Hashable], ...]
    families: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def offered(self) -> tuple[Any, ...]:
        """The values of the options, without their texts."""
        return tuple(value for _, value in self.options)

    def read(self, value: Any) -> Any:  # noqa: ANN401 # it is asked whether it fits
        """Return a value in the form of the state; for a slider, the nearest number offered.

        Raises
        ------
        InvalidOptionError
            If the value is not among the options.
        """
        if self.kind == "slider" and isinstance(value, int):
            return nearest(self.offered, value)
        if self.kind != "several":
            chosen = (value,)
        else:
            is_list = isinstance(value, Iterable) and not isinstance(value, str)
            chosen = value = tuple(value) if is_list else (value,)
        for each in chosen:
            # The type first: an array or a tensor compares with each of its items.
            if not isinstance(each, str | int | float | None) or each not in self.offered:
                offered = ", ".join(map(repr, self.offered))
                raise InvalidOptionError(f"{self.name}={shown(each)}; choose one of {offered}")
        return value


@dataclass(frozen=True, slots=True)
class Spot:
    """A point with a tooltip, in the units of the axes."""

    x: float
    y: float
    hint: str


@dataclass(frozen=True, slots=True)
class Marker:
    """A black ring at a point, or a vertical line if ``y`` is None."""

    x: float
    y: float | None = None

    def draw(self, ax: "Axes") -> None:
        """Draw it on axes, for a figure without a page."""
        if self.y is None:
            ax.axvline(self.x, color=INK, linewidth=1.2)
        else:
            ax.plot(self.x, self.y, "o", ms=9, mec=INK, mfc="none", mew=1.8)


def _empty_frame() -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame()


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that an explorer shows for one state.

    Attributes
    ----------
    plot
        Draws the contents, labels, scales and limits on axes.
    key
        Everything that the picture depends on: equal keys mean equal pictures. None: never reuse.
    title
        The title, with the source of the numbers.
    alt
        What the picture shows, in a sentence or two.
    words
        Lines below the picture; the first is the main one.
    spots
        Points with tooltips.
    markers
        Markers that move with a slider; the page draws them over the picture.
    frame
        Returns the table of the drawn points.
    empty
        What to do if there is nothing to draw; then all other fields are ignored.
    right
        Right end of the axes, as a share of the width; names of lines are to the right of it.
    """

    # `id` draws nothing: an empty scene is never drawn.
    plot: "Callable[[Axes], object]" = id
    key: Hashable = None
    title: str = ""
    alt: str = ""
    words: tuple[str, ...] = ()
    spots: tuple[Spot, ...] = ()
    markers: tuple[Marker, ...] = ()
    frame: "Callable[[], pd.DataFrame]" = field(default=_empty_frame)
    empty: str = ""
    right: float = 0.97


def as_options(values: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return options whose texts are their values."""
    return tuple((value, value) for value in values)


def nearest(offered: Sequence[Any], value: object) -> Any:  # noqa: ANN401 # one of what is offered
    """Return a value if it is offered, otherwise the nearest number, otherwise the first."""
    if value in offered:
        return value
    numbers = [each for each in offered if isinstance(each, int)]
    if isinstance(value, int) and numbers:
        return min(numbers, key=lambda each: abs(each - value))
    return offered[0]


class Model(Protocol[State]):
    """The functions behind an explorer; none of them measures or draws.

    Attributes
    ----------
    name
        Name of the explorer and of its downloads.
    mine
        Files of your own recordings.
    """

    name: str
    mine: tuple[str, ...]

    def choices(self, state: State) -> tuple[Selector, ...]:
        """Return the choices with their options, which may depend on other choices."""
        ...

    def settled(self, state: State) -> State:
        """Return the nearest state in which every choice is one of its options."""
        ...

    def scene(self, state: State, found: Sequence[Measured]) -> Scene:
        """Return the scene of a state, with what was measured here."""
        ...

    def steps(self, state: State) -> tuple[Step, ...]:
        """Return the steps that the button measures, in order."""
        ...

    def skips(self, step: Step, found: Sequence[Measured]) -> bool:
        """Return whether to skip a step, judging by what was measured before."""
        ...
