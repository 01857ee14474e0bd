"""Compute how long a copy takes, from its bytes, the kind of host memory and the GPU's links."""

from gpulab.gpus import GpuSpec

# Measured on two machines with an H200: pinned memory moves at 0.88 of the link's rate. Pageable
# memory moves at 11 to 23 GB/s whatever the link, because the host copies it first. Each copy
# takes about 1.7 µs before the first byte.
_PINNED_SHARE = 0.88
_PAGEABLE_BYTES_PER_S = 17.8e9
_FLOOR_NS = 1_700
# Measured between two H200s that 18 NVLinks join: 0.885 of the links' rate. Each copy takes 17 µs
# more, because the two devices wait for each other.
_PEER_SHARE = 0.885
_PEER_FLOOR_NS = 17_000
# CUDA stages a pageable copy of up to 64 KiB to the device, and the host does not wait for it.
STAGED_BYTES = 65_536
_NS = 1e9


def copy_ns(size_bytes: int, spec: GpuSpec, *, pinned: bool) -> int:
    """Return how long a copy between host and GPU takes, in nanoseconds."""
    return _FLOOR_NS + round(size_bytes / _link_rate(spec, pinned=pinned) * _NS)


def copied_bytes(duration_ns: int, spec: GpuSpec, *, pinned: bool) -> int:
    """Return how many bytes a copy between host and GPU moves in ``duration_ns``."""
    return max(0, round((duration_ns - _FLOOR_NS) / _NS * _link_rate(spec, pinned=pinned)))


def peer_copy_ns(size_bytes: int, spec: GpuSpec) -> int:
    """Return how long a copy between two GPUs of a machine takes, in nanoseconds."""
    return _PEER_FLOOR_NS + round(size_bytes / (spec.peer_bytes_per_s * _PEER_SHARE) * _NS)


def _link_rate(spec: GpuSpec, *, pinned: bool) -> float:
    rate = spec.link_bytes_per_s * _PINNED_SHARE
    return rate if pinned else min(rate, _PAGEABLE_BYTES_PER_S)
