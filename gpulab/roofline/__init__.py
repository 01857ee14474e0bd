"""How fast a GPU could be: the roofline, predictions from it, scaling, and surveys of it."""

from gpulab.gpus import Roof, at_clocks, data_sheet
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
    "Roof",
    "at_clocks",
    "ceilings",
    "ceilings_of",
    "chart",
    "data_sheet",
    "errors",
    "measure_ceilings",
    "predict",
    "table",
]
