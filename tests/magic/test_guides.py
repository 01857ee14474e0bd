"""The code of the guides and of the README runs word by word, from the first cell to the last."""

import re
from pathlib import Path

import pytest

from tests.support.ipython import Notebook

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "howto"
CELL = re.compile(r"```{code-cell} ipython3\n(.*?)```", re.DOTALL)
# Pages whose code is not in cells, and what runs it.
ELSEWHERE = {
    "command-line": "tests/test_cli.py",
    "elsewhere": "commands of pip and of other programs, and the first cell of a lesson on Colab",
    "index": "no code",
    "add-a-method": "part of CONTRIBUTING.md",
    "predictions": "tests/exercises",
}
RUN = ("compare-two", "in-ci", "no-gpu", "numbers-vary", "sweep", "time-a-kernel")


def code_of(page: str) -> list[str]:
    """Return the cells of a guide."""
    return CELL.findall((GUIDES / f"{page}.md").read_text("utf-8"))


def test_every_guide_is_run() -> None:
    """A new page is either run here or by what stands beside its name."""
    assert {page.stem for page in GUIDES.glob("*.md")} == {*RUN, *ELSEWHERE}
    assert [page for page in ELSEWHERE if code_of(page)] == []


@pytest.mark.slow
@pytest.mark.parametrize("page", ["compare-two", "no-gpu", "numbers-vary"])
def test_a_guide_runs(notebook: Notebook, page: str) -> None:
    """Its cells raise nothing, one after another."""
    ran = notebook.run(*code_of(page))
    assert [cell.message for cell in ran if cell.error] == []


@pytest.mark.slow
def test_the_readme_shows_what_comes_out(notebook: Notebook) -> None:
    """Each cell of the README prints the numbers and words that stand below it."""
    text = (ROOT / "README.md").read_text("utf-8")
    sessions = re.findall(
        r"^In \[\d\]: (.*\n(?:   \.\.\.: .*\n)*)((?:(?!In \[|```).*\n)*)", text, re.MULTILINE
    )
    assert len(sessions) == 4
    ran = notebook.run(*(cell.replace("   ...: ", "") for cell, _ in sessions))
    for (_, shown), cell in zip(sessions, ran, strict=True):
        assert cell.message is None
        # The page breaks long lines, and names the torch that its author had.
        told, said = (
            " ".join(re.sub(r"torch [\d.+\w]+ is", "torch is", each).split())
            for each in (shown, cell.out)
        )
        assert told == said


@pytest.mark.slow
def test_the_guide_to_ci_runs(notebook: Notebook) -> None:
    """The check fails in words against the saved measurement; the one before it passes."""
    ran = notebook.run(*code_of("in-ci"))
    assert [cell.message for cell in ran if cell.error] == []
    assert "new takes less: new / old = " in ran[1].out
    assert ran[-1].out.startswith(
        "at most 1.05 times is allowed, and now takes longer: now / before = "
    )


@pytest.mark.slow
def test_the_guide_to_a_kernel_runs(notebook: Notebook) -> None:
    """Its throughput is counted by PyTorch for the matmul, and given for the softmax."""
    ran = notebook.run(*code_of("time-a-kernel"))
    assert [cell.message for cell in ran if cell.error] == []
    assert "% of the float32 peak (data sheet); FLOPs counted by PyTorch" in ran[-2].out
    assert "% of the memory bandwidth (data sheet); bytes as given" in ran[-2].out
    assert "% of the memory bandwidth (measured); bytes as given" in ran[-1].out


@pytest.mark.slow
def test_the_guide_to_sweeps_runs(notebook: Notebook) -> None:
    """Ten points are measured, drawn and listed, and the file has those of the last cell."""
    ran = notebook.run(*code_of("sweep"))
    assert [cell.message for cell in ran if cell.error] == []
    assert ran[0].out.splitlines()[-1].endswith("5 of 5 points; virtual NVIDIA H200")
    assert ran[2].out.count("by hand") == 5
    assert len((notebook.folder / "softmax.jsonl").read_text().splitlines()) == 3
