"""The pages that list the lessons have each lesson's question, minutes and picture."""

import re
from types import SimpleNamespace

import pytest

from benchmarks.lessons import gallery
from benchmarks.lessons.gallery import Entry
from tests.support.lessons import ROOT

# the sources are read by jupytext, which takes seconds to import
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("page", "name"), gallery.PARTS)
def test_pages_say_what_the_lessons_say(page: str, name: str) -> None:
    """Each part is up to date: python -m benchmarks.lessons gallery."""
    text = "\n".join(gallery.PARTS[page, name]())
    written = (ROOT / page).read_text("utf-8")
    assert f"<!-- {name}:begin -->\n{text}\n<!-- {name}:end -->" in written


@pytest.mark.parametrize("entry", gallery.lessons(), ids=lambda entry: entry.number)
def test_each_lesson_has_one_question_and_a_small_picture(entry: Entry) -> None:
    """The question is short; the picture says as text what it shows."""
    assert re.fullmatch(r"[A-Z][^?\n]{10,120}\?", entry.question), entry.question
    assert entry.picture.stat().st_size <= gallery.MOST_BYTES
    assert len(entry.alt.split()) >= 5, entry.alt


def test_no_picture_is_left_of_a_lesson_that_is_gone() -> None:
    """There is one file for each lesson."""
    names = {entry.picture.name for entry in gallery.lessons()}
    assert {path.name for path in gallery.PICTURES.iterdir()} == names


@pytest.mark.parametrize("entry", gallery.cases(), ids=lambda entry: entry.number)
def test_each_case_has_one_question(entry: Entry) -> None:
    """What follows it, such as the minutes, is no part of it."""
    assert re.fullmatch(r"[A-Z][^?\n]{10,120}\?", entry.question), entry.question


def test_the_picture_is_that_of_the_chosen_cell() -> None:
    """The first picture of a cell with the text; its title names kind and finding."""

    def cell(source: str, name: str) -> SimpleNamespace:
        figure = '<figure class="gpulab-figure" style="margin:0">'
        image = f"{figure}<img src=\"data:image/svg+xml,%3Csvg a='1'%3E{name}\""
        shown = {"text/html": f'{image} alt="Bar chart: {name} &amp; b. The x axis shows n.">'}
        return SimpleNamespace(cell_type="code", source=source, outputs=[{"data": shown}])

    ran = SimpleNamespace(
        cells=[
            SimpleNamespace(cell_type="markdown", source="bars"),
            cell("plot(first)", "First"),
            cell("plot(bars)", "Second"),
        ]
    )
    assert gallery.picture_of(ran, "bars") == (
        "<svg a='1'><title>Bar chart: Second &amp; b.</title>Second"
    )
    assert "First" in gallery.picture_of(ran, "")
    with pytest.raises(SystemExit, match="no cell with 'pie' shows a picture"):
        gallery.picture_of(ran, "pie")
