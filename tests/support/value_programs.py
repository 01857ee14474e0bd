"""Random programs whose values depend on the order of reads and writes: views, races, copies."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

import gpulab
from gpulab.virtual import VirtualGpu
from gpulab.virtual.tensors import reference

N_TENSORS, N_PINNED = 5, 2
SIZES = (24, 600, 5_000)  # with the largest, kernels of two streams overlap


@dataclass
class World:
    """What a program works on.

    Attributes
    ----------
    size
        The number of elements of a tensor.
    tensors
        The tensors of the device; some may be views of the same memory.
    pinned, pageable
        Host memory that is copied to and from the device.
    shown
        What the program has read.
    graph
        The graph that it captured last, with the tensors that the graph uses.
    """

    gpu: VirtualGpu
    size: int
    tensors: list[torch.Tensor]
    pinned: list[torch.Tensor]
    pageable: torch.Tensor
    shown: list[Any] = field(default_factory=list)
    graph: tuple[torch.cuda.CUDAGraph, list[torch.Tensor]] | None = None


@dataclass(frozen=True)
class Choice:
    """What an operation works on: two inputs, where its result goes, and some of the elements."""

    x: torch.Tensor
    y: torch.Tensor
    target: int
    part: slice
    number: float


Operation = Callable[[World, Choice], object]


def _returning(function: Callable[[Choice], torch.Tensor]) -> Operation:
    """Return an operation that puts the result of ``function`` into the world."""

    def run(world: World, choice: Choice) -> None:
        world.tensors[choice.target] = function(choice)

    return run


def _showing(function: Callable[[Choice], object]) -> Operation:
    """Return an operation that reads what ``function`` returns."""
    return lambda world, choice: world.shown.append(function(choice))


def _overlapping(world: World, choice: Choice) -> None:
    choice.x[: world.size // 2 + 3].add_(1)
    torch.add(choice.x[1:].clone(), 1, out=world.tensors[choice.target][:-1])


def _copy_in(world: World, choice: Choice) -> None:
    choice.x.copy_(world.pageable)
    world.pageable[choice.target] += 1


def _copy_in_too_early(world: World, choice: Choice) -> None:
    """Change pinned memory before its copy has run."""
    pinned = world.pinned[0]
    pinned.fill_(choice.number)
    choice.x[choice.part].copy_(pinned[choice.part], non_blocking=True)
    pinned.fill_(-7.0)


def _peek(world: World, choice: Choice) -> None:
    """Read what is in memory now, while a kernel may still run."""
    torch.cuda._sleep(3_000)
    total = world.tensors[choice.target] = choice.x + choice.y
    world.gpu.machine.host.catch_up()
    values = world.gpu.machine.values
    world.shown.append(values.guarded(lambda: reference(total).view().tolist()))


def _gradient(choice: Choice) -> torch.Tensor:
    weight = choice.x.detach().clone().requires_grad_()
    torch.autograd.backward((weight * choice.y).relu().sum())
    assert weight.grad is not None
    return weight.grad


def _capture(world: World, choice: Choice) -> None:
    """Capture a graph that changes its own input."""
    torch.cuda.synchronize()
    x, y, total = choice.x, choice.y, torch.zeros_like(choice.x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.add(x, y, out=total)
        total.mul_(0.5)
        x.copy_(total)
    world.graph = graph, [x, y, total]


def _replay(world: World, _choice: Choice) -> None:
    if world.graph is not None:
        world.graph[0].replay()


def _wait_for_each_other(_world: World, _choice: Choice) -> None:
    main, side = torch.cuda.default_stream(), torch.cuda.Stream()
    side.wait_stream(main)
    main.wait_stream(side)


def _check_gradients(world: World, choice: Choice) -> None:
    """Divide by a scale, as a GradScaler does, and read its flag."""
    flag = torch.zeros(1, device="cuda")
    scale = torch.full((1,), 0.5, device="cuda")
    torch._amp_foreach_non_finite_check_and_unscale_([choice.x], flag, scale)
    world.shown.append(flag.item())


OPERATIONS: dict[str, Operation] = {
    "add": _returning(lambda c: c.x + c.y),
    "relu": _returning(lambda c: c.x.relu()),
    "half precision": _returning(lambda c: c.x.half().float()),
    "host scalar": _returning(lambda c: c.x * torch.tensor(c.number)),
    "cumsum": _returning(lambda c: (c.x * 1e-3).cumsum(0)),
    "layer norm": _returning(lambda c: torch.nn.functional.layer_norm(c.x, c.x.shape)),
    "roll": _returning(lambda c: c.x.roll(c.target)),
    "flip": _returning(lambda c: c.x.flip(0)),
    "reshape": _returning(lambda c: c.x.view(-1, 2).t().reshape(-1)),
    "alias": _returning(lambda c: c.x[:]),
    "over another GPU": _returning(lambda c: (c.x.to("cuda:1") * 2).to("cuda:0")),
    "uninitialized": _returning(lambda c: torch.empty_like(c.x)),
    "grown": _returning(lambda c: c.x[: c.x.numel() // 2].clone().resize_(c.x.numel())),
    "gather": _returning(lambda c: c.x[torch.randint(0, c.x.numel(), c.x.shape).cuda()]),
    "dropout": _returning(lambda c: torch.nn.functional.dropout(c.x)),
    "gradient": _returning(_gradient),
    "add_": lambda _, c: c.x.add_(c.y),
    "mul_": lambda _, c: c.x.mul_(0.5),
    "out=": lambda w, c: torch.sub(c.x, c.y, out=w.tensors[c.target]),
    "part": lambda _, c: c.x[c.part].copy_(c.y[c.part] + 1),
    "overlapping": _overlapping,
    "zero_": lambda _, c: c.x.zero_(),
    "fill_": lambda _, c: c.x[c.part].fill_(c.number),
    "fill_ with an integer": lambda _, c: c.x.fill_(c.target),
    "roll out=": lambda w, c: w.tensors[c.target].copy_(c.x.roll(c.target)),
    "normal_": lambda _, c: c.x.normal_(),
    "uniform_": lambda _, c: c.x[c.part].uniform_(),
    "index_put_": lambda _, c: c.x.index_put_((torch.tensor([1, 1]).cuda(),), c.y[:2].clone()),
    "foreach": lambda _, c: torch._foreach_add_([c.x, c.y], 1.0),
    "extremes": lambda _, c: torch.aminmax(c.x, out=(c.y[:1].view(()), c.y[1:2].view(()))),
    "copy in": _copy_in,
    "same copy in": lambda w, c: c.x.copy_(w.pinned[1], non_blocking=True),
    "copy in too early": _copy_in_too_early,
    "new copy in": lambda w, c: w.tensors.__setitem__(c.target, w.pageable.to("cuda")),
    "copy out": lambda w, c: w.pinned[1].copy_(c.x, non_blocking=True),
    "read host memory": lambda w, _: w.shown.append(w.pinned[1].tolist()),
    "read": _showing(lambda c: c.x.tolist()),
    "read one": _showing(lambda c: c.x[c.part.start].item()),
    "read some": _showing(lambda c: c.x[c.x > 0].tolist()),
    "peek": _peek,
    "scaler": _check_gradients,
    "graph": _capture,
    "replay": _replay,
    "synchronize": lambda _w, _c: torch.cuda.synchronize(),
    "empty cache": lambda _w, _c: torch.cuda.empty_cache(),
    "wait": _wait_for_each_other,
    "sleep": lambda _w, _c: torch.cuda._sleep(200_000),
}


def outcome(seed: int) -> tuple[str, list[int]]:
    """Run a random program; return everything that it reads, and the clock after each call."""
    draw = random.Random(seed)
    gpu = gpulab.virtual_gpu("H200", count=2, first_use=False)
    clock_ns: list[int] = []
    with gpu:
        torch.manual_seed(seed)
        world = _world(gpu, draw.choice(SIZES))
    # The end of a context, as that of a cell, frees memory that no tensor uses.
    for _ in range(draw.choice((1, 2))):
        with gpu:
            streams = torch.cuda.default_stream(), torch.cuda.Stream()
            for _ in range(draw.randint(5, 30)):
                name = draw.choice(sorted(OPERATIONS))
                # One of three operations races with the others. A capture may not.
                is_aside = name != "graph" and draw.random() < 0.3
                choice = _choice(world, draw)
                with torch.cuda.stream(streams[is_aside]):
                    for _ in range(draw.choice((1, 1, 3))):
                        OPERATIONS[name](world, choice)
                clock_ns.append(gpu.machine.host.now_ns)
    with gpu:
        world.shown += [tensor.tolist() for tensor in world.tensors]
    # As text, because nan does not equal itself.
    return repr(world.shown), clock_ns


def _world(gpu: VirtualGpu, size: int) -> World:
    tensors = [torch.linspace(-1, i + 1.0, size).cuda() for i in range(N_TENSORS)]
    pinned = [torch.zeros(size).pin_memory() for _ in range(N_PINNED)]
    return World(gpu, size, tensors, pinned, torch.arange(float(size)))


def _choice(world: World, draw: random.Random) -> Choice:
    first = draw.randrange(world.size - 4)
    return Choice(
        draw.choice(world.tensors),
        draw.choice(world.tensors),
        draw.randrange(N_TENSORS),
        slice(first, draw.randint(first + 1, world.size), draw.choice((1, 1, 2, 3))),
        float(draw.randrange(N_TENSORS)),
    )
