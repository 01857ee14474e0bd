"""Leaving restores everything, and wrong uses raise clear errors."""

import asyncio
import contextlib
import threading
import time
from types import FunctionType

import pytest
import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

import gpulab
from gpulab.core.errors import NotModelledError, VirtualGpuError
from gpulab.virtual import entered
from tests.support.replaced_names import names


def use_much() -> None:
    """Use many parts of torch, so that modules it loads late are loaded."""
    torch.manual_seed(1)
    model = torch.nn.Linear(4, 4).cuda()
    with torch.autocast("cuda"):
        model(torch.randn(2, 4, device="cuda")).float().sum().backward()
    graph = torch.cuda.CUDAGraph()
    x = torch.ones(3, device="cuda")
    with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
        x.add_(1)
    torch.cuda.clock_rate()
    torch.cuda.memory_summary()


@pytest.mark.parametrize("fails", [False, True])
def test_leaving_restores_everything(*, fails: bool) -> None:
    """After the context every name of torch, time and timeit is as before, also after an error."""
    with gpulab.virtual_gpu("H200"):
        use_much()  # makes torch import what it imports at the first use
    before = names()
    try:
        with gpulab.virtual_gpu("A100", count=2):
            use_much()
            if fails:
                raise ZeroDivisionError  # noqa: TRY301 # the error is the point
    except ZeroDivisionError:
        pass
    after = names()
    assert sorted(after.keys() ^ before.keys()) == []
    assert [key for key, value in after.items() if value is not before[key]] == []
    # A name that the first entry added and left behind would be in both lists, so look for ours.
    made = {key: value for key, value in after.items() if type(value) in {FunctionType, type}}
    assert [key for key, value in made.items() if value.__module__.startswith("gpulab.")] == []


def test_an_error_while_entering_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while entering restores all names, and the next entry works."""
    from gpulab.virtual import _clock

    with gpulab.virtual_gpu("H200"):
        use_much()
    before = names()

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(_clock, "install", fail)
        with pytest.raises(ZeroDivisionError), gpulab.virtual_gpu("H200"):
            pass
    after = names()
    assert [key for key, value in after.items() if value is not before.get(key)] == []
    with gpulab.virtual_gpu("H200"):
        assert torch.ones(2, device="cuda").sum().item() == 2


def test_leaving_twice_is_refused_and_changes_nothing() -> None:
    """Leaving a GPU that is not entered raises an error, and the next entry works."""
    gpu = gpulab.virtual_gpu("H200")
    with gpu:
        pass
    for _ in range(2):
        with pytest.raises(VirtualGpuError) as error:
            gpu.__exit__(None, None, None)
    assert str(error.value) == (
        "the virtual H200 is not entered, so it cannot be left; leave it once for each time that "
        "you enter it, as `with gpu:` does"
    )
    with gpu:
        assert torch.ones(2, device="cuda").sum().item() == 2


def test_leaving_on_another_thread_is_refused_and_changes_nothing() -> None:
    """Leaving on another thread raises an error, and the thread that entered continues."""
    errors: list[str] = []

    def leave() -> None:
        with pytest.raises(VirtualGpuError) as error:
            gpu.__exit__(None, None, None)
        errors.append(str(error.value))

    with gpulab.virtual_gpu("H200") as gpu:
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
        assert torch.ones(2, device="cuda").sum().item() == 2
    assert errors == ["the virtual H200 was entered on another thread; leave it there"]
    assert torch.ones(2).sum().item() == 2


@pytest.mark.parametrize("is_same", [True, False])
def test_two_threads_that_measure_at_once_are_told(*, is_same: bool) -> None:
    """The second thread is told that another one measures, and that one continues."""
    errors: list[str] = []

    def measure() -> None:
        with (
            pytest.raises(VirtualGpuError) as error,
            gpu if is_same else gpulab.virtual_gpu("A100"),
        ):
            pass
        errors.append(str(error.value))

    with gpulab.virtual_gpu("H200") as gpu:
        gpu._depth = is_same  # False: the first thread has entered halfway
        thread = threading.Thread(target=measure)
        thread.start()
        thread.join()
        gpu._depth = 1
        assert torch.ones(2, device="cuda").sum().item() == 2
    assert errors == [
        (
            "the virtual H200 is in use on another thread, which measures or is inside "
            "`with gpu:`, and a process has one virtual clock; measure on one thread at a time"
        )
    ]


def test_another_task_may_leave() -> None:
    """An asyncio task may leave what another task of the same thread entered."""
    gpu = gpulab.virtual_gpu("H200")

    async def leave() -> None:
        gpu.__exit__(None, None, None)

    async def enter_here_and_leave_there() -> None:
        gpu.__enter__()
        await asyncio.create_task(leave())

    for _ in range(2):
        asyncio.run(enter_here_and_leave_there())
        assert not gpu.entered
        assert torch.ones(2).sum().item() == 2


def test_tasks_that_overlap_share_one_virtual_gpu_and_are_refused_a_second() -> None:
    """Overlapping tasks share one virtual GPU, and a task with another GPU is refused."""
    first, second = gpulab.virtual_gpu("H200"), gpulab.virtual_gpu("A100")

    async def use(gpu: gpulab.virtual.VirtualGpu, n_turns: int) -> str:
        with gpu:
            for _ in range(n_turns):
                await asyncio.sleep(0)
            return torch.cuda.get_device_name()

    async def overlap() -> list[str | BaseException]:
        uses = (use(first, 2), use(first, 4), use(second, 1))
        return await asyncio.gather(*uses, return_exceptions=True)

    names = asyncio.run(overlap())
    assert names[:2] == ["NVIDIA H200"] * 2
    assert isinstance(names[2], VirtualGpuError)
    assert not first.entered


def test_a_mode_of_the_program_may_outlive_the_context() -> None:
    """A dispatch mode that a program entered inside still works after the context."""
    seen: list[str] = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(
            self,
            func: OpOverload[..., object],
            types: object,
            args: tuple[object, ...] = (),
            kwargs: dict[str, object] | None = None,
        ) -> object:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with contextlib.ExitStack() as later:
        with gpulab.virtual_gpu("H200"):
            later.enter_context(Watch())
        torch.ones(2)
        assert seen == ["aten.ones.default"]
    torch.ones(2)
    assert seen == ["aten.ones.default"]


def test_tensors_of_two_virtual_gpus_do_not_mix() -> None:
    """An operation on tensors of two virtual GPUs raises an error with advice."""
    first, second = gpulab.virtual_gpu("H200"), gpulab.virtual_gpu("A100")
    with first:
        x = torch.ones(3, device="cuda")
    with second:
        y = torch.ones(3, device="cuda")
        with pytest.raises(VirtualGpuError) as error:
            x + y
        with pytest.raises(VirtualGpuError):
            x + 1
    assert str(error.value) == (
        "a tensor of another virtual GPU (H200) is used; copy it with .cpu() while that GPU is in "
        "use, and move the copy to this one"
    )


def test_two_programs_take_turns() -> None:
    """Each of two virtual GPUs keeps its clock and tensors while the other is entered."""
    gpus = [gpulab.virtual_gpu("H200"), gpulab.virtual_gpu("H200")]
    held, times_s = [], []
    for gpu, value in zip(gpus, (1.0, 2.0), strict=True):
        with gpu:
            held.append(torch.full((3,), value, device="cuda"))
            torch.cuda.synchronize()
            time.sleep(value)
            times_s.append(gpu.now_s)
    for gpu, x, value, time_s in zip(gpus, held, (1.0, 2.0), times_s, strict=True):
        with gpu:
            assert x.tolist() == [value] * 3
            assert time_s <= gpu.now_s < time_s + 1


def test_an_unknown_stream_handle_is_refused() -> None:
    """``ExternalStream`` with an unknown handle is refused."""
    with gpulab.virtual_gpu("H200"), pytest.raises(NotModelledError) as error:
        torch.cuda.ExternalStream(12345)
    assert str(error.value) == (
        "the virtual GPU has no stream with the handle 12345; it knows only the streams that "
        "torch.cuda.Stream() made"
    )


def test_an_event_stays_on_its_device() -> None:
    """Recording an event on another device raises PyTorch's message."""
    with gpulab.virtual_gpu("H200", count=2):
        event = torch.cuda.Event()
        event.record()
        with torch.cuda.device(1), pytest.raises(RuntimeError) as error:
            event.record()
    assert str(error.value) == ("Event device 0 does not match recording stream's device 1.")


def test_an_interrupted_exit_is_completed_later() -> None:
    """An exit that was cut off by an error is completed by the next entry or exit."""
    for repair in ("enter", "leave"):
        gpu = gpulab.virtual_gpu("H200", first_use=False)
        gpu.__enter__()
        gpu._depth = 0
        if repair == "leave":
            gpu.__exit__(None, None, None)
        other = gpulab.virtual_gpu("A100", first_use=False)
        with other:
            assert torch.cuda.get_device_name() == other.spec.driver_name
        assert entered() is None


def test_each_gpu_has_a_uuid_of_its_own() -> None:
    """Programs find a GPU's readings by the UUID of its properties, so no two are alike."""
    with gpulab.virtual_gpu("H200", count=2):
        uuids = [str(torch.cuda.get_device_properties(i).uuid)[-4:] for i in range(2)]
    assert uuids == ["0000", "0001"]
