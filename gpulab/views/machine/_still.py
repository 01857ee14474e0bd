"""The machine as a still picture, for pages without a kernel."""

from typing import TYPE_CHECKING

from gpulab.core.markup import clean
from gpulab.figures import (
    INK,
    MUTED,
    PAPER,
    WIDTH_IN,
    Lanes,
    Strip,
    finish,
    picture_address,
    render,
    style,
    write_beside,
)
from gpulab.views.machine._playback import Playback
from gpulab.views.machine._readings import MethodReading
from gpulab.views.machine._words import time_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW_IN, _MARGIN_IN = 0.36, 1.0
_MOST_BARS = 600  # a picture of a long loop would make the notebook large
_ROLES = {"copy in": "copy", "copy out": "copy", "record": "event", "sleep": "muted"}
_MICRO = 1e-6


def still_html(
    playback: Playback,
    readings: tuple[MethodReading, ...],
    words: tuple[str, ...],
    mark: str,
) -> str:
    """Return the picture as HTML, with its description."""
    alt = clean(" ".join(words))
    lines = "".join(f"<li>{clean(line)}</li>" for line in words)
    picture = picture_address(_svg(playback, readings, alt))
    return (
        f'<figure id="{mark}" style="margin:0"><img src="{picture}" alt="{alt}" '
        'style="max-width:100%;height:auto"></figure>'
        f"<details><summary>The machine in words</summary><ul>{lines}</ul></details>"
    )


def _svg(playback: Playback, readings: tuple[MethodReading, ...], alt: str) -> str:
    from matplotlib.figure import Figure as Canvas

    lanes = _lanes(playback)
    heights_in = [_MARGIN_IN + _ROW_IN * lanes.n_rows]
    if readings:
        heights_in.append(_MARGIN_IN + _ROW_IN * len(readings))
    with style():
        canvas = Canvas(figsize=(WIDTH_IN, sum(heights_in)), layout="constrained")
        axes = canvas.subplots(len(heights_in), height_ratios=heights_in, squeeze=False)[:, 0]
        lanes.draw(axes[0])
        if readings:
            _draw_readings(axes[1], readings)
    return render(axes[0], alt=alt, frame=lanes.to_frame()).svg


def _lanes(playback: Playback) -> Lanes:
    streams = range(playback.program.n_streams)
    strips = []
    for call in playback.calls[:_MOST_BARS]:
        role = "wait" if call.waited_us > 0 or call.is_stuck else "host"
        name = playback.program.operations[call.place].kind
        strips.append(_strip(0, role, name, call.start_us, call.end_us))
    for task in playback.tasks[:_MOST_BARS]:
        role = "wait" if task.is_stuck else _ROLES.get(task.kind, task.kind)
        name = f"{task.kind} (stuck)" if task.is_stuck else task.kind
        strips.append(_strip(1 + task.stream, role, name, task.start_us, task.end_us))
    names = ("host", *(f"stream {number}" for number in streams))
    return Lanes.in_rows(names, strips, playback.end_us * _MICRO)


def _strip(row: int, role: str, name: str, start_us: float, end_us: float) -> Strip:
    return Strip(row, role, name, start_us * _MICRO, end_us * _MICRO)


def _draw_readings(ax: "Axes", readings: tuple[MethodReading, ...]) -> None:
    truth_us = readings[0].truth_us
    ax.axvline(truth_us, color=INK, linewidth=1.5)
    for row, reading in enumerate(readings):
        # A bar ends at three times the truth; otherwise one far reading would make all others too
        # short to compare.
        width_us = min(reading.value_us or 0.0, 3 * truth_us)
        fill = MUTED if reading.is_right else PAPER
        ax.barh(row, width_us, height=0.6, facecolor=fill, edgecolor=MUTED)
        verdict = "right" if reading.is_right else reading.reason
        text = "none" if reading.value_us is None else time_words(reading.value_us)
        # The line of the truth may cross the text.
        paper = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.0}
        reading_text = f"{text}: {verdict}"
        write_beside(ax, reading_text, (width_us, row), (8, 0), fontsize="small", bbox=paper)
    ax.set_yticks(range(len(readings)), [reading.name for reading in readings])
    ax.set_ylim(len(readings) - 0.5, -0.5)
    ax.set_xlim(0, 6 * truth_us)  # half of it for the texts
    ax.set_xticks([truth_us], [f"truth {time_words(truth_us)}"])
    finish(ax, "Bar chart", "", "", legend=False)
