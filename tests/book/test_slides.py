"""The slides show the right parts of a lesson, and work without a network."""

import re
from pathlib import Path

import pytest

pytest.importorskip("nbformat")

from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from docs.extensions import slides
from gpulab.core.errors import UnknownNameError

FIGURE = [new_output("display_data", {"text/html": '<img src="x.png">', "text/plain": "a"})]
TEXT = [new_output("display_data", {"text/html": "<p>Close.</p>"})]
LONG = "\n".join(f"line_{n} = {n}" for n in range(7))
ASKED = 'exercises.predict("01.naive")'
PROGRAM = f"def timed(work):\n    work()\n\n\n{ASKED}"
# Each cell with the types of the slides it becomes; a text cell may also become notes.
CELLS = (
    (new_markdown_cell("# 01 Time\n\nWhy?\n\nMore.\n\n| a | b |\n|---|---|"), ["slide", "notes"]),
    (new_code_cell("import torch"), ["skip"]),
    (new_markdown_cell("No heading."), ["notes"]),
    (new_markdown_cell("## 1 Begin\n\n### Here"), ["slide"]),
    (new_code_cell(ASKED, outputs=TEXT), ["-"]),
    (new_code_cell('exercises.compare("01.naive", 3)', outputs=TEXT), ["fragment"]),
    (new_code_cell("a @ b"), ["subslide"]),
    (new_code_cell(PROGRAM, outputs=TEXT, metadata={"tags": ["exercise"]}), ["subslide"]),
    (new_code_cell(LONG, outputs=TEXT), ["fragment"]),
    (new_code_cell(LONG), ["skip"]),
    (new_code_cell(LONG, outputs=FIGURE), ["subslide"]),
    (new_markdown_cell("### Exercise"), ["subslide"]),
    (new_code_cell('exercises.ask("01.x")', outputs=TEXT), ["-"]),
    (new_code_cell("answer = ...", metadata={"tags": ["exercise"]}), ["skip"]),
    (new_code_cell('exercises.check("01.x", answer)', outputs=TEXT), ["skip"]),
    (new_code_cell('exercises.hint("01.x")'), ["skip"]),
    (new_markdown_cell("# Going further\n\nNot in class."), []),
    (new_code_cell("a + b"), []),
)


def test_each_cell_gets_its_type_of_slide() -> None:
    """A heading begins a slide, questions are shown, exercises and extras are skipped."""
    placed = slides.deck([cell for cell, _ in CELLS])
    kinds = [cell.metadata["slideshow"]["slide_type"] for cell in placed]
    assert kinds == [kind for _, expected in CELLS for kind in expected]


def test_each_cell_shows_its_important_part() -> None:
    """Text shows its first paragraph and table; code that is long or asks is hidden."""
    placed = slides.deck([cell for cell, _ in CELLS])
    first, notes = placed[:2]
    assert first.source == "# 01 Time\n\nWhy?\n\n| a | b |\n|---|---|"
    assert notes.source == "More."
    hidden = [cell.source for cell in placed if "remove-input" in cell.metadata.get("tags", ())]
    assert hidden == ["", LONG, LONG, ""]
    assert "def timed(work):\n    work()" in [cell.source for cell in placed]
    assert [cell.source for cell, _ in CELLS][4] == ASKED  # the lesson's own cells do not change


@pytest.mark.slow
def test_a_page_needs_no_network() -> None:
    """Scripts and style sheets are local files, and a widget is shown as its saved picture."""
    widget = {"application/vnd.jupyter.widget-view+json": {"model_id": "x"}, "image/png": "aGk="}
    cells = [cell for cell, _ in CELLS]
    cells.insert(1, new_code_cell("explorer", outputs=[new_output("display_data", widget)]))
    page = slides.page("01_time", cells)
    loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="([^"]+)"', page)
    assert [each for each in loaded if not each.startswith(("reveal.js/", "data:"))] == ["x.png"]
    assert "import(" not in page
    assert "from 'http" not in page
    assert page.count("aGk=") == 1
    assert "answer = ..." not in page


def test_missing_files_and_lessons_are_named(tmp_path: Path) -> None:
    """A missing reveal.js or an unknown lesson leads to one sentence, and no file is written."""
    out = tmp_path / "out"
    with pytest.raises(slides.SlidesError, match=r"has no dist/reveal\.js; run: make slides, "):
        slides.write(out, ["03_events"], tmp_path)
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "reveal.js").touch()
    with pytest.raises(UnknownNameError, match="did you mean '03_events'"):
        slides.write(out, ["03_event"], tmp_path)
    with pytest.raises(SystemExit, match="Error: unknown lesson '03_event'"):
        slides.main(["03_event", "--out", str(out), "--reveal", str(tmp_path)])
    assert not out.exists()
