"""How fast a GPU could be: the roofline, predictions from it, scaling, and surveys of it."""

from gpulab.roofline._ceilings import Ceilings, ceilings, ceilings_of
from gpulab.roofline._chart import Chart, chart
from gpulab.roofline._measure_ceilings import measure_ceilings
from gpulab.roofline._predict import MODELS, PredictedTime, predict
from gpulab.roofline._table import errors, table

__all__ = [
    "MODELS",
    "Ceilings",
    "Chart",
    "PredictedTime",
    "ceilings",
    "ceilings_of",
    "chart",
    "errors",
    "measure_ceilings",
    "predict",
    "table",
]
