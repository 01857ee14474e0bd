"""The pure functions of the widgets' scripts, by Node's own test runner."""

import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "javascript"


# Node's runner needs no package, and the browser's tests show what these cannot.
@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_pure_functions_of_the_scripts() -> None:
    """Times, sizes, ticks, scales, places and hits are right; the output names what is not."""
    files = sorted(map(str, FOLDER.glob("*.test.mjs")))
    assert len(files) >= 4
    command = ["node", "--no-warnings", "--test", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
