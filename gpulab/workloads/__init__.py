"""A catalogue of PyTorch operations to time, each with its inputs, FLOPs, bytes and a check."""

from gpulab.workloads._catalogue import WORKLOADS, Agreement, Workload, names, workload
from gpulab.workloads._problem import Whole

__all__ = ["WORKLOADS", "Agreement", "Whole", "Workload", "names", "workload"]
