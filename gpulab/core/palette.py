"""Colours and signs of all pictures: each has one meaning, on light and on dark paper.

The figures of matplotlib and the style sheet of the widgets use these values. No meaning depends
on colour alone: each role has a marker and a hatch, too, and the source of a number shows in how
its mark is filled.
"""

from typing import NamedTuple


class Colour(NamedTuple):
    """One colour in two versions, for light and for dark paper, each as ``"#rrggbb"``."""

    light: str
    dark: str


class Role(NamedTuple):
    """How every picture draws one kind of thing, such as kernels or waits.

    No other role has its colour. Marker and hatch are matplotlib's, for points and for bars.
    """

    colour: Colour
    marker: str
    hatch: str


class SourceSign(NamedTuple):
    """How a picture shows where a number comes from.

    The marks are filled or outlines; dashes and hatch are matplotlib's, for lines and for bars.
    """

    is_filled: bool
    dashes: str
    hatch: str


PAPER = Colour("#ffffff", "#111111")
INK = Colour("#1f1f1f", "#ededed")
MUTED = Colour("#595959", "#b5b5b5")  # for secondary marks: limits, diagonals, second lines
FAINT = Colour("#d9d9d9", "#3d3d3d")  # for grid lines

# Chosen by search: in each picture any two of them differ for readers without red, green or blue.
ROLES = {
    "host": Role(Colour("#113970", "#7cb7ff"), "o", ".."),
    "launch": Role(Colour("#e27428", "#e8c066"), "v", "//"),
    "kernel": Role(Colour("#046c30", "#18a252"), "s", ""),
    "copy": Role(Colour("#c07abe", "#fe78ab"), "D", "xx"),
    "event": Role(Colour("#1f1f20", "#ededee"), "d", ""),
    "wait": Role(Colour("#7d7b75", "#676462"), "|", "\\\\"),
    "cold": Role(Colour("#2a77f2", "#3e99f5"), "s", ""),
    "hot": Role(Colour("#b03a26", "#e8502a"), "o", "//"),
    "CPU": Role(Colour("#3c339e", "#6b60d8"), "o", ""),
    "GPU": Role(Colour("#7c9d35", "#a9c44c"), "s", "//"),
}

# Lines without a role, such as those of two sizes, take these colours in turn.
SERIES = (
    Colour("#3491b0", "#29c9ee"),
    INK,
    Colour("#b3732c", "#f6c543"),
    Colour("#5a1ea8", "#b929dc"),
    Colour("#6e2b47", "#fb7d8f"),
    Colour("#64676c", "#6b6b70"),
)

# A second GPU beside the first, and the families of operations in the roofline explorer.
SECOND_GPU = Colour("#8e130b", "#e2603a")
FAMILIES = (
    Colour("#3a22b5", "#8f7dff"),
    Colour("#0a86d1", "#35cdf0"),
    Colour("#e0217a", "#ff78b4"),
    Colour("#b57a00", "#e6c31c"),
    Colour("#733e13", "#d1503a"),
    Colour("#2b2d30", "#eceef2"),
)

SOURCES = {
    "measured": SourceSign(is_filled=True, dashes="-", hatch=""),
    "recorded": SourceSign(is_filled=False, dashes="-", hatch=""),
    "virtual": SourceSign(is_filled=True, dashes="--", hatch="//"),
}

_COLOURS = (PAPER, INK, MUTED, FAINT, *(role.colour for role in ROLES.values()), *SERIES)
ON_DARK = {colour.light: colour.dark for colour in _COLOURS}
_NAMED = {"paper": PAPER, "ink": INK, "muted": MUTED, "faint": FAINT, "second-gpu": SECOND_GPU}
_NAMED |= {f"family-{number}": colour for number, colour in enumerate(FAMILIES)}


def named() -> dict[str, Colour]:
    """Return the colours of paper, ink and roles, by the names that widgets use."""
    return {**_NAMED, **{name.lower(): role.colour for name, role in ROLES.items()}}


def style_sheet() -> str:
    """Return the CSS that all widgets share: put the class ``gpulab`` on the outermost element.

    Colours are custom properties such as ``var(--gpulab-kernel)``. They follow the theme of
    JupyterLab, the theme of the page, or the one chosen in the presentation mode. The presentation
    mode hides elements of the class ``gpulab-controls``.
    """
    pairs = "\n".join(
        f"  --gpulab-{name}: light-dark({colour.light}, {colour.dark});"
        for name, colour in named().items()
    )
    return f"""\
.gpulab {{
  color-scheme: light dark; font: 14px/1.45 system-ui, sans-serif;
{pairs}
  color: var(--gpulab-ink); background: var(--gpulab-paper);
}}
:is([data-jp-theme-light="true"], [data-theme="light"]) .gpulab {{ color-scheme: light; }}
:is([data-jp-theme-light="false"], [data-theme="dark"]) .gpulab {{ color-scheme: dark; }}
.gpulab :focus-visible {{ outline: 2px solid var(--gpulab-cold); outline-offset: 1px; }}
.gpulab button, .gpulab select {{
  font: inherit; min-height: 28px; color: var(--gpulab-ink); background: var(--gpulab-paper);
  border: 1px solid var(--gpulab-muted); border-radius: 4px; cursor: pointer;
}}
.gpulab button:hover {{ background: var(--gpulab-faint); }}
.gpulab.gpulab-presents {{
  position: fixed; inset: 0; box-sizing: border-box; width: 100vw; height: 100vh; margin: 0;
  max-width: none; max-height: none; overflow: auto; border: 0; padding: 2vh 2vw; z-index: 10000;
  font-size: clamp(20px, 1.8vw, 40px);
}}
.gpulab.gpulab-presents.gpulab-on-light {{ color-scheme: light; }}
.gpulab.gpulab-presents.gpulab-on-dark {{ color-scheme: dark; }}
.gpulab-presents .gpulab-controls {{ display: none !important; }}
.gpulab .gpulab-exit {{ position: fixed; top: 1vh; right: 1vw; z-index: 1; padding: 0 0.6em; }}
"""
