"""A measurement as HTML: its line, its findings, a histogram of its samples, and a table of facts.

The histogram is an inline SVG that can be read on light and on dark pages.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpulab.core.markup import clean, table
from gpulab.core.units import counted, format_interval, format_time, time_unit
from gpulab.stats import robust_spread

_WIDTH, _HEIGHT = 480, 136
_LEFT, _RIGHT, _TOP, _BASE = 44.0, 464.0, 14.0, 84.0
_MAX_BINS = 40
_MAX_MARKS = 200  # up to this many samples are marked singly, below the bars
# Samples further from the median than this many spreads are counted at the edge, not drawn:
# a single outlier would squeeze all other samples into one bar.
_AXIS_SPREADS = 10
# Least width of the axis, as a share of the median. A narrower axis would magnify differences
# that mean nothing.
_MIN_AXIS = 0.02
_N_STEPS = 6
# JupyterLab's theme sets the colour; the value after the comma is for other viewers.
_ACCENT = "var(--jp-brand-color1, #0072b2)"


@dataclass(frozen=True, slots=True)
class Distribution:
    """The samples to draw, at least one, with their median and its interval.

    ``interval_name`` is the kind of interval, e.g. ``"95 % interval"``; ``device_label`` has
    device and source, e.g. ``"virtual NVIDIA H200"``.
    """

    samples_s: Sequence[float]
    median_s: float
    interval_s: tuple[float, float]
    interval_name: str
    device_label: str

    def describe(self) -> str:
        """Return the content of the drawing in words, for readers who cannot see it."""
        low_s, high_s = min(self.samples_s), max(self.samples_s)
        return (
            f"Distribution of {counted(len(self.samples_s), 'sample')} ({self.device_label}): "
            f"from {format_time(low_s)} to {format_time(high_s)}, "
            f"median {format_time(self.median_s)}, "
            f"{self.interval_name} {format_interval(*self.interval_s)}"
        )

    def to_svg(self) -> str:
        """Return the drawing as one SVG element that takes its colours from the page."""
        axis = _axis(self)
        parts = [
            *_bars(self.samples_s, axis),
            *_estimate(self, axis),
            *_scale(axis),
            *_titles(self, axis),
        ]
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            f'width="{_WIDTH}" height="{_HEIGHT}" style="max-width:100%;height:auto" '
            f'fill="currentColor" font-size="11" role="img" '
            f'aria-label="{clean(self.describe())}">\n' + "\n".join(parts) + "\n</svg>"
        )


@dataclass(frozen=True, slots=True)
class _Axis:
    """The range of durations on the horizontal axis."""

    low_s: float
    high_s: float

    def x(self, time_s: float) -> float:
        share = (time_s - self.low_s) / (self.high_s - self.low_s)
        return round(_LEFT + (_RIGHT - _LEFT) * share, 2)


def _axis(shown: Distribution) -> _Axis:
    # If most samples are equal, the spread is 0 and every other sample would be left out.
    # Then all samples are drawn.
    reach_s = _AXIS_SPREADS * robust_spread(shown.samples_s) or math.inf
    near_s = [time_s for time_s in shown.samples_s if abs(time_s - shown.median_s) <= reach_s]
    low_s, high_s = min(*near_s, *shown.interval_s), max(*near_s, *shown.interval_s)
    # Slightly more than half the range, so that the outermost samples are not at the edge, and
    # never zero, because positions are divided by it.
    half_s = max((high_s - low_s) * 0.53, _MIN_AXIS / 2 * abs(shown.median_s), 0.5e-9)
    return _Axis((low_s + high_s) / 2 - half_s, (low_s + high_s) / 2 + half_s)


def _bars(samples_s: Sequence[float], axis: _Axis) -> list[str]:
    inside_s = [time_s for time_s in samples_s if axis.low_s <= time_s <= axis.high_s]
    # An odd number of bins has a bar in the centre of the axis, where equal samples are.
    n_bins = min(_MAX_BINS, max(10, math.ceil(2 * math.sqrt(len(inside_s))))) | 1
    width = (_RIGHT - _LEFT) / n_bins
    counts = [0] * n_bins
    for time_s in inside_s:
        counts[min(int((axis.x(time_s) - _LEFT) / width), n_bins - 1)] += 1
    # Never 0: the axis contains at least the samples near the median.
    scale = (_BASE - _TOP) / max(counts)
    bars = [
        f'<rect x="{_LEFT + i * width + 0.5:.2f}" y="{_BASE - n * scale:.2f}" '
        f'width="{width - 1:.2f}" height="{n * scale:.2f}" fill-opacity="0.4"/>'
        for i, n in enumerate(counts)
        if n
    ]
    return [*bars, *_counts(max(counts)), *_marks(inside_s, axis), *_beyond(samples_s, axis)]


def _counts(n_highest: int) -> list[str]:
    turned = f'transform="translate(12 {(_TOP + _BASE) / 2}) rotate(-90)"'
    return [
        _label(_LEFT - 5, _TOP + 4, "end", str(n_highest)),
        _label(_LEFT - 5, _BASE, "end", "0"),
        f'<text {turned} text-anchor="middle">samples</text>',
    ]


def _marks(inside_s: Sequence[float], axis: _Axis) -> list[str]:
    if len(inside_s) > _MAX_MARKS:
        return []
    path = "".join(f"M{axis.x(time_s)} {_BASE + 1}v4" for time_s in inside_s)
    return [f'<path d="{path}" stroke="currentColor" stroke-opacity="0.6"/>']


def _beyond(samples_s: Sequence[float], axis: _Axis) -> list[str]:
    n_below = sum(time_s < axis.low_s for time_s in samples_s)
    n_above = sum(time_s > axis.high_s for time_s in samples_s)
    below = f"\N{LEFTWARDS ARROW} {n_below} down to {format_time(min(samples_s))}"
    above = f"{n_above} up to {format_time(max(samples_s))} \N{RIGHTWARDS ARROW}"
    return [
        *([_label(_LEFT + 2, _TOP, "start", below)] if n_below else []),
        *([_label(_RIGHT, _TOP, "end", above)] if n_above else []),
    ]


def _estimate(shown: Distribution, axis: _Axis) -> list[str]:
    low, high = (axis.x(time_s) for time_s in shown.interval_s)
    median = axis.x(shown.median_s)
    colour = f'style="fill:{_ACCENT};stroke:{_ACCENT}"'
    band = f'x="{low}" y="{_TOP - 6}" width="{high - low:.2f}" height="{_BASE - _TOP + 6}"'
    return [
        f'<rect {band} fill-opacity="0.2" stroke-opacity="0.8" {colour}/>',
        f'<path d="M{median} {_TOP - 10}V{_BASE}" stroke-width="2" {colour}/>',
    ]


def _scale(axis: _Axis) -> list[str]:
    exponent, _ = time_unit(axis.high_s)
    low, high = axis.low_s * 10.0**-exponent, axis.high_s * 10.0**-exponent
    step = _round_step((high - low) / _N_STEPS)
    # The small number absorbs the rounding of the logarithm: a step of 0.001 has three decimals.
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    parts = [f'<path d="M{_LEFT} {_BASE}H{_RIGHT}" stroke="currentColor"/>']
    # Whole multiples of the step, because adding up steps would add up rounding errors.
    for n in range(math.ceil(low / step), math.floor(high / step) + 1):
        x = axis.x(n * step * 10.0**exponent)
        parts += [
            f'<path d="M{x} {_BASE}v5" stroke="currentColor"/>',
            _label(x, _BASE + 17, "middle", f"{n * step:.{decimals}f}"),
        ]
    return parts


def _titles(shown: Distribution, axis: _Axis) -> list[str]:
    middle, (_, unit) = (_LEFT + _RIGHT) / 2, time_unit(axis.high_s)
    legend = f"bars: samples, line: median, band: {shown.interval_name}"
    return [
        _label(
            middle, _HEIGHT - 19, "middle", f"duration per call in {unit} ({shown.device_label})"
        ),
        _label(middle, _HEIGHT - 4, "middle", legend),
    ]


def _round_step(rough: float) -> float:
    magnitude: float = 10.0 ** math.floor(math.log10(rough))
    return next(m * magnitude for m in (1, 2, 5, 10) if m * magnitude >= rough * (1 - 1e-9))


def _label(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{clean(text)}</text>'


Pairs = Iterable[tuple[str, str]]


def to_html(
    estimate: str, remark: str, shown: Distribution, *, facts: Pairs, findings: Pairs
) -> str:
    """Return a measurement as one HTML element, well-formed XML without scripts or style sheets.

    Estimate and remark are the two parts of the one-line form: in bold, and in brackets after it.
    Each fact has the name and the text of a row, each finding its code and text.
    """
    return "\n".join(
        [
            '<div class="gpulab-measurement">',
            f'<p style="margin:0.3em 0"><strong>{clean(estimate)}</strong> ({clean(remark)})</p>',
            *_findings(findings),
            shown.to_svg(),
            _details(facts),
            "</div>",
        ]
    )


def _findings(findings: Pairs) -> list[str]:
    items = [f"<li><strong>{clean(code)}</strong>: {clean(text)}</li>" for code, text in findings]
    return ['<ul aria-label="Findings" style="margin:0.3em 0">', *items, "</ul>"] if items else []


def _details(facts: Pairs) -> str:
    rows = table(facts, has_row_headings=True, is_text=True)
    return f"<details><summary>Samples and conditions</summary>{rows}</details>"
