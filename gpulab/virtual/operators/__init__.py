"""Know each operator of PyTorch: one model for each, and the kernels that its calls launch.

:func:`operator_of` returns what is known of an operator, and :func:`lower` the work of the kernels
of a call: FLOPs, bytes, rows, tiles, and the point on the surfaces of measured efficiencies.
``gpulab.virtual.simulator.costs`` makes times of it.
"""

from gpulab.virtual.operators._host_reads import MASKS, HostRead, When
from gpulab.virtual.operators._lowering import libraries_used, lower
from gpulab.virtual.operators._model import USE_DENSE, Autocast, DryRun, OperatorModel
from gpulab.virtual.operators._models import MODELS, OWN_MODELS
from gpulab.virtual.operators._operator_call import CallArguments, OperatorCall
from gpulab.virtual.operators._operators import (
    Operator,
    operator_of,
    without_alerts,
)

__all__ = [
    "MASKS",
    "MODELS",
    "OWN_MODELS",
    "USE_DENSE",
    "Autocast",
    "CallArguments",
    "DryRun",
    "HostRead",
    "Operator",
    "OperatorCall",
    "OperatorModel",
    "When",
    "libraries_used",
    "lower",
    "operator_of",
    "without_alerts",
]
