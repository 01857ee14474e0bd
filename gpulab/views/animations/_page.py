"""Turn a film into HTML: shapes that CSS moves, with a pause, a still picture and a text."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gpulab.core import palette
from gpulab.core.markup import clean
from gpulab.core.units import format_time
from gpulab.views.animations._film import Film, Level, Strip

# Pixels of the SVG, which the page scales to its width.
_WIDTH, _LEFT, _RIGHT = 900, 150, 12
_ROW, _BAR, _TOP, _BOTTOM = 34, 26, 8, 34
_REST_S = 4.0  # the film shows all of it for so long before it begins again
_CHARACTER_PX = 8.4  # assumed width of a character, to leave out labels that do not fit
_MOST_TICKS, _LAST_TICK = 8, 0.97  # the text at a tick later than this share would be cut off


@dataclass(frozen=True, slots=True)
class Animation:
    """A film that a notebook shows.

    Attributes
    ----------
    page
        The film as HTML without scripts.
    words
        A description of the film, in sentences.

    Examples
    --------
    >>> print(Animation("<p>film</p>", "A film."))
    A film.
    """

    page: str
    words: str

    def __str__(self) -> str:
        return self.words

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.page

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/html": self.page, "text/plain": self.words}


def page_of(film: Film) -> str:
    """Return a film as HTML.

    It contains no script: the style sheet reads the boxes *Pause* and *Still picture*. The still
    picture is also shown in print, and to readers who have asked their system for less motion.
    """
    height = _TOP + _ROW * len(film.lanes) + _BOTTOM
    parts = [
        f'<figure class="gpulab gpulab-film {film.name}" aria-label="{clean(film.title)}">',
        f"<style>{palette.style_sheet()}{_style(film)}</style>",
        f"<p><b>{clean(film.title)}</b></p>",
        '<p class="gpulab-controls"><label><input type="checkbox" class="pause"/> Pause</label> ',
        '<label><input type="checkbox" class="still"/> Still picture</label></p>',
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{clean(_words(film))}">',
        _definitions(film),
        *(_lane(film, place) for place in range(len(film.lanes))),
        _axis(film, height),
        *(_level(film, level) for level in film.levels),
        *(_strip(film, strip) for strip in film.strips),
        _curtain(film, height),
        "</svg>",
        '<div class="notes" aria-hidden="true">',
        *(f"<p>{clean(note.text)}</p>" for note in film.notes),
        "</div>",
        "<details><summary>In words</summary><ol>",
        *(f"<li>{clean(note.text)}</li>" for note in film.notes),
        "</ol></details></figure>",
    ]
    return "\n".join(parts) + "\n"


def _words(film: Film) -> str:
    return " ".join([f"{film.title}.", *(note.text for note in film.notes)])


def _x(film: Film, time_s: float) -> float:
    return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * time_s / film.length_s, 2)


def _y(film: Film, lane: str) -> int:
    return _TOP + _ROW * film.lanes.index(lane)


def _style(film: Film) -> str:
    """Return the CSS rules of a film; they begin with its name, as a page may have several."""
    own, whole_s = f".gpulab-film.{film.name}", film.shown_s + _REST_S
    # Percent of an animation's loop that the film takes; the rest of the loop shows the whole.
    share = 100 * film.shown_s / whole_s
    far = _WIDTH - _LEFT - _RIGHT
    rules = [
        ".gpulab-film{margin:0;padding:4px}",
        ".gpulab-film svg{display:block;width:100%;height:auto;font:14px system-ui,sans-serif}",
        ".gpulab-film svg text{fill:var(--gpulab-ink)}",
        ".gpulab-film .notes{display:grid;min-height:3em;font-size:1.1em}",
        ".gpulab-film .notes p{grid-area:1/1;margin:2px 0}",
        f"@keyframes {film.name}-sweep{{{share:.3f}%,100%{{transform:translateX({far}px)}}}}",
        f"{own} .sweep{{animation:{film.name}-sweep {whole_s:g}s linear infinite}}",
    ]
    starts = [share * note.start_s / film.length_s for note in film.notes]
    for place, (start, end) in enumerate(zip(starts, [*starts[1:], 100.0], strict=True)):
        name, last = f"{film.name}-note-{place}", int(end >= 100)  # noqa: PLR2004  # percent
        rules.append(
            f"@keyframes {name}{{0%{{opacity:{int(start <= 0)}}}{start:.3f}%{{opacity:1}}"
            f"{end:.3f}%{{opacity:{last}}}100%{{opacity:{last}}}}}"
            f"{own} .notes p:nth-child({place + 1})"
            # step-end: a note appears at once at its moment and does not fade in.
            f"{{animation:{name} {whole_s:g}s step-end infinite}}"
        )
    still = (
        "{own} .sweep{{display:none}}"
        "{own} .notes p{{animation:none!important;opacity:0}}"
        "{own} .notes p:last-child{{opacity:1}}"
    )
    rules += [
        # Check boxes and :has, because a page without a kernel may run no script.
        f"{own}:has(.pause:checked) *{{animation-play-state:paused!important}}",
        still.format(own=f"{own}:has(.still:checked)"),
        f"@media print{{{still.format(own=own)}}}",
        f"@media (prefers-reduced-motion:reduce){{{still.format(own=own)}}}",
    ]
    return "".join(rules)


def _definitions(film: Film) -> str:
    """Return the area in which the curtain moves, and the pattern that marks errors."""
    high = _ROW * len(film.lanes)
    return (
        f'<defs><clipPath id="{film.name}-area">'
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_WIDTH - _LEFT - _RIGHT}" height="{high}"/>'
        "</clipPath>"
        f'<pattern id="{film.name}-wrong" width="8" height="8" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><path d="M0 0V8" stroke="var(--gpulab-paper)" '
        'stroke-width="4"/></pattern></defs>'
    )


def _lane(film: Film, place: int) -> str:
    y = _TOP + _ROW * place
    return (
        f'<text x="{_LEFT - 10}" y="{y + _ROW / 2 + 5}" text-anchor="end">'
        f"{clean(film.lanes[place])}</text>"
        f'<path d="M{_LEFT} {y + _ROW - 2}H{_WIDTH - _RIGHT}" stroke="var(--gpulab-faint)"/>'
    )


def _axis(film: Film, height: int) -> str:
    return "".join(
        f'<text x="{_x(film, tick_s)}" y="{height - 10}" text-anchor="middle">'
        f"{clean(format_time(tick_s) if tick_s else '0')}</text>"
        for tick_s in _round_times(film.length_s)
    )


def _round_times(length_s: float) -> Iterator[float]:
    """Yield round times from 0 on."""
    least_s = length_s / _MOST_TICKS
    power_s = 10.0 ** math.floor(math.log10(least_s))
    step_s = next(each * power_s for each in (1, 2, 5, 10) if each * power_s >= least_s)
    for number in range(_MOST_TICKS + 1):
        if number * step_s <= _LAST_TICK * length_s:
            yield number * step_s


def _strip(film: Film, strip: Strip) -> str:
    x, end = _x(film, strip.start_s), _x(film, strip.end_s)
    # A narrower strip could not be seen.
    y, width = _y(film, strip.lane) + (_ROW - _BAR) / 2, round(max(end - x, 1.5), 2)
    drawn = (
        f'<rect x="{x}" y="{y}" width="{width}" height="{_BAR}" '
        f'style="fill:var(--gpulab-{strip.role.lower()})"/>'
    )
    if strip.is_wrong:
        drawn += (
            f'<rect x="{x}" y="{y}" width="{width}" height="{_BAR}" '
            f'style="fill:url(#{film.name}-wrong);stroke:var(--gpulab-ink);stroke-width:2"/>'
        )
    # A label that would not fit is left out: the notes say the same.
    needed = _CHARACTER_PX * len(strip.label)
    if strip.label and needed + 6 < width:
        middle = x + width / 2
        drawn += (
            f'<rect x="{middle - needed / 2:.1f}" y="{y + 4}" width="{needed:.1f}" '
            f'height="{_BAR - 8}" style="fill:var(--gpulab-paper)"/>'
            f'<text x="{middle:.1f}" y="{y + _BAR / 2 + 5}" text-anchor="middle">'
            f"{clean(strip.label)}</text>"
        )
    return drawn


def _level(film: Film, level: Level) -> str:
    bottom, high = _y(film, level.lane) + _ROW - 2, _BAR
    places = " ".join(
        f"L{_x(film, time_s)} {bottom - high * share:.1f}" for time_s, share in level.points
    )
    return (
        f'<path d="M{_LEFT} {bottom} {places} L{_WIDTH - _RIGHT} {bottom}Z" '
        f'style="fill:var(--gpulab-{level.role.lower()})"/>'
    )


def _curtain(film: Film, height: int) -> str:
    """Return the pale curtain over the future, and the line at the current time."""
    wide, high = _WIDTH - _LEFT - _RIGHT, _ROW * len(film.lanes)
    return (
        f'<g clip-path="url(#{film.name}-area)"><rect class="sweep" x="{_LEFT}" y="{_TOP}" '
        f'width="{wide}" height="{high}" style="fill:var(--gpulab-paper);opacity:.9"/></g>'
        f'<path class="sweep" d="M{_LEFT} 0V{height - _BOTTOM + 6}" '
        'style="stroke:var(--gpulab-ink);stroke-width:2"/>'
    )
