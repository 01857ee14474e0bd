"""One JupyterLab and one browser for all browser tests of a worker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.jupyterlab import Lab, chromium, jupyter


# Not for the session: Playwright keeps an event loop, beside which no other can be run.
@pytest.fixture(scope="package")
def lab(warm_kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Start `gpulab lab` in an empty folder, and open it in a page of its own."""
    folder = tmp_path_factory.mktemp("learner")
    with jupyter(folder, JUPYTER_PATH=str(warm_kernel)) as address, chromium() as page:
        yield Lab(address, page)
