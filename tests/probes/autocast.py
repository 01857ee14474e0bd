"""Probes of automatic mixed precision check the type in which each operator computes.

The lists of operators come from PyTorch's documentation: "CUDA Ops that can autocast to float16"
and the two sections after it.
"""

import functools
from collections.abc import Callable, Mapping

import torch
from torch import nn
from torch.nn import functional

from tests.probes.table import Gives, Probe, Raises

HALF, FLOAT, BFLOAT = torch.float16, torch.float32, torch.bfloat16
_cuda = functools.partial(torch.randn, device="cuda")


def _dtype(program: Callable[[], torch.Tensor]) -> str:
    try:
        with torch.autocast("cuda"):
            return str(program().dtype)
    except RuntimeError as error:
        return str(error)


def _wrong(
    programs: Mapping[str, Callable[[], torch.Tensor]], expected: torch.dtype
) -> Callable[[], object]:
    """Return a program that runs others under autocast and lists results of another type."""

    def run() -> dict[str, str]:
        dtypes = {name: _dtype(program) for name, program in programs.items()}
        return {name: text for name, text in dtypes.items() if text != str(expected)}

    return run


TO_HALF: dict[str, Callable[[], torch.Tensor]] = {
    "matmul": lambda: _cuda(2, 3) @ _cuda(3, 2),
    "mm": lambda: torch.mm(_cuda(2, 3), _cuda(3, 2)),
    "bmm": lambda: torch.bmm(_cuda(2, 2, 3), _cuda(2, 3, 2)),
    "mv": lambda: torch.mv(_cuda(2, 3), _cuda(3)),
    "addmm": lambda: torch.addmm(_cuda(2, 2), _cuda(2, 3), _cuda(3, 2)),
    "addbmm": lambda: torch.addbmm(_cuda(2, 2), _cuda(4, 2, 3), _cuda(4, 3, 2)),
    "addmv": lambda: torch.addmv(_cuda(2), _cuda(2, 3), _cuda(3)),
    "addr": lambda: torch.addr(_cuda(2, 3), _cuda(2), _cuda(3)),
    "baddbmm": lambda: torch.baddbmm(_cuda(2, 2, 2), _cuda(2, 2, 3), _cuda(2, 3, 2)),
    "multi_dot": lambda: torch.linalg.multi_dot([_cuda(2, 3), _cuda(3, 4), _cuda(4, 2)]),
    "einsum": lambda: torch.einsum("ij,jk->ik", _cuda(2, 3), _cuda(3, 2)),
    "linear": lambda: nn.Linear(3, 2, device="cuda")(_cuda(4, 3)),
    "conv1d": lambda: nn.Conv1d(2, 3, 3, device="cuda")(_cuda(1, 2, 6)),
    "conv2d": lambda: nn.Conv2d(2, 3, 3, device="cuda")(_cuda(1, 2, 6, 6)),
    "conv3d": lambda: nn.Conv3d(1, 2, 2, device="cuda")(_cuda(1, 1, 3, 3, 3)),
    "conv_transpose2d": lambda: nn.ConvTranspose2d(2, 3, 3, device="cuda")(_cuda(1, 2, 4, 4)),
    "prelu": lambda: nn.PReLU(device="cuda")(_cuda(3)),
    "LSTMCell": lambda: nn.LSTMCell(2, 3, device="cuda")(_cuda(1, 2))[0],
    "GRUCell": lambda: nn.GRUCell(2, 3, device="cuda")(_cuda(1, 2)),
    "attention": lambda: functional.scaled_dot_product_attention(
        *(_cuda(1, 2, 4, 8) for _ in range(3))
    ),
}
_UNARY_TO_FLOAT = (
    *("acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log1p", "log2"),
    *("reciprocal", "rsqrt", "sinh", "tan", "sum", "prod", "norm"),
)


def _halves(*sizes: int) -> torch.Tensor:
    return torch.rand(sizes, device="cuda").half()


TO_FLOAT: dict[str, Callable[[], torch.Tensor]] = {
    **{name: lambda name=name: getattr(_halves(4), name)() for name in _UNARY_TO_FLOAT},
    "pow": lambda: _halves(3) ** 2,
    "number to the power": lambda: 2 ** _halves(3),
    "number divided": lambda: 1 / _halves(3),
    "softmax": lambda: _halves(2, 3).softmax(-1),
    "log_softmax": lambda: functional.log_softmax(_halves(2, 3), -1),
    "softplus": lambda: functional.softplus(_halves(3)),
    "layer_norm": lambda: functional.layer_norm(_halves(2, 4), (4,)),
    "group_norm": lambda: functional.group_norm(_halves(2, 4), 2),
    "cumsum": lambda: _halves(3).cumsum(0),
    "cumprod": lambda: _halves(3).cumprod(0),
    "cdist": lambda: torch.cdist(_halves(2, 3), _halves(4, 3)),
    "dist": lambda: torch.dist(_halves(3), _halves(3)),
    "cosine_similarity": lambda: functional.cosine_similarity(_halves(2, 3), _halves(2, 3)),
    "cross_entropy": lambda: functional.cross_entropy(
        _halves(2, 3), torch.tensor([0, 2], device="cuda")
    ),
    "nll_loss": lambda: functional.nll_loss(_halves(2, 3), torch.tensor([0, 2], device="cuda")),
    "mse_loss": lambda: functional.mse_loss(_halves(3), _halves(3)),
    "l1_loss": lambda: functional.l1_loss(_halves(3), _halves(3)),
    "smooth_l1_loss": lambda: functional.smooth_l1_loss(_halves(3), _halves(3)),
    "kl_div": lambda: functional.kl_div(_halves(3), _halves(3), reduction="sum"),
    "poisson_nll_loss": lambda: functional.poisson_nll_loss(_halves(3), _halves(3)),
    "with logits": lambda: functional.binary_cross_entropy_with_logits(_halves(3), _halves(3)),
    "triplet_margin_loss": lambda: functional.triplet_margin_loss(
        _halves(2, 3), _halves(2, 3), _halves(2, 3)
    ),
}


def _mixed() -> tuple[torch.Tensor, torch.Tensor]:
    return _halves(3), _cuda(3)


TO_WIDEST: dict[str, Callable[[], torch.Tensor]] = {
    "add": lambda: torch.add(*_mixed()),
    "addcmul": lambda: torch.addcmul(_cuda(3), *_mixed()),
    "addcdiv": lambda: torch.addcdiv(_halves(3), *_mixed()),
    "atan2": lambda: torch.atan2(*_mixed()),
    "dot": lambda: torch.dot(*_mixed()),
    "cross": lambda: torch.cross(*_mixed(), dim=0),
    "cat": lambda: torch.cat(_mixed()),
    "stack": lambda: torch.stack(_mixed()),
    "scatter_add": lambda: torch.zeros(3, device="cuda").scatter_add(
        0, torch.tensor([0, 1, 2], device="cuda"), _halves(3)
    ),
    "index_put": lambda: torch.zeros(3, device="cuda").index_put(
        (torch.tensor([0, 1, 2], device="cuda"),), _halves(3)
    ),
}
UNCHANGED: dict[str, Callable[[], torch.Tensor]] = {
    "add": lambda: _halves(3) + 1,
    "mul": lambda: _halves(3) * _halves(3),
    "relu": lambda: _halves(3).relu(),
    "max": lambda: _halves(3).max(),
    "gelu": lambda: functional.gelu(_halves(3)),
    "mean": lambda: _halves(3).mean(),
    "dropout": lambda: functional.dropout(_halves(3)),
    "batch_norm": lambda: nn.BatchNorm1d(3, device="cuda")(_halves(2, 3)),
    "embedding": lambda: nn.Embedding(3, 2, device="cuda").half()(torch.tensor(1, device="cuda")),
}


def _nested() -> list[torch.dtype]:
    a, b = _cuda(2, 2), _cuda(2, 2)
    with torch.autocast("cuda", dtype=BFLOAT):
        first = a @ b
        with torch.autocast("cuda", enabled=False):
            second, third = a @ b, first.float() @ b
        with torch.autocast("cuda", dtype=HALF):
            fourth = a @ b
        fifth = a @ b
    return [x.dtype for x in (first, second, third, fourth, fifth, a @ b)]


def _trained() -> list[object]:
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).cuda()
    with torch.autocast("cuda", dtype=HALF):
        out = net(torch.randn(5, 4).cuda())
        loss = functional.cross_entropy(out, torch.tensor([0, 1, 2, 0, 1], device="cuda"))
    loss.backward()
    return [out.dtype, loss.dtype, {p.grad.dtype for p in net.parameters()}]


def _near() -> bool:
    a, b = _cuda(8, 8), _cuda(8, 8)
    with torch.autocast("cuda"):
        product = a @ b
    return torch.allclose(product.float(), a @ b, atol=0.05)


def _decorated() -> torch.dtype:
    @torch.autocast("cuda", dtype=BFLOAT)
    def square(a: torch.Tensor) -> torch.Tensor:
        return a @ a

    return square(_cuda(2, 2)).dtype


class _Scaled(torch.autograd.Function):
    @staticmethod
    @functools.partial(torch.amp.custom_fwd, device_type="cuda", cast_inputs=FLOAT)
    def forward(ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x @ x

    @staticmethod
    @functools.partial(torch.amp.custom_bwd, device_type="cuda")
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return grad @ x.T + x.T @ grad


def _custom() -> list[torch.dtype]:
    x = _halves(2, 2).requires_grad_()
    with torch.autocast("cuda"):
        y = _Scaled.apply(x)
    y.sum().backward()
    return [y.dtype, x.grad.dtype]


def _states() -> list[object]:
    states = [torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")]
    with torch.autocast("cuda", dtype=BFLOAT, cache_enabled=False):
        states += [torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")]
        states += [torch.is_autocast_enabled("cpu"), torch.is_autocast_cache_enabled()]
    return [*states, torch.is_autocast_enabled("cuda"), torch.is_autocast_cache_enabled()]


def _cached() -> list[object]:
    weight, x = nn.Parameter(_cuda(64, 64)), _cuda(64, 64)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    with torch.autocast("cuda"):
        x @ weight
        held = torch.cuda.memory_allocated() - before
        (x @ weight).sum().backward()
    return [held, weight.grad.dtype]


def _on_host() -> list[torch.dtype]:
    with torch.autocast("cuda"):
        host = torch.ones(2, 2) @ torch.ones(2, 2)
    with torch.autocast("cpu", dtype=BFLOAT):
        return [
            host.dtype,
            (torch.ones(2, 2) @ torch.ones(2, 2)).dtype,
            (_cuda(2, 2) @ _cuda(2, 2)).dtype,
        ]


def _under(context: Callable[[], object]) -> Callable[[], torch.dtype]:
    def run() -> torch.dtype:
        with context():
            return (_cuda(2, 2) @ _cuda(2, 2)).dtype

    return run


def _of_doubles() -> list[torch.dtype]:
    x = torch.ones(2, 2, device="cuda", dtype=torch.float64)
    with torch.autocast("cuda"):
        return [(x @ x).dtype, x.exp().dtype, (_cuda(2, 2).int() + 1).dtype]


def _with_out() -> list[torch.dtype]:
    out = torch.empty(2, 2, device="cuda")
    with torch.autocast("cuda"):
        torch.mm(_cuda(2, 2), _cuda(2, 2), out=out)
        return [out.dtype, _cuda(2, 2).addmm_(_cuda(2, 2), _cuda(2, 2)).dtype]


FAMILIES: dict[str, list[Probe]] = {
    "autocast": [
        Gives("operators in half", _wrong(TO_HALF, HALF), {}),
        Gives("operators in float", _wrong(TO_FLOAT, FLOAT), {}),
        Gives("operators in the widest type", _wrong(TO_WIDEST, FLOAT), {}),
        Gives("operators that keep their type", _wrong(UNCHANGED, HALF), {}),
        Gives("values close to float32", _near),
        Gives(
            "doubles and integers keep their type",
            _of_doubles,
            [torch.float64, torch.float64, torch.int32],
        ),
        Gives("in place and out= keep their type", _with_out, [FLOAT, FLOAT]),
        Gives("nested", _nested, [BFLOAT, FLOAT, FLOAT, HALF, BFLOAT, FLOAT]),
        Gives("a training step", _trained, [HALF, FLOAT, {FLOAT}]),
        Gives("decorator", _decorated, BFLOAT),
        Gives("custom_fwd and custom_bwd", _custom, [FLOAT, HALF]),
        Gives("state", _states, [False, HALF, True, BFLOAT, False, False, False, True]),
        Gives("casts of weights are reused", _cached, [2 * 64 * 64, FLOAT]),
        Gives("host and device have their own autocast", _on_host, [FLOAT, BFLOAT, FLOAT]),
        Gives("torch.amp.autocast", _under(lambda: torch.amp.autocast("cuda")), HALF),
        Gives(
            "an instance of torch.autocast",
            lambda: isinstance(torch.autocast("cuda"), torch.autocast),
        ),
        Raises(
            "an unsafe loss",
            lambda: torch.autocast("cuda")(functional.binary_cross_entropy)(
                _halves(3), _halves(3)
            ),
            RuntimeError,
            r"torch\.nn\.functional\.binary_cross_entropy and torch\.nn\.BCELoss are unsafe to "
            r"autocast\..*",
        ),
    ],
}
