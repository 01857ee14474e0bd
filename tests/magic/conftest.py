"""One IPython process for all tests of a pytest worker; every test begins a new session."""

from collections.abc import Iterator

import pytest

from tests.support.ipython import Notebook


@pytest.fixture(scope="session")
def notebook(
    warm_python: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Notebook]:
    """Yield a real IPython in its own process."""
    with Notebook(tmp_path_factory.mktemp("notebook"), warm_python) as process:
        yield process
