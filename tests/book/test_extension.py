"""gpulab's extension for Sphinx, tested without building the book."""

from pathlib import Path

import pytest

pytest.importorskip("nbformat")

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from docs.extensions import book, executed


@pytest.mark.parametrize(
    ("shown", "solved", "answers"),
    [
        ("a @ b", "a @ b", False),
        ("answer = ...\n# your answer", "answer = 3", True),
        ("exercises.check('x', answer)", "exercises.check('x', answer)", True),
    ],
)
def test_outputs_that_contain_answers_are_left_out(
    shown: str, solved: str, *, answers: bool
) -> None:
    """A cell with a solution and a cell that checks one contain answers; others do not."""
    assert book.answers(new_code_cell(shown), new_code_cell(solved)) is answers


def test_a_cell_that_asks_shows_its_question() -> None:
    """The run of the solution shows a verdict in the same cell; the book shows the question."""
    cell = new_code_cell('exercises.ask("01.what-was-timed")\n# your answer')
    (output,) = book.asked(cell)
    assert "What did the stopwatch time?" in output["data"]["text/html"]
    assert "01.what-was-timed" in output["data"]["text/plain"]
    assert book.asked(new_code_cell('exercises.check("01.what-was-timed", answer)')) == []


def test_an_empty_table_heading_becomes_a_plain_cell() -> None:
    """An empty ``th`` becomes a ``td``, so that screen readers announce no empty heading."""
    output = new_output("display_data", {"text/html": "<th></th><th>a</th>"})
    assert book.readable(output)["data"]["text/html"] == "<td></td><th>a</th>"


def test_a_page_has_one_title() -> None:
    """The heading of the extras and those after it move one level down; code stays."""
    texts = [
        "# 01 A lesson\n\n## First",
        "# Going further\n\n## More\n\nA # here.",
        "### Exercise",
    ]
    cells = [*map(new_markdown_cell, texts), new_code_cell("# a comment")]
    book.below_one_title(notebook := new_notebook(cells=cells))
    assert [cell.source for cell in notebook.cells] == [
        "# 01 A lesson\n\n## First",
        "## Going further\n\n### More\n\nA # here.",
        "#### Exercise",
        "# a comment",
    ]


def test_links_to_services_need_a_repository() -> None:
    """Colab and Binder get a link only if the repository is on GitHub."""
    assert book.links_to_open("notebooks/a.ipynb", "") == {}
    assert book.links_to_open("notebooks/a.ipynb", "https://example.org/x") == {}
    assert book.links_to_open("notebooks/a.ipynb", "https://github.com/us/gpulab/") == {
        "Colab": "https://colab.research.google.com/github/us/gpulab/blob/main/notebooks/a.ipynb",
        "Binder": "https://mybinder.org/v2/gh/us/gpulab/main?urlpath=lab/tree/notebooks/a.ipynb",
    }


@pytest.mark.slow
def test_an_executed_lesson_is_reused_until_something_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change in the lesson or in gpulab leads to a new run, which replaces the old one."""
    monkeypatch.setattr(executed, "FOLDER", tmp_path / "kept")
    run: list[Path] = []
    monkeypatch.setattr(
        executed, "_run", lambda source: (run.append(source), executed.keep(source, notebook))
    )
    notebook = new_notebook(cells=[new_code_cell("1 + 1", outputs=[])])
    source = tmp_path / "00_sample.py"
    source.write_text("# %%\n1 + 1\n")
    for n_runs in (1, 1):
        assert executed.executed([source])[0].cells[0].source == "1 + 1"
        assert len(run) == n_runs
    source.write_text("# %%\n1 + 2\n")
    executed.executed([source])
    monkeypatch.setattr(executed, "package_digest", lambda: b"another")
    executed.executed([source])
    assert len(run) == 3
    assert len(list((tmp_path / "kept").iterdir())) == 1
