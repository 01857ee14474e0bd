"""A program that never ends is cut off when it has asked an event too often."""

from collections.abc import Callable, Iterator
from unittest.mock import patch

from gpulab import device
from gpulab.core.errors import CutOffError
from gpulab.core.interrupts import contextmanager
from gpulab.exercises.lesson_13._guesses import ENDLESS, NEVER, TEN_TIMES

# The right program of the exercise asks fewer than a hundred times.
MOST_POLLS = 500


@contextmanager
def few_polls(most: int = MOST_POLLS) -> Iterator[None]:
    """Let ``torch.cuda.Event.query`` raise after so many calls; the method is put back."""
    import torch

    n_polls = 0
    event = torch.cuda.Event
    original = event.query

    def query(self: torch.cuda.Event) -> bool:
        nonlocal n_polls
        n_polls += 1
        if n_polls > most:
            raise CutOffError(
                f"the program asked {most} times whether an event is completed, and it never was; "
                "look at where the event is recorded"
            )
        return bool(original(self))  # type: ignore[no-untyped-call]  # torch's gap

    with patch.object(event, "query", query):
        yield


def cut_off(program: Callable[..., object], *arguments: object) -> object:
    """Run a program that may never end; return what it returned, or why it was cut off."""
    import torch

    with device.active(), few_polls():
        try:
            return program(*arguments)
        except CutOffError as error:
            return f"Cut off: {error}".replace("; ", ";\n")  # a line fits the page
        finally:
            torch.cuda.synchronize()


def how_often(result: object) -> str:
    """Return in the words of the quiz how often a program called ``fill()``.

    >>> how_often(10), how_often(0), how_often("Cut off: ...")
    ('about ten times', 'never', 'without end')
    """
    if isinstance(result, str):
        return ENDLESS
    return TEN_TIMES if result else NEVER
