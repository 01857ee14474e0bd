"""Simulate a host and its GPUs, without torch: streams, memory, clocks, time in nanoseconds."""

from gpulab.virtual.simulator._graphs import GRAPH_GAPS, Capture, Graph
from gpulab.virtual.simulator._host import Host, HostCosts
from gpulab.virtual.simulator._l2_cache import L2, Access, Traffic
from gpulab.virtual.simulator._machine import (
    Machine,
    SimulatedGpu,
    ValueLimits,
    active,
    disown,
    enter,
    is_entered,
    is_owner,
    leave,
)
from gpulab.virtual.simulator._properties import properties
from gpulab.virtual.simulator._task import (
    Fixed,
    Gaps,
    Kind,
    Priced,
    SimulatedStream,
    Spin,
    StreamTask,
)
from gpulab.virtual.simulator._thermal import SW_POWER_CAP, SimulatedRegime, load_of

__all__ = [
    "GRAPH_GAPS",
    "L2",
    "SW_POWER_CAP",
    "Access",
    "Capture",
    "Fixed",
    "Gaps",
    "Graph",
    "Host",
    "HostCosts",
    "Kind",
    "Machine",
    "Priced",
    "SimulatedGpu",
    "SimulatedRegime",
    "SimulatedStream",
    "Spin",
    "StreamTask",
    "Traffic",
    "ValueLimits",
    "active",
    "disown",
    "enter",
    "is_entered",
    "is_owner",
    "leave",
    "load_of",
    "properties",
]
