"""Check that findings are true: 40 ordinary programs and 12 that deserve one, in one process.

    python -m benchmarks.findings                   on the CUDA GPU of this machine
    python -m benchmarks.findings --gpu H100        on a virtual GPU

Ladders and timelines come first, because what they leave in a process has made findings false
before. A finding about an ordinary program is false unless the program is listed with it, with two
exceptions. A finding about the conditions (another process, a clock that was held down, samples
that lie in two clusters or rise) counts as seen if a second measurement has it again, and as
passing if not. Programs that need a missing library are left out, with the reason.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import gpulab
from benchmarks.anything.examples import EXAMPLES
from benchmarks.common.command_line import parser_of
from benchmarks.host_time.networks import (
    Gpt,
    images,
    labels,
    perceptron,
    resnet,
    scaled_training,
    training,
)
from gpulab.core.errors import GpulabError
from gpulab.device.work import Work

# About the conditions of a measurement, which another one may not share. The last three are said
# of a virtual GPU alone, or follow from the real time that a measurement got.
CONDITIONS = frozenset(
    {"shared-gpu", "throttled", "clock-changed", "drifting", "bimodal", "cache-hot"}
    | {"too-few-samples", "slow-simulation", "below-resolution"}
)
_MISSING = (ImportError, GpulabError, NotImplementedError)
_WAITS = frozenset({"synchronizes-inside"})
_MAX_TIME_S = 0.4


@dataclass(frozen=True)
class Program:
    """Some work, the findings that it deserves, and how it is measured.

    Attributes
    ----------
    name
        What is printed.
    make
        Creates the inputs and returns the work.
    deserved
        The findings that are true of it.
    options
        Options of :func:`gpulab.measure`.
    """

    name: str
    make: Callable[[], Work]
    deserved: frozenset[str] = frozenset()
    options: dict[str, Any] = field(default_factory=dict)


def _r(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*sizes, device="cuda", dtype=dtype)


def _of(function: Callable[..., object], *make: Callable[[], torch.Tensor]) -> Callable[[], Work]:
    """Return a maker of work that calls a function with new tensors."""

    def made() -> Work:
        tensors = [each() for each in make]
        return lambda: function(*tensors)

    return made


def _sizes(*sizes: int, dtype: torch.dtype = torch.float32) -> Callable[[], torch.Tensor]:
    return lambda: _r(*sizes, dtype=dtype)


def _example(name: str) -> Callable[[], Work]:
    # The examples stay set up until the process ends.
    return lambda: EXAMPLES[name]().__enter__()


def _gpt(*, is_trained: bool, is_scaled: bool = False) -> Work:
    model = Gpt(width=128, n_blocks=2, n_words=500, length=64).cuda()
    words = torch.randint(500, (8, 64), device="cuda")

    def loss() -> torch.Tensor:
        return functional.cross_entropy(model(words).view(-1, 500), words.view(-1))

    if not is_trained:
        model.eval()
        return torch.no_grad()(lambda: model(words))
    optimizer = torch.optim.AdamW(model.parameters())
    return (scaled_training if is_scaled else training)(optimizer, loss)


def _trained_images(optimizer: type[torch.optim.Optimizer], **options: Any) -> Work:  # noqa: ANN401 # of an optimizer
    model, x, y = resnet((16, 32)), images(16, 3, 32), labels(16)
    return training(
        optimizer(model.parameters(), lr=1e-3, **options),
        lambda: functional.cross_entropy(model(x), y),
    )


def _with_clipping() -> Work:
    model, x, y = perceptron(256, 512, 10), _r(64, 256), labels(64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return training(optimizer, lambda: functional.cross_entropy(model(x), y), clip=1.0)


def _autocast() -> Work:
    model, x = perceptron(512, 1024, 512), _r(128, 512)

    def work() -> torch.Tensor:
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
            out: torch.Tensor = model(x)
        return out

    return work


def _graph_of_training() -> Work:
    model, x, y = perceptron(256, 256, 10), _r(64, 256), labels(64)
    optimizer = torch.optim.Adam(model.parameters(), capturable=True)
    step = training(optimizer, lambda: functional.cross_entropy(model(x), y))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def _fp8() -> Work:
    a = _r(1024, 1024).to(torch.float8_e4m3fn)
    b = _r(1024, 1024).to(torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def _compiled_model() -> Work:
    model, x = torch.compile(perceptron(256, 512, 256, activation=nn.GELU)), _r(64, 256)
    return torch.no_grad()(lambda: model(x))


def _triton_softmax() -> Work:
    from benchmarks.anything.triton_kernel import doubled_and_added

    x, y = torch.randn(2, 1 << 14, device="cuda")
    out = torch.empty_like(x)
    return lambda: doubled_and_added[(16,)](x, y, out, 1 << 14, BLOCK=1024)


def _pinned(*, is_upload: bool) -> Work:
    host, there = torch.randn(1 << 20, pin_memory=True), _r(1 << 20)
    if is_upload:
        return lambda: there.copy_(host, non_blocking=True)
    return lambda: host.copy_(there, non_blocking=True)


_HALF = torch.float16
_BRAIN = torch.bfloat16
ORDINARY = (
    Program("small add", _of(torch.add, _sizes(1000), _sizes(1000))),
    Program("large add", _of(torch.add, _sizes(1 << 24), _sizes(1 << 24))),
    Program("tiny matmul", _of(torch.mm, _sizes(16, 16), _sizes(16, 16))),
    Program("matmul", _of(torch.mm, _sizes(1024, 1024), _sizes(1024, 1024))),
    Program(
        "long matmul",
        _of(torch.mm, _sizes(4096, 4096, dtype=_HALF), _sizes(4096, 4096, dtype=_HALF)),
    ),
    Program("sum of all", _of(torch.sum, _sizes(1 << 22))),
    Program("softmax", _of(lambda x: x.softmax(-1), _sizes(2048, 1024))),
    Program("layer norm", _of(lambda x: functional.layer_norm(x, (1024,)), _sizes(1024, 1024))),
    Program("sort of rows", _of(lambda x: x.sort(-1), _sizes(512, 512))),
    Program("top-k of long rows", _of(lambda x: x.topk(8, -1), _sizes(16, 200_000))),
    Program("top-k of one row", _of(lambda x: x.topk(5), _sizes(1 << 20))),
    Program("cumulative sum", _of(lambda x: x.cumsum(0), _sizes(1 << 20))),
    Program("gather", _of(lambda x: x.flip(0), _sizes(4096, 256))),
    Program("transposed copy", _of(lambda x: x.t().contiguous(), _sizes(2048, 2048))),
    Program("random numbers", lambda: lambda: torch.randn(1 << 20, device="cuda")),
    Program("fill", _of(lambda x: x.fill_(1.5), _sizes(1 << 20))),
    Program(
        "convolution",
        _of(functional.conv2d, _sizes(16, 32, 56, 56), _sizes(64, 32, 3, 3)),
    ),
    Program(
        "attention",
        _of(functional.scaled_dot_product_attention, *[_sizes(4, 8, 256, 64, dtype=_BRAIN)] * 3),
    ),
    Program("Fourier transform", _of(torch.fft.fft, _sizes(256, 1024))),
    Program("solve", _of(torch.linalg.solve, _sizes(64, 64), _sizes(64, 8)), _WAITS),
    Program("nonzero", _of(torch.nonzero, _sizes(10_000)), _WAITS),
    Program("item", _of(lambda x: x.sum().item(), _sizes(10_000)), _WAITS),
    Program("pageable upload", lambda: torch.randn(1 << 18).cuda, _WAITS),
    Program("pageable download", _of(lambda x: x.cpu(), _sizes(1 << 18)), _WAITS),
    Program("pinned upload", lambda: _pinned(is_upload=True)),
    Program("pinned download", lambda: _pinned(is_upload=False)),
    Program("transformer", lambda: _gpt(is_trained=False)),
    Program("training a transformer", lambda: _gpt(is_trained=True)),
    Program(
        "scaled training of a transformer",
        lambda: _gpt(is_trained=True, is_scaled=True),
        _WAITS | {"starved"},  # both say that it may wait, which it does
    ),
    Program("training on images, SGD", lambda: _trained_images(torch.optim.SGD)),
    Program(
        "training on images, a loop", lambda: _trained_images(torch.optim.Adam, foreach=False)
    ),
    Program("training on images, fused", lambda: _trained_images(torch.optim.Adam, fused=True)),
    Program("training with clipping", _with_clipping),
    Program("autocast", _autocast),
    Program("8-bit matmul", _fp8),
    Program("graph", _example("a CUDA graph")),
    Program("graph of training", _graph_of_training),
    Program("CuPy", _example("CuPy, default stream")),
    Program("Triton", _triton_softmax),
    Program("compiled model", _compiled_model),
)


def _aside(*, n: int) -> Work:
    side, x, y = torch.cuda.Stream(), _r(n), _r(1000)

    def work() -> None:
        with torch.cuda.stream(side):
            for _ in range(5):
                x.add_(1)
        y.add_(1)

    return work


def _by_turns() -> Work:
    short, long = _r(1 << 18), _r(1 << 25)
    calls = iter(range(1 << 30))
    return lambda: (long if next(calls) % 2 else short).add_(1)


def _many_launches() -> Work:
    x = _r(100)

    def work() -> None:
        for _ in range(3000):
            x.add_(1)

    return work


def _one(code: str) -> frozenset[str]:
    return frozenset({code})


DESERVING = (
    Program("a long kernel on another stream", lambda: _aside(n=1 << 26), _one("side-stream")),
    Program("a short kernel on another stream", lambda: _aside(n=1 << 24), _one("side-stream")),
    Program("item()", _of(lambda x: x.sum().item(), _sizes(1 << 20)), _WAITS),
    Program("no work", lambda: lambda: None, _one("nothing-launched")),
    Program(
        "work of the CPU",
        lambda: torch.randn(1000).exp,
        _one("nothing-launched"),
    ),
    Program(
        "more launches than the queue stores",
        _many_launches,
        frozenset({"starved", "synchronizes-inside"}),
    ),
    Program(
        "naive", _of(torch.exp, _sizes(1 << 20)), _one("naive-launch-only"), {"method": "naive"}
    ),
    Program(
        "events around a short kernel",
        _of(torch.exp, _sizes(1000)),
        _one("launch-bound"),
        {"method": "events"},
    ),
    Program(
        "a flush that writes",
        _of(torch.exp, _sizes(1 << 20)),
        _one("write-flush"),
        {"flush": "write"},
    ),
    Program(
        "zeros",
        _of(lambda x: x @ x, lambda: torch.zeros(1024, 1024, device="cuda")),
        _one("zero-result"),
    ),
    Program(
        "counts that cannot be right",
        _of(torch.mm, _sizes(1024, 1024), _sizes(1024, 1024)),
        _one("faster-than-roofline"),
        {"flops": 1e13},
    ),
    Program("sizes that take turns", _by_turns, _one("bimodal"), {"n_samples": 30}),
)


def _codes(program: Program) -> tuple[frozenset[str], str]:
    """Measure a program, and return the codes of its findings and their text."""
    work = program.make()
    result = gpulab.measure(
        work, **{"max_time_s": _MAX_TIME_S, "progress": False} | program.options
    )
    text = "; ".join(f"{each.code}: {each.message}" for each in result.findings)
    return frozenset(each.code for each in result.findings), text


def before() -> None:
    """Leave in the process what ladders and timelines leave."""
    x = _r(512, 512)
    for work in (lambda: x @ x, lambda: x.topk(5, -1), lambda: x.sum().item()):
        gpulab.ladder(work, max_time_s=0.1, progress=False)
        gpulab.timeline(work)


def judge(programs: Sequence[Program], stop_s: float) -> dict[str, list[str]]:
    """Measure programs; return lines about right, false, missing, passing and left out ones."""
    found: dict[str, list[str]] = {
        kind: [] for kind in ("right", "false", "missing", "passing", "left out")
    }
    for program in programs:
        if time.monotonic() > stop_s:
            found["left out"].append(f"{program.name}: no time left")
            continue
        try:
            codes, text = _codes(program)
            again = _codes(program)[0] if codes & CONDITIONS - program.deserved else codes
        except _MISSING as error:
            found["left out"].append(f"{program.name}: {type(error).__name__}: {error}"[:160])
            continue
        except Exception as error:  # noqa: BLE001 # the other programs still have answers
            found["left out"].append(
                f"{program.name}: failed: {type(error).__name__}: {error}"[:200]
            )
            continue
        false = codes - program.deserved - CONDITIONS
        passing = (codes & CONDITIONS) - again - program.deserved
        # One of several is enough, where a fact has two names.
        is_missing = bool(program.deserved) and not codes & program.deserved
        for kind, is_so in (("false", false), ("missing", is_missing), ("passing", passing)):
            if is_so:
                found[kind].append(f"{program.name}: {text or 'no finding'}")
        if not false and not is_missing:
            found["right"].append(program.name)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the false findings and the missing ones; the exit status is 1 if there are any."""
    options = parser().parse_args(arguments)
    stop_s = time.monotonic() + options.limit_s
    where: AbstractContextManager[object] = nullcontext()
    if options.gpu:
        where = gpulab.virtual_gpu(options.gpu)
    with where:
        print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
        before()
        # Those that deserve one first: they are few, and the others may use up the time.
        deserving, ordinary = judge(DESERVING, stop_s), judge(ORDINARY, stop_s)
    print(f"{len(deserving['right'])} of {len(DESERVING)} programs that deserve a finding have it")
    n_judged = len(ORDINARY) - len(ordinary["left out"])
    print(f"{len(ordinary['false'])} of {n_judged} ordinary programs have a false finding")
    for kind in ("false", "missing", "passing", "left out"):
        for line in (*deserving[kind], *ordinary[kind]):
            print(f"  {kind}: {line}")
    print(f"{options.limit_s - stop_s + time.monotonic():.0f} s")
    sys.exit(bool(ordinary["false"] or deserving["missing"] or ordinary["missing"]))


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.findings", __doc__)
    made.add_argument("--gpu", default="", help="virtual GPU; default: the CUDA GPU")
    made.add_argument("--limit-s", type=float, default=140.0, help="start no program later")
    return made


if __name__ == "__main__":
    main()
