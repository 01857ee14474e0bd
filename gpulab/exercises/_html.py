"""Boxes for a notebook's output that say by sign and word, not by colour alone, what they are."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpulab.markup import clean


@dataclass(frozen=True, slots=True)
class Tone:
    """Colour, sign and word of one kind of message."""

    colour: str
    sign: str
    word: str


# Okabe and Ito's palette; the sign and the word say the same without colour.
RIGHT = Tone("#009E73", "✓", "Right.")
WRONG = Tone("#D55E00", "✗", "Not yet.")
OPEN = Tone("#0072B2", "?", "Not answered yet.")
ASKED = Tone("#0072B2", "?", "Predict.")


def box(tone: Tone, body: str) -> str:
    """Wrap escaped HTML in a box that a screen reader announces when it appears."""
    head = f'<span aria-hidden="true">{tone.sign}</span> {clean(tone.word)}'
    return (
        f'<div role="status" style="border-left:0.3em solid {tone.colour};'
        f'padding:0.3em 0.8em;margin:0.3em 0;max-width:46em">'
        f"<strong>{head}</strong> {body}</div>"
    )


def paragraphs(text: str) -> str:
    """Escape text; an empty line starts a new paragraph, indented lines are a listing."""
    return "".join(_block(block) for block in text.strip("\n").split("\n\n"))


def _block(block: str) -> str:
    if block.startswith("    "):
        lines = (line.removeprefix("    ") for line in block.splitlines())
        return f"<pre>{clean(chr(10).join(lines))}</pre>"
    return f'<p style="margin:0.3em 0">{clean(block)}</p>'


def options(choices: Mapping[str, str]) -> str:
    """List lettered choices; code between backquotes is set as code."""
    items = (
        f"<li><strong>{clean(key)}</strong>: {_code(text)}</li>" for key, text in choices.items()
    )
    return f'<ul style="list-style:none;padding-left:0.5em">{"".join(items)}</ul>'


def _code(text: str) -> str:
    parts = clean(text).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))
