"""The forms that an answer can have, and how each is judged."""

from gpulab.exercises.answers._forms import (
    Choice,
    Diagnosis,
    Letters,
    Table,
    malformed,
    no_function,
    read_number,
    unanswered,
)
from gpulab.exercises.answers._functions import tried
from gpulab.exercises.answers._quantities import Quantities
from gpulab.exercises.answers._timer_functions import FunctionTrial, Timer, near, times

__all__ = [
    "Choice",
    "Diagnosis",
    "FunctionTrial",
    "Letters",
    "Quantities",
    "Table",
    "Timer",
    "malformed",
    "near",
    "no_function",
    "read_number",
    "times",
    "tried",
    "unanswered",
]
