"""Lessons are readable with a screen reader, without colours, and as a web page.

The rules are those of ``@jupyterlab-a11y-checker/cli`` that a notebook's text can break; the order
of headings is one of the rules in test_plainness.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from gpulab.lessons import _build as build
from tests.support.lessons import SOURCES

Rule = Callable[[str], Iterator[str]]
VAGUE = {"", "here", "click here", "link", "this", "this link", "more", "read more", "page"}


def images_without_words(markdown: str) -> Iterator[str]:
    """Yield each image without a text alternative."""
    for match in re.finditer(r"!\[\s*\]\([^)]*\)|<img\b[^>]*>", markdown):
        if not re.search(r"""\balt=(["']).+?\1""", match[0]):
            yield match[0]


def tables_without_headings(markdown: str) -> Iterator[str]:
    """Yield each table with a column that has no heading."""
    for match in re.finditer(r"^\|(.*)\|\s*\n\|[ :|-]+\|\s*$", markdown, re.MULTILINE):
        if not all(heading.strip() for heading in re.split(r"(?<!\\)\|", match[1])):
            yield match[0].partition("\n")[0]
    if "<table" in markdown and "<th" not in markdown:
        yield "<table>"


def vague_links(markdown: str) -> Iterator[str]:
    """Yield each link whose words do not say where it leads."""
    for match in re.finditer(r"(?<!!)\[([^\]]*)\]\(([^)]*)\)", markdown):
        words = match[1].strip(" `*.").lower()
        if words in VAGUE or "://" in words:
            yield match[0]


def own_colours(markdown: str) -> Iterator[str]:
    """Yield each element that sets a colour, which may be unreadable in the other theme."""
    yield from re.findall(r"<[^>]*(?:color|background)\s*[=:][^>]*>", markdown)


RULES: tuple[Rule, ...] = (
    images_without_words,
    tables_without_headings,
    vague_links,
    own_colours,
)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem[:3].rstrip("_"))
def test_lessons_are_accessible(source: Path) -> None:
    """Every text cell of every lesson follows every rule."""
    wrong = [
        f"{rule.__name__}: {violation}"
        for cell in build.clear_solutions(build.read_source(source)).cells
        if cell.cell_type == "markdown"
        for rule in RULES
        for violation in rule(
            re.sub(r"```.*?```|`[^`\n]*`", "`CODE`", cell.source, flags=re.DOTALL)
        )
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("rule", "bad", "good"),
    [
        (images_without_words, "![](a.png)", "![Two curves](a.png)"),
        (images_without_words, '<img src="a" alt="">', '<img src="a" alt="Two curves">'),
        (tables_without_headings, "| | n |\n|---|---|\n", "| name | n |\n|---|---|\n"),
        (vague_links, "[here](a.md)", "[the floor](a.md)"),
        (vague_links, "[https://a.org](https://a.org)", "![](a.png)"),
        (own_colours, '<b style="color: red">x</b>', "<b>x</b>"),
    ],
)
def test_each_rule_finds_a_violation(rule: Rule, bad: str, good: str) -> None:
    """Each rule finds its bad example and accepts the good one."""
    assert list(rule(bad))
    assert list(rule(good)) == []


def with_outputs() -> NotebookNode:
    """Return a notebook with a figure and its table, as a kernel sends them."""
    import pandas as pd

    from gpulab import plots

    frame = pd.DataFrame({"n": [1, 2], "time_us": [3.0, 5.0], "source": "virtual"})
    shown = plots.line(frame, x="n", y="time_us", title="Two points", source="virtual")
    data = shown._repr_mimebundle_()
    output = new_output("execute_result", data, execution_count=1)
    cells = [
        new_markdown_cell("# A lesson\n\n## 1 A part"),
        new_code_cell("shown", outputs=[output], execution_count=1),
    ]
    return new_notebook(cells=cells)


@pytest.mark.slow
def test_alternatives_survive_nbconvert() -> None:
    """The page of nbconvert has the text alternatives, heading levels and table headings."""
    from nbconvert import HTMLExporter

    page = HTMLExporter().from_notebook_node(with_outputs())[0]
    assert len(re.findall(r"<img\b", page)) == 1
    assert re.search(r'<img\b[^>]*\balt="Line chart: Two points', page)
    assert re.findall(r"<h([1-6])\b", page) == ["1", "2"]
    assert len(re.findall(r"<th\b", page)) == 3
