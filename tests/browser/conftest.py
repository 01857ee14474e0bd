"""One JupyterLab and one browser for all browser tests of a pytest worker."""

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.support.jupyterlab import STATE, Lab, chromium, jupyter


# The scope is not the session: Playwright's event loop stays active in this thread, and no
# asyncio.run() of another test works while it does.
@pytest.fixture(scope="package")
def lab(warm_kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Start `gpulab lab` in an empty folder, and open it in its own page."""
    folder = tmp_path_factory.mktemp("learner")
    # The table of contents takes a fifth of the page's time: it is made anew after each output.
    without = ["@jupyterlab/toc-extension"]
    with (
        jupyter(folder, without=without, JUPYTER_PATH=str(warm_kernel)) as address,
        chromium() as page,
    ):
        yield Lab(address, page, folder / "jupyterlab.log")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what the page shows to the report of a test that has failed."""
    report = yield
    lab = item.funcargs.get("lab")
    if report.failed and call.when == "call" and isinstance(lab, Lab):
        report.sections.append(("the page", lab.page.evaluate(STATE)))
    return report
