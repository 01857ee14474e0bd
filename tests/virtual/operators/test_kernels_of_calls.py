"""Calls launch as many kernels as the driver of an H100 recorded for them.

The answers are in two files: those of ``benchmarks.waits`` and ``kernels-h100.json``, whose names
are the call and its inputs, each a line of Python.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch

import gpulab
from benchmarks.common.folders import RESULTS
from benchmarks.waits.ask import kernels
from benchmarks.waits.calls import call_of
from gpulab.virtual import Traffic, duration_ns
from gpulab.virtual.operators import lower, operator_of
from gpulab.virtual.tensors import layout_of

KNOWN = json.loads((RESULTS / "waits-h100.json").read_text("utf-8"))["rows"]
SIZED = json.loads((RESULTS / "kernels-h100.json").read_text("utf-8"))["rows"]
# Some calls of each kind whose kernels are not those that their times were fitted with.
KINDS = {
    "selections": (
        *("torch.nonzero(m)", "x[m]", "x[row_mask]", "torch.masked_select(x, m)"),
        *("torch.unique(i)", "torch.unique_consecutive(i)", "torch.bincount(i)"),
        *("torch.histc(v, 8)", "x.masked_fill(m, 0)", "x.masked_scatter(m, y)"),
    ),
    "order": (
        *("v.sort()", "x.sort(1)", "big.view(-1).sort()", "x.topk(5, 1)", "v.topk(5)"),
        *("x.kthvalue(3, 1)", "x.median()", "x.median(1)", "x.mode(1)", "x.logsumexp(1)"),
    ),
    "search and powers": (
        *("torch.searchsorted(v, x, sorter=v.argsort())", "torch.isin(i, i[:3])"),
        *("torch.isin(i, 3)", "2 ** x"),
    ),
    "driver's copies": ("x.clone()", "x.copy_(y)", "x[0] = v", "x.select_scatter(v, 0, 1)"),
    "copies of other layouts": (
        *("x[:, 0].cpu()", "h_target.copy_(x.T)"),
        "attention(sequence, sequence, sequence)",
    ),
    "attention with dropout": ("encoder_layer(sequence)", "decoder_layer(sequence, sequence)"),
    "random numbers": (
        *("torch.multinomial(weights, 2)", "torch.multinomial(weights, 2, replacement=True)"),
        *("torch.normal(v, v.abs())", "torch.normal(v, 1.0)"),
        *("torch.randperm(100, device='cuda')", "torch.randperm(100_000, device='cuda')"),
    ),
    "matmuls": ("torch.addmm(v, x, y)", "F.linear(x, y, v)", "torch.dot(v, v)", "x @ y"),
    "convolutions": (
        "F.conv2d(image, kernel)",
        "F.conv1d(signal, torch.randn(4, 4, 3, device='cuda'))",
    ),
    "factorizations": (
        *("torch.linalg.inv(spd)", "torch.linalg.solve(spd, x)", "torch.linalg.cholesky(spd)"),
        *("torch.linalg.lu_factor(spd)", "torch.linalg.qr(x)", "torch.linalg.qr(batch)"),
        *("torch.linalg.svd(x)", "torch.linalg.eigh(spd)", "torch.linalg.det(x)"),
    ),
    "losses": (
        *("F.mse_loss(x, y)", "F.binary_cross_entropy_with_logits(x, weights)"),
        *("F.soft_margin_loss(x, y)", "F.multi_margin_loss(x, i)"),
    ),
    "gradients": (
        *(
            "leaf[0].sum().backward()",
            "linear(x).sum().backward()",
            "embedding(i).sum().backward()",
        ),
        *("batch_norm(image).sum().backward()", "x.index_put_((i,), y, accumulate=True)"),
    ),
    "optimizers": ("sgd.step()", "nn.utils.clip_grad_norm_(parameters, 1.0)"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_launches_what_the_driver_recorded(kind: str) -> None:
    """Each call of the kind has the number of kernels of an H100."""
    with gpulab.virtual_gpu("H100"):
        found = {name: _count(call_of(name)) for name in KINDS[kind]}
    assert found == {name: KNOWN[name]["kernels"] for name in KINDS[kind]}


@pytest.mark.slow  # hundreds of calls
@pytest.mark.filterwarnings("ignore")  # some of them are about to change in PyTorch
@pytest.mark.parametrize("is_sized", [False, True])
def test_most_recorded_calls_launch_as_many_kernels(*, is_sized: bool) -> None:
    """Nine in ten of each eighth recorded call are right; libraries choose the others."""
    rows, call = (SIZED, _call) if is_sized else (KNOWN, call_of)
    names = [name for name in rows if "dlpack" not in name][::8]
    with gpulab.virtual_gpu("H100"):
        right = [_count(call(name)) == rows[name]["kernels"] for name in names]
    assert sum(right) / len(right) >= (0.95 if is_sized else 0.9)


def test_a_short_way_takes_the_host_less_than_the_long_one_of_its_model() -> None:
    """Two kernels of topk take the host a third of the time of twenty at most."""
    with gpulab.virtual_gpu("H200", first_use=False, max_value_elements=0) as gpu:
        times_ns = []
        for x in (torch.empty(64, 512, device="cuda"), torch.empty(1 << 16, device="cuda")):
            torch.topk(x, 8)
            before_ns = gpu.machine.host.now_ns
            torch.topk(x, 8)
            times_ns.append(gpu.machine.host.now_ns - before_ns)
    assert 3 * times_ns[0] < times_ns[1]


def test_a_fused_step_takes_parameters_of_any_size() -> None:
    """PyTorch has no shape function for a fused SGD, and none is needed."""
    with gpulab.virtual_gpu("H100", max_value_elements=0):
        (parameter,) = _parameters(1, 5000, 5000)
        step = torch.optim.SGD([parameter], lr=0.1, momentum=0.9, fused=True).step
        assert _count(step) == 2  # of 382 chunks, and a launch has at most 320


def test_kernels_that_share_a_call_take_its_time() -> None:
    """A call of several kernels takes as long as the one that its time was fitted to."""
    source = torch.empty(1 << 20, device="meta")
    layout = layout_of(source)
    operator = operator_of(torch.ops.aten.mse_loss.default)
    out = torch.empty((), device="meta")
    work = lower(operator, (source, source), {}, out, ([layout, layout], [layout_of(out)]))
    first, last = *work.before, work
    n_bytes, spec = 2 * layout.size_bytes + 4, gpulab.gpus.gpu("H200")
    nothing = Traffic(0, 0)
    for traffic in (Traffic(n_bytes, 0), Traffic(0, n_bytes)):
        together_ns = duration_ns(first, nothing, spec) + duration_ns(last, traffic, spec)
        (whole,) = work.whole
        assert together_ns == pytest.approx(duration_ns(whole, traffic, spec), abs=1)


def _count(call: Callable[[], object]) -> int:
    call()
    call()
    return int(kernels(call))


def _call(name: str) -> Callable[[], object]:
    """Return the function of a line such as ``a @ b | a=r(8, 8) | b=r(8, 8)``."""
    text, *inputs = name.split(" | ")
    given: dict[str, Any] = {
        "torch": torch,
        "nn": torch.nn,
        "F": torch.nn.functional,
        "r": _random,
        "spd": _positive,
        "params": _parameters,
    }
    for line in inputs:
        exec(line, given)  # lines of our own file
    code = compile(text, "call", "exec" if "=" in text.split("(")[0] else "eval")
    return lambda: eval(code, given)  # as above


def _random(*sizes: int, dtype: str = "float32") -> torch.Tensor:
    return torch.randn(*sizes, device="cuda").to(getattr(torch, dtype))


def _positive(n: int, *batch: int) -> torch.Tensor:
    a = _random(*batch, n, n)
    return a @ a.mT + n * torch.eye(n, device="cuda")


def _parameters(n: int, *sizes: int) -> list[torch.nn.Parameter]:
    made = [torch.nn.Parameter(_random(*sizes)) for _ in range(n)]
    for each in made:
        each.grad = torch.ones_like(each)
    return made


def test_a_call_in_an_unusual_form_keeps_the_kernels_of_its_time() -> None:
    """Arguments by name and a result that is the only tensor are no reason for an error."""
    with gpulab.virtual_gpu("H200", first_use=False):
        x = torch.ones(8, 8, device="cuda")
        torch.ops.aten.abs.out(x, out=x)
        drawn = torch.ops.aten.multinomial.default(x, num_samples=2)
        torch.cuda.synchronize()
    assert drawn.shape == (8, 2)
