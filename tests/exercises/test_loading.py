"""A notebook imports only its own lesson, and no heavy package that it does not use."""

import subprocess
import sys

import pytest

HEAVY = {"torch", "matplotlib", "pandas"}
QUESTION = """
from gpulab import exercises
exercises.ask("09.which-time")
exercises.check("09.which-time", ...)
exercises.hint("09.which-time")
str(exercises.progress())
"""
FIGURES = "from gpulab.exercises.lesson_04 import figures"
FUNCTION = "from gpulab.exercises.lesson_09 import n_needed"


@pytest.mark.parametrize(
    ("code", "lesson", "loads"),
    [
        (QUESTION, "lesson_09", set()),
        (FIGURES, "lesson_04", {"matplotlib"}),
        (FUNCTION, "lesson_09", set()),
    ],
    ids=["question", "figures", "function"],
)
def test_only_one_lesson_is_imported(code: str, lesson: str, loads: set[str]) -> None:
    """Questions and figures of a lesson import no other lesson, and not torch."""
    command = [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    names = done.stdout.split()
    lessons = {name.split(".")[2] for name in names if name.startswith("gpulab.exercises.lesson_")}
    assert lessons == {lesson}
    assert HEAVY & set(names) <= loads
