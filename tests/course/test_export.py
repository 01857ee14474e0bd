"""A failing export says why in one line, and no export overwrites another course."""

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpulab import course
from gpulab.cli import main
from gpulab.core.errors import CourseFolderError, GradingError, NotebookError
from gpulab.course import _export, _folder

ROOT = Path(__file__).parents[2]


@pytest.fixture
def nbgrader_version(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Pretend that nbgrader has the version in this list, or is missing if the list is empty."""
    versions = ["0.9.6"]

    def version(name: str) -> str:
        if not versions:
            raise PackageNotFoundError(name)
        return versions[0]

    monkeypatch.setattr(_folder, "version", version)
    return versions


@pytest.mark.usefixtures("nbgrader_version")
def test_the_commands_export_a_course_and_show_its_key(tmp_path: Path) -> None:
    """The export names the next step, only its owner can read the secret, and the key is shown."""
    made = CliRunner().invoke(main, ["course", "export", "--nbgrader", str(tmp_path / "c")])
    assert made.exit_code == 0, made.output
    assert "Next, in this folder: nbgrader generate_assignment timing" in made.output
    secret = tmp_path / "c" / "grader" / "secret"
    for path in (secret, secret.parent):
        assert path.stat().st_mode & 0o077 == 0
    assert (tmp_path / "c" / "source" / "timing" / "timing.ipynb").is_file()
    key = CliRunner().invoke(main, ["course", "key", str(tmp_path / "c"), "timing", "ada"])
    assert key.output.startswith("# waits\nwaits = '")
    report = CliRunner().invoke(main, ["course", "report", str(tmp_path / "c")])
    assert report.output.endswith("has no submissions yet\n")


@pytest.mark.usefixtures("nbgrader_version")
def test_unusable_folders_are_refused(tmp_path: Path) -> None:
    """A file and a folder that is not empty are refused and not changed."""
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(CourseFolderError) as error:
        course.export(file)
    assert str(error.value) == f"{file} is a file; name a folder for the course"
    with pytest.raises(CourseFolderError) as error:
        course.export(tmp_path)
    assert str(error.value) == (
        f"{tmp_path} is not empty; name a new folder: a course is never written over another"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    with pytest.raises(CourseFolderError, match="is not a course; make one: gpulab course export"):
        course.report(tmp_path)


@pytest.mark.parametrize(
    ("installed", "message"),
    [
        ([], "nbgrader is not installed; install it: pip install"),
        (["0.8.5"], "nbgrader 0.8.5 is older than 0.9.6; install a newer one: pip install -U"),
    ],
)
def test_nbgrader_must_be_there_and_new_enough(
    tmp_path: Path, nbgrader_version: list[str], installed: list[str], message: str
) -> None:
    """If nbgrader is missing or too old, the message has the command that installs it."""
    nbgrader_version[:] = installed
    with pytest.raises(GradingError) as error:
        course.export(tmp_path / "c")
    assert str(error.value) == f"{message} 'gpulab[course]'"


@pytest.mark.usefixtures("nbgrader_version")
def test_an_installed_package_has_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package, which has no keys, refuses to export."""
    monkeypatch.setattr(_export, "files", lambda _name: tmp_path / "gpulab")
    with pytest.raises(NotebookError, match="the keys of the labs are not in the installed"):
        course.export(tmp_path / "c")


def test_the_source_distribution_has_no_keys() -> None:
    """The files that ``pip download --no-binary`` brings contain no key of a lab."""
    builder = pytest.importorskip("hatchling.builders.sdist").SdistBuilder(str(ROOT))
    paths = [Path(file.relative_path) for file in builder.recurse_included_files()]
    assert Path("gpulab/course/_keys.py") in paths
    assert not [path for path in paths if path.parts[0] == "course"]


@pytest.mark.usefixtures("nbgrader_version")
def test_files_of_a_course_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """Marks of any JSON, a secret that is not text, and a folder in a file's place are named."""
    folder = tmp_path / "c"
    course.export(folder)
    (folder / "submitted" / "ada" / "timing").mkdir(parents=True)
    marks = folder / "marks" / "timing" / "ada.json"
    marks.parent.mkdir(parents=True)
    for content in ("[]", "3", '{"marks": [3]}', '{"marks": []}', "{", "[" * 10_000):
        marks.write_text(content)
        assert f"ada  NOT GRADED: {marks} cannot be read; run" in course.report(folder)
    (folder / "grader" / "secret").write_bytes(b"\xff\xfe")
    with pytest.raises(GradingError, match="is not text; put it back, or set"):
        course.report(folder)
    other = '{"schema": "gpulab.course/0"}'
    for content, message in (("{", "is damaged: "), (other, "of another version; export the")):
        (folder / "course.json").write_text(content)
        with pytest.raises(CourseFolderError, match=message):
            course.report(folder)
    (folder / "course.json").unlink()
    (folder / "course.json").mkdir()
    with pytest.raises(CourseFolderError, match=r"course\.json cannot be read \("):
        course.report(folder)
