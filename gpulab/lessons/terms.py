"""The glossary: what each term of the lessons means, for a cell, a lesson's links and the book."""

import re
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby

from gpulab.core.errors import UnknownNameError
from gpulab.core.markup import Html, PrettyPrinter, clean, table
from gpulab.core.requirements import NAME

__all__ = ["Entry", "Glossary", "entries", "glossary", "uses_in"]

_WIDTH = 88
# Code, links, formulas and headings of a Markdown text: terms inside them are not linked.
_LEFT_ALONE = (
    r"^```.*?^```|`[^`]*`|!?\[[^\]]*\]\([^)]*\)|<https?:[^>]*>"
    r"|\$\$.*?\$\$|\$[^$\n]*\$|^\#+ [^\n]*$"
)
_SEARCH = (
    "const wanted = this.value.toLowerCase();for (const row of "
    "this.closest('div').querySelectorAll('tbody tr'))row.hidden = "
    "!row.textContent.toLowerCase().includes(wanted);"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One term and what it means, in two or three sentences with code between backticks.

    The name is written as in the middle of a sentence; ``forms`` are all its spellings, in the
    singular, and ``unlike`` phrases in which the same words mean something else. ``lesson`` shows
    it, such as ``"03_events"``.
    """

    name: str
    meaning: str
    lesson: str
    forms: tuple[str, ...]
    unlike: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """The entry's anchor in the page of all entries, such as ``"launch-latency"``."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    def __str__(self) -> str:
        text = f"{self.name}: {self.meaning} (Lesson {self.number})"
        return textwrap.fill(text, _WIDTH, subsequent_indent="    ")

    @property
    def number(self) -> str:
        """The number of the lesson, such as ``"03"``."""
        return self.lesson.partition("_")[0]


@dataclass(frozen=True, slots=True)
class Glossary:
    """Entries in alphabetical order; a notebook shows them as a table that you can search.

    Examples
    --------
    >>> [entry.name for entry in glossary("SM").entries]
    ['multiprocessor']
    """

    entries: tuple[Entry, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.entries))

    def _repr_pretty_(self, printer: PrettyPrinter, _cycle: object) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        if len(self.entries) == 1:
            (entry,) = self.entries
            return f"<p><strong>{clean(entry.name)}</strong>: {_html(entry)}</p>"
        listed = table(
            ((entry.name, _html(entry)) for entry in self.entries),
            caption=f"{len(self.entries)} terms",
            headings=("Term", "Meaning"),
            has_row_headings=True,
            is_text=True,
        )
        search = f'<input type="search" oninput="{clean(_SEARCH)}">'
        return f"<div><label>Search {search}</label>{listed}</div>"


def glossary(term: str | None = None) -> Glossary:
    """Return what a term of the lessons means, or the whole glossary.

    Parameters
    ----------
    term
        The term, in any of its forms; None for all of them.

    Raises
    ------
    InvalidOptionError
        If ``term`` is not a text, or empty.
    UnknownNameError
        If the glossary does not have the term; the message names the nearest.

    Examples
    --------
    >>> print(glossary("wake-up"))
    wake-up: The time from the end of the GPU's work until the waiting host goes on. Every
        stopwatch with a wait contains it. (Lesson 02)
    >>> glossary("SMs").entries[0].name
    'multiprocessor'
    >>> len(glossary().entries) >= 80
    True
    """
    if term is None:
        return Glossary(entries())
    NAME.check(term=term)
    by_form = {
        form.strip('*"').lower(): entry
        for entry in entries()
        for form in (*entry.forms, entry.name)
    }
    wanted = " ".join(term.lower().split())
    # The plain form too: some terms end in "s", such as "backward pass".
    for form in (wanted, wanted.removesuffix("s"), wanted.removesuffix("es")):
        if form in by_form:
            return Glossary((by_form[form],))
    raise UnknownNameError("term", term, by_form, listed_by="gpulab.glossary()")


@cache
def entries() -> tuple[Entry, ...]:
    """Return all entries, in alphabetical order."""
    text = (files("gpulab") / "data" / "glossary.toml").read_text("utf-8")
    return tuple(
        Entry(
            term["name"],
            term["meaning"],
            term["lesson"],
            tuple(term.get("forms", [term["name"], *term.get("also", ())])),
            tuple(term.get("unlike", ())),
        )
        for term in tomllib.loads(text)["term"]
    )


def uses_in(markdown: str) -> Iterator[tuple[re.Match[str], Entry]]:
    """Yield each use of a term in a Markdown text, with its match and its entry.

    Code, links, formulas and headings are left out. Where two terms begin at the same place,
    the longer one counts: "CUDA graph" is not a use of "CUDA".

    >>> [entry.name for _, entry in uses_in("A launch; `launch` in code.")]
    ['launch']
    """
    pattern, forms = _pattern()
    for match in pattern.finditer(markdown):
        if match.lastindex is not None:
            yield match, forms[match.lastindex - 1][1]


@cache
def _pattern() -> tuple[re.Pattern[str], list[tuple[str, Entry]]]:
    """Return one pattern with a group for each form, and the forms in the order of the groups."""
    forms = sorted(
        ((form, entry) for entry in entries() for form in entry.forms),
        # The longest first, because a pattern takes the first alternative that fits.
        key=lambda pair: (pair[0][0].lower(), -len(pair[0])),
    )
    unlike = [_spaced(phrase) for entry in entries() for phrase in entry.unlike]
    # By their first letters: to try hundreds of forms at each word takes thirty times as long.
    groups = "|".join(
        f"(?=[{letter}{letter.upper()}])(?:{'|'.join(f'({_of_form(form)})' for form, _ in alike)})"
        for letter, alike in groupby(forms, key=lambda pair: pair[0][0].lower())
    )
    # One lookbehind before all forms: with one in each of hundreds of forms the search is slow.
    pattern = rf"{_LEFT_ALONE}|(?<![\w-])(?:{'|'.join(unlike)}|(?:{groups})(?![\w-]))"
    return re.compile(pattern, re.MULTILINE | re.DOTALL), forms


def _of_form(form: str) -> str:
    first = f"[{form[0].upper()}{form[0]}]" if form[0].islower() else re.escape(form[0])
    plural = "(?:e?s)?" if form[-1].isalpha() else ""
    return f"{first}{_spaced(form[1:])}{plural}"


def _spaced(text: str) -> str:
    """Return the pattern of a text whose spaces may be ends of lines."""
    return r"\s+".join(map(re.escape, text.split(" ")))


def _html(entry: Entry) -> Html:
    meaning = re.sub(r"`([^`]*)`", r"<code>\1</code>", clean(entry.meaning))
    return Html(f'{meaning} (<a href="{entry.lesson}.ipynb">Lesson {entry.number}</a>)')
