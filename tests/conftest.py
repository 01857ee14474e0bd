"""Fixtures for every test: a fresh choice of GPU, no network, and fast Python processes."""

import gc
import math
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

import hypothesis
import pytest

from tests.support import loopback, warm_server
from tests.support.packages import STAND_INS

if TYPE_CHECKING:
    from gpulab.virtual import VirtualGpu

# jsonschema (for nbformat) imports it where it can, and importing it compiles 38 grammars. This
# process leaves it out, and the programs that the tests start find a stand-in first.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment] # as Python documents it
os.environ["PYTHONPATH"] = os.pathsep.join([STAND_INS, *filter(None, [os.getenv("PYTHONPATH")])])
# No deadline: how long an example takes depends on how busy the machine is, not on the code.
hypothesis.settings.register_profile(
    "gpulab", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("gpulab")
# A shell makes commands in the background ignore these signals, but tests send them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


loopback.refuse_others()
# The threads of PyTorch's CPU code sleep while they wait for work. By default they spin, and take
# a twentieth of the tests' CPU time from the processes beside them.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# Imported modules and collected tests live until the end, so the garbage collector can skip them.
gc.disable()
gc.set_threshold(10_000, 50, 20)


_OF_TIME = {name: value for name, value in vars(time).items() if callable(value)}
# The warm processes that a run of the tests shares, and the packages that each has imported.
WARM = {"warm_python": warm_server.HEAVY, "warm_database": warm_server.DATABASE}
WARM_COMMANDS = pytest.StashKey[dict[str, list[str]]]()
# pytest would import the stand-ins in search of examples, and they refuse that.
collect_ignore = ["support/stand_ins"]
# An example in a docstring cannot be marked where it stands. These take a quarter of a second.
SLOW_EXAMPLES = {
    "gpulab.timing.cards._card.Card",
    "gpulab.timing.cards._run.card",
    "gpulab.views.plots._roofline.roofline",
    "gpulab.roofline._chart.chart",
    "gpulab.roofline._table.table",
    "gpulab.timing._samplers.NaiveSampler",
    # These two import PyTorch's compiler.
    "gpulab.core.torch_private.current_stance",
    "gpulab.core.torch_private.restore_stance",
}


@pytest.hookimpl(tryfirst=True)  # before the marks decide what runs
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run lessons first and the book last, which reuses them; mark the slow examples."""
    items.sort(key=_turn)
    for item in items:
        if item.name in SLOW_EXAMPLES:
            item.add_marker(pytest.mark.slow)


def _turn(item: pytest.Item) -> int:
    return {"lessons": -1, "book": 1}.get(item.path.parent.name, 0)


def pytest_collection_finish() -> None:
    """Let Python's garbage collector look only at objects that the tests create."""
    _leave_out_what_is_imported()
    gc.enable()


# What a module makes at its import lives until the end. The collector would look at all of it
# in each full pass, which took 0.9 s of CPU late in a run, in tests that ask for dozens of passes.
_N_NEW_MODULES = 20
_n_modules = 0


def _leave_out_what_is_imported() -> None:
    global _n_modules  # noqa: PLW0603  # one process, one collector
    _n_modules = len(sys.modules)
    gc.freeze()


def pytest_runtest_setup() -> None:
    """Leave out also what the tests before this one have imported."""
    if len(sys.modules) >= _n_modules + _N_NEW_MODULES:
        gc.collect()
        _leave_out_what_is_imported()


def pytest_runtest_teardown() -> None:
    """Fail a test that tried to reach another machine, even if it caught the exception."""
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


@pytest.fixture(autouse=True)
def _clocks_are_left_as_found() -> Iterator[None]:
    """Fail a test that leaves a function of ``time`` replaced, as later tests would read it.

    A test that changes a clock inside a virtual GPU must change it back before the GPU is left.
    """
    yield
    replaced = [name for name, real in _OF_TIME.items() if getattr(time, name) is not real]
    if replaced:
        vars(time).update(_OF_TIME)
        pytest.fail(f"the test left these functions of time replaced: {', '.join(replaced)}")


# A monkeypatch of their own: with the test's, pytest would undo the test's changes after the
# fixtures that the test itself asks for.
@pytest.fixture(autouse=True)
def _settings_of_torch_stay() -> Iterator[None]:
    """Let no test change settings of PyTorch for others; to import its operator database does."""
    backends = sys.modules.get("torch.backends")
    with pytest.MonkeyPatch.context() as monkeypatch:
        if backends is not None:
            monkeypatch.setattr(backends, "disable_global_flags", lambda: None)
        yield
    distributions = sys.modules.get("torch.distributions")
    if distributions is not None:
        distributions.Distribution.set_default_validate_args(__debug__)


@pytest.fixture(autouse=True)
def _no_limit_of_real_time() -> Iterator[None]:
    """Let measurements on a virtual GPU take as much real time as they need on this machine."""
    from gpulab.timing import _real_time

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(_real_time, "_LEAST_S", math.inf)
        yield


@pytest.fixture(autouse=True)
def _no_wait_for_the_disk() -> Iterator[None]:
    """Let the system write files when it likes: no test loses the power after a write."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(os, "fsync", lambda _handle: None)
        yield


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist, which a run may do without
def pytest_configure_node(node: Any) -> None:  # noqa: ANN401  # pytest-xdist has no types
    """Give the workers of a parallel run their warm processes between them."""
    config: pytest.Config = node.config
    if WARM_COMMANDS not in config.stash:
        started = ExitStack()
        config.stash[WARM_COMMANDS] = {
            name: started.enter_context(warm_server.warm_python(packages))
            for name, packages in WARM.items()
        }
        config.add_cleanup(started.close)
    node.workerinput |= config.stash[WARM_COMMANDS]


@pytest.fixture(scope="session")
def warm_python(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Yield the command of a Python in which torch and gpulab are imported already."""
    yield from _warm(request)


@pytest.fixture(scope="session")
def warm_database(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Yield the command of a Python that has imported PyTorch's database of operators, too."""
    yield from _warm(request)


def _warm(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    name = request.fixturename
    assert name is not None
    shared = getattr(request.config, "workerinput", {}).get(name)
    with nullcontext(shared) if shared else warm_server.warm_python(WARM[name]) as command:
        yield command


@pytest.fixture(scope="session")
def warm_kernel(warm_python: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for ``JUPYTER_PATH`` whose kernel ``python3`` starts from a warm Python."""
    return warm_server.warm_kernel(tmp_path_factory.mktemp("jupyter"), warm_python)


@pytest.fixture
def gpu() -> "Iterator[VirtualGpu]":
    """Enter a virtual H200 whose first uses take no time."""
    import gpulab

    with gpulab.virtual_gpu("H200", first_use=False) as entered:
        yield entered


@pytest.fixture
def no_pixels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the drawing of figures, which is most of their cost; texts and artists stay."""
    if request.node.get_closest_marker("pixels"):
        return
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    def print_png(_canvas: object, file: BinaryIO, **_: object) -> None:
        file.write(b"\x89PNG")

    def print_svg(_canvas: object, file: TextIO, **_: object) -> None:
        file.write("<svg></svg>")

    monkeypatch.setattr(FigureCanvasAgg, "print_png", print_png)
    monkeypatch.setattr(FigureCanvasSVG, "print_svg", print_svg)


@pytest.fixture
def no_floor_known() -> Iterator[None]:
    """Forget all floors, and which devices have none, before and after a test."""
    from tests.support.floors import forget_floors

    forget_floors()
    yield
    forget_floors()
