"""Fixtures of the course: one exported course and one grader with its process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulab import course
from gpulab.course._confine import AnswerLimits
from gpulab.course._folder import SECRET_VARIABLE, CourseFolder
from gpulab.course._judging import Grader
from gpulab.course._sandbox import Sandbox

# No answer may meet a limit on time because the machine is slow or busy. Tests of these limits set
# their own.
LIMITS = AnswerLimits(cpu_s=3600, wall_s=3600)
SECRET = "a secret for tests alone"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Export a course whose numbers are the same in every run."""
    pytest.importorskip("nbgrader")
    path = tmp_path_factory.mktemp("course") / "exported"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SECRET_VARIABLE, SECRET)
        course.export(path)
    return path


@pytest.fixture(scope="session")
def grader(folder: Path) -> Iterator[Grader]:
    """Yield a grader whose answers have time, however slow the machine is."""
    with Sandbox(LIMITS) as sandbox:
        yield Grader(CourseFolder.opened(folder), sandbox)
