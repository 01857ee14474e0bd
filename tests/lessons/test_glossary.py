"""A lesson links each term to the glossary at its first use, and no link is dead."""

import json
import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpulab.lessons import _glossary, terms
from tests.support.lessons import ROOT

NOTEBOOKS = ROOT / "notebooks"
LINK = re.compile(r"\[[^\]]*\]\(((?:\.\./)?[\w/]+\.(?:ipynb|md))(?:#([\w-]+))?\)")
PAGES = sorted(path.relative_to(NOTEBOOKS).as_posix() for path in NOTEBOOKS.rglob("*.ipynb"))


@cache
def addresses_in(page: Path) -> set[str]:
    """Return a page's anchors as JupyterLab forms them: ids, and headings with capitals."""
    text = page.read_text("utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {heading.replace(" ", "-") for heading in headings} | set(
        re.findall(r'<a id="([^"]+)"></a>', text)
    )


def texts_of(name: str) -> list[str]:
    """Return the text cells of a notebook, or the text of a page."""
    text = (NOTEBOOKS / name).read_text("utf-8")
    if not name.endswith(".ipynb"):
        return [text]
    cells = json.loads(text)["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]


@pytest.mark.parametrize("name", [*PAGES, _glossary.GLOSSARY])
def test_links_lead_somewhere(name: str) -> None:
    """Each link of a lesson leads to an existing file and an existing anchor."""
    links = [link for text in texts_of(name) for link in LINK.findall(text)]
    assert sum(file.endswith(_glossary.GLOSSARY) for file, _ in links) >= 3
    folder = (NOTEBOOKS / name).parent
    wrong = [
        (file, anchor)
        for file, anchor in links
        if not (folder / file).is_file() or (anchor and anchor not in addresses_in(folder / file))
    ]
    assert not wrong


def test_first_uses_are_linked() -> None:
    """A term is linked once in a lesson, and never in the table of sections."""
    cells = [
        "# T\n\nA warp.\n\n| section | minutes |\n| warps and waves | 3 |",
        "A wave, another warp, a\nwave.",
    ]
    notebook = SimpleNamespace(
        cells=[SimpleNamespace(cell_type="markdown", source=text) for text in cells]
    )
    notebook.cells.insert(1, SimpleNamespace(cell_type="code", source="tile"))
    _glossary.link_first_uses(notebook)
    assert [cell.source for cell in notebook.cells] == [
        "# T\n\nA [warp](glossary.md#warp).\n\n| section | minutes |\n| warps and waves | 3 |",
        "tile",
        "A [wave](glossary.md#wave), another warp, a\nwave.",
    ]


def test_each_entry_has_its_place_on_the_page() -> None:
    """Each entry's anchor exists on the page, also for headings with capitals."""
    assert {entry.anchor for entry in terms.entries()} <= addresses_in(
        NOTEBOOKS / _glossary.GLOSSARY
    )
