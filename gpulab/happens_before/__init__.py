"""Find data races by happens-before: vector clocks over byte ranges, and what was recorded.

The package does not import torch. ``gpulab.virtual`` reports the program's calls to its
:class:`Checker` on the virtual GPU, and ``gpulab.tracing.sanitizer`` does so on a CUDA GPU.
"""

from gpulab.happens_before._accesses import Allocation, MemoryAccess
from gpulab.happens_before._answers import is_answer_used
from gpulab.happens_before._byte_ranges import extent
from gpulab.happens_before._call_sites import NOWHERE, Site, user_site
from gpulab.happens_before._checker import Checker
from gpulab.happens_before._hazard import HAZARD_KINDS, Hazard, Operation
from gpulab.happens_before._vector_clocks import Snapshot, StreamKey

__all__ = [
    "HAZARD_KINDS",
    "NOWHERE",
    "Allocation",
    "Checker",
    "Hazard",
    "MemoryAccess",
    "Operation",
    "Site",
    "Snapshot",
    "StreamKey",
    "extent",
    "is_answer_used",
    "user_site",
]
