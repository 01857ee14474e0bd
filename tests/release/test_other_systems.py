"""gpulab works where a module, a name or a file of Linux is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="takes away what Linux has")
@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_the_main_paths_work_on_a_system_that_looks_like(
    system: str, warm_python: list[str]
) -> None:
    """Every module can be imported, and the main uses of gpulab work."""
    done = subprocess.run(
        [*warm_python, "-m", "tests.support.other_system", system],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    last, n_modules = done.stdout.splitlines()[-1], len(list((ROOT / "gpulab").rglob("*.py"))) - 1
    assert last == f"{system}: {n_modules} modules of {n_modules} modules"
