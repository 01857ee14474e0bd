"""Build the lessons' notebooks from their sources; equal sources give equal bytes everywhere."""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from gpulab.core.disk import write_whole
from gpulab.core.errors import NotebookError
from gpulab.lessons._folder import shipped
from gpulab.lessons._glossary import GLOSSARY, glossary_page, link_first_uses

BEGIN_SOLUTION = "### BEGIN SOLUTION"
END_SOLUTION = "### END SOLUTION"
CODE_STUB = "# your answer goes above this line"
EXTRAS = "Going further"  # sections after this heading are not part of the class hour
SOLUTION = re.compile(
    rf"^([ \t]*){BEGIN_SOLUTION}$.*?^[ \t]*{END_SOLUTION}$", re.MULTILINE | re.DOTALL
)
_FORM = re.compile(
    r"^exercises\.(?:ask|continue_from)\([^()]*\)[ \t]*(?:#[^\n]*)?\Z", re.MULTILINE
)
# Less than Jupyter writes: versions of Python and of its kernel would differ from build to build.
METADATA = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python"},
}
Notebook = Any  # nbformat's notebooks are dictionaries with attributes, and untyped


def build(source: Path) -> bytes:
    """Return the file of a learner's notebook: without solutions, with links, and not executed.

    ``source`` is in percent format. If the markers of a solution, which would show it to learners,
    are not in pairs, a `NotebookError` names the cell.
    """
    notebook = read_source(source)
    for number, cell in enumerate(notebook.cells, start=1):
        _check_markers(f"{source.stem}, cell {number}", cell.source)
    link_first_uses(notebook, "../" * _levels_below_the_lessons(source) + GLOSSARY)
    return to_bytes(clear_solutions(notebook))


def _check_markers(where: str, source: str) -> None:
    markers = [line.strip() for line in source.split("\n") if "SOLUTION" in line]
    if markers != [BEGIN_SOLUTION, END_SOLUTION] * (len(markers) // 2):
        raise NotebookError(
            f"{where}: the solution markers are not in pairs; "
            f"write {BEGIN_SOLUTION!r} and {END_SOLUTION!r}, each on a line of its own"
        )


def _levels_below_the_lessons(source: Path) -> int:
    return source.parent.parts[::-1].index("source")


def solved(source: Path) -> Notebook:
    """Return the notebook of a lesson with its solutions, for tests that run it."""
    notebook = read_source(source)
    for cell in notebook.cells:
        lines = [line for line in cell.source.split("\n") if not _is_marker(line)]
        cell.source = "\n".join(lines)
    return notebook


def read_source(source: Path) -> Notebook:
    """Return the notebook of a lesson in percent format; ids depend only on the cells' text."""
    import jupytext  # type: ignore[import-untyped] # it ships no types

    text = source.read_text("utf-8")
    cells = [_tidy(cell) for cell in jupytext.reads(text, fmt="py:percent").cells]
    for cell, cell_id in zip(cells, _ids(cell.source for cell in cells), strict=True):
        cell.id = cell_id
    return _v4().new_notebook(cells=cells, metadata=METADATA)


def clear_solutions(notebook: Notebook) -> Notebook:
    """Replace every solution by a line that says where the answer goes, unless a form takes it.

    The markers are those of nbgrader, so that its tools can read the sources too. nbgrader itself
    is not used here: it would add its panels and menus to every learner's JupyterLab.
    """
    for cell in notebook.cells:
        without = SOLUTION.sub("", cell.source).rstrip()
        # A form below the last call takes the answer, or that call puts code into the cell.
        is_form = cell.cell_type == "code" and _FORM.search(without)
        cell.source = without if is_form else SOLUTION.sub(rf"\1{CODE_STUB}", cell.source)
    return notebook


def to_bytes(notebook: Notebook) -> bytes:
    """Return the bytes of a notebook's file; equal notebooks have equal bytes."""
    import nbformat

    nbformat.validate(notebook)
    text: str = _v4().writes(notebook)
    return (text.rstrip("\n") + "\n").encode()


def _v4() -> Any:  # noqa: ANN401 # nbformat's functions are untyped
    import nbformat

    return nbformat.v4


# Other metadata is dropped, because every editor writes its own and builds would differ.
def _tidy(cell: Notebook) -> Notebook:
    v4 = _v4()
    make = {"code": v4.new_code_cell, "markdown": v4.new_markdown_cell, "raw": v4.new_raw_cell}
    metadata = {
        name: cell.metadata[name] for name in ("nbgrader", "tags") if name in cell.metadata
    }
    return make[cell.cell_type](cell.source, metadata=metadata)


def _ids(sources: Iterable[str]) -> Iterator[str]:
    """Yield an id for each cell from the words of its first line.

    A new cell then does not change the ids of the cells after it, to which reports and the
    progress page link.
    """
    counts: dict[str, int] = {}
    for source in sources:
        words = re.findall(r"[a-z0-9]+", source.split("\n", maxsplit=1)[0].lower())
        # nbformat allows 64 characters; the rest is for the number of a repeated line.
        slug = "-".join(words)[:48].strip("-") or hashlib.sha256(source.encode()).hexdigest()[:8]
        counts[slug] = counts.get(slug, 0) + 1
        yield slug if counts[slug] == 1 else f"{slug}-{counts[slug]}"


def _is_marker(line: str) -> bool:
    return line.strip() in {BEGIN_SOLUTION, END_SOLUTION}


def build_all(notebooks: Path, *, check: bool = False) -> tuple[str, ...]:
    """Build all lessons, cases and the glossary, and return the names of files that changed.

    ``notebooks`` is that folder of a clone. A source in a subfolder, such as ``source/cases``,
    becomes a notebook in a subfolder of the same name. With ``check`` this only compares, and
    writes nothing. It raises `NotebookError` if there are no sources, if a marker has no
    partner, or if a notebook has no source.
    """
    folder = notebooks / "source"
    sources = {
        path.relative_to(folder).with_suffix(".ipynb"): path
        for path in sorted(folder.rglob("*.py"))
    }
    if not sources:
        raise NotebookError(
            f"{folder} has no lessons to build; install gpulab from a clone: pip install -e ."
        )
    # Everything is built before anything is written: an error then leaves the folder as it was.
    contents = {name: build(source) for name, source in sources.items()}
    contents[Path(GLOSSARY)] = glossary_page().encode()
    # After a source is renamed, its old notebook would still be shipped, and never be checked.
    _refuse_orphans(notebooks, contents.keys())
    differing = []
    for name, content in contents.items():
        target = notebooks / name
        if not target.exists() or target.read_bytes() != content:
            differing.append(name.as_posix())
            if not check:
                target.parent.mkdir(exist_ok=True)
                write_whole(target, content)
    return tuple(differing)


def _refuse_orphans(notebooks: Path, built: Collection[Path]) -> None:
    orphans = [path.as_posix() for path in shipped(notebooks) if path not in built]
    if orphans:
        raise NotebookError(
            f"{', '.join(orphans)}: no source in {notebooks / 'source'}; delete the notebook"
        )
