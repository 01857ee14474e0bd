"""A build depends only on the source, and refuses a solution that learners would see."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpulab.core.errors import NotebookError
from gpulab.lessons import _build as build

if TYPE_CHECKING:
    from nbformat import NotebookNode

# importing nbformat takes seconds
pytestmark = pytest.mark.slow

SAMPLE = """\
# %% [markdown]
# # A title
# One question?

# %%
# %load_ext gpulab

# %%
# %%cudatime -n 3
x = 1


# %%
def twice(fn):
    return fn(), fn()


# %%
exercises.ask("00.sample", readings=x)
### BEGIN SOLUTION
exercises.check("00.sample", "b")
### END SOLUTION

# %%
answer = ...
### BEGIN SOLUTION
answer = 3
### END SOLUTION
answer
"""


NOT_IN_PAIRS = (
    "00_sample, cell 2: the solution markers are not in pairs; "
    "write '### BEGIN SOLUTION' and '### END SOLUTION', each on a line of its own"
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a small lesson's source."""
    return _write(tmp_path, SAMPLE)


def _write(folder: Path, text: str) -> Path:
    path = folder / "source" / "00_sample.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def _sources(notebook: "NotebookNode") -> list[str]:
    return [cell.source for cell in notebook.cells]


def test_learners_version(source: Path) -> None:
    """The learner's notebook has stubs instead of solutions, stable ids and no output."""
    import nbformat

    notebook = nbformat.reads(build.build(source).decode(), as_version=4)
    assert _sources(notebook) == [
        "# A title\nOne question?",
        "%load_ext gpulab",
        "%%cudatime -n 3\nx = 1",
        "def twice(fn):\n    return fn(), fn()",
        'exercises.ask("00.sample", readings=x)',
        "answer = ...\n# your answer goes above this line\nanswer",
    ]
    assert [cell.id for cell in notebook.cells] == [
        *[
            "a-title",
            "load-ext-gpulab",
            "cudatime-n-3",
            "def-twice-fn",
            "exercises-ask-00-sample-readings-x",
            "answer",
        ],
    ]
    assert notebook.metadata.kernelspec.name == "python3"
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)


def test_solved_version(source: Path) -> None:
    """The solved notebook has the solutions without their markers."""
    assert _sources(build.solved(source))[-1] == "answer = ...\nanswer = 3\nanswer"


def test_indented_solutions(tmp_path: Path) -> None:
    """Each solution is replaced by a stub with the solution's indentation."""
    body = (
        "def f():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION\n"
        "### BEGIN SOLUTION\nf()\n### END SOLUTION"
    )
    path = _write(tmp_path, f"# %% [markdown]\n# # T\n\n# %%\n{body}\n")
    notebook = build.clear_solutions(build.read_source(path))
    stub = "# your answer goes above this line"
    assert _sources(notebook)[1] == f"def f():\n    {stub}\n{stub}"


@pytest.mark.parametrize(
    "call",
    [
        'exercises.ask("01.a")',
        'display(figure)\nexercises.ask("01.a", readings=calls_s)',
        'exercises.continue_from("02.benchmark")  # run it, then change it',
    ],
)
def test_a_cell_whose_last_call_shows_a_form_gets_no_stub(call: str, tmp_path: Path) -> None:
    """The answer goes into the form, or the call puts code into the cell."""
    solved = f"{call}\n### BEGIN SOLUTION\nx = 1\n### END SOLUTION"
    path = _write(tmp_path, f"# %% [markdown]\n# # T\n\n# %%\n{solved}\n")
    assert _sources(build.clear_solutions(build.read_source(path)))[1] == call


def test_ids_come_from_the_text_of_a_cell(tmp_path: Path) -> None:
    """A cell's id comes from its words, with a number if it repeats, or from its hash."""
    cells = ["x = 1", "...", "x = 1"]
    text = "# %% [markdown]\n# # T\n\n" + "".join(f"# %%\n{cell}\n\n" for cell in cells)
    ids = [cell.id for cell in build.read_source(_write(tmp_path, text)).cells]
    assert ids == ["t", "x-1", "ab5df625", "x-1-2"]


@pytest.mark.parametrize(
    "lines",
    [
        "### BEGIN SOLUTION",
        "### END SOLUTION\n### BEGIN SOLUTION",
        "## BEGIN SOLUTION\n### END SOLUTION",
    ],
)
def test_a_marker_without_its_partner_is_refused(lines: str, tmp_path: Path) -> None:
    """A solution that would be shown to learners is named with its lesson and cell."""
    with pytest.raises(NotebookError) as error:
        build.build(_write(tmp_path, f"# %% [markdown]\n# # A\n\n# %%\n{lines}\n"))
    assert str(error.value) == NOT_IN_PAIRS
