"""Probes of torch.save and torch.load: tensors, modules, optimizers, and their devices."""

import io
import pickle

import torch
from torch import nn

from tests.probes.table import Gives, Probe, Same, normal, same


def _net(d: str) -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)).to(d)


def _through_file(value: object, **options: object) -> object:  # the options of torch.load
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **options)


def _saved_optimizer(d: str) -> list[object]:
    net = nn.Linear(3, 2).to(d)
    optimizer = torch.optim.AdamW(net.parameters())
    net(normal(d, 2, 3)).sum().backward()
    optimizer.step()
    state = _through_file(optimizer.state_dict(), weights_only=True)
    other = torch.optim.AdamW(net.parameters())
    other.load_state_dict(state)
    other.step()
    return [*net.parameters(), other.state_dict()["state"][0]["exp_avg"]]


def _saved_views(d: str) -> list[object]:
    x = normal(d, 6)
    one, other = _through_file([x[:4], x[2:]])
    one[2] = 9
    return [one, other]


FAMILIES: dict[str, list[Probe]] = {
    "saving": [
        *same(
            {
                "tensor": lambda d: _through_file(normal(d, 3)),
                "tensor, weights_only": lambda d: _through_file(normal(d, 3), weights_only=True),
                "tensor, any object": lambda d: _through_file(
                    {"x": normal(d, 3)}, weights_only=False
                ),
                "state of a module": lambda d: _through_file(_net(d).state_dict()),
                "state of an optimizer": _saved_optimizer,
                "pickle": lambda d: pickle.loads(pickle.dumps(normal(d, 3))),
                "module": lambda d: (
                    _through_file(nn.Linear(3, 2).to(d), weights_only=False).weight
                ),
                "parameter": lambda d: _through_file(nn.Parameter(normal(d, 3))),
                "views of one memory": _saved_views,
                "half, not contiguous": lambda d: _through_file(normal(d, 3, 2).half().t()),
                "to another device": lambda d: _through_file(normal("cpu", 3), map_location=d),
            }
        ),
        Same(
            "by a function",
            lambda d: _through_file(normal(d, 3), map_location=lambda stored, _where: stored),
            on_host=True,
        ),
        Same(
            "to the host", lambda d: _through_file(normal(d, 3), map_location="cpu"), on_host=True
        ),
        Same(
            "to a device object",
            lambda d: _through_file({"x": normal("cpu", 3)}, map_location=torch.device(d)),
        ),
        Gives(
            "device of a loaded tensor",
            lambda: str(_through_file(torch.ones(2, device="cuda")).device),
            "cuda:0",
        ),
    ],
}
