"""Fixtures for the book: one build from the checkout, and one browser page."""

import os
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.jupyterlab import chromium
from tests.support.lessons import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture(scope="session")
def book(warm_python: list[str], warm_kernel: Path) -> Path:
    """Build the book as ``make docs`` does, with warnings as errors; return its folder."""
    if find_spec("sphinx") is None:
        pytest.skip("sphinx is not installed; pip install -e .[docs]")
    folder = ROOT / "build"
    command = [*warm_python, "-m", "sphinx", "-W", "--keep-going", "-q"]
    command += ["-d", str(folder / "doctrees"), "docs", str(folder / "book")]
    environment = os.environ | {"JUPYTER_PATH": str(warm_kernel), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "book"


@pytest.fixture(scope="module")
def browser_page() -> Iterator["Page"]:
    """Open one page for all tests."""
    with chromium() as page:
        yield page
