"""Small programs for ``torch.profiler``, and what it shows of them: rows and events.

Names, call counts and nesting are the same on every GPU, so the virtual GPU must have them, too.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg
from torch.nn import functional as F  # noqa: N812 # PyTorch's usual name
from torch.profiler import ProfilerActivity, profile, record_function

Work = Callable[[], object]
# Cycles of torch.cuda._sleep, long enough for the host to reach the end of a range meanwhile.
_SLEEP_CYCLES = 300_000


@dataclass(frozen=True)
class ProfiledProgram:
    """A program and how to profile it.

    Attributes
    ----------
    make
        Makes its tensors and returns the work to profile.
    options
        Arguments of ``torch.profiler.profile``.
    n_steps
        How often to run the work, each time with ``profile.step()``; 0 runs it once without.
    """

    make: Callable[[], Work]
    options: dict[str, Any] = field(default_factory=dict)
    n_steps: int = 0


class _Classifier(nn.Module):
    """Two linear layers with a normalization between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(64, 64), nn.LayerNorm(64), nn.Linear(64, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with record_function("hidden layer"):
            hidden = F.relu(self.norm(self.first(x)))
        out: torch.Tensor = self.last(hidden)
        return out


def _training(optimizer: Callable[..., torch.optim.Optimizer], *, regions: bool = True) -> Work:
    model = _Classifier().cuda()
    updates = optimizer(model.parameters())
    x, labels = torch.randn(32, 64, device="cuda"), torch.arange(32, device="cuda") % 8

    def step() -> None:
        updates.zero_grad()
        if not regions:
            F.cross_entropy(model(x), labels).backward()
            updates.step()
            return
        with record_function("forward"):
            loss = F.cross_entropy(model(x), labels)
        with record_function("backward"):
            loss.backward()
        with record_function("update"):
            updates.step()
        loss.item()

    return step


def _sgd(parameters: Iterator[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def _inference() -> Work:
    model = _Classifier().cuda().eval()
    x = torch.randn(32, 64, device="cuda")

    def work() -> None:
        with torch.inference_mode(), record_function("predict"):
            model(x).softmax(-1).argmax(-1).cpu()

    return work


def _regions() -> Work:
    x = torch.randn(256, 256, device="cuda")

    def work() -> None:
        with record_function("outer"):
            x @ x
            with record_function("inner"):
                x @ x
                x + x
            with record_function("host only"):
                pass
            with record_function("inner"):
                x.relu()
        x.exp()

    return work


def _late_kernels() -> Work:
    x = torch.randn(256, 256, device="cuda")

    def work() -> None:
        with record_function("first"):
            torch.cuda._sleep(_SLEEP_CYCLES)
            x.exp()
        with record_function("second"):
            x.sin()
        with record_function("waits"):
            torch.cuda.synchronize()

    return work


def _streams() -> Work:
    x, y = torch.randn(256, 256, device="cuda"), torch.randn(256, 256, device="cuda")
    side = torch.cuda.Stream()
    ready, done = torch.cuda.Event(), torch.cuda.Event(enable_timing=True)

    def work() -> None:
        with record_function("both streams"):
            x.exp()
            ready.record()
            side.wait_event(ready)
            with torch.cuda.stream(side), record_function("side"):
                y.sin()
                done.record()
            x.cos()
            done.query()
            done.synchronize()
            side.synchronize()
            torch.cuda.current_stream().wait_stream(side)

    return work


def _graph() -> Work:
    x = torch.randn(256, 256, device="cuda")
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        (x @ x).relu_().sum()

    def work() -> None:
        with record_function("replay"):
            graph.replay()
            graph.replay()
        x.exp()

    return work


class _Scale(torch.autograd.Function):
    """A function of the program, whose backward pass has a region."""

    @staticmethod
    def forward(_ctx: object, x: torch.Tensor) -> torch.Tensor:
        with record_function("own forward"):
            return x * 2

    @staticmethod
    def backward(_ctx: object, gradient: torch.Tensor) -> torch.Tensor:
        with record_function("own backward"):
            return gradient * 2


def _own_function() -> Work:
    x = torch.randn(64, 64, device="cuda", requires_grad=True)

    def work() -> None:
        with record_function("all"):
            _Scale.apply(x).sum().backward()
        x.grad = None

    return work


def _memory() -> Work:
    def work() -> None:
        with record_function("allocate"):
            x = torch.ones(1 << 20, device="cuda")
            y = x + x
        del x
        y.mul_(2)

    return work


_STEPS = {"schedule": torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)}
_CPU, _CUDA = {"activities": [ProfilerActivity.CPU]}, {"activities": [ProfilerActivity.CUDA]}
_SHAPES = {"record_shapes": True, "with_flops": True}

PROGRAMS: dict[str, ProfiledProgram] = {
    "training": ProfiledProgram(lambda: _training(torch.optim.Adam)),
    "training, steps": ProfiledProgram(lambda: _training(torch.optim.Adam), _STEPS, n_steps=5),
    "training, CPU only": ProfiledProgram(lambda: _training(torch.optim.Adam), _CPU),
    "training, CUDA only": ProfiledProgram(lambda: _training(torch.optim.Adam), _CUDA),
    "training, CUDA only, steps": ProfiledProgram(
        lambda: _training(torch.optim.Adam), {**_STEPS, **_CUDA}, n_steps=5
    ),
    "training, shapes": ProfiledProgram(lambda: _training(torch.optim.Adam), _SHAPES),
    "training, SGD": ProfiledProgram(lambda: _training(_sgd, regions=False)),
    "inference": ProfiledProgram(_inference),
    "regions": ProfiledProgram(_regions),
    "late kernels": ProfiledProgram(_late_kernels),
    "streams": ProfiledProgram(_streams),
    "graph": ProfiledProgram(_graph),
    "own function": ProfiledProgram(_own_function),
    "memory": ProfiledProgram(_memory, {"profile_memory": True}),
    "nothing": ProfiledProgram(lambda: lambda: None),
    "nothing, steps": ProfiledProgram(lambda: lambda: None, _STEPS, n_steps=5),
}

_N_WARM = 3


def profiled(program: ProfiledProgram) -> dict[str, Any]:
    """Warm a program up, profile it, and return rows and events."""
    torch.manual_seed(0)
    work = program.make()
    for _ in range(_N_WARM):
        work()
    torch.cuda.synchronize()
    answers: list[dict[str, Any]] = []
    with profile(
        on_trace_ready=lambda found: answers.append(_answer(found)), **program.options
    ) as running:
        for _ in range(max(1, program.n_steps)):
            work()
            if program.n_steps:
                running.step()
    return answers[-1]


def nesting(answer: dict[str, Any]) -> dict[tuple[str, str], int]:
    """Return how often each event of the host is inside which other event.

    Ranges of the program on the device count as inside ``"(device)"``, events of the host without
    a parent as inside ``"(nothing)"``. Kernels, copies and memsets are left out: they depend on
    the GPU.
    """
    counts: Counter[tuple[str, str]] = Counter()
    events = answer["events"]
    for event in events:
        if event["device"] == "host":
            parent = event["parent"]
            counts[event["name"], "(nothing)" if parent is None else events[parent]["name"]] += 1
        elif event["is_user_annotation"]:
            counts[event["name"], "(device)"] += 1
    return dict(counts)


def _answer(found: profile) -> dict[str, Any]:
    averages = found.key_averages(group_by_input_shape=bool(found.record_shapes))
    return {"rows": [_row(row) for row in averages], "events": _events(found.events())}


def _row(row: FunctionEventAvg) -> dict[str, Any]:
    return {
        "name": row.key,
        "device": _device(row),
        "is_user_annotation": row.is_user_annotation,
        "calls": row.count,
        "self_device_us": round(row.self_device_time_total, 3),
    }


def _device(row: FunctionEvent | FunctionEventAvg) -> str:
    return "device" if row.device_type == DeviceType.CUDA else "host"


def _events(events: EventList) -> list[dict[str, Any]]:
    numbers = {id(event): number for number, event in enumerate(events)}
    return [
        {
            "name": event.name,
            "device": _device(event),
            "is_user_annotation": event.is_user_annotation,
            "parent": None if event.cpu_parent is None else numbers.get(id(event.cpu_parent)),
        }
        for event in events
    ]
