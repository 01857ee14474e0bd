"""The host's time between launches: for modules, autograd, optimizers and context managers.

The costs were fitted together, to the host times of whole training steps on the host of an NVIDIA
H200. So a single one of them is not a measurement. ``python -m benchmarks.host_time fit`` writes
the file.
"""

import json
from functools import cache
from importlib.resources import files

_FILE = "data/host.json"


@cache
def fitted_costs() -> dict[str, int]:
    """Return the host's costs in nanoseconds, by name.

    Examples
    --------
    >>> fitted_costs()["operator in backward"] > 0
    True
    """
    costs: dict[str, int] = json.loads(files("gpulab").joinpath(_FILE).read_text("utf-8"))[
        "costs_ns"
    ]
    return costs
