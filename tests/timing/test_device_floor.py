"""The floor of events: exact on the virtual GPU, and each way to find it, with fakes."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch

import gpulab
from gpulab.core.errors import (
    ProfilerBusyError,
    ProfilerUnavailableError,
)
from gpulab.device import Device, _notebook_session
from gpulab.happens_before.activity import ActivityRecord
from gpulab.timing import Floor, _device_floor, _timer_kernel
from gpulab.tracing.profiling import Records
from gpulab.virtual import Gaps, VirtualGpu
from gpulab.virtual.simulator import GRAPH_GAPS
from tests.support.floors import forget_floors

GAPS = Gaps()
FLOOR_NS = GAPS.mark_to_work_ns + GAPS.work_to_mark_ns
GRAPH_FLOOR_NS = GRAPH_GAPS.mark_to_work_ns + GRAPH_GAPS.work_to_mark_ns
NO_TIMER = (
    "this torch or this driver loads no kernel that reads the device's clock, or the clock is too "
    'coarse; find the floor another way: floor("profiler") or floor("assumed")'
)


pytestmark = pytest.mark.usefixtures("no_floor_known")


class Known:
    """Samplers and records of a GPU whose every kernel takes 2 µs and reads 5.

    Attributes
    ----------
    readings_s
        What events read of the timer kernel, of the reference kernel, and inside a graph.
    dropped
        Whether the profiler loses all records.
    timer, profiler
        What goes wrong with either, or None.
    """

    def __init__(self) -> None:
        self.readings_s = {"timer": [5e-6] * 100, "reference": [5e-6] * 100, "graph": [4e-6] * 100}
        self.own_ns: float | None = 2_112.0
        self.dropped = False
        self.has_timer = True
        self.profiler_error: Exception | None = None
        self.capability = (9, 0)
        self.index = 0

    def load(self) -> object:
        """Replace the loading of the timer kernel."""
        if not self.has_timer:
            return None
        launches: list[None] = []

        class Timer:
            """A kernel that has no reading before its first launch."""

            def __call__(timer) -> None:  # noqa: N805  # self is the one of the GPU
                launches.append(None)

            def own_ns(timer) -> float | None:  # noqa: N805  # as above
                return self.own_ns if launches else None

        return Timer()

    def per_call(self, _work: Callable[[], object], *, n_samples: int) -> list[Records]:
        """Replace the profiler."""
        if self.profiler_error is not None:
            raise self.profiler_error
        found = () if self.dropped else (ActivityRecord("kernel", "mul", 0, 2_000, 7),)
        return [Records(found, (), "measured", "NVIDIA H200", int(self.dropped))] * n_samples

    def sampler(self, of: str) -> Callable[..., Callable[[int], list[float]]]:
        """Replace the sampler for launches or for graphs."""

        def make(work: object, **_before: object) -> Callable[[int], list[float]]:
            name = "timer" if type(work).__name__ == "Timer" else "reference"
            return lambda n: self.readings_s["graph" if of == "graph" else name][:n]

        return make


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> Known:
    """Put a GPU of known behaviour in the place of a real one."""
    known = Known()
    monkeypatch.setattr(_device_floor, "load", known.load)
    monkeypatch.setattr(_device_floor, "per_call", known.per_call)
    monkeypatch.setattr(_device_floor, "_reference", lambda: lambda: None)
    samplers = {of: known.sampler(of) for of in ("launches", "graph")}
    monkeypatch.setattr(_device_floor, "_SAMPLERS", samplers)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: known.index)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: known.capability)
    _notebook_session.session.device = Device("NVIDIA H200", "measured", "a test made it")
    return known


@pytest.mark.parametrize("method", ["auto", "profiler", "assumed"])
@pytest.mark.parametrize("name", ["H200", "T4"])
@pytest.mark.parametrize(("of", "floor_ns"), [("launches", FLOOR_NS), ("graph", GRAPH_FLOOR_NS)])
def test_the_virtual_floor_is_the_models(name: str, method: str, of: str, floor_ns: int) -> None:
    """Both pauses around a kernel, to the nanosecond, without uncertainty."""
    with gpulab.virtual_gpu(name) as virtual:
        found = _device_floor.floor(method, of=of)
    assert found.value_s == pytest.approx(floor_ns * 1e-9, abs=1e-15)
    assert (found.low_s, found.high_s) == (found.value_s, found.value_s)
    assert (found.method, found.n_samples) == ("records", 1)
    assert found.device_name == virtual.spec.driver_name


def test_a_virtual_floor_is_kept_with_its_gpu(gpu: VirtualGpu) -> None:
    """It is found once; leaving and entering keeps it, another virtual GPU has its own."""
    found = _device_floor.floor()
    now_ns = gpu.machine.host.now_ns
    assert _device_floor.floor() is found
    assert gpu.machine.host.now_ns == now_ns
    gpu.__exit__(None, None, None)
    with gpulab.virtual_gpu("H200") as other:
        assert _device_floor.floor() is not found
        assert other.machine.host.now_ns > 0
    gpu.__enter__()
    assert _device_floor.floor() is found
    forget_floors()
    assert _device_floor.floor() is not found


@pytest.mark.usefixtures("gpu")
def test_looking_for_the_floor_leaves_nothing_behind() -> None:
    """Memory, streams and the mode of autograd are as before."""
    with torch.inference_mode():
        _device_floor.floor()
        _device_floor.floor(of="graph")
        assert torch.is_inference_mode_enabled()
    assert torch.is_grad_enabled()
    assert torch.cuda.memory_allocated() == 0
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


def ns(found: Floor) -> tuple[int, int, int]:
    """Return value and interval in whole nanoseconds."""
    return round(found.value_s * 1e9), round(found.low_s * 1e9), round(found.high_s * 1e9)


def test_the_timer_kernel_is_asked_first(real: Known) -> None:
    """5 µs read, less 2.112 by its own clock and 0.46 for what a record would add."""
    found = _device_floor.floor()
    assert (found.method, found.device_name, found.n_samples) == ("timer", "NVIDIA H200", 100)
    assert ns(found) == (2_428, 2_428 - 500, 2_428 + 500)
    assert _device_floor.floor() is found
    real.index = 1
    assert _device_floor.floor() is not found


def test_the_profiler_gives_the_reference_its_duration(real: Known) -> None:
    """5 µs read, less 2 µs of records, and 0.09 µs that other kernels' floors are longer."""
    assert ns(_device_floor.floor("profiler")) == (3_090, 2_690, 3_490)
    real.capability = (8, 0)
    forget_floors()
    assert ns(_device_floor.floor("profiler")) == (3_090, 2_690, 3_490)


def test_other_gpus_have_wider_intervals(real: Known) -> None:
    """What is known of an H200 alone is worth less elsewhere."""
    real.capability = (8, 0)
    assert ns(_device_floor.floor("timer")) == (2_428, 2_428 - 600, 2_428 + 600)
    assert ns(_device_floor.floor("assumed")) == (4_180, 4_180 - 900, 4_180 + 900)


@pytest.mark.parametrize(
    "error", [ProfilerBusyError("held by another"), ProfilerUnavailableError("forbidden")]
)
def test_what_does_not_work_is_passed_over(real: Known, error: Exception) -> None:
    """Without a timer kernel the profiler is asked, and without either the floor is assumed."""
    real.has_timer = False
    assert _device_floor.floor().method == "profiler"
    forget_floors()
    real.profiler_error = error
    found = _device_floor.floor()
    assert found.method == "assumed"
    assert ns(found) == (4_180, 3_580, 4_780)
    with pytest.raises(type(error), match=str(error)):
        _device_floor.floor("profiler")


@pytest.mark.parametrize("has_timer", [True, False])
def test_a_missing_or_coarse_clock_is_said(real: Known, has_timer: bool) -> None:  # noqa: FBT001 # a parameter of the test
    """A request for the timer by name fails with the reason."""
    real.has_timer, real.own_ns = has_timer, None
    with pytest.raises(ProfilerUnavailableError) as error:
        _device_floor.floor("timer")
    assert str(error.value) == NO_TIMER
    assert _device_floor.floor().method == "profiler"


def test_the_floor_of_a_moment_is_read_behind_what_goes_ahead(real: Known) -> None:
    """The known work is found once; its readings are taken again, twenty at a time."""
    first = _device_floor.device_floor(None)
    assert (first.method, first.n_samples) == ("timer", 20)
    real.has_timer = False  # nobody looks for it a second time
    real.readings_s["timer"] = [5.2e-6] * 100
    second = _device_floor.device_floor(None)
    assert second.value_s - first.value_s == pytest.approx(0.2e-6)
    both = first.joined(second)
    assert both.value_s == pytest.approx((first.value_s + second.value_s) / 2)
    assert both.high_s - both.low_s == pytest.approx(first.high_s - first.low_s)
    assert both.n_samples == 40


def test_a_profiler_that_loses_all_is_of_no_use(real: Known) -> None:
    """A floor from incomplete records would be too large by a kernel."""
    real.dropped = True
    with pytest.raises(ProfilerUnavailableError) as error:
        _device_floor.floor("profiler")
    assert str(error.value) == (
        "the profiler lost the records of all 30 launches; find the floor without it: "
        'floor("timer")'
    )


def test_the_floor_is_finer_than_the_clocks_tick(real: Known) -> None:
    """With readings a tick apart, three to one, the floor is a quarter of a tick above."""
    real.readings_s["reference"] = ([4.992e-6] * 3 + [5.024e-6]) * 25
    assert _device_floor.floor("profiler").value_s == pytest.approx(3.09e-6, abs=1e-12)


def test_a_second_group_of_readings_does_not_count(real: Known) -> None:
    """As where the last samples of a batch read less: the larger group decides, and no mean."""
    real.readings_s["reference"] = [4.4e-6] * 40 + [5.0e-6] * 60
    assert _device_floor.floor("profiler").value_s == pytest.approx(3.09e-6, abs=1e-15)
    forget_floors()
    real.readings_s["reference"] = [4.4e-6] * 50 + [5.0e-6] * 50
    assert _device_floor.floor("profiler").value_s == pytest.approx(2.49e-6, abs=1e-15)


@pytest.mark.usefixtures("gpu")
def test_the_timer_kernel_keeps_what_each_launch_took() -> None:
    """One thread a launch, each with a place of its own; the median of what was read counts."""
    launches: list[tuple[object, object, int, int]] = []

    def kernel(grid: object, block: object, args: list[object]) -> None:
        readings, place, spin_ns = args
        assert isinstance(readings, torch.Tensor)
        assert isinstance(place, int)
        assert isinstance(spin_ns, int)
        readings[place] = spin_ns + 12
        launches.append((grid, block, place, spin_ns))

    timer = _timer_kernel.TimerKernel(kernel)
    assert timer.own_ns() is None
    for _ in range(257):
        timer()
    assert [place for _, _, place, _ in launches] == [*range(256), 0]
    assert {launch[:2] for launch in launches} == {((1, 1, 1), (1, 1, 1))}
    assert timer.own_ns() == 2_112


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("took_ns", "own_ns"), [(2_112, 2_112), (2_165, None), (3_072, None)])
def test_a_clock_of_microseconds_says_nothing(took_ns: int, own_ns: int | None) -> None:
    """Where the clock moves in steps of a microsecond, a run of 2.1 µs reads 3.1."""

    def kernel(_grid: object, _block: object, args: list[torch.Tensor]) -> None:
        args[0][args[1]] = took_ns

    timer = _timer_kernel.TimerKernel(kernel)
    timer()
    assert timer.own_ns() == own_ns


@pytest.mark.usefixtures("gpu")
def test_the_timer_kernel_is_loaded_by_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the private function that both supported versions have; a refusal is no error."""
    asked: list[tuple[str, list[str]]] = []

    def loading(ptx: str, names: list[str]) -> dict[str, Callable[..., None]]:
        asked.append((ptx, names))
        return {names[0]: lambda *_: None}

    module = SimpleNamespace(_cuda_load_module=loading)
    monkeypatch.setattr(_timer_kernel.importlib, "import_module", lambda _: module)
    assert isinstance(_timer_kernel.load(), _timer_kernel.TimerKernel)
    ((ptx, names),) = asked
    assert f".visible .entry {names[0]}(" in ptx
    assert ptx.count("%globaltimer") == 2
    monkeypatch.setattr(_timer_kernel.importlib, "import_module", lambda _: SimpleNamespace())
    assert _timer_kernel.load() is None


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")
def test_the_ways_agree_on_a_real_gpu() -> None:
    """Timer and profiler find the same floor within their intervals, between 0.5 and 10 µs."""
    found = {method: _device_floor.floor(method) for method in ("timer", "profiler", "assumed")}
    assert all(0.5e-6 < one.low_s < one.value_s < one.high_s < 10e-6 for one in found.values())
    assert found["timer"].low_s < found["profiler"].value_s < found["timer"].high_s
    assert _device_floor.floor("timer", of="graph").value_s < found["timer"].value_s
