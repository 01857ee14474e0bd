"""Build gpulab's packages from copies of the checkout, without the network."""

import os
import random
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STAND_INS = str(Path(__file__).with_name("stand_ins"))  # for packages that import slowly
needs_the_backend = pytest.mark.skipif(
    find_spec("hatchling") is None, reason="hatchling, which builds the packages, is not installed"
)


def tracked_files() -> list[str]:
    """Return the names of the files under version control, or skip where there is none."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others"]
    listing = subprocess.run(
        [*command, "--exclude-standard"], capture_output=True, text=True, check=False
    )
    if listing.returncode != 0:
        pytest.skip("this copy of the project is not a git checkout")
    return sorted(name for name in listing.stdout.split("\0") if (ROOT / name).is_file())


def copy_checkout(folder: Path, *, seed: int = 0, umask: int = 0o022) -> Path:
    """Copy the tracked files, in an order and with times and modes that the arguments choose."""
    names = tracked_files()
    random.Random(seed).shuffle(names)
    for position, name in enumerate(names):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
        executable = (ROOT / name).stat().st_mode & 0o100
        target.chmod((0o777 if executable else 0o666) & ~umask)
        os.utime(target, (10**9 + seed * 10**8 + position,) * 2)
    return folder


def build(source: Path, out: Path, what: str, **environment: str) -> Path:
    """Build the ``"wheel"`` or the ``"sdist"`` of a folder, and return its file."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", what, "-d", str(out)]
    kept = {name: text for name, text in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    # With cwd=source, so that nothing of the checkout of the tests gets into the package.
    done = subprocess.run(
        command, cwd=source, env=kept | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (built,) = out.iterdir()
    return built
