"""Findings are true: 40 ordinary programs have none, and 12 that deserve one have it.

Ladders and timelines come first, because what they leave in a process has made findings false
before. ``GPULAB_GPU=H100`` tries a virtual GPU where there is no other.
"""

import os
import textwrap
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn
from torch.nn import functional

import gpulab
from benchmarks.accuracy.examples import EXAMPLES
from benchmarks.host_time import networks
from gpulab.core.errors import GpulabError
from gpulab.device.work import Work

# About the conditions of a measurement, which another one may not share. The last three are said
# of a virtual GPU alone, or follow from the real time that a measurement got.
CONDITIONS = frozenset(
    {"shared-gpu", "throttled", "clock-changed", "drifting", "bimodal", "cache-hot"}
    | {"too-few-samples", "slow-simulation", "below-resolution"}
)
GPU = os.environ.get("GPULAB_GPU", "")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        not (GPU or torch.cuda.is_available()), reason="needs a CUDA GPU, or the name of a virtual"
    ),
]
_MISSING = (ImportError, GpulabError, NotImplementedError)
_WAITS = ("synchronizes-inside",)
_MAX_TIME_S = 0.4


class Program(NamedTuple):
    """Some work as Python, the findings that it deserves, and how it is measured.

    Attributes
    ----------
    name
        What is printed.
    setup
        Lines that make what the work needs, from the names of ``_NAMES``.
    body
        The lines of the work itself.
    deserved
        The findings that are true of it. One is enough, where a fact has two names.
    options
        Options of :func:`gpulab.measure`.
    """

    name: str
    setup: str
    body: str
    deserved: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()

    def work(self) -> Work:
        """Make the work."""
        names = dict(_NAMES)
        source = f"{self.setup}\ndef work():\n{textwrap.indent(self.body, '    ')}"
        exec(source, names)  # our own text
        work: Work = names["work"]
        return work


def _r(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*sizes, device="cuda", dtype=dtype)


def _gpt(*, is_trained: bool, is_scaled: bool = False) -> Work:
    model = networks.Gpt(width=128, n_blocks=2, n_words=500, length=64).cuda()
    words = torch.randint(500, (8, 64), device="cuda")

    def loss() -> torch.Tensor:
        return functional.cross_entropy(model(words).view(-1, 500), words.view(-1))

    if not is_trained:
        model.eval()
        return torch.no_grad()(lambda: model(words))
    optimizer = torch.optim.AdamW(model.parameters())
    return (networks.scaled_training if is_scaled else networks.training)(optimizer, loss)


def _trained_images(optimizer: type[torch.optim.Optimizer], **options: Any) -> Work:  # noqa: ANN401 # of an optimizer
    model, x, y = networks.resnet((16, 32)), networks.images(16, 3, 32), networks.labels(16)
    return networks.training(
        optimizer(model.parameters(), lr=1e-3, **options),
        lambda: functional.cross_entropy(model(x), y),
    )


_NAMES: dict[str, Any] = {
    "torch": torch,
    "nn": nn,
    "F": functional,
    "r": _r,
    "gpt": _gpt,
    "trained_images": _trained_images,
    "SGD": torch.optim.SGD,
    # The examples stay set up until the process ends.
    "example": lambda name: EXAMPLES[name]().__enter__(),
    "Adam": torch.optim.Adam,
    "half": torch.float16,
    "brain": torch.bfloat16,
    **vars(networks),
}
_TRAINED = """\
model, x, y = perceptron(256, {width}, 10), r(64, 256), labels(64)
optimizer = {optimizer}
step = training(optimizer, lambda: F.cross_entropy(model(x), y){clip})"""
_GRAPH = """
stream = torch.cuda.Stream()
stream.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(stream):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(stream)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step()"""
_FP8 = """\
a, b = (r(1024, 1024).to(torch.float8_e4m3fn) for _ in range(2))
b, one = b.t(), torch.ones((), device="cuda")"""
_TRITON = """\
from benchmarks.accuracy.triton_kernel import doubled_and_added
x, y = torch.randn(2, 1 << 14, device="cuda")
out = torch.empty_like(x)"""
_PINNED = "host, there = torch.randn(1 << 20, pin_memory=True), r(1 << 20)"
ORDINARY = (
    Program("small add", "x, y = r(1000), r(1000)", "return torch.add(x, y)"),
    Program("large add", "x, y = r(1 << 24), r(1 << 24)", "return torch.add(x, y)"),
    Program("tiny matmul", "x, y = r(16, 16), r(16, 16)", "return torch.mm(x, y)"),
    Program("matmul", "x, y = r(1024, 1024), r(1024, 1024)", "return torch.mm(x, y)"),
    Program(
        "long matmul",
        "x, y = r(4096, 4096, dtype=half), r(4096, 4096, dtype=half)",
        "return torch.mm(x, y)",
    ),
    Program("sum of all", "x = r(1 << 22)", "return torch.sum(x)"),
    Program("softmax", "x = r(2048, 1024)", "return x.softmax(-1)"),
    Program("layer norm", "x = r(1024, 1024)", "return F.layer_norm(x, (1024,))"),
    Program("sort of rows", "x = r(512, 512)", "return x.sort(-1)"),
    Program("top-k of long rows", "x = r(16, 200_000)", "return x.topk(8, -1)"),
    Program("top-k of one row", "x = r(1 << 20)", "return x.topk(5)"),
    Program("cumulative sum", "x = r(1 << 20)", "return x.cumsum(0)"),
    Program("gather", "x = r(4096, 256)", "return x.flip(0)"),
    Program("transposed copy", "x = r(2048, 2048)", "return x.t().contiguous()"),
    Program("random numbers", "", "return torch.randn(1 << 20, device='cuda')"),
    Program("fill", "x = r(1 << 20)", "return x.fill_(1.5)"),
    Program("convolution", "x, w = r(16, 32, 56, 56), r(64, 32, 3, 3)", "return F.conv2d(x, w)"),
    Program(
        "attention",
        "q, k, v = (r(4, 8, 256, 64, dtype=brain) for _ in range(3))",
        "return F.scaled_dot_product_attention(q, k, v)",
    ),
    Program("Fourier transform", "x = r(256, 1024)", "return torch.fft.fft(x)"),
    Program("solve", "x, y = r(64, 64), r(64, 8)", "return torch.linalg.solve(x, y)", _WAITS),
    Program("nonzero", "x = r(10_000)", "return torch.nonzero(x)", _WAITS),
    Program("item", "x = r(10_000)", "return x.sum().item()", _WAITS),
    Program("pageable upload", "x = torch.randn(1 << 18)", "return x.cuda()", _WAITS),
    Program("pageable download", "x = r(1 << 18)", "return x.cpu()", _WAITS),
    Program("pinned upload", _PINNED, "return there.copy_(host, non_blocking=True)"),
    Program("pinned download", _PINNED, "return host.copy_(there, non_blocking=True)"),
    Program("transformer", "step = gpt(is_trained=False)", "return step()"),
    Program("training a transformer", "step = gpt(is_trained=True)", "return step()"),
    Program(
        "scaled training of a transformer",
        "step = gpt(is_trained=True, is_scaled=True)",
        "return step()",
        (*_WAITS, "starved"),  # both say that it may wait, which it does
    ),
    Program("training on images, SGD", "step = trained_images(SGD)", "return step()"),
    Program(
        "training on images, a loop", "step = trained_images(Adam, foreach=False)", "return step()"
    ),
    Program(
        "training on images, fused", "step = trained_images(Adam, fused=True)", "return step()"
    ),
    Program(
        "training with clipping",
        _TRAINED.format(
            width=512,
            optimizer="SGD(model.parameters(), lr=0.01, momentum=0.9)",
            clip=", clip=1.0",
        ),
        "return step()",
    ),
    Program(
        "autocast",
        "model, x = perceptron(512, 1024, 512), r(128, 512)",
        "with torch.no_grad(), torch.autocast('cuda', dtype=brain):\n    return model(x)",
    ),
    Program(
        "8-bit matmul",
        _FP8,
        "return torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=brain)",
    ),
    Program("graph", "replay = example('a CUDA graph')", "return replay()"),
    Program(
        "graph of training",
        _TRAINED.format(width=256, optimizer="Adam(model.parameters(), capturable=True)", clip="")
        + _GRAPH,
        "return graph.replay()",
    ),
    Program("CuPy", "call = example('CuPy, default stream')", "return call()"),
    Program("Triton", _TRITON, "return doubled_and_added[(16,)](x, y, out, 1 << 14, BLOCK=1024)"),
    Program(
        "compiled model",
        "model = torch.compile(perceptron(256, 512, 256, activation=nn.GELU))\nx = r(64, 256)",
        "with torch.no_grad():\n    return model(x)",
    ),
)
_ASIDE = "side, x, y = torch.cuda.Stream(), r({n}), r(1000)"
_BESIDE = """\
with torch.cuda.stream(side):
    for _ in range(5):
        x.add_(1)
y.add_(1)"""
_SIDE = ("side-stream",)
DESERVING = (
    Program("a long kernel on another stream", _ASIDE.format(n=1 << 26), _BESIDE, _SIDE),
    Program("a short kernel on another stream", _ASIDE.format(n=1 << 24), _BESIDE, _SIDE),
    Program("item()", "x = r(1 << 20)", "return x.sum().item()", _WAITS),
    Program("no work", "", "return None", ("nothing-launched",)),
    Program("work of the CPU", "x = torch.randn(1000)", "return x.exp()", ("nothing-launched",)),
    Program(
        "more launches than the queue stores",
        "x = r(100)",
        "for _ in range(3000):\n    x.add_(1)",
        ("starved", *_WAITS),
    ),
    Program(
        "naive", "x = r(1 << 20)", "return x.exp()", ("naive-launch-only",), (("method", "naive"),)
    ),
    Program(
        "events around a short kernel",
        "x = r(1000)",
        "return x.exp()",
        ("launch-bound",),
        (("method", "events"),),
    ),
    Program(
        "a flush that writes",
        "x = r(1 << 20)",
        "return x.exp()",
        ("write-flush",),
        (("flush", "write"),),
    ),
    Program(
        "zeros", "x = torch.zeros(1024, 1024, device='cuda')", "return x @ x", ("zero-result",)
    ),
    Program(
        "counts that cannot be right",
        "x, y = r(1024, 1024), r(1024, 1024)",
        "return torch.mm(x, y)",
        ("faster-than-roofline",),
        (("flops", 1e13),),
    ),
    Program(
        "sizes that take turns",
        "short, long, calls = r(1 << 18), r(1 << 25), iter(range(1 << 30))",
        "return (long if next(calls) % 2 else short).add_(1)",
        ("bimodal",),
        (("n_samples", 30),),
    ),
)


def _gpu() -> AbstractContextManager[object]:
    return gpulab.virtual_gpu(GPU) if GPU else nullcontext()


@pytest.fixture(scope="module", autouse=True)
def _ladders_and_timelines_came_before() -> None:
    """Leave in the process what ladders and timelines leave."""
    with _gpu():
        x = _r(512, 512)
        for work in (lambda: x @ x, lambda: x.topk(5, -1), lambda: x.sum().item()):
            gpulab.ladder(work, max_time_s=0.1, progress=False)
            gpulab.timeline(work)


@pytest.mark.parametrize("program", [*DESERVING, *ORDINARY], ids=lambda program: program.name)
def test_a_program_has_the_findings_that_are_true_of_it(program: Program) -> None:
    """It has one of those that it deserves, and none else but about the conditions."""
    options = {"max_time_s": _MAX_TIME_S, "progress": False, **dict(program.options)}
    try:
        with _gpu():
            found = gpulab.measure(program.work(), **options).findings
    except _MISSING as error:
        pytest.skip(f"{type(error).__name__}: {error}"[:160])
    codes = {each.code for each in found}
    assert codes - {*program.deserved} <= CONDITIONS, [each.message for each in found]
    assert not program.deserved or not codes.isdisjoint(program.deserved)
