"""Run a program that may never end: it is cut off when it has called its works too often."""

from collections.abc import Callable

from gpulab import device
from gpulab.core.errors import CutOffError
from gpulab.device.work import Work
from gpulab.exercises.lesson_13._guesses import ENDLESS, NEVER, TEN_TIMES
from gpulab.tracing.trials import WatchedWork, tried

MOST_CALLS = 500  # the right program of the exercise calls its works fewer than a hundred times


def cut_off(program: Callable[..., object], *works: Work) -> object:
    """Run a program with its works; return what it returned, or why it was cut off."""
    with device.active():
        trial = tried(program, *(WatchedWork(work, MOST_CALLS) for work in works))
    if isinstance(trial.error, CutOffError):
        return f"Cut off: {trial.error}".replace("; ", ";\n")  # a line fits the page
    if trial.error is not None:
        raise trial.error
    return trial.value


def how_often(result: object) -> str:
    """Return in the words of the quiz how often a program called ``fill()``.

    >>> how_often(10), how_often(0), how_often("Cut off: ...")
    ('about ten times', 'never', 'without end')
    """
    if isinstance(result, str):
        return ENDLESS
    return TEN_TIMES if result else NEVER
