"""Recordings of machines: times measured on real GPUs, shipped with gpulab or made by you."""

from gpulab.workloads.recordings._recording import (
    Recording,
    compare,
    list,  # noqa: A004 # recordings.list() reads as it is meant
    load,
    save,
)

__all__ = ["Recording", "compare", "list", "load", "save"]
