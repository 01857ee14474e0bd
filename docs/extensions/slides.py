"""Slides of the lessons, for reveal.js: ``make slides``.

nbconvert writes them. What is on a slide is decided here, by a rule, and written as the metadata
``slideshow`` into a copy of each lesson; a learner's notebook has none of it.

- A heading begins a slide, with its first paragraph and its tables. Other text is for the
  speaker's notes.
- A question is on the slide of its heading, or begins one. Its outcome appears after a key.
- Short code is on a slide, with what it showed. Long code is left out, and its figure stays.
- Exercises, their hints, imports and what comes after the class hour are left out.
"""

import argparse
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat

from docs.extensions import book, executed
from gpulab.core.disk import write_whole
from gpulab.core.errors import GpulabError, UnknownNameError

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "notebooks" / "source"
REVEAL = ROOT / "build" / "node_modules" / "reveal.js"
# The page must open without a network, so it uses no script of the template. None is needed:
# lessons have no formulas, and nbconvert shows widgets as pictures.
TEMPLATE = """\
{%- extends 'reveal/index.html.j2' -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block jupyter_widgets -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_css -%}
<style>
:root { --jp-ui-font-size1: 28px; --jp-content-font-size1: 28px; --jp-code-font-size: 22px; }
.reveal .slides section { text-align: left; max-height: 700px; overflow-y: auto; }
.reveal :is(h1, h2, h3) { text-transform: none !important; }
.reveal :is(img, svg) { max-height: 480px; width: auto; }
</style>
{%- endblock -%}
{%- block footer_js -%}
<script src="{{ reveal_url_prefix }}/dist/reveal.js"></script>
<script src="{{ reveal_url_prefix }}/plugin/notes/notes.js"></script>
<script>Reveal.initialize({hash: true, slideNumber: true, width: 1280, height: 720,
  center: false, plugins: [RevealNotes]});</script>
{%- endblock footer_js -%}
"""
_MOST_LINES = 6
_HEADING = re.compile(r"^(#+) ")
_EXTRAS = re.compile(r"^# Going further", re.MULTILINE)
_IMPORT = re.compile(r"^(?:from|import) ", re.MULTILINE)
_QUESTION = re.compile(r"exercises\.(?:predict|draw|ask)\(")
_LEFT_OUT = re.compile(r"exercises\.(?:check|hint|progress)\(")

Cell = Any  # nbformat's cells are untyped


class SlidesError(GpulabError, OSError):
    """The slides cannot be written, because reveal.js is not there."""


def deck(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells of a lesson up to its extras, each with its place among the slides."""
    marked: list[Cell] = []
    before = ""
    for cell in cells:
        if cell.cell_type == "markdown":
            if _EXTRAS.search(cell.source):
                break
            marked += _of_text(cell)
            before = "text" if _HEADING.match(cell.source) else before
        else:
            placed, before = _of_code(cell, before)
            marked.append(placed)
    return marked


def _of_text(cell: Cell) -> list[Cell]:
    """Divide a text: headings, first paragraph and tables for the slide, the rest for notes."""
    heading = _HEADING.match(cell.source)
    if heading is None:
        return [_placed(cell, "notes")]
    paragraphs = cell.source.split("\n\n")
    first = next((each for each in paragraphs if not _HEADING.match(each)), "")
    shown = [each for each in paragraphs if each == first or each.startswith(("#", "|"))]
    rest = [each for each in paragraphs if each not in shown]
    kind = "subslide" if len(heading[1]) > len("##") else "slide"
    slide = _placed(nbformat.from_dict({**cell, "source": "\n\n".join(shown)}), kind)
    notes = [nbformat.v4.new_markdown_cell("\n\n".join(rest))] if rest else []
    return [slide, *(_placed(each, "notes") for each in notes)]


def _of_code(cell: Cell, before: str) -> tuple[Cell, str]:
    """Return a code cell with its place on the slides, and its kind, for the cell after it."""
    n_lines = sum(bool(line.strip()) for line in cell.source.split("\n"))
    is_long = n_lines > _MOST_LINES
    has_figure = any(map(_is_figure, cell.outputs))
    tags = cell.metadata.get("tags", [])
    if _LEFT_OUT.search(cell.source) or _IMPORT.search(cell.source):
        return _placed(cell, "skip"), before
    if question := _QUESTION.search(cell.source):
        # The program that the question is about stays; the question itself is an output.
        program = cell.source[: question.start()].rpartition("\n")[0].rstrip()
        placed = _placed(cell, "-" if before == "text" else "subslide", hide=not program)
        placed.source = program
        return placed, "question"
    if "exercise" in tags or (is_long and not has_figure and before != "question"):
        return _placed(cell, "skip"), before
    # The outcome appears on the slide of its question after a key, if there is room for both.
    kind = "fragment" if before == "question" and not has_figure else "subslide"
    return _placed(cell, kind, hide=is_long or "hide-input" in tags), "code"


def _is_figure(output: Any) -> bool:  # noqa: ANN401  # nbformat's outputs are untyped
    data = output.get("data", {})
    html = data.get("text/html", "")
    return any(kind.startswith("image/") for kind in data) or "<img" in html or "<svg" in html


def _placed(cell: Cell, kind: str, *, hide: bool = False) -> Cell:
    cell = nbformat.from_dict(cell)
    cell.metadata["slideshow"] = {"slide_type": kind}
    if hide:
        cell.metadata["tags"] = [*cell.metadata.get("tags", []), "remove-input"]
    return cell


def page(title: str, cells: Sequence[Cell]) -> str:
    """Return the slides of a lesson as one page, which finds reveal.js beside it."""
    from nbconvert import SlidesExporter
    from traitlets.config import Config

    config = Config()
    config.TagRemovePreprocessor.enabled = True
    config.TagRemovePreprocessor.remove_input_tags = {"remove-input"}
    exporter = SlidesExporter(
        config=config, raw_template=TEMPLATE, reveal_url_prefix="reveal.js", reveal_theme="white"
    )
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    notebook = nbformat.v4.new_notebook(cells=deck(cells))
    text: str = exporter.from_notebook_node(notebook, {"metadata": {"name": title}})[0]
    return text


def write(out: Path, names: Sequence[str], reveal: Path) -> list[Path]:
    """Write the slides of lessons, all by default, and reveal.js beside them; return the pages.

    Raises
    ------
    SlidesError
        If there is no reveal.js.
    UnknownNameError
        If there is no lesson of a name.
    """
    if not (reveal / "dist" / "reveal.js").is_file():
        raise SlidesError(
            f"{reveal} has no dist/reveal.js; run: make slides, which lets npm fetch it, or name "
            "a folder that has it: --reveal FOLDER"
        )
    known = {source.stem: source for source in sorted(SOURCES.glob("*.py"))}
    for name in names:
        if name not in known:
            raise UnknownNameError("lesson", name, known)
    sources = [known[name] for name in names or known]
    for part in ("dist", "plugin/notes"):
        shutil.copytree(reveal / part, out / "reveal.js" / part, dirs_exist_ok=True)
    pages = []
    for source, ran in zip(sources, executed.executed(sources), strict=True):
        shown = book.lesson(source, ran)
        pages.append(out / f"{source.stem}.html")
        write_whole(pages[-1], page(source.stem, shown.cells).encode())
    return pages


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the slides, and say where they are."""
    parser = argparse.ArgumentParser("docs.extensions.slides", description=__doc__)
    parser.add_argument("lessons", nargs="*", help="such as 03_events; all without a name")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "slides", help="the folder")
    parser.add_argument("--reveal", type=Path, default=REVEAL, help="a copy of reveal.js")
    options = parser.parse_args(arguments)
    try:
        pages = write(options.out, options.lessons, options.reveal)
    except GpulabError as error:
        raise SystemExit(f"Error: {error}") from None
    sys.stdout.write("".join(f"{page}\n" for page in pages))


if __name__ == "__main__":
    main()
