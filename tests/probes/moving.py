"""Probes of copies between host and device, and of operations that mix the two."""

import numpy as np
import torch
from torch import nn

from tests.probes.table import Gives, Probe, Raises, Same, integers, normal, same


def _copied_into_parts(d: str) -> torch.Tensor:
    x = torch.zeros(4, 3, device=d)
    x[1:3].copy_(torch.ones(2, 3))
    x.t()[0].copy_(torch.arange(4, dtype=torch.float64))
    x[3] = torch.tensor([7, 8, 9])
    x[0, 1:] = torch.tensor([5.0, 6.0], dtype=torch.float16)
    return x


def _copied_out_of_parts(d: str) -> list[torch.Tensor]:
    host, x = torch.zeros(3, 4), normal(d, 4, 3)
    host[:, 1:3].copy_(x.t()[:, :2])
    whole = torch.zeros(4, 3, dtype=torch.float64)
    whole.copy_(x)
    return [host, whole, x[::2].cpu(), x.t().to("cpu", torch.float16)]


def _host_copy_is_apart(d: str) -> list[torch.Tensor]:
    source = torch.ones(3)
    x = source.to(d, copy=True)
    source.zero_()
    host = x.to("cpu", copy=True)
    x.mul_(5)
    return [x, host.to(d)]


def _like_each_other(d: str) -> list[object]:
    x, host = normal(d, 2).half(), torch.ones(2, dtype=torch.float64)
    return [
        *(host.to(x), host.type_as(x), torch.zeros_like(host, device=d)),
        *(torch.empty_like(host, device=d).fill_(1), torch.full_like(host, 2, device=d)),
        *(x.new_zeros(2), x.to(torch.float32, non_blocking=True), x.to(x.device, torch.int32)),
        *(torch.rand_like(host, device=d).shape, host.new_zeros(2, device=d)),
    ]


def _made_on_the_host(d: str) -> list[torch.Tensor]:
    x = normal(d, 2)
    return [
        *(torch.zeros_like(x, device="cpu"), x.new_ones(2, device="cpu"), x.cpu()),
        *(torch.tensor([x[0], x[1]]), torch.as_tensor(x, device="cpu"), torch.tensor(x.tolist())),
    ]


def _numpy_numbers(d: str) -> list[object]:
    x = normal(d, 3)
    return [
        x * np.float32(2),
        np.float64(2) * x,
        x + np.int64(1),
        x > np.float32(0),
        x ** np.int32(2),
    ]


def _python_operators(d: str) -> list[object]:
    x, y = normal(d, 3), integers(d, 5, 3) + 1
    a = x.clone()
    a **= 2
    a /= 3
    return [-x, +x, abs(x), x % 2, y // 2, x.t(), a, ~y, y & 1, x.__matmul__(x), divmod(7, 2)]


def _as_python_numbers(d: str) -> list[object]:
    n = torch.tensor(3, device=d)
    return [
        list(range(n)),
        [0] * n,
        2 * int(n),
        f"{n:d}",
        round(float(n) / 7, 3),
        "abcd"[n],
    ]


def _loops(d: str) -> list[object]:
    x, steps = torch.tensor(100.0, device=d), 0
    while x > 1:
        x, steps = x / 3, steps + 1
    rows = [a @ b for a, b in zip(normal(d, 3, 2), normal(d, 3, 2), strict=True)]
    return [
        steps,
        x,
        torch.stack(rows),
        sorted(t.item() for t in rows) == sorted(torch.stack(rows).tolist()),
    ]


def _by_hand(d: str) -> list[torch.Tensor]:
    weight, x = normal(d, 3).requires_grad_(), normal(d, 5, 3)
    for _ in range(3):
        loss = (x @ weight - 1).square().mean()
        loss.backward()
        with torch.no_grad():
            weight -= 0.1 * weight.grad
        weight.grad.zero_()
    weight.data.clamp_(-1, 1)
    weight.data = weight.data * 2
    return [weight, weight.grad]


def _shared_by_views(d: str) -> list[torch.Tensor]:
    weight = nn.Parameter(normal(d, 3))
    state = {"weight": weight.detach()}
    with torch.no_grad():
        weight.add_(1)
    state["weight"].mul_(2)
    return [weight, state["weight"], weight.data]


def _results_given(d: str) -> list[object]:
    x, value, index = (
        normal(d, 3, 4),
        torch.empty(3, device=d),
        torch.empty(3, dtype=torch.int64, device=d),
    )
    torch.max(x, 1, out=(value, index))
    total = torch.empty(4, device=d)
    torch.sum(x, 0, out=total)
    product = torch.zeros(3, 3, device=d)
    torch.matmul(x, x.t(), out=product)
    stacked = torch.empty(2, 3, device=d)
    torch.stack([value, value], out=stacked)
    return [value, index, total, product, stacked, torch.arange(3, out=torch.empty(3, device=d))]


def _state_between_devices(d: str) -> list[object]:
    net, other = nn.Linear(3, 2), nn.Linear(3, 2).to(d)
    other.load_state_dict(net.state_dict())
    net.load_state_dict(other.state_dict())
    one, two = torch.optim.Adam(net.parameters()), torch.optim.Adam(other.parameters())
    net(torch.ones(1, 3)).sum().backward()
    one.step()
    two.load_state_dict(one.state_dict())
    return [two.state[other.weight]["exp_avg"], other.weight, str(net.weight.device)]


def _activations_are_held() -> list[bool]:
    net = nn.Sequential(*(nn.Linear(256, 256) for _ in range(4))).cuda()
    x = torch.randn(256, 256, device="cuda")
    before = torch.cuda.memory_allocated()
    y = net(x)
    with_graph = torch.cuda.memory_allocated() - before
    del y
    with torch.no_grad():
        y = net(x)
    return [with_graph >= 4 * x.nbytes, torch.cuda.memory_allocated() - before == y.nbytes]


def _without_memory() -> list[object]:
    before = torch.cuda.memory_allocated()
    with torch.device("meta"):
        layer = nn.Linear(2, 1)
    made = [layer.weight.is_meta, torch.cuda.memory_allocated() - before]
    layer.to_empty(device="cuda")
    layer.load_state_dict({"weight": torch.ones(1, 2), "bias": torch.ones(1)})
    return [*made, layer.weight.device.type, layer(torch.ones(1, 2, device="cuda")).tolist()]


FAMILIES: dict[str, list[Probe]] = {
    "moving": [
        *same(
            {
                "copies into parts of a tensor": _copied_into_parts,
                "a copy does not share memory with its source": _host_copy_is_apart,
                "like another tensor": _like_each_other,
                "numbers of NumPy": _numpy_numbers,
                "operators of Python": _python_operators,
                "as numbers of Python": _as_python_numbers,
                "loops": _loops,
                "steps by hand": _by_hand,
                "views and state share memory": _shared_by_views,
                "results written to out=": _results_given,
                "states between devices": _state_between_devices,
                "from an array, and back": lambda d: (
                    torch.from_numpy(np.arange(6.0).reshape(2, 3).T).to(d)[::2].contiguous()
                ),
                "a number on the device as a size": lambda d: torch.zeros(
                    int(torch.tensor(3, device=d)), device=d
                ),
                "gradient check": lambda d: torch.autograd.gradcheck(
                    lambda x, w: torch.tanh(x @ w).sum(0),
                    (
                        normal(d, 2, 3, dtype=torch.float64).requires_grad_(),
                        normal(d, 3, 2, dtype=torch.float64).requires_grad_(),
                    ),
                ),
            }
        ),
        Same("copies from parts of a tensor", _copied_out_of_parts, on_host=True),
        Same("made on the host from the device", _made_on_the_host, on_host=True),
        Gives("activations are saved for backward", _activations_are_held, [True, True]),
        Gives(
            "as_tensor of a device tensor",
            lambda: torch.as_tensor(x := torch.ones(2, device="cuda")) is x,
        ),
        Gives(
            "no copy without need",
            lambda: (x := torch.ones(2, device="cuda")).to("cuda") is x.cuda() is x,
        ),
        Gives("a model without memory", _without_memory, [True, 0, "cuda", [[3.0]]]),
        Raises(
            "copying a meta tensor",
            lambda: torch.empty(2, device="meta").to("cuda"),
            NotImplementedError,
            r"Cannot copy out of meta tensor; no data!.*",
        ),
        Raises(
            "writing to an expanded tensor",
            lambda: torch.ones(1, device="cuda").expand(3).add_(torch.ones(3, device="cuda")),
            RuntimeError,
            r"unsupported operation: more than one element of the written-to tensor refers to a "
            r"single memory location\. .*",
        ),
        Raises(
            "in place on a leaf",
            lambda: torch.ones(1, device="cuda", requires_grad=True).add_(1),
            RuntimeError,
            r"a leaf Variable that requires grad is being used in an in-place operation\.",
        ),
    ],
}
