"""The glossary page beside the lessons, and links to it from the first use of each term.

The page is Markdown and not a notebook: JupyterLab opens Markdown at the entry that a link names,
but opens a notebook at its top.
"""

from typing import Any

from gpulab.lessons import terms

GLOSSARY = "glossary.md"
_OPENING = """\
# Glossary

The terms of the lessons, in the order of the alphabet. Each entry ends with the lesson that shows
it. The table of contents in the side bar of JupyterLab lists them all.

In a cell, `gpulab.glossary("floor")` shows one entry, and `gpulab.glossary()` a table that you
can search."""


def link_first_uses(notebook: Any, page: str = GLOSSARY) -> None:  # noqa: ANN401  # nbformat's
    """Add a link to the glossary at the first use of each term in a lesson, which this changes.

    The table of sections at the top gets no links, because it explains nothing. ``page`` is the
    path of the glossary, relative to the lesson's folder.
    """
    linked: set[str] = set()
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            is_opening = cell is notebook.cells[0]
            cell.source = _linked(cell.source, linked, page, skip_tables=is_opening)


def glossary_page() -> str:
    """Return the glossary in Markdown, with a heading for each entry."""
    return "\n\n".join([_OPENING, *map(_section, terms.entries())]) + "\n"


def _section(entry: terms.Entry) -> str:
    # JupyterLab keeps capital letters in the address of a heading, and other programs do not. The
    # anchor in small letters works in both.
    has_capitals = entry.name.lower() != entry.name
    address = f'<a id="{entry.anchor}"></a>\n\n' if has_capitals else ""
    meaning = _linked(entry.meaning, {entry.name})
    lesson = f"[Lesson {entry.number}]({entry.lesson}.ipynb)"
    return f"{address}## {entry.name}\n\n{meaning} ({lesson})"


def _linked(
    text: str, linked: set[str], page: str = GLOSSARY, *, skip_tables: bool = False
) -> str:
    """Return a Markdown text with a link at the first use of each term that is not in ``linked``.

    The linked terms are added to ``linked``.
    """
    parts, done = [], 0
    for match, entry in terms.uses_in(text):
        row = text.rfind("\n", 0, match.start()) + 1
        if entry.name in linked or (skip_tables and text.startswith("|", row)):
            continue
        linked.add(entry.name)
        parts += [text[done : match.start()], f"[{match[0]}]({page}#{entry.anchor})"]
        done = match.end()
    return "".join([*parts, text[done:]])
