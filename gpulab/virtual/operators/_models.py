"""The models of all operators, from the tables of their families."""

from gpulab.virtual.operators import (
    _along_dimensions,
    _indexing,
    _layers,
    _linear_algebra,
    _matmuls,
    _pointwise,
)
from gpulab.virtual.operators._model import OperatorModel

FAMILIES = (_pointwise, _along_dimensions, _indexing, _linear_algebra, _matmuls, _layers)
MODELS: dict[str, OperatorModel] = {
    name: model
    for family in FAMILIES
    for names, model in family.MODELS.items()
    for name in names.split()
}
_DEFAULT = OperatorModel()
_OVER_LISTS = OperatorModel(lowering=_layers.foreach)


# The models of operators in ``torch.ops.gpulab``.
OWN_MODELS: dict[str, OperatorModel] = {}


def model_of(name: str) -> OperatorModel:
    """Return the model of an operator, by its name without overload and trailing underscore."""
    default = _OVER_LISTS if name.startswith("_foreach") else _DEFAULT
    return MODELS.get(name) or OWN_MODELS.get(name, default)
