"""Probes of autograd: gradients, hooks, checkpoints, modes and function transforms."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from tests.probes.table import Gives, Probe, Raises, Same, normal, same


def _in_place_on_views(d: str) -> list[torch.Tensor | None]:
    x = normal(d, 6).requires_grad_()
    y = x * 1
    y[2:4].mul_(3)
    y[1:][3:].add_(y[0])
    (y * torch.arange(6.0, device=d)).sum().backward()
    return [x.grad, y]


def _tensor_hooks(d: str) -> list[object]:
    x, seen = normal(d, 3).requires_grad_(), []
    y = x * 2
    y.register_hook(lambda g: g * 10)
    x.register_hook(seen.append)
    y.retain_grad()
    y.sum().backward()
    return [x.grad, y.grad, seen]


def _module_hooks(d: str) -> list[object]:
    net, seen = nn.Sequential(nn.Linear(3, 4), nn.ReLU()).to(d), []
    net[0].register_forward_hook(lambda _m, _i, out: seen.append(out.shape))
    net[0].register_forward_pre_hook(lambda _m, given: (given[0] * 2,))
    net.register_full_backward_hook(lambda _m, g_in, _g_out: seen.append(g_in[0]))
    out = net(normal(d, 2, 3).requires_grad_())
    out.sum().backward()
    return [out, *seen]


def _after_accumulating(d: str) -> list[object]:
    weight, seen = nn.Parameter(normal(d, 3)), []

    def step(p: torch.Tensor) -> None:
        seen.append(p.grad)
        p.grad = None

    weight.register_post_accumulate_grad_hook(step)
    (weight * 3).sum().backward()
    return [seen, weight.grad]


def _checkpointed(*, reentrant: bool) -> object:
    def run(d: str) -> list[torch.Tensor | None]:
        net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(d)
        x = normal(d, 3, 4).requires_grad_()
        out = checkpoint(net, x, use_reentrant=reentrant)
        out.square().sum().backward()
        return [out, x.grad, *(p.grad for p in net.parameters())]

    return run


def _checkpointed_dropout() -> bool:
    x = torch.ones(1000, device="cuda", requires_grad=True)
    y = checkpoint(lambda t: nn.functional.dropout(t, 0.5), x, use_reentrant=False)
    y.sum().backward()
    return bool(((x.grad > 0) == (y > 0)).all())


def _double_backward(d: str) -> list[torch.Tensor]:
    x = normal(d, 4).requires_grad_()
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    return [first, second]


class _Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad


def _custom_function(d: str) -> list[torch.Tensor | None]:
    x = normal(d, 4).requires_grad_()
    y = _Cube.apply(x)
    y.sum().backward()
    return [y, x.grad]


def _modes(d: str) -> list[object]:
    x = normal(d, 3).requires_grad_()
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 2
    with torch.inference_mode():
        c = x * 2
    with torch.set_grad_enabled(mode=False):
        e = x * 2
    return [a.requires_grad, b.requires_grad, c.is_inference(), e.requires_grad, x.detach() + c]


def _anomaly() -> str:
    x = torch.tensor([-1.0], device="cuda", requires_grad=True)
    with torch.autograd.detect_anomaly(check_nan=True):
        x.sqrt().sum().backward()
    return "nothing seen"


def _twice(d: str) -> list[torch.Tensor | None]:
    x = normal(d, 3).requires_grad_()
    y = (x**2).sum()
    y.backward(retain_graph=True)
    y.backward()
    return [x.grad]


def _twice_without_keeping() -> None:
    y = (torch.ones(3, device="cuda", requires_grad=True) ** 2).sum()
    y.backward()
    y.backward()


def _saved_tensor_hooks(d: str) -> list[torch.Tensor | None]:
    x = normal(d, 4).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.cpu(), lambda t: t.to(d)):
        y = x.exp()
    y.sum().backward()
    return [x.grad]


def _saved_on_host(d: str) -> list[torch.Tensor | None]:
    x = normal(d, 4).requires_grad_()
    with torch.autograd.graph.save_on_cpu(pin_memory=d == "cuda"):
        y = x.exp()
    y.sum().backward()
    return [x.grad]


def _functional_call(d: str) -> list[object]:
    net, x = nn.Linear(3, 2).to(d), normal(d, 5, 3)
    params = dict(net.named_parameters())

    def loss(weights: dict[str, torch.Tensor], row: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(net, weights, (row,)).square().sum()

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(params, x)
    return [each, torch.func.grad_and_value(loss)(params, x[0])]


def _changed_too_early() -> None:
    x = torch.ones(3, device="cuda", requires_grad=True)
    y = x.exp()
    y.add_(1)
    y.sum().backward()


FAMILIES: dict[str, list[Probe]] = {
    "autograd": [
        *same(
            {
                "gradients through many operators": lambda d: torch.autograd.grad(
                    (normal(d, 3, 4).requires_grad_() @ normal(d, 4, 2)).softmax(-1).log().mean(),
                    [normal(d, 1).requires_grad_()],
                    allow_unused=True,
                ),
                "gradients accumulated over two passes": _twice,
                "in place on views": _in_place_on_views,
                "hooks of tensors": _tensor_hooks,
                "hooks of modules": _module_hooks,
                "hooks after accumulating a gradient": _after_accumulating,
                "checkpoint": _checkpointed(reentrant=False),
                "checkpoint, reentrant": _checkpointed(reentrant=True),
                "checkpoint of a sequence": lambda d: checkpoint_sequential(
                    nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)).to(d),
                    2,
                    normal(d, 2, 3),
                    use_reentrant=False,
                ),
                "double backward": _double_backward,
                "custom function": _custom_function,
                "no_grad, enable_grad, inference_mode": _modes,
                "hooks of saved tensors": _saved_tensor_hooks,
                "saved tensors on the host": _saved_on_host,
                "detach shares memory": lambda d: normal(d, 3).requires_grad_().detach().add_(1),
                "gradient of an index": lambda d: torch.autograd.functional.jacobian(
                    lambda x: x[[0, 2]] * x[1], normal(d, 3)
                ),
                "vector-Jacobian and hessian": lambda d: (
                    torch.autograd.functional.vjp(lambda x: x.exp(), normal(d, 3), normal(d, 3)),
                    torch.autograd.functional.hessian(lambda x: (x**3).sum(), normal(d, 3)),
                ),
                "a gradient on another device than the loss": lambda d: torch.autograd.grad(
                    (x := normal(d, 3).requires_grad_()).cpu().square().sum(), x
                ),
                "backward through a copy to the device": lambda d: (
                    (x := torch.ones(3, requires_grad=True)).to(d).mul(2).sum().backward(),
                    x.grad.to(d),
                ),
                "backward with a given gradient": lambda d: (
                    (x := normal(d, 3).requires_grad_()).exp().backward(torch.ones(3, device=d)),
                    x.grad,
                ),
            }
        ),
        Gives("checkpoint keeps the random numbers", _checkpointed_dropout),
        Gives(
            "name of an autograd node",
            lambda: type(torch.ones(2, device="cuda", requires_grad=True).exp().grad_fn).__name__,
            "ExpBackward0",
        ),
        Raises(
            "anomaly mode",
            _anomaly,
            RuntimeError,
            r"Function 'SqrtBackward0' returned nan values in its 0th output\.",
        ),
        Raises(
            "backward twice",
            _twice_without_keeping,
            RuntimeError,
            r"Trying to backward through the graph a second time .*",
        ),
        Raises(
            "a saved tensor changed before backward",
            _changed_too_early,
            RuntimeError,
            r"one of the variables needed for gradient computation has been modified by an "
            r"inplace operation: \[\S+ \[3\]\], which is output 0 of "
            r"\w+, is at version 1; expected version 0 instead\..*",
        ),
        Raises(
            "an integer that requires grad",
            lambda: torch.ones(2, dtype=torch.int64, device="cuda", requires_grad=True),
            RuntimeError,
            r"Only Tensors of floating point and complex dtype can require gradients",
        ),
    ],
    "transforms": [
        Same("vmap", lambda d: torch.vmap(torch.dot)(normal(d, 3, 4), normal(d, 3, 4))),
        Same("vmap of a matmul", lambda d: torch.vmap(lambda a: a @ a.T)(normal(d, 2, 3, 3))),
        Same("grad", lambda d: torch.func.grad(lambda x: x.sin().sum())(normal(d, 3))),
        Same("jacrev", lambda d: torch.func.jacrev(lambda x: x**2)(normal(d, 3))),
        Same("jacfwd", lambda d: torch.func.jacfwd(lambda x: x**2)(normal(d, 3))),
        Same(
            "jvp, vjp",
            lambda d: (
                torch.func.jvp(torch.sin, (normal(d, 3),), (normal(d, 3),)),
                torch.func.vjp(torch.sin, normal(d, 3))[0],
            ),
        ),
        Same("functional_call, gradients of each row", _functional_call),
    ],
}
