"""The fixture ``gpu_benchmark`` for pytest: times GPU work in a test, and holds it to a base.

pytest finds this module by its entry point. It imports PyTorch only for a test that asks for the
fixture, and for ``--gpulab-compare``.
"""

import json
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpulab.core.errors import GpulabError, InvalidOptionError
from gpulab.core.foreign_text import one_line
from gpulab.core.tracebacks import UsersTraceback
from gpulab.core.units import counted

if TYPE_CHECKING:
    from gpulab.timing import BenchmarkResult, Benchmarks
    from gpulab.tracing import CallCounts

__all__ = ["GpuBenchmark", "gpu_benchmark"]


# Seconds before each try. A GPU that an earlier test has heated lowers its clock, and no time at
# another clock can be compared with the base, so it gets time to cool.
_PAUSES_S = (0.0, 1.0, 5.0, 20.0)
# Half of what `measure` takes by itself: the ratio to the base has the intervals of both.
_PRECISION = 0.005
_EXPORT = "gpulab_export"
_WRITTEN = ("gpulab_save", _EXPORT)
_RESULTS = pytest.StashKey[list["BenchmarkResult"]]()
_BASE = pytest.StashKey["Benchmarks | None"]()


class GpuBenchmark:
    """What the fixture ``gpu_benchmark`` gives to a test.

    Examples
    --------
    A test that fails if the work takes over 5 % longer than when ``base.json`` was saved, or if it
    launches another kernel::

        def test_relu(gpu_benchmark):
            x = torch.randn(1024, 1024, device="cuda")
            gpu_benchmark(lambda: torch.relu(x @ x)).check(at_most=1.05)
            assert gpu_benchmark.counts(lambda: torch.relu(x @ x)).n_kernels == 2
    """

    def __init__(
        self, name: str, base: "Benchmarks | None", results: "list[BenchmarkResult]"
    ) -> None:
        self._name = name
        self._base = base
        self._results = results

    def __call__(
        self,
        work: Callable[..., object],
        *,
        label: str = "",
        **options: Any,  # noqa: ANN401  # those of `measure`
    ) -> "BenchmarkResult":
        """Return the time of GPU work beside the one that was saved; ``check`` holds it to that.

        If the GPU's clock is another than that of the saved one, it pauses and measures again, at
        most three times and for 26 seconds together.

        Parameters
        ----------
        work
            A function that enqueues the work, as in :func:`gpulab.measure`.
        label
            Tells several benchmarks of one test apart.
        **options
            Those of :func:`gpulab.measure`; ``precision`` is 0.005 if you give none.

        Raises
        ------
        InvalidOptionError
            If two benchmarks of a test have the same label. Others as :func:`gpulab.measure`.
        """
        from gpulab import timing

        __tracebackhide__ = True  # pytest then shows the line of the test
        with UsersTraceback():
            name = f"{self._name} {label}".strip()
            if any(each.measurement.label == name for each in self._results):
                raise InvalidOptionError(
                    f"two benchmarks of {self._name} have the label {label!r}; give each one of "
                    'its own: gpu_benchmark(work, label="forward")'
                )
            base = None if self._base is None else self._base.named(name)
            options.setdefault("precision", _PRECISION)
            for pause_s in _PAUSES_S:
                time.sleep(pause_s)
                measurement = timing.measure(work, label=name, progress=False, **options)
                result = timing.BenchmarkResult(measurement, base)
                if not result.has_another_clock:
                    break
            self._results.append(result)
            return result

    def counts(self, work: Callable[[], object]) -> "CallCounts":
        """Return what a call does: kernels, copied bytes, waits, and the most memory it needs.

        On a virtual GPU these are the same on every machine; see
        :func:`gpulab.tracing.call_counts`.
        """
        from gpulab.tracing import call_counts

        with UsersTraceback():
            return call_counts(work)


@pytest.fixture
def gpu_benchmark(request: pytest.FixtureRequest) -> Iterator[GpuBenchmark]:
    """Time GPU work, and hold it to a saved time or to a number of launches.

    ``gpu_benchmark(work).check(at_most=1.05)`` fails if the work takes longer than in the file of
    ``--gpulab-compare``. ``gpu_benchmark.counts(work)`` has launches, waits and memory. Without a
    CUDA GPU the test runs on a virtual one.
    """
    from gpulab import device

    config, gpu = request.config, _gpu_of(request.config)
    results = request.node.stash.setdefault(_RESULTS, [])
    context = device.active() if gpu is None else device.find(gpu).virtual or nullcontext()
    with context:
        yield GpuBenchmark(_name_of(request.node), config.stash[_BASE], results)


def _name_of(item: pytest.Item) -> str:
    """Return the name of a test as seen from the folder in which pytest runs."""
    # Not the node's own, which is relative to rootdir: pytest takes the folder of `../base.json`
    # for a folder of tests, and then another rootdir.
    folder = item.config.invocation_params.dir
    _, colons, name = item.nodeid.partition("::")
    if not item.path.is_relative_to(folder):
        return item.nodeid
    return f"{item.path.relative_to(folder).as_posix()}{colons}{name}"


def _gpu_of(config: pytest.Config) -> str | None:
    """Return the name given as ``--gpulab-gpu``, or None."""
    name: str | None = config.getoption("gpulab_gpu")
    return name


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that all begin with ``--gpulab``."""
    group = parser.getgroup("gpulab", "time GPU work (the fixture gpu_benchmark)")
    group.addoption("--gpulab-save", metavar="FILE", help="save the times of passed tests")
    group.addoption(
        "--gpulab-export", metavar="FILE", help="write them in the JSON form of pytest-benchmark"
    )
    group.addoption("--gpulab-compare", metavar="FILE", help="hold them to the times in this file")
    group.addoption(
        "--gpulab-gpu", metavar="NAME", help="cuda, auto, or a virtual GPU such as H200"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Read the file to compare with, so that a wrong name fails before the first test."""
    compare = config.getoption("gpulab_compare")
    try:
        config.stash[_BASE] = None if compare is None else _load(compare)
        if (name := _gpu_of(config)) is not None:
            from gpulab import device

            device.find(name)
    except GpulabError as error:
        raise pytest.UsageError(str(error)) from error
    for option in _WRITTEN:
        path = config.getoption(option)
        if path is not None:
            _check_target(option.replace("_", "-"), path)
    # With pytest-xdist, the workers report to this process, which alone writes and prints.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Run(config), "gpulab-run")


def _check_target(option: str, name: str) -> None:
    """Refuse a name under which nothing can be saved, before the tests take their time."""
    argument, path = f"--{option} {one_line(name)}", Path(name).absolute()
    if not name or path.is_dir():
        raise pytest.UsageError(
            f"{argument}: it is no name of a file; give one, such as base.json"
        )
    if not path.parent.is_dir():
        raise pytest.UsageError(f"{argument}: there is no such folder; make it first")


def _load(path: str) -> "Benchmarks":
    if not Path(path).is_file():
        raise pytest.UsageError(
            f"--gpulab-compare {one_line(path)}: there is no such file; save one before the "
            f"change: pytest --gpulab-save {one_line(path)}"
        )
    from gpulab.timing import Benchmarks

    return Benchmarks.load(path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, object, object]:
    """Add a test's benchmarks to its report, which also travels from a worker of pytest-xdist."""
    report: Any = yield
    results = item.stash.get(_RESULTS, [])
    if call.when == "call" and results:
        is_compared = item.config.stash[_BASE] is not None
        report.gpulab = [
            (_text(each, is_compared=is_compared), each.measurement.to_dict()) for each in results
        ]
    return report


def _text(benchmark: "BenchmarkResult", *, is_compared: bool) -> str:
    is_new = is_compared and benchmark.base is None
    return f"{benchmark}\n  not in the base: nothing to compare with" if is_new else str(benchmark)


class _Run:
    """Collects the benchmarks of a run, writes them at its end, and prints them."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._texts: list[str] = []
        self._passed: list[object] = []
        self._ends: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:  # noqa: ANN401  # with a field of ours
        """Note the benchmarks of one test."""
        for text, saved in getattr(report, "gpulab", ()):
            self._texts.append(text)
            if report.passed:
                self._passed.append(saved)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the files that were asked for; a run that cannot write one fails."""
        for option in _WRITTEN:
            path = self._config.getoption(option)
            if path is None:
                continue
            if not self._passed:
                self._ends.append(f"{path} is not written: no test with gpu_benchmark passed")
                continue
            try:
                self._write(option, path)
            except GpulabError as error:
                self._ends.append(str(error))
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
            else:
                self._ends.append(f"saved {counted(len(self._passed), 'benchmark')}: {path}")

    def _write(self, option: str, path: str) -> None:
        from gpulab.core.disk import write_whole
        from gpulab.device.measurement import Measurement
        from gpulab.timing import Benchmarks

        benchmarks = Benchmarks(tuple(map(Measurement.from_dict, self._passed)))
        if option == _EXPORT:
            write_whole(path, json.dumps(benchmarks.to_pytest_benchmark(), indent=1).encode())
        else:
            benchmarks.save(path)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:  # noqa: ANN401  # pytest's own
        """Print each benchmark with its ratio, and what was saved."""
        lines = [*self._texts, *self._ends]
        if lines:
            terminalreporter.section("gpulab")
        for line in lines:
            terminalreporter.write_line(line)
