"""Probes of training: modules that move, optimizers, schedulers, data."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.utils.prune
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, default_collate

from tests.probes.table import Gives, Probe, Same, normal


def _net(d: str) -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)).to(d)


def _steps(
    make: Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer],
) -> Callable[[str], object]:
    """Return a program that trains a small network for three steps."""

    def run(d: str) -> list[torch.Tensor]:
        # After a norm layer some gradients are only rounding errors, which Adam scales up.
        net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(d)
        x, y = normal(d, 6, 4), normal(d, 6, 2)
        optimizer = make(net.parameters())
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss)
        return [*losses, *net.parameters()]

    return run


def _lbfgs(d: str) -> torch.Tensor:
    weight = nn.Parameter(normal(d, 3))
    optimizer = torch.optim.LBFGS([weight], max_iter=5)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (weight - 1).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return weight


def _scheduled(make: Callable[[torch.optim.Optimizer], Any]) -> Callable[[str], object]:
    """Return a program that takes four steps with a schedule and returns the learning rates."""

    def run(d: str) -> list[object]:
        weight = nn.Parameter(normal(d, 3))
        optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
        scheduler, rates = make(optimizer), []
        for _ in range(4):
            weight.grad = torch.ones_like(weight)
            optimizer.step()
            scheduler.step()
            rates += scheduler.get_last_lr()
        return [weight, rates]

    return run


def _clipped(d: str) -> list[object]:
    net = nn.Linear(4, 3).to(d)
    net(normal(d, 2, 4)).square().sum().backward()
    total = nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    nn.utils.clip_grad_value_(net.parameters(), 0.1)
    return [total, *(p.grad for p in net.parameters())]


def _scaled(*, with_inf: bool) -> Callable[[], object]:
    def run() -> list[object]:
        weight = nn.Parameter(torch.ones(3, device="cuda"))
        optimizer = torch.optim.SGD([weight], lr=0.5)
        scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
        loss = (weight * (float("inf") if with_inf else 2.0)).sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        return [weight.tolist(), scaler.get_scale(), sorted(scaler.state_dict())]

    return run


_SCALER_STATE = ["_growth_tracker", "backoff_factor", "growth_factor", "growth_interval", "scale"]


def _moved(d: str) -> list[object]:
    net = _net("cpu")
    weight = net[0].weight
    moved = net.to(d)
    return [
        moved is net,
        net[0].weight is weight,
        isinstance(net[0].weight, nn.Parameter),
        [str(p.dtype) for p in net.half().state_dict().values()],
        {b.device.type == d for b in net.double().buffers()},
        net.cpu()[0].weight.device.type,
        net.to(d, torch.bfloat16)[3].weight,
        all(p.is_leaf and p.requires_grad for p in net.parameters()),
    ]


def _tied(d: str) -> list[object]:
    net = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 5, bias=False))
    net[1].weight = net[0].weight
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net.to(d)
    net(torch.tensor([1, 4], device=d)).square().sum().backward()
    optimizer.step()
    return [net[1].weight is net[0].weight, len(list(net.parameters())), net[1].weight]


def _loaded_state(d: str) -> list[object]:
    one, other = _net(d), _net(d)
    result = other.load_state_dict(one.state_dict())
    other.load_state_dict(_net("cpu").state_dict())
    other.load_state_dict(one.state_dict(), assign=True)
    return [str(result), one(normal(d, 3, 4)), list(other.state_dict()), *other.parameters()]


def _copied(d: str) -> list[object]:
    one = _net(d)
    other = copy.deepcopy(one)
    with torch.no_grad():
        one[0].weight.zero_()
    shared = copy.copy(one)
    return [
        other[0].weight,
        isinstance(other[0].weight, nn.Parameter),
        shared[0] is one[0],
        copy.deepcopy({"x": [normal(d, 2)]}),
    ]


def _loaded(d: str, *, workers: int = 0) -> list[object]:
    rows = TensorDataset(torch.arange(20.0).view(10, 2), torch.arange(10))
    loader = DataLoader(rows, batch_size=4, num_workers=workers, pin_memory=d == "cuda")
    batches = [(x.to(d, non_blocking=True), y.to(d, non_blocking=True)) for x, y in loader]
    return [*batches, len(loader)]


FAMILIES: dict[str, list[Probe]] = {
    "modules": [
        Same("loaded state", _loaded_state),
        Same("tied weights, and an optimizer made before", _tied),
        Same("deepcopy", _copied),
        Gives(
            "moved and cast",
            lambda: _moved("cuda")[:6],
            [
                True,
                True,
                True,
                ["torch.float16"] * 6 + ["torch.int64"] + ["torch.float16"] * 2,
                {True},
                "cpu",
            ],
        ),
        Gives(
            "cuda()", lambda: {str(p.device) for p in _net("cpu").cuda().parameters()}, {"cuda:0"}
        ),
        Gives(
            "made on the device",
            lambda: str(nn.Linear(2, 3, device="cuda").weight.device),
            "cuda:0",
        ),
        Gives(
            "skipped initialisation",
            lambda: str(nn.utils.skip_init(nn.Linear, 2, 3, device="cuda").weight.device),
            "cuda:0",
        ),
        Same(
            "from meta to_empty",
            lambda d: nn.Linear(2, 3, device="meta").to_empty(device=d).weight.shape,
        ),
        Same(
            "buffers and parameter lists",
            lambda d: list(nn.ParameterList([normal("cpu", 2)]).to(d)),
        ),
        Same(
            "vector of parameters",
            lambda d: nn.utils.parameters_to_vector(nn.Linear(2, 3).to(d).parameters()),
        ),
        Same(
            "initialisers",
            lambda d: [
                nn.init.constant_(torch.empty(2, 2, device=d), 3),
                nn.init.eye_(torch.empty(2, 2, device=d)),
                nn.init.zeros_(torch.empty(2, device=d)),
                nn.init.kaiming_uniform_(torch.empty(4, 4, device=d)).abs().max() < 3,
            ],
        ),
        Same(
            "pruned",
            lambda d: nn.utils.prune.l1_unstructured(nn.Linear(3, 2).to(d), "weight", 2).weight,
        ),
    ],
    "optimizers": [
        *(
            Same(name, _steps(make))
            for name, make in {
                "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
                "SGD, momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
                "SGD, foreach": lambda p: torch.optim.SGD(
                    p, lr=0.1, foreach=True, weight_decay=0.1
                ),
                "SGD, fused": lambda p: torch.optim.SGD(p, lr=0.1, fused=True),
                "Adam": lambda p: torch.optim.Adam(p, lr=0.1),
                "Adam, single": lambda p: torch.optim.Adam(p, lr=0.1, foreach=False),
                "Adam, foreach": lambda p: torch.optim.Adam(p, lr=0.1, foreach=True, amsgrad=True),
                "Adam, fused": lambda p: torch.optim.Adam(p, lr=0.1, fused=True),
                "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1),
                "AdamW, single": lambda p: torch.optim.AdamW(p, lr=0.1, foreach=False),
                "AdamW, foreach": lambda p: torch.optim.AdamW(p, lr=0.1, foreach=True),
                "AdamW, fused": lambda p: torch.optim.AdamW(p, lr=0.1, fused=True),
                "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01, centered=True),
                "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
                "Adadelta": torch.optim.Adadelta,
                "NAdam": lambda p: torch.optim.NAdam(p, lr=0.1),
                "RAdam": lambda p: torch.optim.RAdam(p, lr=0.1),
                "Adamax": lambda p: torch.optim.Adamax(p, lr=0.1),
            }.items()
        ),
        Same("LBFGS", _lbfgs),
        *(
            Same(name, _scheduled(make))
            for name, make in {
                "StepLR": lambda o: torch.optim.lr_scheduler.StepLR(o, 2),
                "CosineAnnealingLR": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 4),
                "OneCycleLR": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.2, total_steps=6),
                "LambdaLR": lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda n: 0.9**n),
            }.items()
        ),
        Same("clip_grad_norm_ and clip_grad_value_", _clipped),
        Gives("GradScaler", _scaled(with_inf=False), [[0.0, 0.0, 0.0], 1024.0, _SCALER_STATE]),
        Gives(
            "GradScaler skips a step",
            _scaled(with_inf=True),
            [[1.0, 1.0, 1.0], 512.0, _SCALER_STATE],
        ),
        Same(
            "averaged model",
            lambda d: list(
                torch.optim.swa_utils.AveragedModel(nn.Linear(2, 2).to(d)).parameters()
            ),
        ),
    ],
    "data": [
        Same("DataLoader with pinned memory", _loaded),
        Same("DataLoader with two workers", lambda d: _loaded(d, workers=2)),
        Same(
            "default_collate",
            lambda d: default_collate([{"x": normal(d, 2)}, {"x": normal(d, 2)}]),
        ),
        Gives(
            "a pinned batch",
            lambda: next(iter(DataLoader([1, 2, 3], pin_memory=True))).is_pinned(),
        ),
    ],
}
