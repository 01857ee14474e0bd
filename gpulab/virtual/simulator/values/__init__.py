"""Compute values when somebody looks: a log of what the ended kernels would have written.

Each kernel that ends appends an entry to the log of its machine, in the order of the simulated
ends. A read of bytes computes the log, from its beginning, up to the entry that wrote them. So
each entry finds the bytes that its kernel would have found, whatever shares the memory. An entry
whose results are all overwritten before anybody reads them is dropped.
"""

from gpulab.virtual.simulator.values._contents import BufferContents, ByteSpan
from gpulab.virtual.simulator.values._entries import LogEntry
from gpulab.virtual.simulator.values._pending_values import PendingValues

__all__ = ["BufferContents", "ByteSpan", "LogEntry", "PendingValues"]
