"""What every test gets: a fresh choice of GPU, and no virtual GPU left behind by another test."""

import gc
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import hypothesis
import pytest

from tests.support import loopback, warm_server

# How long an example takes says how busy the machine is, and nothing about the code.
hypothesis.settings.register_profile(
    "gpulab", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("gpulab")
# A shell that starts a command in the background makes it deaf to signals that tests send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


loopback.refuse_others()
# What is imported and collected stays until the end: the collector need not look at it.
gc.disable()
gc.set_threshold(10_000, 50, 20)


def pytest_collection_finish() -> None:
    """Let Python's garbage collector see only what the tests themselves make."""
    gc.freeze()
    gc.enable()


def pytest_runtest_teardown() -> None:
    """Fail a test that tried to leave the machine, even if its code swallowed the refusal."""
    if loopback.attempts:
        tried = ", ".join(loopback.attempts)
        loopback.attempts.clear()
        pytest.fail(f"the test tried to leave the machine: {tried}")


@pytest.fixture(autouse=True)
def _gpu_is_left_as_found() -> Iterator[None]:
    """Forget the chosen GPU after each test, and fail a test that leaves a virtual one entered."""
    yield
    notebook = sys.modules.get("gpulab.device._notebook_session")
    if notebook is not None:
        notebook.session.release()
        notebook.session.device = None
    session = sys.modules.get("gpulab.virtual._session")
    left = None if session is None else session.entered()
    if left is not None:
        while left.entered:
            left.__exit__(None, None, None)
        pytest.fail(f"the test left the virtual {left.spec.name} entered")


@pytest.fixture(scope="session")
def warm_python() -> Iterator[list[str]]:
    """Give the command of a Python in which torch and gpulab are imported already."""
    with warm_server.warm_python() as command:
        yield command


@pytest.fixture(scope="session")
def warm_kernel(warm_python: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder for ``JUPYTER_PATH`` whose kernel ``python3`` starts from a warm Python."""
    return warm_server.warm_kernel(tmp_path_factory.mktemp("jupyter"), warm_python)


@pytest.fixture
def no_pixels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave figures undrawn, which is most of their cost; words and artists are as always."""
    if request.node.get_closest_marker("pixels"):
        return
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    def print_png(_canvas: object, file: BinaryIO, **_: object) -> None:
        file.write(b"\x89PNG")

    monkeypatch.setattr(FigureCanvasAgg, "print_png", print_png)


@pytest.fixture
def no_floor_known() -> Iterator[None]:
    """Forget all floors, and who refused to tell one, before and after a test."""
    from gpulab.timing.calibration import _device_floor

    _device_floor.forget_floors()
    yield
    _device_floor.forget_floors()
