"""Run an operator on the virtual GPU: plan it, launch it, compute its values when it ends."""

from gpulab.virtual.dispatch._copies import (
    MissingValuesWarning,
    is_pinned,
    pin,
    read_back,
    require_values,
)
from gpulab.virtual.dispatch._deferred_values import seeded
from gpulab.virtual.dispatch._dispatcher import (
    VirtualMode,
    dispatch,
    observing,
    require_deterministic,
)
from gpulab.virtual.dispatch._untyped_storage import VirtualStorage

__all__ = [
    "MissingValuesWarning",
    "VirtualMode",
    "VirtualStorage",
    "dispatch",
    "is_pinned",
    "observing",
    "pin",
    "read_back",
    "require_deterministic",
    "require_values",
    "seeded",
]
