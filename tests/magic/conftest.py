"""One IPython for all tests of a worker; every test starts a new session in it."""

from collections.abc import Iterator

import pytest

from tests.support.ipython import Notebook


@pytest.fixture(scope="session")
def notebook(
    warm_python: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Notebook]:
    """Give a real IPython in a process of its own."""
    with Notebook(tmp_path_factory.mktemp("notebook"), warm_python) as process:
        yield process
