"""Predict, measure, be told what the mistake was: questions that check reasoning, never speed."""

from typing import TYPE_CHECKING

from gpulab._lazy import loader

if TYPE_CHECKING:
    from gpulab.exercises.checks import ask, check, hint, progress, readings
    from gpulab.exercises.predictions import Prediction, predict
    from gpulab.exercises.records import Verdict

__all__ = ["Prediction", "Verdict", "ask", "check", "hint", "predict", "progress", "readings"]

_HOMES = {
    "Prediction": "gpulab.exercises.predictions",
    "Verdict": "gpulab.exercises.records",
    "ask": "gpulab.exercises.checks",
    "check": "gpulab.exercises.checks",
    "hint": "gpulab.exercises.checks",
    "predict": "gpulab.exercises.predictions",
    "progress": "gpulab.exercises.checks",
    "readings": "gpulab.exercises.checks",
}

__getattr__ = loader(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
