"""Whole programs to record: how long a step takes when host, device and copies interact."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.host_time import networks
from gpulab.device.work import Work

_N_BATCHES = 20
_N_LAYERS = 20
_N_TINY = 40
_COPY_ELEMENTS = 1 << 24  # 64 MB of float32
_CLASSES = 1_000


@dataclass(frozen=True, slots=True)
class Program:
    """A program that repeats a step.

    Attributes
    ----------
    make
        Sets up the program and returns its step.
    n_steps
        Number of steps that are enqueued before one wait for the device.
    """

    name: str
    make: Callable[[], Work]
    n_steps: int = 10


class Residual(nn.Module):
    """A layer of a transformer: attention and a small network, each with a residual connection."""

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.inner = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's output for a batch of sequences."""
        batch, length, width = x.shape
        heads = self.qkv(self.before(x)).view(batch, length, 3, self.n_heads, -1)
        q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        out: torch.Tensor = x + self.inner(self.between(x))
        return out


def mlp_training(*, reads_loss: bool = False) -> Work:
    """Train three layers of 1,024 with a batch of 256 and Adam."""
    model = networks.perceptron(*[1024] * 4)
    x, y = torch.randn(256, 1024, device="cuda"), torch.randn(256, 1024, device="cuda")
    losses: list[torch.Tensor] = []

    def loss_of() -> torch.Tensor:
        losses[:] = [functional.mse_loss(model(x), y)]
        return losses[0]

    train = networks.training(torch.optim.Adam(model.parameters()), loss_of)

    def step() -> None:
        train()
        losses[0].item()

    return step if reads_loss else train


def transformer_training(*, autocast: bool) -> Work:
    """Train four layers of width 256 on 16 sequences of 128 with AdamW."""
    model: Any = nn.Sequential(
        nn.Embedding(_CLASSES, 256),
        *[Residual(256, 4) for _ in range(4)],
        nn.LayerNorm(256),
        nn.Linear(256, _CLASSES),
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    words = torch.randint(_CLASSES, (16, 128), device="cuda")
    # Made once: drawing new inputs in each step would add kernels that are no part of training.
    targets = torch.randint(_CLASSES, (16 * 128,), device="cuda")

    def loss_of() -> torch.Tensor:
        with torch.autocast("cuda", dtype=torch.bfloat16) if autocast else nullcontext():
            return functional.cross_entropy(model(words).view(-1, _CLASSES).float(), targets)

    return networks.training(optimizer, loss_of)


def cnn_inference() -> Work:
    """Classify 32 images of 64 x 64 with six convolutions."""
    widths = [3, 32, 32, 64, 64, 128, 128]
    layers: list[nn.Module] = []
    for i, (n_in, n_out) in enumerate(pairwise(widths)):
        layers += [nn.Conv2d(n_in, n_out, 3, 1 + i % 2, 1), nn.BatchNorm2d(n_out), nn.ReLU()]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10)]
    model = nn.Sequential(*layers, *head).cuda().eval()
    x = torch.randn(32, 3, 64, 64, device="cuda")

    def step() -> torch.Tensor:
        with torch.inference_mode():
            return model(x)  # type: ignore[no-any-return] # a module's call is untyped

    return step


def _tiny_chain() -> Work:
    x = torch.zeros(1024, device="cuda")

    def chain() -> None:
        for _ in range(_N_TINY):
            x.add_(1.0)

    return chain


def graphed_chain() -> Work:
    """Replay a graph of 40 tiny kernels."""
    chain = _tiny_chain()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        chain()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        chain()
    return graph.replay


def double_buffer() -> Work:
    """Copy batches to two buffers in turn, while the GPU computes on the batch before."""
    hosts = [torch.ones(1024, 1024).pin_memory() for _ in range(4)]
    buffers = [torch.empty(1024, 1024, device="cuda") for _ in range(2)]
    weight = torch.randn(1024, 1024, device="cuda")
    copying = torch.cuda.Stream()

    def step() -> None:
        free: list[torch.cuda.Event | None] = [None, None]
        for i in range(_N_BATCHES):
            buffer, before = buffers[i % 2], free[i % 2]
            with torch.cuda.stream(copying):
                if before is not None:
                    copying.wait_event(before)
                buffer.copy_(hosts[i % 4], non_blocking=True)
                filled = copying.record_event()
            torch.cuda.current_stream().wait_event(filled)
            _ = buffer @ weight @ weight
            free[i % 2] = torch.cuda.current_stream().record_event()
        # The first copies of the next step must not overwrite what this step still reads.
        copying.wait_stream(torch.cuda.current_stream())

    return step


def small_kernels(n_streams: int) -> Work:
    """Compute eight softmaxes of eight long rows each, in one stream or in several."""
    inputs = [torch.randn(8, 1 << 18, device="cuda") for _ in range(8)]
    streams = [torch.cuda.Stream() for _ in range(n_streams)]
    torch.cuda.synchronize()

    def step() -> None:
        for i, x in enumerate(inputs):
            with torch.cuda.stream(streams[i % n_streams]):
                torch.softmax(x, -1)

    return step


def copies(*, to_device: bool, pinned: bool) -> Work:
    """Copy 64 MB between host and device."""
    host = torch.ones(_COPY_ELEMENTS)
    host = host.pin_memory() if pinned else host
    device = torch.zeros(_COPY_ELEMENTS, device="cuda")
    target, source = (device, host) if to_device else (host, device)
    return lambda: target.copy_(source, non_blocking=True)


def deep_model(*, waits: bool) -> Work:
    """Run 20 layers of 512 with a batch of 256, with or without a wait after each."""
    layers = [nn.Linear(512, 512).cuda() for _ in range(_N_LAYERS)]
    x = torch.randn(256, 512, device="cuda")

    def step() -> None:
        with torch.no_grad():
            y = x
            for layer in layers:
                y = torch.relu(layer(y))
                if waits:
                    torch.cuda.synchronize()

    return step


def allocations(*, emptied: bool) -> Work:
    """Allocate twenty tensors of different sizes and drop them, with or without the cache."""

    def step() -> None:
        # From 1 to 20 MiB, which takes the small and the large blocks of PyTorch's allocator.
        held = [torch.empty((1 + i) << 18, device="cuda") for i in range(20)]
        held.clear()
        if emptied:
            torch.cuda.empty_cache()

    return step


def scaled_training() -> Work:
    """Train three layers of 256 in half precision with a gradient scaler."""
    model = networks.perceptron(*[256] * 4)
    x, y = torch.randn(64, 256, device="cuda"), torch.randn(64, 256, device="cuda")
    return networks.scaled_training(
        torch.optim.SGD(model.parameters(), 1e-3),
        lambda: functional.mse_loss(model(x).float(), y),
    )


def programs() -> list[Program]:
    """Return all programs."""
    ways = ((True, "to the device"), (False, "to the host"))
    kinds = ((True, "pinned"), (False, "pageable"))
    return [
        # Pairs that differ in one thing, so that the model is tested on what that costs: a read of
        # the loss, autocast, a graph, streams, pinned memory, waits, the allocator's cache.
        Program("MLP training", mlp_training),
        Program("MLP training, loss read each step", partial(mlp_training, reads_loss=True)),
        Program("transformer training", partial(transformer_training, autocast=False), 5),
        Program(
            "transformer training, bfloat16 autocast",
            partial(transformer_training, autocast=True),
            5,
        ),
        Program("CNN inference", cnn_inference),
        Program("40 tiny kernels", _tiny_chain),
        Program("40 tiny kernels, graphed", graphed_chain),
        Program("double buffer over 20 batches", double_buffer, 3),
        Program("small kernels on one stream", partial(small_kernels, 1)),
        Program("small kernels on four streams", partial(small_kernels, 4)),
        *[
            Program(f"64 MB {way}, {kind}", partial(copies, to_device=there, pinned=pinned), 3)
            for there, way in ways
            for pinned, kind in kinds
        ],
        Program("20 layers", partial(deep_model, waits=False)),
        Program("20 layers, waiting after each", partial(deep_model, waits=True)),
        Program("20 allocations from the cache", partial(allocations, emptied=False)),
        Program("20 allocations anew", partial(allocations, emptied=True)),
        Program("training with a gradient scaler", scaled_training),
    ]
