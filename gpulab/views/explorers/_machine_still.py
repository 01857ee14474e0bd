"""The machine as a still SVG picture, for pages without a kernel."""

from collections.abc import Iterator

from gpulab.core.markup import clean
from gpulab.core.palette import FAINT, INK, MUTED, PAPER, ROLES
from gpulab.figures import picture_address
from gpulab.views.machine import MethodReading, Playback, time_words

_WIDTH, _LEFT, _RIGHT = 960, 110, 12
_AXIS, _ROW, _BAR = 26, 34, 22
_READING_LEFT, _READING_RIGHT, _READING_ROW = 150, 400, 22
_CHARACTER = 7.5  # width in pixels, estimated: text cannot be measured without a browser
_MOST_BARS = 600  # a picture of a long loop would make the notebook large
_N_TICKS = 5
_ROLES = {"copy in": "copy", "copy out": "copy", "record": "event"}
_FONT = 'font-family="system-ui, sans-serif" font-size="13"'
_LEAST = 0.35  # width of a bar in pixels


def still_html(
    playback: Playback,
    readings: tuple[MethodReading, ...],
    words: tuple[str, ...],
    mark: str,
) -> str:
    """Return the picture as HTML, with its description."""
    # In the light theme's colours, because style sheets of the page do not reach into an image.
    source = picture_address(_svg(playback, readings))
    alt = clean(" ".join(words))
    lines = "".join(f"<li>{clean(line)}</li>" for line in words)
    return (
        f'<figure id="{mark}" style="margin:0">'
        f'<img src="{source}" alt="{alt}" width="{_WIDTH}" '
        'style="max-width:100%;height:auto"></figure>'
        f"<details><summary>The machine in words</summary><ul>{lines}</ul></details>"
    )


def _svg(playback: Playback, readings: tuple[MethodReading, ...]) -> str:
    lanes = ["host", *(f"stream {number}" for number in range(playback.program.n_streams))]
    height = _AXIS + _ROW * len(lanes)
    parts = [*_axis(playback, height), *_lanes(lanes), *_bars(playback)]
    parts += _readings(readings, height + 20)
    total = height + 30 + _READING_ROW * len(readings)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {total}" '
        f'width="{_WIDTH}" height="{total}" {_FONT}>'
        f'<rect width="100%" height="100%" fill="{PAPER.light}"/>{"".join(parts)}</svg>'
    )


def _x(playback: Playback, time_us: float) -> float:
    # A program without operations ends at 0.
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * time_us / (playback.end_us or 1.0)


def _axis(playback: Playback, height: float) -> Iterator[str]:
    for number in range(_N_TICKS + 1):
        time_us = playback.end_us * number / _N_TICKS
        x = _x(playback, time_us)
        # Around its tick, the last text would be cut off at the edge.
        anchor = "end" if number == _N_TICKS else "middle"
        yield f'<path d="M{x:.1f} {_AXIS - 6}V{height}" stroke="{FAINT.light}"/>'
        text = clean(time_words(time_us))
        yield f'<text x="{x:.1f}" y="14" text-anchor="{anchor}">{text}</text>'


def _lanes(lanes: list[str]) -> Iterator[str]:
    for row, name in enumerate(lanes):
        y = _AXIS + _ROW * row
        yield f'<text x="4" y="{y + 20}">{clean(name)}</text>'
        yield f'<path d="M0 {y}H{_WIDTH}" stroke="{FAINT.light}"/>'


def _bars(playback: Playback) -> Iterator[str]:
    operations = playback.program.operations
    for call in playback.calls[:_MOST_BARS]:
        waits = call.waited_us > 0 or call.is_stuck
        name = operations[call.place].kind
        x, width = _x(playback, call.start_us), _width(playback, call.start_us, call.end_us)
        yield _bar(x, 0, width, "wait" if waits else "host", name)
    for task in playback.tasks[:_MOST_BARS]:
        label = f"{task.kind} (stuck)" if task.is_stuck else task.kind
        look = "wait" if task.is_stuck else task.kind
        x, width = _x(playback, task.start_us), _width(playback, task.start_us, task.end_us)
        yield _bar(x, 1 + task.stream, width, look, label)


def _width(playback: Playback, start_us: float, end_us: float) -> float:
    return max(_LEAST, _x(playback, end_us) - _x(playback, start_us))


def _bar(x: float, row: int, width: float, kind: str, text: str) -> str:
    y = _AXIS + _ROW * row + 6
    fill, ink = _colours(kind)
    if kind in {"record", "wait"} and width <= 1:  # a moment, not a time
        return f'<path d="M{x:.1f} {y}v{_BAR}m-4 {-_BAR}h8l-4 6z" stroke="{fill}" fill="{fill}"/>'
    bar = (
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_BAR}" rx="2" fill="{fill}" '
        f'stroke="{PAPER.light}" stroke-width=".5"/>'
    )
    if width < len(text) * _CHARACTER + 6:
        return bar
    return f'{bar}<text x="{x + 5:.1f}" y="{y + 15}" fill="{ink}">{clean(text)}</text>'


def _colours(kind: str) -> tuple[str, str]:
    """Return the colour of a kind, and of the text on it."""
    if kind == "sleep":
        return MUTED.light, PAPER.light
    role = _ROLES.get(kind, kind)
    ink = INK if role in {"copy", "wait"} else PAPER
    return ROLES[role].colour.light, ink.light


def _readings(readings: tuple[MethodReading, ...], top: float) -> Iterator[str]:
    values = [reading.value_us for reading in readings if reading.value_us is not None]
    if not values:
        return
    truth_us = readings[0].truth_us
    # A bar ends at three times the truth; otherwise one far reading would make all others too
    # short to compare.
    most_us = min(max(*values, truth_us), 3 * truth_us)
    scale = (_READING_RIGHT - _READING_LEFT) / most_us
    for row, reading in enumerate(readings):
        y = top + _READING_ROW * row
        value_us = reading.value_us or 0.0
        width = min(value_us, most_us) * scale
        fill = MUTED.light if reading.is_right else PAPER.light
        text = "none" if reading.value_us is None else time_words(value_us)
        verdict = "right" if reading.is_right else reading.reason
        yield f'<text x="4" y="{y + 13}">{clean(reading.name)}</text>'
        yield (
            f'<rect x="{_READING_LEFT}" y="{y}" width="{width:.1f}" height="15" fill="{fill}" '
            f'stroke="{MUTED.light}"/>'
        )
        words = f"{text}: {verdict}"
        yield f'<text x="{_READING_RIGHT + 12}" y="{y + 13}">{clean(words)}</text>'
    x = _READING_LEFT + truth_us * scale
    bottom = top + _READING_ROW * len(readings)
    yield f'<path d="M{x:.1f} {top - 4}V{bottom}" stroke="{INK.light}" stroke-width="1.5"/>'
    truth = clean(f"truth {time_words(truth_us)}")
    yield f'<text x="{_READING_RIGHT + 250}" y="{top + 13}">{truth}</text>'
