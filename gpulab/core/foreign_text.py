"""Make text from other programs (labels, kernel names, errors) safe to print.

A name can contain escape sequences that a terminal obeys, marks that reverse the direction of
reading, or half a character (a lone surrogate), which cannot be written to a file. They are
replaced by their escapes in Python.
"""

import re
from collections.abc import Mapping

__all__ = ["first_line", "one_line", "shortened", "visible", "visible_row"]


# Control characters except newline and tab, marks of direction, other line ends, lone surrogates,
# and characters that XML forbids: figures are SVG.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
    "\ud800-\udfff\ufffe\uffff]"
)


def visible(text: str) -> str:
    r"""Return a text with escapes in place of control characters; line breaks stay."""
    # isprintable runs in C and is much faster than the pattern; nearly all texts pass it.
    return text if text.isprintable() else _OBEYED.sub(_written_out, text)


def one_line(text: str) -> str:
    r"""Return a name as one line, so that it cannot imitate another line of our output."""
    return text if text.isprintable() else visible(" ".join(text.split()))


def first_line(message: object) -> str:
    """Return the first line of an error's message, or of another text; empty if it has none."""
    return next(iter(str(message).splitlines()), "")


def shortened(text: str, n_most: int) -> str:
    """Return a text of at most ``n_most`` characters; a cut one ends with an ellipsis."""
    return text if len(text) <= n_most else f"{text[: n_most - 1]}…"


def visible_row(row: Mapping[str, object]) -> dict[str, object]:
    r"""Return a row of a table with its names and texts made :func:`visible`."""
    return {
        visible(name): visible(value) if isinstance(value, str) else value
        for name, value in row.items()
    }


def _written_out(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
