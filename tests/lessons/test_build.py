"""A build depends only on the source, and refuses a lesson that breaks a rule."""

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


SHOWS_NOTHING = (
    "00_sample, cell 2: the last line shows nothing; end the cell with an expression or a magic"
)
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
    ("cells", "message"),
    [
        ("# %%\nx = 1\n", SHOWS_NOTHING),
        (
            "# %%\n" + "x\n" * 13,
            "00_sample, cell 2: 13 lines of code; split it into cells of at most 12",
        ),
        (
            "# %%\n" + "x\n" * 6,
            "00_sample: the median code cell has 6 lines; cut the cells to a median of at most 4",
        ),
        ("# %%\nx ==\n", "00_sample, cell 2: invalid syntax in line 1; mend the code"),
        ("# %%\n### BEGIN SOLUTION\n", NOT_IN_PAIRS),
        ("# %%\n### END SOLUTION\n### BEGIN SOLUTION\n", NOT_IN_PAIRS),
        ("# %%\n## BEGIN SOLUTION\n### END SOLUTION\n", NOT_IN_PAIRS),
        (
            "# %% [markdown]\n# # B\n",
            (
                "00_sample: 2 headings of level 1; begin with one '# Title', and have no "
                "other but '# Going further' before the extras"
            ),
        ),
        (
            "# %% [markdown]\n# ### Deep\n",
            "00_sample, cell 2: the heading 'Deep' has level 3 under level 1; use level 2",
        ),
    ],
)
def test_a_lesson_that_breaks_a_rule_is_refused(cells: str, message: str, tmp_path: Path) -> None:
    """The message names the lesson, the cell, the broken rule and the cure."""
    with pytest.raises(NotebookError) as error:
        build.build(_write(tmp_path, f"# %% [markdown]\n# # A\n\n{cells}"))
    assert str(error.value) == message


@pytest.mark.parametrize(
    "text", ["# %% [markdown]\n# ## Sub\n# # Late\n", "# %% [markdown]\n# Words\n"]
)
def test_title_comes_first(text: str, tmp_path: Path) -> None:
    """A notebook whose first heading is not a title is refused."""
    with pytest.raises(NotebookError, match="headings of level 1; begin with one '# Title'"):
        build.build(_write(tmp_path, text))


def test_exercises_and_listings_are_exempt(tmp_path: Path) -> None:
    """Exercises may be long and show nothing, and comments in listings are not headings."""
    listing = "# ```\n# # not a heading\n# ```\n"
    exercise = '# %% tags=["exercise"]\n' + "x = 1\n" * 20
    text = f"# %% [markdown]\n# # A\n#\n{listing}\n{exercise}\n# %%\nx\n"
    assert b'"exercise"' in build.build(_write(tmp_path, text))
