"""Simulate a host and its GPUs, without torch: streams, memory, clocks, time in nanoseconds.

A :class:`Machine` joins the parts. Its :class:`Host` launches tasks into streams, and the devices
run them on one event queue. No module here reads a real clock, so equal programs give equal times.
"""

from gpulab.virtual.simulator._device import TaskRecord
from gpulab.virtual.simulator._entered_machine import (
    active,
    disown,
    enter,
    is_entered,
    is_owner,
    leave,
)
from gpulab.virtual.simulator._graphs import GRAPH_GAPS, Capture, Graph
from gpulab.virtual.simulator._host import Host, HostCosts
from gpulab.virtual.simulator._l2_cache import CacheAccess, L2Cache, Traffic
from gpulab.virtual.simulator._machine import Machine, SimulatedGpu, ValueLimits
from gpulab.virtual.simulator._properties import device_properties
from gpulab.virtual.simulator._recorded_host import MODEL_HOST, fitted_costs, recorded_host
from gpulab.virtual.simulator._task import (
    FixedDuration,
    Gaps,
    HostCopy,
    Kind,
    ModelledKernel,
    SimulatedStream,
    SpinCycles,
    StreamTask,
)
from gpulab.virtual.simulator._thermal import SimulatedRegime, power_draw

__all__ = [
    "GRAPH_GAPS",
    "MODEL_HOST",
    "CacheAccess",
    "Capture",
    "FixedDuration",
    "Gaps",
    "Graph",
    "Host",
    "HostCopy",
    "HostCosts",
    "Kind",
    "L2Cache",
    "Machine",
    "ModelledKernel",
    "SimulatedGpu",
    "SimulatedRegime",
    "SimulatedStream",
    "SpinCycles",
    "StreamTask",
    "TaskRecord",
    "Traffic",
    "ValueLimits",
    "active",
    "device_properties",
    "disown",
    "enter",
    "fitted_costs",
    "is_entered",
    "is_owner",
    "leave",
    "power_draw",
    "recorded_host",
]
