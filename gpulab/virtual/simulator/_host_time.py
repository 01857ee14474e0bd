"""What a program costs the host between its launches: modules, autograd, optimizers, contexts.

Each cost was fitted to the host times of whole training steps beside an NVIDIA H200, together, so
that one of them alone is no measurement. ``python -m benchmarks.host_time fit`` makes the file.
"""

import json
from functools import cache
from importlib.resources import files

_FILE = "data/host.json"


@cache
def fitted_costs() -> dict[str, int]:
    """Return the host's costs in nanoseconds, by what they are for."""
    found: dict[str, int] = json.loads(files("gpulab").joinpath(_FILE).read_text("utf-8"))[
        "costs_ns"
    ]
    return found
