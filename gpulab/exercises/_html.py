"""HTML boxes for a notebook's output; a sign and a word repeat what the colour says."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpulab.core.foreign_text import visible
from gpulab.core.markup import clean


@dataclass(frozen=True, slots=True)
class Tone:
    """The colour, the sign and the word of one kind of message."""

    colour: str
    sign: str
    word: str


# Okabe and Ito's palette; the sign and the word say the same without colour.
RIGHT = Tone("#009E73", "✓", "Right.")
WRONG = Tone("#D55E00", "✗", "Not yet.")
OPEN = Tone("#0072B2", "?", "Not answered yet.")
ASKED = Tone("#0072B2", "?", "Predict.")
DIFFERENT = Tone("#D55E00", "✗", "Different.")


def box(tone: Tone, body: str) -> str:
    """Return a box around escaped HTML; a screen reader reads it aloud when it appears."""
    head = f'<span aria-hidden="true">{tone.sign}</span> {clean(tone.word)}'
    return (
        f'<div role="status" style="border-left:0.3em solid {tone.colour};'
        f'padding:0.3em 0.8em;margin:0.3em 0;max-width:46em">'
        f"<strong>{head}</strong> {body}</div>"
    )


# No repr of its own: a cell that shows it in a list shows the text.
@dataclass(frozen=True, slots=True, repr=False)
class ComparedGuess:
    """A guess compared with the outcome: the verdict, and a message with both and what follows.

    ``is_right`` says that the guess was close or near, or the right choice; None without a guess.
    """

    tone: Tone
    message: str
    is_right: bool | None = field(default=None, kw_only=True)

    def __str__(self) -> str:
        return visible(f"{self.tone.word} {self.message}".strip())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return box(self.tone, paragraphs(self.message))


def paragraphs(text: str) -> str:
    """Return text as HTML paragraphs; lines that are indented by four spaces become code."""
    return "".join(_block(block) for block in text.strip("\n").split("\n\n"))


def _block(block: str) -> str:
    if block.startswith("    "):
        lines = (line.removeprefix("    ") for line in block.splitlines())
        return f"<pre>{clean(chr(10).join(lines))}</pre>"
    return f'<p style="margin:0.3em 0">{clean(block)}</p>'


def options(choices: Mapping[str, str]) -> str:
    """Return lettered choices as an HTML list; text between backquotes becomes code."""
    items = (
        f"<li><strong>{clean(key)}</strong>: {_code(text)}</li>" for key, text in choices.items()
    )
    return f'<ul style="list-style:none;padding-left:0.5em">{"".join(items)}</ul>'


def _code(text: str) -> str:
    parts = clean(text).split("`")
    # The parts with odd numbers were between two backquotes.
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


def page(title: str, style: str, body: str) -> str:
    """Return a whole HTML page that needs no other file."""
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{clean(title)}</title><style>{style}</style></head>"
        f"<body><main><h1>{clean(title)}</h1>{body}</main></body></html>\n"
    )
