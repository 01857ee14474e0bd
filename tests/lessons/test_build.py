"""A notebook follows from its source alone, and the build refuses a lesson that breaks a rule."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpulab.errors import NotebookError
from gpulab.lessons import _build as build

if TYPE_CHECKING:
    from nbformat import NotebookNode

# nbformat takes seconds to import
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
    """The learner's notebook has no solution and no output, and says where the answer goes."""
    import nbformat

    notebook = nbformat.reads(build.build(source).decode(), as_version=4)
    assert _sources(notebook) == [
        "# A title\nOne question?",
        "%load_ext gpulab",
        "%%cudatime -n 3\nx = 1",
        "answer = ...\n# your answer goes above this line\nanswer",
    ]
    assert [cell.id for cell in notebook.cells] == [
        *["a-title", "load-ext-gpulab", "cudatime-n-3", "answer"],
    ]
    assert notebook.metadata.kernelspec.name == "python3"
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)


def test_solved_version(source: Path) -> None:
    """The solved notebook has the solutions in place, and no marker."""
    assert _sources(build.solved(source))[-1] == "answer = ...\nanswer = 3\nanswer"


def test_indented_solutions(tmp_path: Path) -> None:
    """A solution inside a function is replaced at its own depth, each of several on its own."""
    body = (
        "def f():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION\n"
        "### BEGIN SOLUTION\nf()\n### END SOLUTION"
    )
    path = _write(tmp_path, f"# %% [markdown]\n# # T\n\n# %%\n{body}\n")
    notebook = build.clear_solutions(build.read_source(path))
    stub = "# your answer goes above this line"
    assert _sources(notebook)[1] == f"def f():\n    {stub}\n{stub}"


def test_same_text_gives_same_bytes(source: Path) -> None:
    """A build depends on its source alone, so that a comparison of bytes means something."""
    assert build.build(source) == build.build(source)
    assert build.build(source).endswith(b"}\n")


def test_ids_survive_a_cell_put_in_between(tmp_path: Path) -> None:
    """Ids come from the words of a cell; equal ones are counted, wordless ones are hashed."""
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
def test_rules_of_form(cells: str, message: str, tmp_path: Path) -> None:
    """A lesson that breaks a rule is refused with its name, its cell and the cure."""
    with pytest.raises(NotebookError) as error:
        build.build(_write(tmp_path, f"# %% [markdown]\n# # A\n\n{cells}"))
    assert str(error.value) == message


@pytest.mark.parametrize(
    "text", ["# %% [markdown]\n# ## Sub\n# # Late\n", "# %% [markdown]\n# Words\n"]
)
def test_title_comes_first(text: str, tmp_path: Path) -> None:
    """A notebook without a title on top is refused."""
    with pytest.raises(NotebookError, match="headings of level 1; begin with one '# Title'"):
        build.build(_write(tmp_path, text))


def test_extras_have_a_heading_of_their_own(tmp_path: Path) -> None:
    """After the core of a lesson a second heading of level 1 opens the extras."""
    text = "# %% [markdown]\n# # A\n\n# %% [markdown]\n# # Going further\n# ## More\n"
    assert b"Going further" in build.build(_write(tmp_path, text))


def test_what_the_rules_leave_free(tmp_path: Path) -> None:
    """Exercises may be long and silent, and a comment in a listing is no heading."""
    listing = "# ```\n# # not a heading\n# ```\n"
    exercise = '# %% tags=["exercise"]\n' + "x = 1\n" * 20
    text = f"# %% [markdown]\n# # A\n#\n{listing}\n{exercise}\n# %%\nx\n"
    assert b'"exercise"' in build.build(_write(tmp_path, text))
