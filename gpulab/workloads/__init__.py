"""The catalogue of named operations with their inputs, arithmetic, traffic and a check."""

from gpulab.workloads._catalogue import WORKLOADS, Agreement, Workload, names, workload
from gpulab.workloads._problem import Whole

__all__ = ["WORKLOADS", "Agreement", "Whole", "Workload", "names", "workload"]
