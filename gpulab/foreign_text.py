"""Text from anywhere (labels, kernel names, errors), written so that nothing obeys it.

A name can contain what a terminal takes for a command, what turns the direction of reading, or
half of a character, which no file can hold. Each is shown as Python writes it in a string.
"""

import re
from collections.abc import Mapping

__all__ = ["one_line", "shortened", "visible", "visible_row"]


# Controls but for newline and tab, marks of direction, other line ends, halves of a character, and
# what XML cannot write.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
    "\ud800-\udfff\ufffe\uffff]"
)


def visible(text: str) -> str:
    r"""Return a text in which every character is shown and none is obeyed; lines stay lines.

    Examples
    --------
    >>> print(visible("\x1b[31mred\r \ud800"))
    \x1b[31mred\r \ud800
    >>> visible("24.9 µs")
    '24.9 µs'
    """
    # The usual text is told apart in C, much faster than by the pattern.
    return text if text.isprintable() else _OBEYED.sub(_written_out, text)


def one_line(text: str) -> str:
    r"""Return a name as one visible line, so that it cannot pass for a line of ours.

    >>> one_line("gemm\nmedian 1 ns\x00")
    'gemm median 1 ns\\x00'
    """
    return text if text.isprintable() else visible(" ".join(text.split()))


def shortened(text: str, n_most: int) -> str:
    """Return a text of at most so many characters; one that was cut ends in an ellipsis.

    >>> shortened("elementwise_kernel", 12)
    'elementwise…'
    """
    return text if len(text) <= n_most else f"{text[: n_most - 1]}…"


def visible_row(row: Mapping[str, object]) -> dict[str, object]:
    """Return a row of a table with visible names and visible texts; other values stay."""
    return {
        visible(name): visible(value) if isinstance(value, str) else value
        for name, value in row.items()
    }


def _written_out(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
