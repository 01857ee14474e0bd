"""Format the times of frames as one line."""

import statistics
from collections.abc import Sequence


def line(name: str, times_ms: Sequence[float]) -> str:
    """Return the line with the median, the 90th percentile and the longest of some times."""
    p90 = statistics.quantiles(times_ms, n=10, method="inclusive")[-1]
    return (
        f"{name:<24} median {statistics.median(times_ms):6.2f} ms, p90 {p90:6.2f} ms, "
        f"longest {max(times_ms):6.2f} ms, of {len(times_ms)}"
    )
