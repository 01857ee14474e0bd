"""What an explorer shows, as values: choices, a scene for them, and tasks to measure."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gpulab.errors import InvalidOptionError
from gpulab.figures import INK
from gpulab.roofline import Ceilings
from gpulab.sweeps import Point, Task

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


State = TypeVar("State")
Measured = Point | Ceilings


@dataclass(frozen=True, slots=True)
class CeilingsStep:
    """The roofs of the GPU in use, to be measured."""

    def __str__(self) -> str:
        return "roofs of the GPU"


Step = Task | CeilingsStep


@dataclass(frozen=True, slots=True)
class Selector:
    """One thing to choose, and what there is to choose from.

    Attributes
    ----------
    name
        Field of the state that it sets.
    label
        What the reader sees.
    kind
        ``"menu"``, ``"buttons"``, ``"slider"``, or ``"several"`` of a list.
    options
        Text and value of each.
    families
        Of ``"several"``: the name of each family with the texts in it.
    """

    name: str
    label: str
    kind: str
    options: tuple[tuple[str, Hashable], ...]
    families: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def offered(self) -> tuple[Any, ...]:
        """The values alone."""
        return tuple(value for _, value in self.options)

    def read(self, value: Any) -> Any:  # noqa: ANN401 # it is asked whether it fits
        """Return a value that was given by hand, as the state has it: a number is rounded.

        Raises
        ------
        InvalidOptionError
            If it is not among those offered.
        """
        if self.kind == "slider" and isinstance(value, int):
            return nearest(self.offered, value)
        if self.kind != "several":
            given = (value,)
        else:
            given = value = (value,) if isinstance(value, str) else tuple(value)
        for each in given:
            if each not in self.offered:
                offered = ", ".join(map(repr, self.offered))
                raise InvalidOptionError(f"{self.name}={each!r}; choose one of {offered}")
        return value


@dataclass(frozen=True, slots=True)
class Spot:
    """A point of the picture that has a hint, in the units of the axes."""

    x: float
    y: float
    hint: str


@dataclass(frozen=True, slots=True)
class Marker:
    """A black ring on the picture, or a vertical line through it where ``y`` is None."""

    x: float
    y: float | None = None

    def draw(self, ax: "Axes") -> None:
        """Draw it on axes, where no page does."""
        if self.y is None:
            ax.axvline(self.x, color=INK, linewidth=1.2)
        else:
            ax.plot(self.x, self.y, "o", ms=9, mec=INK, mfc="none", mew=1.8)


def _nothing() -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame()


@dataclass(frozen=True, slots=True)
class Scene:
    """What is shown of a state.

    Attributes
    ----------
    plot
        Draws the contents, labels, scales and limits on axes.
    key
        What all of that depends on; None: on more than can be told.
    title
        What it is, with where the numbers come from.
    alt
        What is to be seen, in a sentence or two.
    words
        Lines below the picture; the first is the main one.
    spots
        Points with hints.
    markers
        What moves with a slider over the contents.
    frame
        Makes the table of what is drawn.
    empty
        What to do, where there is nothing to draw; then nothing else counts.
    """

    plot: "Callable[[Axes], object]" = id
    key: Hashable = None
    title: str = ""
    alt: str = ""
    words: tuple[str, ...] = ()
    spots: tuple[Spot, ...] = ()
    markers: tuple[Marker, ...] = ()
    frame: "Callable[[], pd.DataFrame]" = field(default=_nothing)
    empty: str = ""


def as_options(values: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return options that the reader sees as they are: each text is its own value."""
    return tuple((value, value) for value in values)


def nearest(offered: Sequence[Any], value: object) -> Any:  # noqa: ANN401 # one of what is offered
    """Return a value if it is offered, else the nearest number, else the first one."""
    if value in offered:
        return value
    numbers = [each for each in offered if isinstance(each, int)]
    if isinstance(value, int) and numbers:
        return min(numbers, key=lambda each: abs(each - value))
    return offered[0]


class Model(Protocol[State]):
    """The functions that an explorer is made of; none of them measures or draws.

    Attributes
    ----------
    name
        Of the explorer, and of its files.
    right
        Where the axes end, as a share of the picture's width.
    """

    name: str
    right: float

    def choices(self, state: State) -> tuple[Selector, ...]:
        """Return what can be chosen, given what is chosen."""
        ...

    def settled(self, state: State) -> State:
        """Return the nearest state in which every choice is one of those offered."""
        ...

    def scene(self, state: State, found: Sequence[Measured]) -> Scene:
        """Return what is to be seen, with what was measured here."""
        ...

    def steps(self, state: State) -> tuple[Step, ...]:
        """Return what the button measures, one step after the other."""
        ...

    def skips(self, step: Step, found: Sequence[Measured]) -> bool:
        """Tell whether a step is not worth its time, from what was measured before."""
        ...
