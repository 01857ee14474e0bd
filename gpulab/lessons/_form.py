"""Check the form of a lesson: cells are short and show something, and headings are in order."""

import ast
import re
from itertools import pairwise
from statistics import median
from typing import Any

from gpulab.core.errors import NotebookError

BEGIN_SOLUTION = "### BEGIN SOLUTION"
END_SOLUTION = "### END SOLUTION"
MAX_CELL_LINES = 12
MAX_MEDIAN_LINES = 4
EXTRAS = "Going further"  # sections after this heading are not part of the class hour
_QUESTION = re.compile(r"^\w+ = exercises\.(?:predict|draw)\(\n.*?^\)$", re.MULTILINE | re.DOTALL)

# nbformat's notebooks are dictionaries with attributes, and untyped
Notebook = Any


def check_form(name: str, notebook: Notebook) -> None:
    """Raise `NotebookError`, which names the cell, if a solved lesson breaks a rule of form."""
    _check_headings(name, notebook)
    sizes = []
    for number, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type != "code":
            continue
        where = f"{name}, cell {number}"
        _check_markers(where, cell.source)
        if not _is_exercise(cell):
            sizes.append(_check_size(where, cell.source))
            _check_shows_something(where, cell.source)
    if sizes and median(sizes) > MAX_MEDIAN_LINES:
        raise NotebookError(
            f"{name}: the median code cell has {median(sizes):g} lines; "
            f"cut the cells to a median of at most {MAX_MEDIAN_LINES}"
        )


def _is_exercise(cell: Notebook) -> bool:
    return "exercise" in cell.metadata.get("tags", ()) or BEGIN_SOLUTION in cell.source


def _check_size(where: str, source: str) -> int:
    # A question is one sentence for the reader, so it counts as one line.
    n_lines = sum(bool(line.strip()) for line in _QUESTION.sub("question", source).split("\n"))
    if n_lines > MAX_CELL_LINES:
        raise NotebookError(
            f"{where}: {n_lines} lines of code; split it into cells of at most {MAX_CELL_LINES}"
        )
    return n_lines


def _check_markers(where: str, source: str) -> None:
    markers = [line.strip() for line in source.split("\n") if "SOLUTION" in line]
    if markers != [BEGIN_SOLUTION, END_SOLUTION] * (len(markers) // 2):
        raise NotebookError(
            f"{where}: the solution markers are not in pairs; "
            f"write {BEGIN_SOLUTION!r} and {END_SOLUTION!r}, each on a line of its own"
        )


def _check_shows_something(where: str, source: str) -> None:
    from IPython.core.inputtransformer2 import TransformerManager

    magics: Any = TransformerManager  # untyped; turns a magic into a function call
    try:
        body = ast.parse(magics().transform_cell(source)).body
    except SyntaxError as error:
        message = f"{where}: {error.msg} in line {error.lineno}; mend the code"
        raise NotebookError(message) from None
    # A cell with a function alone has nothing to show.
    if not body or not isinstance(body[-1], ast.Expr | ast.FunctionDef | ast.ClassDef):
        raise NotebookError(
            f"{where}: the last line shows nothing; end the cell with an expression or a magic"
        )


def _check_headings(name: str, notebook: Notebook) -> None:
    levels = [
        (number, len(match[1]), match[2])
        for number, cell in enumerate(notebook.cells, start=1)
        if cell.cell_type == "markdown"
        for match in re.finditer(r"^(#+) +(.+)$", _without_code(cell.source), re.MULTILINE)
    ]
    titles = [title for _, level, title in levels if level == 1]
    if not titles or levels[0][1] != 1 or titles[1:] not in ([], [EXTRAS]):
        raise NotebookError(
            f"{name}: {len(titles)} headings of level 1; "
            f"begin with one '# Title', and have no other but '# {EXTRAS}' before the extras"
        )
    for (_, before, _), (number, level, title) in pairwise(levels):
        if level > before + 1:
            raise NotebookError(
                f"{name}, cell {number}: the heading {title!r} has level {level} under level "
                f"{before}; use level {before + 1}"
            )


# In a code block, a line that begins with # is a comment and not a heading.
def _without_code(markdown: str) -> str:
    return re.sub(r"^```.*?^```", "", markdown, flags=re.MULTILINE | re.DOTALL)
