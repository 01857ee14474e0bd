"""Wheel and sdist: small, reproducible byte by byte, complete, and usable alone."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from gpulab.lessons import _folder
from tests.support.packages import ROOT, build, copy_checkout, needs_the_backend, tracked_files

MAX_WHEEL_BYTES = 5_000_000

pytestmark = [pytest.mark.slow, needs_the_backend]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist once."""
    made = tmp_path_factory.mktemp("sdist")
    return build(copy_checkout(made / "source"), made / "out", "sdist", TZ="UTC")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel once."""
    made = tmp_path_factory.mktemp("wheel")
    return build(copy_checkout(made / "source"), made / "out", "wheel", TZ="UTC")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into a folder of its own, without its dependencies."""
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--quiet"]
    subprocess.run([*command, "--target", str(folder), str(wheel)], check=True)
    return folder


@pytest.mark.parametrize("what", ["wheel", "sdist"])
def test_builds_are_reproducible(
    what: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Two copies of the checkout give the same bytes, wherever and whenever they were made."""
    first: Path = request.getfixturevalue(what)
    # Another day, another order of files, other permissions, and another time zone.
    source = copy_checkout(tmp_path / "source", seed=2, umask=0o077)
    second = build(source, tmp_path / "out", what, TZ="Asia/Kolkata")
    assert second.read_bytes() == first.read_bytes()


def test_the_wheel_is_small_and_for_every_system(wheel: Path) -> None:
    """At most 5 MB, and nothing compiled."""
    assert wheel.stat().st_size <= MAX_WHEEL_BYTES
    assert wheel.name.endswith("-py3-none-any.whl")


def test_the_wheel_has_the_package_and_the_lessons(wheel: Path) -> None:
    """The wheel has all files of the package and all built lessons, and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {name for name in tracked_files() if name.startswith("gpulab/")}
    lessons = _folder.shipped(ROOT / "notebooks")
    assert packed == expected | {f"gpulab/notebooks/{name.as_posix()}" for name in lessons}


def test_the_wheel_of_the_sdist_is_the_wheel(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    """The wheel built from the sdist has the same bytes as the one from the checkout."""
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    assert build(unpacked, tmp_path / "out", "wheel").read_bytes() == wheel.read_bytes()


def test_the_sdist_has_what_its_tests_read(sdist: Path) -> None:
    """The sdist has every tracked file except the settings of git and CI, and the labs' keys."""
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    left_out = set(tracked_files()) - packed
    assert {name for name in left_out if not name.startswith((".ci/", ".git", "course/"))} == set()


def run_installed(installed: Path, folder: Path, *arguments: str) -> str:
    """Run Python outside the checkout, with the installed wheel first on its path."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_works_from_an_installed_wheel(installed: Path, tmp_path: Path) -> None:
    """The installed command runs from the wheel, not from the checkout."""
    (script,) = (installed / "bin").glob("gpulab*")
    version = run_installed(installed, tmp_path, str(script), "version").strip()
    where = "import gpulab; print(gpulab.__version__, gpulab.__file__)"
    assert run_installed(installed, tmp_path, "-c", where).split() == [
        version,
        str(installed / "gpulab" / "__init__.py"),
    ]
    assert "virtual GPU" in run_installed(installed, tmp_path, str(script), "doctor")


def test_the_lessons_come_from_the_installed_wheel(installed: Path, tmp_path: Path) -> None:
    """The wheel contains the lessons and the settings of JupyterLab."""
    copy = (
        "from pathlib import Path; from gpulab import lessons; from gpulab.lessons import "
        "_server;print(*lessons.copy_lessons(Path('mine')).written);print(_server._lab_environment('x')['JUPYTER_CONFIG_PATH'])"
    )
    written, settings = run_installed(installed, tmp_path, "-c", copy).splitlines()
    expected = {path.as_posix() for path in _folder.shipped(ROOT / "notebooks")}
    copied = _folder.shipped(tmp_path / "mine")
    assert set(written.split()) == {path.as_posix() for path in copied}
    assert set(written.split()) == expected
    assert Path(settings.split(os.pathsep)[0]).is_relative_to(installed)
