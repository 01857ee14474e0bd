"""Switches of PyTorch and CUDA act on the virtual GPU, or a warning names them."""

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import gpulab
from benchmarks.switches import alerts, recorded
from gpulab.virtual import IgnoredSwitchWarning, VirtualGpu, _environment
from gpulab.virtual.patches import _switches

# What an H100 with torch 2.11 answered (python -m benchmarks.switches).
RECORDED = recorded()
# PyTorch documents that it acts deterministically from torch 2.13 on; the H100 had torch 2.11.
OF_OLD_TORCH = {"max_pool3d", "max_pool3d overlapping"} if torch.__version__ >= (2, 13) else set()  # type: ignore[operator] # torch compares it with numbers
# The CPU, which computes the values, has no histogram of integers.
REFUSED_HERE = {"histc integers"}


@pytest.fixture
def deterministic() -> Iterator[Callable[..., None]]:
    """Yield PyTorch's function that sets the mode; afterwards it is off."""

    # torch.use_deterministic_algorithms imports the compiler, which takes a second.
    def choose(*, mode: bool, warn_only: bool = False) -> None:
        torch._C._set_deterministic_algorithms(mode, warn_only=warn_only)

    yield choose
    choose(mode=False)


@pytest.fixture
def nothing_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process show each warning again."""
    monkeypatch.setattr(_environment, "_shown", set())


def different(names: Iterable[str]) -> dict[str, Any]:
    """Return the calls whose alerts differ from the H100's: both answers by name."""
    asked = {name: RECORDED[name] for name in names}
    answers = {name: asked[name] | alerts(asked[name]["call"] or "") for name in asked}
    return {name: (got, asked[name]) for name, got in answers.items() if got != asked[name]}


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
def test_deterministic_algorithms_refuse_what_an_h100_refuses() -> None:
    """Each of 200 calls raises forward and backward where an H100 does, with the same text."""
    names = RECORDED.keys() - OF_OLD_TORCH - REFUSED_HERE
    assert different(sorted(names)) == {}
    refused = [name for name in names if RECORDED[name]["forward"] or RECORDED[name]["backward"]]
    assert len(refused) > 50


@pytest.mark.usefixtures("gpu")
def test_an_alert_comes_at_its_line(deterministic: Callable[..., None]) -> None:
    """The error is raised at the call, which launches nothing; the next calls are unharmed."""
    x = torch.zeros(4, device="cuda")
    index, source = torch.tensor([1], device="cuda"), torch.ones(1, device="cuda")
    deterministic(mode=True)
    with pytest.raises(RuntimeError, match=r"^put_ does not have a deterministic"):
        x.put_(index, source)
    assert x.tolist() == [0, 0, 0, 0]
    deterministic(mode=False)
    assert x.put_(index, source).tolist() == [0, 1, 0, 0]


@pytest.mark.usefixtures("gpu")
def test_an_alert_may_be_a_warning(deterministic: Callable[..., None]) -> None:
    """With ``warn_only=True`` a call warns once, at the program's line, and computes."""
    x = torch.zeros(4, device="cuda")
    deterministic(mode=True, warn_only=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x.put_(torch.tensor([1], device="cuda"), torch.ones(1, device="cuda"))
        assert x.tolist() == [0, 1, 0, 0]
    [warning] = caught
    assert str(warning.message).startswith("put_ does not have a deterministic implementation")
    assert "warn_only=True" in str(warning.message)
    assert warning.filename == __file__
    pooled, indices = torch.nn.functional.max_pool1d(
        torch.ones(1, 1, 4, device="cuda"), 2, return_indices=True
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        unpooled = torch.nn.functional.max_unpool1d(pooled, indices, 2)
        assert unpooled.flatten().tolist() == [1, 0, 1, 0]
    [warning] = caught
    assert str(warning.message).startswith("max_unpooling2d_forward_out does not have")


@pytest.mark.usefixtures("gpu")
def test_host_tensors_follow_the_mode_as_on_any_machine(
    deterministic: Callable[..., None],
) -> None:
    """Operators on the host raise PyTorch's own error, and only for their own reasons."""
    deterministic(mode=True)
    with pytest.raises(RuntimeError, match="put_ does not have"):
        torch.zeros(4).put_(torch.tensor([1]), torch.ones(1))
    assert torch.histc(torch.ones(3), 2, 0, 2).tolist() == [0, 3]


def test_the_mode_counts_from_before_and_ends_with_the_context(
    deterministic: Callable[..., None],
) -> None:
    """A mode chosen outside counts inside, and the other way round."""
    ones = (3.0, 1.0)
    deterministic(mode=True)
    with gpulab.virtual_gpu("H200"):
        with pytest.raises(RuntimeError, match="_histc_cuda with floating point input"):
            torch.histc(torch.tensor(ones, device="cuda"), 2, 0, 4)
        deterministic(mode=False)
        torch.histc(torch.tensor(ones, device="cuda"), 2, 0, 4)
        deterministic(mode=True)
    assert torch.are_deterministic_algorithms_enabled()
    deterministic(mode=False)
    with gpulab.virtual_gpu("H200"):
        assert torch.histc(torch.tensor(ones, device="cuda"), 2, 0, 4).tolist() == [1, 1]


def test_new_memory_is_filled(gpu: VirtualGpu, deterministic: Callable[..., None]) -> None:
    """In the deterministic mode new memory has nan or the largest value, by one more kernel."""
    like = torch.zeros(2, device="cuda")
    deterministic(mode=True)
    torch.cuda.synchronize()
    n_launched = gpu.machine.host.n_launched
    assert torch.empty(2, device="cuda").isnan().all()
    assert gpu.machine.host.n_launched > n_launched
    assert torch.empty(2, dtype=torch.uint8, device="cuda").tolist() == [255, 255]
    assert torch.empty(2, dtype=torch.int64, device="cuda").tolist() == [2**63 - 1] * 2
    assert torch.empty(2, dtype=torch.bool, device="cuda").tolist() == [True, True]
    assert torch.empty_like(like).isnan().all()
    assert like.new_empty(2).isnan().all()
    assert torch.empty_strided((2,), (1,), device="cuda").isnan().all()
    assert torch.empty_permuted((2, 2), (1, 0), device="cuda").isnan().all()
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[assignment] # a property
    try:
        n_launched = gpu.machine.host.n_launched
        torch.empty(2, device="cuda")
        assert gpu.machine.host.n_launched == n_launched
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = True  # type: ignore[assignment] # a property


def host_times_ms() -> dict[str, float]:
    """Return how long the host takes for calls whose work takes the GPU milliseconds."""
    x = torch.zeros(1 << 22, device="cuda")
    pinned = torch.empty(1 << 22, pin_memory=True)
    event, side = torch.cuda.Event(), torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.cuda._sleep(20_000_000)
    a = torch.zeros(4096, 4096, device="cuda")
    calls: dict[str, Callable[[], object]] = {
        "spin": lambda: torch.cuda._sleep(20_000_000),
        "matmul": lambda: a @ a,
        "graph": graph.replay,
        "copy out": lambda: pinned.copy_(x, non_blocking=True),
        "copy in": lambda: x.copy_(pinned, non_blocking=True),
        "record": event.record,
        "wait of a stream": lambda: side.wait_event(event),
    }
    times_ms = {}
    for name, call in calls.items():
        torch.cuda.synchronize()
        times_ms[name] = ms(call)
    torch.cuda.synchronize()
    return times_ms


def ms(call: Callable[[], object]) -> float:
    """Return the virtual host's time for a call."""
    start_s = time.perf_counter()
    call()
    return (time.perf_counter() - start_s) * 1e3


@pytest.mark.parametrize("value", ["1", "0", "2", None])
def test_launches_may_block(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    """With 1, and no other value, launches and graphs wait; copies and events do not."""
    if value is not None:
        monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", value)
    with gpulab.virtual_gpu("H200", first_use=False):
        times_ms = host_times_ms()
    waited = {name for name, time_ms in times_ms.items() if time_ms > 0.1}
    assert waited == ({"spin", "matmul", "graph"} if value == "1" else set())


def test_errors_of_blocking_launches_come_at_their_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index out of range is reported by the call that has it."""
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    with gpulab.virtual_gpu("H200"):
        embedding = torch.nn.Embedding(4, 2).to("cuda")
        index = torch.tensor([9], device="cuda")
        with pytest.raises(IndexError, match="out of range"):
            embedding(index)
        torch.cuda.synchronize()


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("switch", ["matmul", "conv"])
def test_precision_switches_act_without_the_old_ones(
    request: pytest.FixtureRequest, switch: str
) -> None:
    """PyTorch's new switches for TF32 act, also on a kernel that ran with another setting."""
    a = torch.zeros(1024, 1024, device="cuda")
    x, weight = torch.zeros(8, 64, 56, 56, device="cuda"), torch.zeros(64, 64, 3, 3, device="cuda")
    owner, run = {
        "matmul": (torch.backends.cuda.matmul, lambda: a @ a),
        "conv": (torch.backends.cudnn.conv, lambda: torch.conv2d(x, weight)),
    }[switch]
    request.addfinalizer(partial(setattr, owner, "fp32_precision", owner.fp32_precision))
    durations_ms = []
    for precision in ("ieee", "tf32", "ieee"):
        owner.fp32_precision = precision
        run()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        durations_ms.append(start.elapsed_time(end))
    exact_ms, rounded_ms, again_ms = durations_ms
    # Up to one step of the events, because the cache is not as it was.
    assert exact_ms == pytest.approx(again_ms, abs=33e-6)
    assert again_ms > 1.5 * rounded_ms


@pytest.mark.usefixtures("nothing_shown")
@pytest.mark.parametrize("name", _environment.NOT_MODELLED)
def test_each_ignored_variable_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A variable that is not modelled is named with its value, unless the value is harmless."""
    for value in _environment.NOT_MODELLED[name]:
        monkeypatch.setenv(name, value)
        with gpulab.virtual_gpu("H200"):
            pass
    monkeypatch.setenv(name, "strange")
    expected = rf"{name}=strange( \(.*\))?\. Unset them, or use a CUDA GPU"
    if name == "CUDA_VISIBLE_DEVICES":  # one visible device is what a machine of one GPU shows
        with gpulab.virtual_gpu("H200"):
            pass
    with pytest.warns(IgnoredSwitchWarning, match=expected):
        gpulab.virtual_gpu("H200", count=2).__enter__().__exit__(None, None, None)


@pytest.mark.usefixtures("nothing_shown")
def test_one_warning_names_all_variables_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process gets one warning with all variables, however many virtual GPUs it makes."""
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1")
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            with gpulab.virtual_gpu("H200"):
                pass
    [warning] = caught
    assert "expandable_segments:True" in str(warning.message)
    assert "CUDA_DEVICE_MAX_CONNECTIONS=1" in str(warning.message)
    assert warning.filename == __file__


@pytest.mark.usefixtures("nothing_shown")
def test_a_variable_that_comes_too_late_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables are read at the first entry, as CUDA does; a later change says so."""
    gpu = gpulab.virtual_gpu("H200")
    with gpu:
        pass
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    with pytest.warns(IgnoredSwitchWarning, match="CUDA_LAUNCH_BLOCKING changed since"):
        gpu.__enter__()
    with gpu:
        torch.cuda._sleep(1)  # the first use of a GPU takes time
        assert ms(lambda: torch.cuda._sleep(20_000_000)) < 1
    gpu.__exit__(None, None, None)


@pytest.mark.slow
def test_variables_act_in_a_fresh_process() -> None:
    """Set for a whole process, variables act or are named; also those that torch reads itself."""
    program = (
        "import time, torch, gpulab\n"
        "with gpulab.virtual_gpu('H200'):\n"
        "    torch.cuda.synchronize()\n"
        "    start_s = time.perf_counter()\n"
        "    torch.cuda._sleep(20_000_000)\n"
        "    print(time.perf_counter() - start_s > 0.01)\n"
        "    print(torch.backends.cuda.matmul.allow_tf32)\n"
    )
    variables = (*_environment.ACTING, *_environment.NOT_MODELLED)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **dict.fromkeys(variables, "1"), "CUDA_VISIBLE_DEVICES": "0,1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True", "True"]
    for name in _environment.NOT_MODELLED:
        assert f"{name}=" in done.stderr, name
    for name in _environment.ACTING:
        assert name not in done.stderr


@pytest.mark.usefixtures("nothing_shown", "gpu")
@pytest.mark.parametrize("name", _switches.NOT_MODELLED)
def test_each_ignored_switch_is_named(name: str) -> None:
    """A switch of ``torch.backends`` that is not modelled warns when it gets another value."""
    reader, ignored, public, _ = _switches.NOT_MODELLED[name]
    before = getattr(torch._C, reader)()
    values = before if isinstance(before, tuple) else (before,)
    setter = getattr(torch._C, name)
    with pytest.warns(IgnoredSwitchWarning) as caught:
        setter(*(ignored for _ in values))
    assert getattr(torch._C, reader)() == (
        tuple(ignored for _ in values) if isinstance(before, tuple) else ignored
    )
    setter(*values)
    [warning] = caught
    assert str(warning.message).startswith(f"{public} does nothing on the virtual GPU: ")


@pytest.mark.usefixtures("nothing_shown")
def test_a_switch_from_before_is_named_at_the_entry() -> None:
    """A switch that was set before the virtual GPU was entered is named, too."""
    torch.backends.cudnn.benchmark = True
    try:
        with (
            pytest.warns(IgnoredSwitchWarning, match="cudnn.benchmark"),
            gpulab.virtual_gpu("H200"),
        ):
            pass
    finally:
        torch.backends.cudnn.benchmark = False


@pytest.mark.usefixtures("nothing_shown", "gpu")
def test_libraries_of_other_builds_are_named() -> None:
    """A choice that PyTorch without CUDA would refuse is named instead."""
    with pytest.warns(IgnoredSwitchWarning, match="preferred_linalg_library"):
        torch.backends.cuda.preferred_linalg_library("magma")
    with pytest.warns(IgnoredSwitchWarning, match="preferred_blas_library"):
        torch.backends.cuda.preferred_blas_library("cublaslt")


def test_the_documentation_lists_every_variable() -> None:
    """The page about the virtual GPU says of each variable what it does."""
    page = Path("docs/virtual-gpu.md").read_text("utf-8")
    names = (*_environment.ACTING, *_environment.NOT_MODELLED)
    assert [name for name in names if f"`{name}`" not in page] == []
