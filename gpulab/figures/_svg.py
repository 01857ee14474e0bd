"""Make an SVG of matplotlib follow the page's theme, and make it short.

A notebook contains the picture of each figure, and its kernel keeps all that it has shown.
"""

import re
from urllib.parse import quote

from gpulab.core import palette

# These characters stay as they are in the address of a picture, inside an attribute of a page.
_PLAIN = " <>=/:;,.()'{}@+*!-_"
# Hundredths of a point are less than a screen shows. Scales need all of their digits.
_PLACES = re.compile(r' (?:d|x|y)="[^"]*"|translate\([^)]*\)')
# A letter in a line of text, of which a picture has hundreds.
_LETTER = re.compile(r'<use xlink:href="#g(\w+)" transform="translate\(([\d.]+) 0\)"/>')


def themed(svg: str) -> str:
    """Return an SVG of matplotlib with both shades, light and dark, of each palette colour."""

    def variable(match: re.Match[str]) -> str:
        return f"var(--c{match[1]})" if match[0] in palette.ON_DARK else match[0]

    start = re.search(r"<svg[^>]*>", svg)
    if start is None:
        return svg
    # matplotlib writes every colour in this form, with lower-case letters.
    drawn = re.sub(r"#([0-9a-f]{6})\b", variable, svg[start.end() :])
    used = [light for light in palette.ON_DARK if f"--c{light[1:]})" in drawn]
    shades = (
        ":root{" + ";".join(f"--c{light[1:]}:{shade}" for light, shade in pairs) + "}"
        for pairs in (
            [(light, light) for light in used],
            [(light, palette.ON_DARK[light]) for light in used],
        )
    )
    light, dark = shades
    style = f"<style>{light}@media (prefers-color-scheme: dark){{{dark}}}</style>"
    return f"{svg[: start.end()]}{style}{drawn}"


def shortened(svg: str) -> str:
    r"""Return an SVG of matplotlib without comments and line breaks, and with short numbers."""
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    # Each letter of a text refers to the shape of that letter in matplotlib's font.
    svg = re.sub(r'(id="|href="#)DejaVuSans-', r"\1g", svg)
    svg = _PLACES.sub(lambda match: re.sub(r"(\.\d\d)\d+", r"\1", match[0]), svg)
    svg = _LETTER.sub(r'<use xlink:href="#g\1" x="\2"/>', svg)
    return re.sub(r"\s*\n\s*", " ", svg)


def picture_address(svg: str) -> str:
    """Return the address of an SVG, which contains the picture, for the ``src`` of an image."""
    # A quarter shorter than in base64.
    return "data:image/svg+xml," + quote(svg.replace('"', "'"), safe=_PLAIN)
