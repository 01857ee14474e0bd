"""A picture of two streams: one writes a tensor, the other reads it, and one of them is first."""

from typing import TYPE_CHECKING

from gpulab.core.units import format_time
from gpulab.exercises._two_streams import StreamLane, TwoStreams, kernels_of

if TYPE_CHECKING:
    from gpulab.figures import Figure
    from gpulab.tracing import Timeline


def first_reader(observed: "Timeline") -> "Figure":
    """Return a figure of a program that writes in one stream and then reads in the current one.

    The last launched kernel of the timeline is the one that reads.
    """
    kernels = kernels_of(observed)
    reads = kernels[-1]
    current = [span for span in kernels if span.stream == reads.stream]
    other = [span for span in kernels if span.stream != reads.stream]
    writes = max(other, key=lambda span: span.end_s)
    early, title = None, "The current stream reads y after it is written"
    if reads.start_s < writes.end_s:
        time = format_time(writes.end_s - reads.start_s)
        early = (reads.start_s, writes.end_s, f"{time}: y is not written yet")
        title = f"The current stream reads y {time} before it is written"
    lanes = (
        StreamLane("current stream", current, [("y.sum() reads y", reads, "kernel")]),
        StreamLane("other stream", other, [("y is written", writes, "kernel")]),
    )
    return TwoStreams(observed, lanes, early, title).figure(source=observed.place)
