"""Time GPU work correctly in PyTorch, on a CUDA GPU or on a virtual one."""

from typing import TYPE_CHECKING

from gpulab._lazy import loader
from gpulab._version import __version__

if TYPE_CHECKING:
    from gpulab import cluster, explorers, live, recordings, roofline
    from gpulab.climbing import ladder
    from gpulab.comparing import compare
    from gpulab.crossing import crossover
    from gpulab.device import doctor, use
    from gpulab.magic import load_ipython_extension, unload_ipython_extension
    from gpulab.measurement import Conditions, Finding, Measurement, Timeline
    from gpulab.measuring import measure
    from gpulab.ordering import hazards
    from gpulab.sweeping import sweep
    from gpulab.tracing import timeline
    from gpulab.virtual import virtual_gpu

__all__ = [
    "Conditions",
    "Finding",
    "Measurement",
    "Timeline",
    "__version__",
    "cluster",
    "compare",
    "crossover",
    "doctor",
    "explorers",
    "hazards",
    "ladder",
    "live",
    "load_ipython_extension",
    "measure",
    "recordings",
    "roofline",
    "sweep",
    "timeline",
    "unload_ipython_extension",
    "use",
    "virtual_gpu",
]

_HOMES = {
    "Conditions": "gpulab.measurement",
    "Finding": "gpulab.measurement",
    "Measurement": "gpulab.measurement",
    "Timeline": "gpulab.measurement",
    "cluster": "gpulab.cluster",
    "compare": "gpulab.comparing",
    "crossover": "gpulab.crossing",
    "doctor": "gpulab.device",
    "explorers": "gpulab.explorers",
    "hazards": "gpulab.ordering",
    "ladder": "gpulab.climbing",
    "live": "gpulab.live",
    "load_ipython_extension": "gpulab.magic",
    "measure": "gpulab.measuring",
    "recordings": "gpulab.recordings",
    "roofline": "gpulab.roofline",
    "sweep": "gpulab.sweeping",
    "timeline": "gpulab.tracing",
    "unload_ipython_extension": "gpulab.magic",
    "use": "gpulab.device",
    "virtual_gpu": "gpulab.virtual",
}

__getattr__ = loader(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
