"""The figure of lesson 08b: memory that is written again before another stream has read it."""

from typing import TYPE_CHECKING

from gpulab.core.units import format_time
from gpulab.exercises._two_streams import StreamLane, TwoStreams, kernels_of

if TYPE_CHECKING:
    from gpulab.figures import Figure
    from gpulab.tracing import Timeline


def draw_reuse(record: "Timeline") -> "Figure":
    """Return the figure of memory that is written again while another stream still needs it.

    The timeline has two kernels in the default stream, ones and sevens, and at least two in
    another stream, the last of which reads the ones.
    """
    kernels = kernels_of(record)
    default = [span for span in kernels if span.stream == kernels[0].stream]
    side = [span for span in kernels if span.stream != kernels[0].stream]
    written_s, added_s = default[-1].end_s, side[-1].start_s
    early, title = None, "side has added up the ones before the sevens are written"
    if added_s > written_s:
        time = format_time(added_s - written_s)
        early = (written_s, added_s, f"{time}: x.sum() has not begun")
        title = f"The sevens are in the memory {time} before side adds it up"
    lanes = (
        StreamLane("side", side, [("still busy", side[0], ""), ("x.sum()", side[-1], "kernel")]),
        StreamLane(
            "default stream",
            default,
            [("ones", default[0], "kernel"), ("sevens", default[-1], "copy")],
        ),
    )
    return TwoStreams(record, lanes, early, title).figure(source=record.place)
