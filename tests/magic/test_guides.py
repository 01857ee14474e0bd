"""The code of the guides runs word by word, from the first cell to the last."""

import re
from pathlib import Path

import pytest

from tests.support.ipython import Notebook

GUIDES = Path(__file__).parents[2] / "docs" / "howto"
CELL = re.compile(r"```{code-cell} ipython3\n(.*?)```", re.DOTALL)


@pytest.mark.slow
def test_the_guide_to_ci_runs(notebook: Notebook) -> None:
    """The check fails in words against the saved measurement; the one before it passes."""
    ran = notebook.run(*CELL.findall((GUIDES / "in-ci.md").read_text("utf-8")))
    assert [cell.message for cell in ran if cell.error] == []
    assert "new takes less: new / old = " in ran[1].out
    assert ran[-1].out.startswith(
        "at most 1.05 times is allowed, and now takes longer: now / before = "
    )


@pytest.mark.slow
def test_the_guide_to_a_kernel_runs(notebook: Notebook) -> None:
    """Its throughput is counted by PyTorch for the matmul, and given for the softmax."""
    ran = notebook.run(*CELL.findall((GUIDES / "time-a-kernel.md").read_text("utf-8")))
    assert [cell.message for cell in ran if cell.error] == []
    assert "% of the float32 peak (data sheet); FLOPs counted by PyTorch" in ran[-1].out
    assert "% of the memory bandwidth (data sheet); bytes as given" in ran[-1].out


@pytest.mark.slow
def test_the_guide_to_sweeps_runs(notebook: Notebook) -> None:
    """Ten points are measured, drawn and listed, and the file has those of the last cell."""
    ran = notebook.run(*CELL.findall((GUIDES / "sweep.md").read_text("utf-8")))
    assert [cell.message for cell in ran if cell.error] == []
    assert ran[0].out.splitlines()[-1].endswith("5 of 5 points; virtual NVIDIA H200")
    assert ran[2].out.count("by hand") == 5
    assert len((notebook.folder / "softmax.jsonl").read_text().splitlines()) == 3
