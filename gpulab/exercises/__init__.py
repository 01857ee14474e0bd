"""Predict, measure, be told what the mistake was: questions that check reasoning, never speed."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpulab.exercises.checks import ask, check, hint, progress, readings
    from gpulab.exercises.predictions import Prediction, predict
    from gpulab.exercises.records import Verdict

__all__ = ["Prediction", "Verdict", "ask", "check", "hint", "predict", "progress", "readings"]

_HOMES = {
    "Prediction": "predictions",
    "Verdict": "records",
    "ask": "checks",
    "check": "checks",
    "hint": "checks",
    "predict": "predictions",
    "progress": "checks",
    "readings": "checks",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module at first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'gpulab.exercises' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"gpulab.exercises.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
