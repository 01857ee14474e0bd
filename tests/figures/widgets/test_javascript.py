"""The pure functions of the widgets' scripts pass their tests in Node's test runner."""

import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "javascript"


# Node's own runner needs no npm package. If Node is missing, the browser tests still run the
# scripts as a whole.
@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_pure_functions_of_the_scripts() -> None:
    """Every JavaScript test passes; on a failure the message is Node's report."""
    files = sorted(map(str, FOLDER.glob("*.test.mjs")))
    assert len(files) >= 3
    command = ["node", "--no-warnings", "--test", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
