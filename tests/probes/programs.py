"""Probes of small whole programs, as in tutorials."""

import math

import torch
from torch import nn
from torch.nn import functional

from tests.probes.table import Probe, Same, integers, normal


def _regression(d: str) -> list[object]:
    x = torch.linspace(-math.pi, math.pi, 200, device=d)
    powers = x.unsqueeze(-1).pow(torch.tensor([1, 2, 3], device=d))
    net = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0, 1)).to(d)
    optimizer, losses = torch.optim.RMSprop(net.parameters(), lr=1e-2), []
    for _ in range(20):
        loss = functional.mse_loss(net(powers), x.sin(), reduction="sum")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [losses, net[0].weight]


def _classifier(d: str) -> list[object]:
    net = nn.Sequential(
        *(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.LazyLinear(3)),
    )
    images, labels = torch.randn(12, 1, 8, 8), torch.arange(12) % 3
    net(images[:2])
    net = net.to(d).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for x, y in zip(images.split(4), labels.split(4), strict=True):
        optimizer.zero_grad()
        functional.cross_entropy(net(x.to(d)), y.to(d)).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        scores = net(images.to(d))
    return [scores, (scores.argmax(1) == labels.to(d)).float().mean().item()]


class _Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv = nn.LayerNorm(16), nn.Linear(16, 48)
        self.mix = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the result of causal attention and a feed-forward network."""
        n, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(n, length, 3, 2, 8).permute(2, 0, 3, 1, 4)
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + out.transpose(1, 2).reshape(n, length, width)
        return x + self.mix(x)


class _Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(11, 16), nn.Embedding(6, 16)
        self.blocks = nn.ModuleList(_Block() for _ in range(2))
        self.head = nn.Linear(16, 11, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the logits of the next token at each position."""
        x = self.tokens(ids) + self.places(torch.arange(ids.size(1), device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def _language_model(d: str) -> list[object]:
    net = _Gpt().to(d)
    ids = integers(d, 11, 3, 7)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    losses = []
    for _ in range(4):
        logits = net(ids[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return [torch.stack(losses), net.head.weight is net.tokens.weight]


def _generation(d: str) -> torch.Tensor:
    net, ids = _Gpt().to(d).eval(), torch.zeros(1, 1, dtype=torch.int64, device=d)
    with torch.inference_mode():
        for _ in range(5):
            scores = net(ids[:, -6:])[:, -1]
            ids = torch.cat([ids, scores.argmax(-1, keepdim=True)], dim=1)
    return ids


def _clusters(d: str) -> list[torch.Tensor]:
    x = torch.cat([torch.randn(20, 2) + shift for shift in (-4, 0, 4)]).to(d)
    centers = x[[0, 20, 40]].clone()
    for _ in range(5):
        nearest = torch.cdist(x, centers).argmin(1)
        sums = torch.zeros_like(centers).index_add_(0, nearest, x)
        centers = sums / torch.bincount(nearest, minlength=3).unsqueeze(1)
    return [centers, nearest]


def _largest_eigenvalue(d: str) -> torch.Tensor:
    a = normal(d, 6, 6)
    a, v = a @ a.t(), torch.ones(6, device=d)
    for _ in range(60):
        v = functional.normalize(a @ v, dim=0)
    return v @ a @ v


def _life(d: str) -> torch.Tensor:
    board = (normal(d, 12, 12) > 0.3).float()
    kernel = torch.ones(1, 1, 3, 3, device=d)
    kernel[0, 0, 1, 1] = 0
    for _ in range(4):
        padded = functional.pad(board[None, None], (1, 1, 1, 1), mode="circular")
        near = functional.conv2d(padded, kernel)[0, 0]
        board = ((near == 3) | ((board == 1) & (near == 2))).float()
    return board


def _mandelbrot(d: str) -> torch.Tensor:
    y, x = torch.meshgrid(
        torch.linspace(-1, 1, 16, device=d), torch.linspace(-2, 1, 24, device=d), indexing="ij"
    )
    c, z = torch.complex(x, y), torch.zeros(16, 24, dtype=torch.complex64, device=d)
    n_steps = torch.zeros(16, 24, dtype=torch.int64, device=d)
    for _ in range(12):
        inside = z.abs() < 2
        z = torch.where(inside, z * z + c, z)
        n_steps += inside
    return n_steps


def _heat(d: str) -> torch.Tensor:
    u = torch.zeros(10, 10, device=d)
    u[0] = 1
    for _ in range(15):
        u[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
    return u


def _sieve(d: str) -> torch.Tensor:
    numbers = torch.ones(60, dtype=torch.bool, device=d)
    numbers[:2] = False
    for n in range(2, 8):
        if numbers[n]:
            numbers[n * n :: n] = False
    return numbers.nonzero().flatten()


def _adversaries(d: str) -> list[torch.Tensor]:
    maker, judge = nn.Linear(2, 3).to(d), nn.Linear(3, 1).to(d)
    of_maker = torch.optim.Adam(maker.parameters(), lr=0.02, betas=(0.5, 0.9))
    of_judge = torch.optim.SGD(judge.parameters(), lr=0.02)
    for _ in range(3):
        made, real = maker(normal(d, 4, 2)), normal(d, 4, 3)
        loss = (
            functional.softplus(-judge(real)).mean()
            + functional.softplus(judge(made.detach())).mean()
        )
        of_judge.zero_grad()
        loss.backward()
        of_judge.step()
        judge.requires_grad_(requires_grad=False)
        of_maker.zero_grad()
        functional.softplus(-judge(made)).mean().backward()
        of_maker.step()
        judge.requires_grad_(requires_grad=True)
    return [*maker.parameters(), *judge.parameters()]


def _accumulated(d: str) -> list[torch.Tensor]:
    net = nn.Linear(3, 2).to(d)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for i, x in enumerate(normal(d, 4, 5, 3)):
        (net(x).square().mean() / 2).backward()
        if i % 2:
            optimizer.step()
            optimizer.zero_grad()
    return list(net.parameters())


def _tagger(d: str) -> list[torch.Tensor]:
    embedding, lstm, head = nn.Embedding(9, 4), nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 3)
    net = nn.ModuleDict({"embedding": embedding, "lstm": lstm, "head": head}).to(d)
    ids, tags = integers(d, 9, 2, 6), integers(d, 3, 2, 6)
    out, _ = net["lstm"](net["embedding"](ids))
    loss = functional.nll_loss(net["head"](out).log_softmax(-1).transpose(1, 2), tags)
    loss.backward()
    return [loss, net["embedding"].weight.grad]


def _frozen(d: str) -> list[object]:
    body, head = nn.Linear(3, 4).to(d), nn.Linear(4, 2).to(d)
    for parameter in body.parameters():
        parameter.requires_grad = False
    before = body.weight.clone()
    optimizer = torch.optim.Adam(
        filter(lambda p: p.requires_grad, nn.Sequential(body, head).parameters())
    )
    head(body(normal(d, 2, 3))).sum().backward()
    optimizer.step()
    return [torch.equal(before, body.weight), body.weight.grad, head.weight]


_PROGRAMS = {
    "a regression": _regression,
    "a classifier of images": _classifier,
    "a small language model": _language_model,
    "generation of text": _generation,
    "k-means": _clusters,
    "power iteration": _largest_eigenvalue,
    "the game of life": _life,
    "the Mandelbrot set": _mandelbrot,
    "heat on a plate": _heat,
    "a sieve": _sieve,
    "two adversaries": _adversaries,
    "accumulated gradients": _accumulated,
    "a tagger": _tagger,
    "a frozen body": _frozen,
}
FAMILIES: dict[str, list[Probe]] = {
    "programs": [Same(name, run, tolerance=1e-3) for name, run in _PROGRAMS.items()],
}
