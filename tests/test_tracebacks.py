"""The traceback of a user's error goes from the user's call to the user's function."""

import inspect
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import gpulab
from gpulab import clocks, live, plots
from gpulab.core.errors import InvalidOptionError
from gpulab.pytest_plugin import GpuBenchmark
from gpulab.timing import _measure
from gpulab.virtual.dispatch import _dispatcher

Work = Callable[..., object]
PICTURE: dict[str, Any] = {"title": "A title", "alt": "Words.", "source": "virtual"}


def results(work: Work) -> Iterator[object]:
    """Yield what a user's generator yields."""
    while True:
        yield work()


# Every public function that calls a function of the user's.
DOORS: dict[str, Callable[[Work], object]] = {
    "gpulab.measure": gpulab.measure,
    "gpulab.measure, setup": lambda work: gpulab.measure(torch.ones(9).sum, setup=work),
    "gpulab.compare": lambda work: gpulab.compare(work, work),
    "gpulab.ladder": gpulab.ladder,
    "gpulab.timeline": lambda work: gpulab.timeline(work, n_warmup=50),
    "gpulab.sweep": lambda work: gpulab.sweep(lambda n: n, n=iter(work, None)),
    "gpulab.live.load": lambda work: live.load(work, duration_s=1.0),
    "gpulab.live.ladder": live.ladder,
    "gpulab.live.series": lambda work: live.series(results(work), plots.line, **PICTURE),
    "gpulab.clocks.watch": lambda work: [*clocks.watch(work, duration_s=1.0)],
    "gpulab.clocks.watch_by": lambda work: [*clocks.watch_by(work, clocks.read, duration_s=1.0)],
    "gpulab.plots.draw": lambda work: plots.draw(lambda *_: next(results(work)), [], **PICTURE),
    "GpuBenchmark": GpuBenchmark("one", None, []),
    "GpuBenchmark.counts": lambda work: GpuBenchmark("one", None, []).counts(work),
}
CALLED_ONCE = {"gpulab.plots.draw", "gpulab.sweep", "GpuBenchmark.counts"}
# A card stores the error of the user's function, and does not raise it.
STORED = {"gpulab.card"}


class Chained:
    """Raises an error from another one."""

    def __call__(self) -> None:
        """Raise the second error while the first is handled."""
        try:
            gpulab.measure(self.fail)
        except ZeroDivisionError as error:
            raise LookupError from error

    def fail(self) -> float:
        """Raise the first error."""
        return 1 / 0


def fail() -> None:
    """Raise an ordinary error."""
    raise ValueError


def refuse() -> None:
    """Raise an error of gpulab's, which the user's function got from it."""
    gpulab.measure(fail, n_samples=-1)


def group() -> None:
    """Raise a group of errors."""
    raise ExceptionGroup("two", [ValueError(), ValueError()])


def stop() -> None:
    """Be interrupted."""
    raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def _gpu() -> Iterator[None]:
    with gpulab.virtual_gpu("T4"):
        yield


def raised_by(door: Callable[[Work], object], work: Work) -> BaseException:
    """Return the error that a public function raises."""
    with pytest.raises(BaseException) as info:  # noqa: PT011  # any
        door(work)
    return info.value


def files_of(error: BaseException) -> list[str]:
    """Return the files of a traceback and of the errors that it comes from, our tests aside."""
    chain = [error, error.__cause__, error.__context__]
    entries = [
        entry
        for each in chain
        if each is not None
        for entry in traceback.extract_tb(each.__traceback__)
    ]
    return [entry.filename for entry in entries if entry.filename != __file__]


@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize("work", [fail, group, Chained(), stop, refuse])
def test_no_frame_of_ours_is_between(name: str, work: Work) -> None:
    """Between the user's call and the user's function there is no other frame."""
    if work is stop and "live" in name:
        pytest.skip("Ctrl-C ends a live picture without an error")
    error = raised_by(DOORS[name], work)
    assert files_of(error) == []
    *_, last = traceback.walk_tb(error.__traceback__)  # here %debug begins
    assert last[0].f_code.co_name in {"fail", "group", "__call__", "stop", "refuse"}


@pytest.mark.parametrize("name", sorted(DOORS.keys() - CALLED_ONCE))
def test_no_frame_is_there_in_a_later_call(name: str) -> None:
    """The same holds for an error after many calls."""
    calls: list[None] = []

    def work() -> None:
        calls.append(None)
        if len(calls) > 8:
            fail()

    assert files_of(raised_by(DOORS[name], work)) == []
    assert len(calls) == 9


def test_the_list_is_complete() -> None:
    """Every public function with a parameter for a function is in the list."""
    public = {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in [gpulab, clocks, live, plots]
        for name in module.__all__
    }
    calling = {
        name.replace("device.", "").replace("views.", "")
        for name, function in public.items()
        if inspect.isfunction(function)
        and any(
            "Callable" in str(each) for each in inspect.signature(function).parameters.values()
        )
    }
    assert calling - STORED <= DOORS.keys()


def test_our_own_mistakes_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in gpulab itself keeps its frames."""
    monkeypatch.setattr(_measure, "left_as_found", None)
    error = raised_by(gpulab.measure, fail)
    assert _measure.__file__ in files_of(error)


def test_a_wrong_argument_shows_the_call_only() -> None:
    """What gpulab refuses on purpose needs no frame of ours; nor does a function's own error."""
    assert files_of(raised_by(gpulab.ladder, "a @ b")) == []  # type: ignore[arg-type]  # on purpose
    error = raised_by(lambda work: gpulab.measure(fail, flops=work), fail)  # type: ignore[arg-type]  # raises
    assert isinstance(error, InvalidOptionError)
    assert files_of(error) == []


class WrongModel(torch.nn.Module):
    """A module whose forward pass fails."""

    def forward(self, a: torch.Tensor) -> torch.Tensor:
        """Multiply what does not fit."""
        return a @ a[0, :2]


def index_out_of_range(a: torch.Tensor) -> None:
    """Read a row that is not there; a CUDA GPU finds it when the kernel runs."""
    a[torch.tensor([9], device="cuda")]
    torch.cuda.synchronize()


def backward_twice(a: torch.Tensor) -> None:
    """Run backward through a graph that is gone."""
    loss = a.clone().requires_grad_().square().sum()
    torch.autograd.backward(loss)
    torch.autograd.backward(loss)


REFUSED: dict[str, Callable[[torch.Tensor], object]] = {
    "sizes": lambda a: a @ a[0, :2],
    "broadcast": lambda a: a + torch.ones(3, device="cuda"),
    "reshape": lambda a: a.reshape(5, 5),
    "devices": lambda a: a + torch.ones(4, 4, device="cuda").cpu(),
    "window": lambda a: torch.stft(a.flatten(), 4, return_complex=True, window=a),
    "types": lambda a: torch.nn.functional.conv2d(a, a.half()),
    "values": lambda a: torch.linalg.cholesky(-a),
    "values of an index": index_out_of_range,
    "memory": lambda _: torch.empty(1 << 40, device="cuda"),
    "module": WrongModel(),
    "a layer": lambda a: torch.nn.Sequential(torch.nn.Linear(3, 2)).cuda()(a),  # noqa: PLW0108 # made on the GPU
    "backward": backward_twice,
    "a device": lambda _: torch.cuda.set_device(9),
    "a copy to a device": lambda a: a.to("cuda:9"),
    "NumPy": lambda a: a.numpy(),
    "an element": lambda a: a[0, 9],
    "a list": lambda _: torch.tensor([[1, 2], [3]], device="cuda"),
    "an event": lambda _: torch.cuda.Event().elapsed_time(torch.cuda.Event()),
    "a generator": lambda _: torch.randn(3, device="cuda", generator=torch.Generator()),
    "no model": lambda _: torch.cuda.nccl.version(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_call_on_the_virtual_gpu_ends_at_its_line(name: str) -> None:
    """As on a CUDA GPU: no frame between the line of the call and PyTorch's error."""
    a = torch.ones(4, 4, device="cuda")
    shown = traceback.format_exception(raised_by(lambda _: REFUSED[name](a), fail))
    assert [line for line in "".join(shown).splitlines() if "/gpulab/" in line] == []


def test_a_fault_of_the_virtual_gpu_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error inside the dispatcher that no argument explains keeps its frames."""
    monkeypatch.setattr(_dispatcher, "execute_plan", None)
    error = raised_by(lambda _: torch.ones(2, device="cuda"), fail)
    assert _dispatcher.__file__ in files_of(error)
