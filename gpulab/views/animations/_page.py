"""Turn a film into HTML: a picture that a curtain uncovers, with a pause, a still and a text."""

from dataclasses import dataclass

from gpulab.core import palette
from gpulab.core.markup import clean
from gpulab.figures import WIDTH_IN, picture_address, render, style
from gpulab.views.animations._film import Film

_ROW_IN, _MARGIN_IN = 0.36, 1.2
_REST_S = 4.0  # the film shows all of it for so long before it begins again
_WHOLE = 100  # percent


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
    picture, axes = _picture(film)
    parts = [
        f'<figure class="gpulab gpulab-film {film.name}" aria-label="{clean(film.title)}">',
        f"<style>{palette.style_sheet()}{_style(film)}</style>",
        f"<p><b>{clean(film.title)}</b></p>",
        '<p class="gpulab-controls"><label><input type="checkbox" class="pause"/> Pause</label> ',
        '<label><input type="checkbox" class="still"/> Still picture</label></p>',
        f'<div class="stage"><img src="{picture}" alt="{clean(film.words)}"/>',
        f'<div class="area" style="{axes}" aria-hidden="true"><div class="sweep"></div></div>',
        "</div>",
        '<div class="notes" aria-hidden="true">',
        *(f"<p>{clean(note.text)}</p>" for note in film.notes),
        "</div>",
        "<details><summary>In words</summary><ol>",
        *(f"<li>{clean(note.text)}</li>" for note in film.notes),
        "</ol></details></figure>",
    ]
    return "\n".join(parts) + "\n"


def _picture(film: Film) -> tuple[str, str]:
    """Return the address of the picture, and the place of its axes in it as CSS."""
    from matplotlib.figure import Figure as Canvas

    lanes = film.lanes
    with style():
        size_in = (WIDTH_IN, _MARGIN_IN + _ROW_IN * lanes.n_rows)
        canvas = Canvas(figsize=size_in, layout="constrained")
        ax = lanes.draw(canvas.add_subplot())
        ax.set_xlim(0, lanes.length_s * 1e6)
        svg = render(ax, alt=film.words, frame=lanes.to_frame()).svg
    box = ax.get_position()
    sides = {"left": box.x0, "top": 1 - box.y1, "width": box.width, "height": box.height}
    css = ";".join(f"{side}:{_WHOLE * share:.2f}%" for side, share in sides.items())
    return picture_address(svg), css


def _style(film: Film) -> str:
    """Return the CSS rules of a film; they begin with its name, as a page may have several."""
    own, whole_s = f".gpulab-film.{film.name}", film.shown_s + _REST_S
    # Percent of an animation's loop that the film takes; the rest of the loop shows the whole.
    share = _WHOLE * film.shown_s / whole_s
    rules = [
        ".gpulab-film{margin:0;padding:4px}",
        ".gpulab-film .stage{position:relative}",
        ".gpulab-film img{display:block;width:100%;height:auto}",
        ".gpulab-film .area{position:absolute;overflow:hidden}",
        # The curtain is pale, so that the future can be guessed; its edge is the current time.
        ".gpulab-film .sweep{width:100%;height:100%;opacity:.9;box-sizing:border-box}",
        ".gpulab-film .sweep{background:var(--gpulab-paper);border-left:2px solid}",
        ".gpulab-film .notes{display:grid;min-height:3em;font-size:1.1em}",
        ".gpulab-film .notes p{grid-area:1/1;margin:2px 0}",
        f"@keyframes {film.name}-sweep{{{share:.3f}%,100%{{transform:translateX(100%)}}}}",
        f"{own} .sweep{{animation:{film.name}-sweep {whole_s:g}s linear infinite}}",
    ]
    starts = [share * note.start_s / film.lanes.length_s for note in film.notes]
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], _WHOLE], strict=True)):
        name, last = f"{film.name}-note-{number}", int(end >= _WHOLE)
        rules.append(
            f"@keyframes {name}{{0%{{opacity:{int(start <= 0)}}}{start:.3f}%{{opacity:1}}"
            f"{end:.3f}%{{opacity:{last}}}100%{{opacity:{last}}}}}"
            f"{own} .notes p:nth-child({number + 1})"
            # step-end: a note appears at once at its moment and does not fade in.
            f"{{animation:{name} {whole_s:g}s step-end infinite}}"
        )
    still = (
        "{own} .sweep{{display:none}}{own} .notes p{{animation:none!important;opacity:0}}{own} "
        ".notes p:last-child{{opacity:1}}"
    )
    rules += [
        # Check boxes and :has, because a page without a kernel may run no script.
        f"{own}:has(.pause:checked) *{{animation-play-state:paused!important}}",
        still.format(own=f"{own}:has(.still:checked)"),
        f"@media print{{{still.format(own=own)}}}",
        f"@media (prefers-reduced-motion:reduce){{{still.format(own=own)}}}",
    ]
    return "".join(rules)
