"""The Sphinx extension of the book: lessons as pages, versions and links, and explained terms."""

import platform
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat

from docs.extensions import executed, modules
from gpulab import exercises
from gpulab.lessons import _build, terms

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "notebooks"
ASKED = re.compile(r'^exercises\.ask\(\s*"([\w.-]+)"', re.MULTILINE)
# Cells that judge or count answers: their outputs would give the answers away.
JUDGED = ("exercises.check(", "exercises.progress(")


def setup(app: "Sphinx") -> dict[str, Any]:
    """Connect the functions below to the events of Sphinx."""
    app.connect("builder-inited", write_lessons)
    app.connect("builder-inited", write_modules)
    app.connect("html-page-context", describe_page)
    app.connect("doctree-resolved", explain_terms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_lessons(app: "Sphinx") -> None:
    """Write the glossary and each lesson with its outputs; files that are up to date stay."""
    folder = Path(app.srcdir) / "lessons"
    _write(folder / "glossary.md", (NOTEBOOKS / "glossary.md").read_text("utf-8"))
    sources = sorted((NOTEBOOKS / "source").rglob("*.py"))
    for source, ran in zip(sources, executed.executed(sources), strict=True):
        place = source.relative_to(NOTEBOOKS / "source").with_suffix(".ipynb")
        _write(folder / place, nbformat.writes(lesson(source, ran)))


def lesson(source: Path, ran: "nbformat.NotebookNode") -> "nbformat.NotebookNode":
    """Return a learner's notebook with the outputs of the solved one."""
    notebook = nbformat.reads(_build.build(source).decode(), as_version=4)
    for cell, done in zip(notebook.cells, ran.cells, strict=True):
        if cell.cell_type == "code":
            # A cell that asks has its solution, too: the run showed the verdict.
            shown = asked(cell) if answers(cell, done) else done.outputs
            cell.outputs = [readable(output) for output in shown]
    below_one_title(notebook)
    return notebook


def below_one_title(notebook: "nbformat.NotebookNode") -> None:
    """Move the heading of the extras, and those after it, one level down.

    A page with two titles would stand twice in each list of pages.
    """
    is_extra = False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            is_extra = is_extra or cell.source.startswith(f"# {_build.EXTRAS}")
            if is_extra:
                cell.source = re.sub(r"^#", "##", cell.source, flags=re.MULTILINE)


def asked(cell: Any) -> list[Any]:  # noqa: ANN401 # nbformat's cells are untyped
    """Return the question of a cell in place of its outputs, if it ends with one."""
    found = ASKED.findall(cell.source)
    questions = [exercises.ask(exercise_id) for exercise_id in found]
    texts = ({"text/html": each._repr_html_(), "text/plain": str(each)} for each in questions)
    return [nbformat.v4.new_output("display_data", data) for data in texts]


def write_modules(app: "Sphinx") -> None:
    """Write the page with the first sentence of every module."""
    _write(Path(app.srcdir) / "reference" / "generated" / "modules.md", modules.page())


def answers(cell: Any, solved: Any) -> bool:  # noqa: ANN401 # nbformat's cells are untyped
    """Return whether the output of a cell would give away the answer to an exercise."""
    return cell.source != solved.source or any(call in cell.source for call in JUDGED)


def readable(output: Any) -> Any:  # noqa: ANN401 # nbformat's outputs are untyped
    """Return an output whose tables have no empty headings, as pandas writes at the corner."""
    shown = output.get("data", {})
    if "text/html" in shown:
        shown["text/html"] = shown["text/html"].replace("<th></th>", "<td></td>")
    return output


def describe_page(
    app: "Sphinx", name: str, _template: str, context: dict[str, Any], _doctree: "nodes.document"
) -> None:
    """Add to a page the versions that it was built with, and links that open its notebook."""
    context["made_with"] = made_with(app.config.release)
    lesson = name.removeprefix("lessons/")
    if (NOTEBOOKS / f"{lesson}.ipynb").exists():
        context["lesson"] = lesson
        context["open_in"] = links_to_open(f"notebooks/{lesson}.ipynb", repository())


def made_with(release: str) -> str:
    """Return the versions and the machine that the book was built with."""
    import torch

    return (
        f"gpulab {release}, Python {platform.python_version()}, torch {torch.__version__}, "
        f"{platform.system()} {platform.machine()}"
    )


def repository() -> str:
    """Return the address of the project's repository, or nothing if pyproject.toml names none."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["project"].get("urls", {}).get("Repository", ""))


def links_to_open(notebook: str, repository: str) -> dict[str, str]:
    """Return the services that open a notebook of a repository on GitHub, with the addresses."""
    at_github = repository.rstrip("/").removeprefix("https://github.com/")
    if not repository or at_github == repository.rstrip("/"):
        return {}
    return {
        "Colab": f"https://colab.research.google.com/github/{at_github}/blob/main/{notebook}",
        "Binder": f"https://mybinder.org/v2/gh/{at_github}/main?urlpath=lab/tree/{notebook}",
    }


def explain_terms(_app: "Sphinx", doctree: "nodes.document", _name: str) -> None:
    """Show the meaning of a term while the mouse is over a link to the glossary."""
    from docutils import nodes

    meanings = _meanings()
    for link in doctree.findall(nodes.reference):
        page, _, anchor = link.get("refuri", "").partition("#")
        if page.rpartition("/")[2] == "glossary.html" and anchor in meanings:
            link["reftitle"] = meanings[anchor]
            link["classes"].append("term")


@cache
def _meanings() -> dict[str, str]:
    """Return anchor to meaning of each entry of the glossary."""
    return {entry.anchor: entry.meaning.replace("`", "") for entry in terms.entries()}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")
