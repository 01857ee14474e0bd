"""Compute how long a kernel takes on a GPU, from its work and the GPU's data sheet.

All constants come from one H200. ``docs/fidelity.md`` says how they were fitted, and how close the
times are.
"""

from gpulab.virtual.simulator.costs._copy_cost import (
    STAGED_BYTES,
    copied_bytes,
    copy_ns,
    peer_copy_ns,
)
from gpulab.virtual.simulator.costs._efficiency_surfaces import (
    Coordinate,
    SurfacePoint,
)
from gpulab.virtual.simulator.costs._kernel_cost import KernelWork, duration_ns, n_sms, sleep_ns
from gpulab.virtual.simulator.costs._matmul_tiles import MatmulShape

__all__ = [
    "STAGED_BYTES",
    "Coordinate",
    "KernelWork",
    "MatmulShape",
    "SurfacePoint",
    "copied_bytes",
    "copy_ns",
    "duration_ns",
    "n_sms",
    "peer_copy_ns",
    "sleep_ns",
]
