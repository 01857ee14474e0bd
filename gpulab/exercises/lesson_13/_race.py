"""Name the kind of race in a program of the clinic, in the words of the race detector."""

from collections.abc import Callable

from gpulab import device
from gpulab.exercises.lesson_13._guesses import NO_RACE
from gpulab.tracing.sanitizer import hazards


def race(program: Callable[..., object], *arguments: object) -> str:
    """Run a program and return the first race that is found in it, one of ``RACES``."""
    import torch

    with device.active(), hazards() as races:
        program(*arguments)
        torch.cuda.synchronize()
    return next((hazard.kind for hazard in races), NO_RACE)
