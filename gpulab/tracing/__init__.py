"""The timeline of a program: what host and device did, on one axis of time."""

from gpulab.tracing._capture import timeline
from gpulab.tracing._counters import CounterSeries, counter_series
from gpulab.tracing._figure import draw_timeline, timeline_plot
from gpulab.tracing._flows import Flow, flows
from gpulab.tracing._lanes import Lane, layout
from gpulab.tracing._read_trace import read_trace
from gpulab.tracing._spans import SPAN_KINDS, Span
from gpulab.tracing._summary import Summary
from gpulab.tracing._timeline import Timeline

__all__ = [
    "SPAN_KINDS",
    "CounterSeries",
    "Flow",
    "Lane",
    "Span",
    "Summary",
    "Timeline",
    "counter_series",
    "draw_timeline",
    "flows",
    "layout",
    "read_trace",
    "timeline",
    "timeline_plot",
]
