"""Real clocks, inside a virtual GPU, too: it replaces the names in ``time``, and not these."""

from time import monotonic, process_time_ns

__all__ = ["monotonic", "process_time_ns"]
