"""Small programs for ``torch.profiler``: steps of training, annotations, streams and copies."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 # PyTorch's usual name
from torch.profiler import ProfilerActivity, record_function

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


def _convolutions() -> Work:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(8 * 64, 10),
    ).cuda()
    updates = torch.optim.AdamW(model.parameters())
    images, labels = torch.randn(16, 3, 16, 16), torch.arange(16) % 10

    def step() -> None:
        batch, answers = images.cuda(non_blocking=True), labels.to("cuda")
        loss = F.cross_entropy(model(batch), answers)
        updates.zero_grad()
        loss.backward()
        updates.step()

    return step


def _attention() -> Work:
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).cuda()
    x = torch.randn(4, 16, 64, device="cuda")

    def step() -> None:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = layer(x).square().mean()
        loss.backward()

    return step


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


def _copies() -> Work:
    pageable, pinned = torch.randn(64, 64), torch.randn(64, 64).pin_memory()
    x, y = torch.randn(64, 64, device="cuda"), torch.randn(64, 64, device="cuda")
    back = torch.empty(64, 64).pin_memory()

    def work() -> None:
        with record_function("in"):
            pageable.cuda()
            pinned.cuda()
            pinned.to("cuda", non_blocking=True)
        with record_function("out"):
            x.cpu()
            back.copy_(x)
            back.copy_(x, non_blocking=True)
        with record_function("inside"):
            x.copy_(y)
            x.clone()
            x.t().contiguous()
            x.half()
        with record_function("filling"):
            x.zero_()
            x.fill_(1)
            torch.zeros(8, device="cuda")
            torch.full((8,), 2.0, device="cuda")
            torch.tensor([1.0, 2.0], device="cuda")
            torch.empty(64, device="cuda")
        with record_function("reading"):
            x[0, 0].item()
            bool((x > 0).any())
            x.nonzero()
            x[x > 0]

    return work


def _views_and_reductions() -> Work:
    x, mask = torch.randn(8, 16, 32, device="cuda"), torch.ones(8, 16, 32, device="cuda") > 0

    def work() -> None:
        x.view(8, -1).transpose(0, 1).reshape(-1)
        x.permute(2, 0, 1)[3:5].unsqueeze(0).expand(2, 2, 8, 16)
        x.sum()
        x.mean(-1)
        x.max()
        x.max(dim=1)
        x.std(-1)
        x.cumsum(0)
        x.sort(-1)
        x.topk(3)
        torch.cat([x, x])
        torch.stack([x, x])
        torch.where(mask, x, x)
        torch.einsum("bij,bkj->bik", x, x)
        torch.arange(8, device="cuda")
        torch.randn(4, 4, device="cuda")
        x.masked_fill(mask, 0)
        x[:, torch.tensor([0, 2], device="cuda")]
        x.split(2)
        F.pad(x, (1, 1))
        F.gelu(x) + F.silu(x) * 2
        F.embedding(torch.arange(4, device="cuda"), x[0])

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


def _twice_backward() -> Work:
    x = torch.randn(64, 64, device="cuda", requires_grad=True)

    def work() -> None:
        with record_function("everything"):
            y = (x @ x).tanh() * x
            (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
            first.square().mean().backward()
        x.grad = None

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
    "training, steps, SGD": ProfiledProgram(
        lambda: _training(_sgd, regions=False), _STEPS, n_steps=5
    ),
    "convolutions": ProfiledProgram(_convolutions),
    "attention": ProfiledProgram(_attention),
    "inference": ProfiledProgram(_inference),
    "regions": ProfiledProgram(_regions),
    "late kernels": ProfiledProgram(_late_kernels),
    "streams": ProfiledProgram(_streams),
    "copies": ProfiledProgram(_copies, _SHAPES),
    "views and reductions": ProfiledProgram(_views_and_reductions, _SHAPES),
    "graph": ProfiledProgram(_graph),
    "second derivative": ProfiledProgram(_twice_backward),
    "own function": ProfiledProgram(_own_function),
    "memory": ProfiledProgram(_memory, {"profile_memory": True}),
    "nothing": ProfiledProgram(lambda: lambda: None),
    "nothing, steps": ProfiledProgram(lambda: lambda: None, _STEPS, n_steps=5),
}
