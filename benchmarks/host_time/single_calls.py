"""Single calls to time on the host: operators, autograd, modules, optimizers, memory."""

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import cycle
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.fidelity.bench import new_stream
from gpulab.device.work import Work

_N_TINY = 64
_MIB = 1 << 20
_N_MOVED = 8  # allocations in one go

# A call to time, the number of calls in a row, and the untimed call before each round.
Call = tuple[Work, int, Work]


def read(call: Call, n_rounds: int) -> list[float]:
    """Return the host time of one call in microseconds, from an idle queue, for each round."""
    work, n_calls, before = call
    readings = []
    for _ in range(n_rounds):
        before()
        torch.cuda.synchronize()
        start_s = time.perf_counter()
        for _ in range(n_calls):
            work()
        readings.append((time.perf_counter() - start_s) / n_calls * 1e6)
    torch.cuda.synchronize()
    return readings


def nothing() -> None:
    """Do nothing."""


def tiny(*sizes: int, grad: bool = False) -> torch.Tensor:
    """Return a tensor so small that a kernel on it takes the least time possible."""
    return torch.rand(*(sizes or (8, _N_TINY)), device="cuda", requires_grad=grad)


def _operators() -> dict[str, Callable[[torch.Tensor], torch.Tensor]]:
    """Return functions of one tensor of 8 x 64."""
    weight, bias = tiny(_N_TINY, _N_TINY, grad=True), tiny(_N_TINY, grad=True)
    other = tiny(grad=True)
    classes = torch.zeros(8, dtype=torch.int64, device="cuda")
    picture = tiny(2, 4, 8, 8, grad=True)
    filters = tiny(4, 4, 3, 3, grad=True)
    channel = tiny(4, grad=True)
    indices = torch.zeros(8, dtype=torch.int64, device="cuda")
    heads = tiny(1, 2, 8, 32, grad=True)
    running = [torch.zeros(4, device="cuda"), torch.ones(4, device="cuda")]
    return {
        "add number": lambda x: x + 1,
        "mul number": lambda x: x * 2,
        "add": lambda x: x + other,
        "mul": lambda x: x * other,
        "sub": lambda x: x - other,
        "div": lambda x: x / other,
        "pow": lambda x: x**2,
        "exp": torch.exp,
        "relu": functional.relu,
        "gelu": functional.gelu,
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "silu": functional.silu,
        "clamp": lambda x: x.clamp(0, 1),
        "softmax": lambda x: x.softmax(-1),
        "log_softmax": lambda x: functional.log_softmax(x, -1),
        "sum": lambda x: x.sum(),
        "mean": lambda x: x.mean(),
        "sum of rows": lambda x: x.sum(1),
        "max of rows": lambda x: x.max(1).values,
        "linear": lambda x: functional.linear(x, weight, bias),
        "matmul": lambda x: x @ weight,
        "bmm": lambda x: torch.bmm(x.view(2, 4, 64), weight.view(2, 64, 32)),
        "conv2d": lambda x: functional.conv2d(picture, filters, channel, padding=1),  # noqa: ARG005 # images instead
        "batch_norm": lambda x: functional.batch_norm(  # noqa: ARG005 # as above
            picture, running[0], running[1], channel, channel, training=True
        ),
        "max_pool2d": lambda x: functional.max_pool2d(picture, 2),  # noqa: ARG005 # as above
        "avg_pool": lambda x: functional.adaptive_avg_pool2d(picture, 1),  # noqa: ARG005 # as above
        "layer_norm": lambda x: functional.layer_norm(x, (_N_TINY,), bias, bias),
        "group_norm": lambda x: functional.group_norm(picture, 2, channel, channel),  # noqa: ARG005 # as above
        "dropout": lambda x: functional.dropout(x, 0.5),
        "embedding": lambda x: functional.embedding(indices, weight),  # noqa: ARG005 # indices instead
        "attention": lambda x: functional.scaled_dot_product_attention(heads, heads, heads),  # noqa: ARG005 # heads
        "cross_entropy": lambda x: functional.cross_entropy(x, classes),
        "mse_loss": lambda x: functional.mse_loss(x, other),
        "bce": lambda x: functional.binary_cross_entropy_with_logits(x, other),
        "view": lambda x: x.view(64, 8),
        "transpose": lambda x: x.t(),
        "permute and contiguous": lambda x: x.t().contiguous(),
        "slice": lambda x: x[:, :32],
        "unsqueeze": lambda x: x.unsqueeze(0),
        "expand": lambda x: x.unsqueeze(0).expand(4, -1, -1),
        "split": lambda x: x.split(32, dim=1)[0],
        "cat": lambda x: torch.cat([x, other]),
        "stack": lambda x: torch.stack([x, other]),
        "index": lambda x: x[indices],
        "gather": lambda x: x.gather(1, classes.unsqueeze(1)),
        "masked_fill": lambda x: x.masked_fill(x > 0, 0.0),
        "where": lambda x: torch.where(x > 0, x, other),
        "float to half": lambda x: x.half(),
    }


def operator_calls() -> Iterator[tuple[str, Call]]:
    """Yield each operator without gradients, with them, and its backward pass."""
    x = tiny(grad=True)
    for name, function in _operators().items():

        def plain(function: Callable[[torch.Tensor], torch.Tensor] = function) -> None:
            with torch.no_grad():
                for _ in range(10):
                    function(x)

        yield f"{name}: ten without gradients", (plain, 5, nothing)
        yield f"{name}: with gradients", (partial(function, x), 50, nothing)
        yield f"{name}: backward", _backward(partial(function, x))


def _backward(make: Callable[[], torch.Tensor]) -> Call:
    """Return the backward pass of a function; its forward passes run before, untimed."""
    ready: list[tuple[torch.Tensor, torch.Tensor]] = []

    def before() -> None:
        # Twenty graphs, because a backward pass frees its graph and can run only once.
        ready[:] = [(out := make(), torch.ones_like(out)) for _ in range(20)]

    def back() -> None:
        out, gradient = ready.pop()
        torch.autograd.backward(out, gradient)

    return back, 20, before


def chain_calls() -> Iterator[tuple[str, Call]]:
    """Yield chains of one operator and of several, forward and backward."""
    other, weight, bias = tiny(), tiny(_N_TINY, _N_TINY, grad=True), tiny(_N_TINY, grad=True)
    several: list[Callable[[torch.Tensor], torch.Tensor]] = [
        *(
            torch.relu,
            lambda x: x * 2,
            lambda x: functional.linear(x, weight, bias),
            torch.sigmoid,
        ),
        *(lambda x: x + other, lambda x: x.softmax(-1), lambda x: x - other, torch.tanh),
        *(lambda x: functional.layer_norm(x, (_N_TINY,)), lambda x: x.view(64, 8).view(8, 64)),
    ]

    for grad in (False, True):
        start = tiny(grad=grad)
        text = "with gradients" if grad else "without gradients"
        # Two lengths, so that the cost of an operator can be told from that of the round.
        for n in (10, 60):
            yield f"chain of {n} relu, {text}", (_going(start, [torch.relu], n), 3, nothing)
            yield f"chain of {n} mixed, {text}", (_going(start, several, n), 3, nothing)
    leaf = tiny(grad=True)
    for n in (1, 10, 60):
        kinds: dict[str, list[Callable[[torch.Tensor], torch.Tensor]]] = {
            "relu": [torch.relu],
            "additions of a number": [lambda x: x + 1],
            "mixed": several,
        }
        for name, functions in kinds.items():
            yield f"backward through {n} {name}", _backward(_going(leaf, functions, n))
    # The difference between the numbers of leaves is what one of them costs.
    for n in (1, 20, 80):
        leaves = [tiny(grad=True) for _ in range(n)]
        yield f"backward to {n} leaves, no gradients yet", _to_leaves(leaves, fresh=True)
        yield f"backward to {n} leaves, gradients there", _to_leaves(leaves, fresh=False)


def _going(
    start: torch.Tensor, functions: list[Callable[[torch.Tensor], torch.Tensor]], n: int
) -> Callable[[], torch.Tensor]:
    """Return a function that applies ``n`` of the functions in turn."""

    def go() -> torch.Tensor:
        x = start
        for _, function in zip(range(n), cycle(functions), strict=False):
            x = function(x)
        return x

    return go


def _to_leaves(leaves: list[torch.Tensor], *, fresh: bool) -> Call:
    ready: list[torch.Tensor] = []

    def before() -> None:
        for leaf in leaves:
            leaf.grad = None if fresh else torch.zeros_like(leaf)
        ready[:] = [torch.stack([leaf.view(-1)[0] for leaf in leaves]).sum()]

    def back() -> None:
        torch.autograd.backward(ready.pop())

    return back, 1, before


def _nested(depth: int) -> nn.Module:
    module: nn.Module = nn.Identity()
    for _ in range(depth):
        module = nn.Sequential(module)
    return module


def _hooked(n: int) -> nn.Module:
    module = nn.Identity()
    for _ in range(n):
        module.register_forward_hook(lambda *_: None)
    return module


def _pre_hooked() -> nn.Module:
    module = nn.Identity()
    module.register_forward_pre_hook(lambda *_: None)
    return module


def _back_hooked() -> nn.Module:
    module = nn.ReLU()
    module.register_full_backward_hook(lambda *_: None)
    return module


def module_calls() -> Iterator[tuple[str, Call]]:
    """Yield calls of modules, with and without hooks."""
    x, picture = tiny(), tiny(2, 4, 8, 8)
    modules = {
        "Identity": nn.Identity(),
        "Identity with a hook": _hooked(1),
        "Identity with three hooks": _hooked(3),
        "Identity with a pre-hook": _pre_hooked(),
        "Sequential of ten Identity": nn.Sequential(*[nn.Identity() for _ in range(10)]),
        "ten nested Sequential": _nested(10),
        "ReLU": nn.ReLU(),
        "Linear": nn.Linear(_N_TINY, _N_TINY),
        "LayerNorm": nn.LayerNorm(_N_TINY),
        "Dropout": nn.Dropout(0.5),
        "GELU": nn.GELU(),
    }
    for name, module in modules.items():
        yield f"module {name}", (partial(module.cuda(), x), 50, nothing)
    for name, module in {
        "Conv2d": nn.Conv2d(4, 4, 3, padding=1),
        "BatchNorm2d": nn.BatchNorm2d(4),
        "BatchNorm2d, eval": nn.BatchNorm2d(4).eval(),
        "MaxPool2d": nn.MaxPool2d(2),
    }.items():
        yield f"module {name}", (partial(module.cuda(), picture), 50, nothing)
    grad = tiny(grad=True)
    yield "module ReLU with a backward hook", (partial(_back_hooked(), grad), 50, nothing)
    yield "backward of ReLU with a backward hook", _backward(partial(_back_hooked(), grad))
    yield "backward of ReLU without one", _backward(partial(nn.ReLU(), grad))
    sequence = torch.randn(16, 4, 32, device="cuda")
    for kind in (nn.LSTM, nn.GRU):
        for n_layers in (1, 2):
            rnn: Any = kind(32, 32, n_layers).cuda()
            text = f"{kind.__name__} of {n_layers}"
            yield f"module {text}", (partial(_without, rnn, sequence), 10, nothing)
            yield f"module {text} with gradients", (partial(rnn, sequence), 10, nothing)
            yield f"backward of {text}", _backward(partial(_first, rnn, sequence))
    attention: Any = nn.MultiheadAttention(32, 4).cuda()
    yield "module MultiheadAttention", (partial(attention, *(sequence,) * 3), 10, nothing)


def _without(module: Any, x: torch.Tensor) -> None:  # noqa: ANN401 # any module
    with torch.no_grad():
        module(x)


def _first(module: Any, x: torch.Tensor) -> torch.Tensor:  # noqa: ANN401 # any module
    out: torch.Tensor = module(x)[0]
    return out


def optimizer_calls() -> Iterator[tuple[str, Call]]:
    """Yield the steps of optimizers by kind and by number of parameters."""
    kinds: dict[str, tuple[Any, dict[str, Any]]] = {
        "SGD": (torch.optim.SGD, {}),
        "SGD, momentum": (torch.optim.SGD, {"momentum": 0.9}),
        "Adam": (torch.optim.Adam, {}),
        "AdamW": (torch.optim.AdamW, {}),
        "RMSprop": (torch.optim.RMSprop, {}),
        "Adagrad": (torch.optim.Adagrad, {}),
    }
    ways: dict[str, dict[str, Any]] = {
        "foreach": {"foreach": True},
        "loop": {"foreach": False},
        "fused": {"fused": True},
    }
    for name, (kind, options) in kinds.items():
        for way, choice in ways.items():
            if way == "fused" and name in {"RMSprop", "Adagrad"}:
                continue
            for n in (4, 40):
                parameters = _with_gradients(n)
                optimizer = kind(parameters, lr=1e-3, **options, **choice)
                yield f"step of {name}, {way}, {n} parameters", (optimizer.step, 2, nothing)
    for n in (4, 40):
        parameters = _with_gradients(n)
        optimizer = torch.optim.SGD(parameters, lr=1e-3)
        gradients = [torch.zeros_like(item) for item in parameters]
        yield (
            f"zero_grad to None, {n} parameters",
            (optimizer.zero_grad, 1, partial(_give, parameters, gradients)),
        )
        yield (
            f"zero_grad to zero, {n} parameters",
            (partial(optimizer.zero_grad, set_to_none=False), 2, nothing),
        )
        clipped = _with_gradients(n)
        yield (
            f"clip_grad_norm_, {n} parameters",
            (partial(nn.utils.clip_grad_norm_, clipped, 1.0), 2, nothing),
        )
    yield from _scaler_calls()


def _with_gradients(n: int) -> list[torch.Tensor]:
    parameters: list[torch.Tensor] = [
        nn.Parameter(torch.zeros(_N_TINY, device="cuda")) for _ in range(n)
    ]
    _give(parameters, [torch.zeros_like(item) for item in parameters])
    return parameters


def _give(parameters: list[torch.Tensor], gradients: list[torch.Tensor]) -> None:
    for item, gradient in zip(parameters, gradients, strict=True):
        item.grad = gradient


def _scaler_calls() -> Iterator[tuple[str, Call]]:
    scaler: Any = torch.amp.GradScaler("cuda")
    loss = torch.ones((), device="cuda")
    optimizer = torch.optim.SGD(_with_gradients(10), lr=1e-3)

    def scale() -> None:
        scaler.scale(loss)

    def step_and_update() -> None:
        scaler.step(optimizer)
        scaler.update()

    yield "GradScaler.scale", (scale, 20, nothing)
    yield "GradScaler.step and update", (step_and_update, 1, nothing)


def _enter(make: Callable[[], Any]) -> Work:
    def entered() -> None:
        with make():
            pass

    return entered


def context_calls() -> Iterator[tuple[str, Call]]:
    """Yield contexts that are entered and left."""
    side, autocast = new_stream(), partial(torch.autocast, "cuda", dtype=torch.bfloat16)
    contexts: dict[str, Callable[[], Any]] = {
        "nullcontext": nullcontext,
        "no_grad": torch.no_grad,
        "enable_grad": torch.enable_grad,
        "inference_mode": torch.inference_mode,
        "stream": partial(torch.cuda.stream, side),
        "device": partial(torch.cuda.device, 0),
        "autocast": autocast,
        "record_function": partial(torch.profiler.record_function, "x"),
    }
    for name, make in contexts.items():
        yield f"context {name}", (_enter(make), 50, nothing)
    decorated = torch.no_grad()(nothing)
    yield "function under no_grad", (decorated, 50, nothing)
    x, weight = tiny(), tiny(_N_TINY, _N_TINY, grad=True)

    def cast(n: int) -> None:
        with autocast():
            for _ in range(n):
                functional.linear(x, weight)

    # Ten more calls in the second: the difference leaves out what entering and leaving costs.
    yield "autocast, one linear", (partial(cast, 1), 10, nothing)
    yield "autocast, eleven linear", (partial(cast, 11), 5, nothing)
    yield (
        "autocast, eleven linear without gradients",
        (
            partial(_within_no_grad, partial(cast, 11)),
            *(5, nothing),
        ),
    )


def _within_no_grad(work: Work) -> None:
    with torch.no_grad():
        work()


def memory_calls() -> Iterator[tuple[str, Call]]:
    """Yield allocations from the cache and from the driver, copies, and reads."""
    # A size for each kind of block in PyTorch's allocator: small ones share 2 MiB, middling ones
    # 20 MiB, large ones get their own.
    for size in (_MIB, 8 * _MIB, 64 * _MIB):
        yield (
            f"eight times {size // _MIB} MiB from the cache",
            (
                partial(_take, size),
                *(1, partial(_take, size)),
            ),
        )
        yield (
            f"eight times {size // _MIB} MiB anew",
            (
                partial(_take, size),
                *(1, torch.cuda.empty_cache),
            ),
        )
        yield (
            f"empty_cache after eight times {size // _MIB} MiB",
            (
                torch.cuda.empty_cache,
                *(1, partial(_take, size)),
            ),
        )
    # On both sides of 64 KiB: up to there a pageable copy to the device may return before it has
    # ended.
    for size in (1 << 10, 1 << 14, 1 << 16, 1 << 17, 1 << 20, 1 << 23, 1 << 26):
        host, device = torch.zeros(size // 4), torch.zeros(size // 4, device="cuda")
        pinned = host.pin_memory()
        n = 20 if size <= _MIB else 2
        for name, here in (("pageable", host), ("pinned", pinned)):
            yield f"{name} copy in of {size} B", (partial(device.copy_, here), n, nothing)
            yield f"{name} copy out of {size} B", (partial(here.copy_, device), n, nothing)
        yield f"copy in of {size} B, new memory", (host.cuda, n, nothing)
        yield f"copy out of {size} B, new memory", (device.cpu, n, nothing)
        yield (
            f"pinned copy in of {size} B, not waited for",
            (
                partial(device.copy_, pinned, non_blocking=True),
                *(n, nothing),
            ),
        )
    x = tiny()[0, 0]
    yield "item", (x.item, 20, nothing)
    yield "float", (partial(float, x), 20, nothing)
    yield "synchronize", (torch.cuda.synchronize, 20, nothing)
    yield "empty", (partial(torch.empty, 64, device="cuda"), 50, nothing)
    yield "zeros", (partial(torch.zeros, 64, device="cuda"), 50, nothing)
    yield "randn", (partial(torch.randn, 64, device="cuda"), 50, nothing)
    yield "randint", (partial(torch.randint, 10, (64,), device="cuda"), 50, nothing)
    yield "arange", (partial(torch.arange, 64, device="cuda"), 50, nothing)
    yield "tensor of a list", (partial(torch.tensor, [1.0, 2.0], device="cuda"), 20, nothing)
    yield "host add", (partial(torch.add, torch.zeros(64), 1), 50, nothing)
    data = TensorDataset(torch.randn(256, 32), torch.randint(10, (256,)))
    for batch in (8, 64):
        loader = DataLoader(data, batch_size=batch)
        yield f"loader of {256 // batch} batches of {batch}", (partial(list, loader), 1, nothing)


def _take(size_bytes: int) -> None:
    held = [torch.empty(size_bytes, dtype=torch.uint8, device="cuda") for _ in range(_N_MOVED)]
    held.clear()


def saving_calls() -> Iterator[tuple[str, Call]]:
    """Yield checkpoints, hooks of saved tensors, and what autograd does around them."""
    x, layer = tiny(grad=True), nn.Linear(_N_TINY, _N_TINY).cuda()
    hooked = partial(_with_saved_hooks, x)
    yield "three exp with hooks of saved tensors", (hooked, 20, nothing)
    yield "backward of three exp with hooks of saved tensors", _backward(hooked)
    plain = partial(_three_exp, x)
    yield "three exp", (plain, 20, nothing)
    yield "backward of three exp", _backward(plain)
    for name, function in {"linear": layer, "three exp": _three_exp}.items():
        for keeps_state in (False, True):
            again: Any = partial(
                *(checkpoint, function, x),
                use_reentrant=False,
                preserve_rng_state=keeps_state,
            )
            text = f"checkpoint of {name}{', random state kept' if keeps_state else ''}"
            yield text, (again, 10, nothing)
            yield f"backward of {text}", _backward(again)
        old: Any = partial(checkpoint, function, x, use_reentrant=True)
        yield f"reentrant checkpoint of {name}", (old, 10, nothing)
        yield f"backward of reentrant checkpoint of {name}", _backward(old)
    yield "get_rng_state", (torch.cuda.get_rng_state, 20, nothing)
    yield (
        "set_rng_state",
        (partial(torch.cuda.set_rng_state, torch.cuda.get_rng_state()), 20, nothing),
    )
    yield "detach", (x.detach, 50, nothing)
    yield "data", (partial(getattr, x, "data"), 50, nothing)
    total = x.sum()
    yield (
        "gradient of a sum of exp, recorded",
        (
            partial(torch.autograd.grad, x.exp().sum(), x, retain_graph=True, create_graph=True),
            10,
            nothing,
        ),
    )
    yield (
        "gradient of a sum",
        (partial(torch.autograd.grad, total, x, retain_graph=True), 10, nothing),
    )


def _three_exp(x: torch.Tensor) -> torch.Tensor:
    return x.exp().exp().exp()


def _with_saved_hooks(x: torch.Tensor) -> torch.Tensor:
    with torch.autograd.graph.saved_tensors_hooks(lambda saved: saved, lambda saved: saved):
        return _three_exp(x)


def inference_calls() -> Iterator[tuple[str, Call]]:
    """Yield calls in inference mode, with autocast and without."""
    x, layer, norm = tiny(), nn.Linear(_N_TINY, _N_TINY).cuda(), nn.LayerNorm(_N_TINY).cuda()
    attention: Any = nn.MultiheadAttention(32, 4, batch_first=True).cuda().eval()
    sequence = torch.randn(4, 16, 32, device="cuda")
    works: dict[str, Work] = {
        "ten linear": lambda: [layer(x) for _ in range(10)],  # type: ignore[dict-item] # the result is not used
        "ten norms": lambda: [norm(x) for _ in range(10)],  # type: ignore[dict-item] # as above
        "ten linear and norms": lambda: [norm(layer(x)) for _ in range(10)],  # type: ignore[dict-item] # as above
        "attention": lambda: attention(sequence, sequence, sequence, need_weights=False),
    }
    for name, work in works.items():
        for mode in (torch.inference_mode, torch.no_grad):
            yield f"{mode.__name__}: {name}", (partial(_inside, mode, work), 5, nothing)
            yield (
                f"{mode.__name__}, autocast: {name}",
                (partial(_inside, mode, partial(_autocast, work)), 5, nothing),
            )


def _inside(mode: Callable[[], Any], work: Work) -> None:
    with mode():
        work()


def _autocast(work: Work) -> None:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        work()


def list_calls() -> Iterator[tuple[str, Call]]:
    """Yield multi-tensor operators, and what programs do with lists of parameters."""
    for n in (4, 40, 120):
        tensors = [torch.ones(_N_TINY, device="cuda") for _ in range(n)]
        others = [torch.ones(_N_TINY, device="cuda") for _ in range(n)]
        calls: dict[str, Work] = {
            "_foreach_add_": partial(torch._foreach_add_, tensors, others),  # programs use it
            "_foreach_mul": partial(torch._foreach_mul, tensors, 2.0),  # as above
            "_foreach_lerp_": partial(torch._foreach_lerp_, tensors, others, 0.5),  # as above
            "_foreach_norm": partial(torch._foreach_norm, tensors),  # as above
            "_foreach_zero_": partial(torch._foreach_zero_, tensors),  # as above
            "stack": partial(torch.stack, tensors),
            "cat": partial(torch.cat, tensors),
            "in a loop: mul_ and add_": partial(_averaged, tensors, others),
        }
        for name, call in calls.items():
            yield f"{name}, {n} tensors", (call, 3, nothing)
    model = nn.Sequential(*[nn.Linear(_N_TINY, _N_TINY) for _ in range(10)]).cuda()
    yield "parameters of ten layers", (lambda: list(model.parameters()), 10, nothing)  # type: ignore[arg-type] # the result is not used
    state = model.state_dict()
    yield "state_dict of ten layers", (model.state_dict, 5, nothing)
    yield "load_state_dict of ten layers", (partial(model.load_state_dict, state), 2, nothing)
    yield "train and eval of ten layers", (lambda: model.train().eval(), 5, nothing)  # type: ignore[arg-type] # as above
    logits = tiny(64, 4)
    category: Any = torch.distributions.Categorical
    yield "Categorical", (partial(category, logits=logits), 10, nothing)
    checked = category(logits=logits)
    yield "Categorical.sample", (checked.sample, 10, nothing)
    yield "Categorical.log_prob", (partial(checked.log_prob, checked.sample()), 10, nothing)
    normal: Any = torch.distributions.Normal
    yield "Normal", (partial(normal, logits, logits.exp(), validate_args=False), 10, nothing)
    yield "normalize", (partial(functional.normalize, logits), 10, nothing)
    yield (
        "one_hot",
        (
            partial(functional.one_hot, torch.zeros(64, dtype=torch.int64, device="cuda"), 4),
            5,
            nothing,
        ),
    )
    rate: Any = torch.optim.lr_scheduler.StepLR(torch.optim.SGD(_with_gradients(4), lr=0.1), 20)
    yield "StepLR.step", (rate.step, 10, nothing)


def _averaged(kept: list[torch.Tensor], new: list[torch.Tensor]) -> None:
    for old, item in zip(kept, new, strict=True):
        old.mul_(0.9).add_(item, alpha=0.1)


def index_calls() -> Iterator[tuple[str, Call]]:
    """Yield indices on either side, and waits for values."""
    x = tiny(256, _N_TINY)
    there, here = torch.arange(32, device="cuda"), torch.arange(32)
    mask, table = x[:, 0] > x[:, 1], torch.randn(256, _N_TINY)
    calls: dict[str, Callable[[], Any]] = {
        "index on the device": lambda: x[there],
        "index on the host": lambda: x[here],
        "index of a list": lambda: x[[1, 2, 3]],
        "index with a mask": lambda: x[mask],
        "two indices": lambda: x[there, there],
        "rows of host memory, sent": lambda: table[here].to("cuda"),
        "nonzero": mask.nonzero,
        "tolist": there.tolist,
        "int": lambda: int(there[0]),
        "if": lambda: bool(mask.any()),
        "assignment to a slice": lambda: x[:, 0].fill_(1.0),
        "sort": lambda: x.sort(dim=1),
        "topk": lambda: x.topk(2, dim=1),
        "cumsum": lambda: x.cumsum(1),
        "multinomial": lambda: torch.multinomial(x.abs(), 1),
        "randperm": lambda: torch.randperm(64, device="cuda"),
    }
    for name, call in calls.items():
        yield name, (call, 10, nothing)


def pinned_calls() -> Iterator[tuple[str, Call]]:
    """Yield pinning and pageable copies by size; the sizes of a copy that ends early are dense."""
    for size in (1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26):
        host = torch.zeros(size, dtype=torch.uint8)
        yield f"pin_memory of {size} B, first", (host.pin_memory, 1, _empty_host_cache)
        # Its memory is free again at once, so this one takes a block from the cache.
        yield f"pin_memory of {size} B, again", (host.pin_memory, 4, host.pin_memory)  # type: ignore[arg-type] # not used
        pinned: Any = partial(torch.empty, size, dtype=torch.uint8, pin_memory=True)
        yield f"empty pinned of {size} B, again", (pinned, 4, pinned)
        kept = host.clone()
        yield f"host copy of {size} B", (partial(kept.copy_, host), 4, nothing)
        yield f"host clone of {size} B", (host.clone, 4, nothing)
    for power in range(8, 27):
        size = 1 << power
        host = torch.zeros(size, dtype=torch.uint8)
        device = torch.zeros(size, dtype=torch.uint8, device="cuda")
        n = 10 if size <= _MIB else 2
        yield f"pageable in of {size} B", (partial(device.copy_, host), n, nothing)
        yield f"pageable out of {size} B", (partial(host.copy_, device), n, nothing)
        yield (
            f"pageable in of {size} B, not waited for",
            (partial(device.copy_, host, non_blocking=True), n, nothing),
        )


def _empty_host_cache() -> None:
    torch.cuda.synchronize()
    torch._C._host_emptyCache()  # type: ignore[attr-defined] # there is no public one


def single_calls() -> Iterator[tuple[str, Call]]:
    """Yield all calls by name."""
    yield from saving_calls()
    yield from inference_calls()
    yield from list_calls()
    yield from index_calls()
    yield from pinned_calls()
    yield from operator_calls()
    yield from chain_calls()
    yield from module_calls()
    yield from optimizer_calls()
    yield from context_calls()
    yield from memory_calls()
