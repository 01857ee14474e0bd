"""Whole programs that test the fitted host costs; nothing is fitted to them.

Their kinds were drawn from a list of 66 recipes that people train with, and none of them is in
the other two sets. They were written before any of them was recorded.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint_sequential
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.host_time.networks import Block, images, labels, perceptron, resnet, training
from gpulab.device.work import Work


def clipped_wgan() -> Work:
    """Train a Wasserstein GAN: three steps of the critic, with clipped weights, and one more."""
    maker, critic = perceptron(32, 128, 128, 256), perceptron(256, 128, 128, 1)
    maker_steps = torch.optim.RMSprop(maker.parameters(), lr=5e-5)
    critic_steps = torch.optim.RMSprop(critic.parameters(), lr=5e-5)
    real = torch.randn(64, 256, device="cuda")

    def step() -> None:
        for _ in range(3):
            critic_steps.zero_grad()
            made = maker(torch.randn(64, 32, device="cuda")).detach()
            torch.autograd.backward(-critic(real).mean() + critic(made).mean())
            critic_steps.step()
            for item in critic.parameters():
                item.data.clamp_(-0.01, 0.01)
        maker_steps.zero_grad()
        torch.autograd.backward(-critic(maker(torch.randn(64, 32, device="cuda"))).mean())
        maker_steps.step()

    return step


def dcgan() -> Work:
    """Train a GAN of convolutions, with losses that are read in each step."""
    maker = nn.Sequential(
        *(nn.ConvTranspose2d(32, 64, 4, 1, 0, bias=False), nn.BatchNorm2d(64), nn.ReLU()),
        *(nn.ConvTranspose2d(64, 32, 4, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU()),
        *(nn.ConvTranspose2d(32, 3, 4, 2, 1, bias=False), nn.Tanh()),
    ).cuda()
    judge = nn.Sequential(
        *(nn.Conv2d(3, 32, 4, 2, 1, bias=False), nn.LeakyReLU(0.2)),
        *(nn.Conv2d(32, 64, 4, 2, 1, bias=False), nn.BatchNorm2d(64), nn.LeakyReLU(0.2)),
        *(nn.Conv2d(64, 1, 4, 1, 0, bias=False), nn.Sigmoid()),
    ).cuda()
    first, second = (
        torch.optim.Adam(item.parameters(), lr=2e-4, betas=(0.5, 0.999)) for item in (judge, maker)
    )
    bce, real = nn.BCELoss(), images(16, 3, 16)

    def step() -> None:
        judge.zero_grad()
        wanted = torch.full((16,), 1.0, device="cuda")
        seen = judge(real).view(-1)
        loss = bce(seen, wanted)
        torch.autograd.backward(loss)
        made = maker(torch.randn(16, 32, 1, 1, device="cuda"))
        wanted.fill_(0.0)
        other = bce(judge(made.detach()).view(-1), wanted)
        torch.autograd.backward(other)
        first.step()
        maker.zero_grad()
        wanted.fill_(1.0)
        fooled = bce(judge(made).view(-1), wanted)
        torch.autograd.backward(fooled)
        second.step()
        _ = (loss.item(), other.item(), fooled.item())

    return step


def style() -> Work:
    """Change an image until the correlations of its features are those of another."""
    layers = [nn.Conv2d(3 if i == 0 else 16, 16, 3, padding=1).cuda() for i in range(4)]
    for layer in layers:
        layer.requires_grad_(requires_grad=False)

    def features(x: torch.Tensor) -> list[torch.Tensor]:
        found = []
        for layer in layers:
            x = functional.relu(layer(x))
            found.append(x)
        return found

    def correlations(x: torch.Tensor) -> torch.Tensor:
        batch, n_channels, height, width = x.shape
        flat = x.view(batch * n_channels, height * width)
        return torch.mm(flat, flat.t()).div(batch * n_channels * height * width)

    image = images(1, 3, 64).requires_grad_()
    content = features(images(1, 3, 64))[-1].detach()
    wanted = [correlations(item).detach() for item in features(images(1, 3, 64))]
    optimizer = torch.optim.Adam([image], lr=0.02)

    def step() -> None:
        with torch.no_grad():
            image.clamp_(0, 1)
        optimizer.zero_grad()
        found = features(image)
        parts = [
            functional.mse_loss(correlations(a), b) for a, b in zip(found, wanted, strict=True)
        ]
        loss = functional.mse_loss(found[-1], content) + 1e6 * torch.stack(parts).sum()
        torch.autograd.backward(loss)
        optimizer.step()

    return step


def quasi_newton() -> Work:
    """Fit a curve with L-BFGS, which calls the closure four times in a step."""
    model = perceptron(1, 50, 50, 1, activation=nn.Tanh)
    x = torch.linspace(-3, 3, 200, device="cuda").unsqueeze(1)
    y = torch.sin(x)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4, history_size=10)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        torch.autograd.backward(loss)
        return loss

    def step() -> None:
        kept: Any = optimizer
        kept.step(closure)

    return step


def physics() -> Work:
    """Train a network to solve an equation with second derivatives."""
    model = perceptron(2, 32, 32, 32, 1, activation=nn.Tanh)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start = torch.rand(64, 2, device="cuda")
    wanted = torch.sin(start[:, :1])

    def slope(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        (found,) = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
        return found

    def loss_of() -> torch.Tensor:
        x = torch.rand(256, 1, device="cuda", requires_grad=True)
        t = torch.rand(256, 1, device="cuda", requires_grad=True)
        u = model(torch.cat([x, t], dim=1))
        u_x = slope(u, x)
        rest = slope(u, t) + u * u_x - 0.01 * slope(u_x, x)
        return (rest**2).mean() + functional.mse_loss(model(start), wanted)

    return training(optimizer, loss_of)


def inner_loops() -> Work:
    """Learn weights from which one step of gradient descent learns each of four tasks."""
    weights = [
        (torch.randn(size, device="cuda") * 0.1).requires_grad_()
        for size in ((40, 1), (40,), (40, 40), (40,), (1, 40), (1,))
    ]
    optimizer = torch.optim.Adam(weights, lr=1e-3)
    tasks = [[torch.randn(10, 1, device="cuda") for _ in range(4)] for _ in range(4)]

    def outputs(x: torch.Tensor, given: list[torch.Tensor]) -> torch.Tensor:
        x = functional.relu(functional.linear(x, given[0], given[1]))
        x = functional.relu(functional.linear(x, given[2], given[3]))
        return functional.linear(x, given[4], given[5])

    def loss_of() -> torch.Tensor:
        losses = []
        for x, y, new_x, new_y in tasks:
            loss = functional.mse_loss(outputs(x, weights), y)
            slopes = torch.autograd.grad(loss, weights, create_graph=True)
            fast = [item - 0.01 * slope for item, slope in zip(weights, slopes, strict=True)]
            losses.append(functional.mse_loss(outputs(new_x, fast), new_y))
        return torch.stack(losses).mean()

    return training(optimizer, loss_of)


def prototypes() -> Work:
    """Train an embedding of images by the distances to the means of five classes."""
    layers: list[nn.Module] = []
    for n_in in (1, 32, 32):
        layers += [nn.Conv2d(n_in, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()]
        layers += [nn.MaxPool2d(2)]
    model = nn.Sequential(*layers, nn.Flatten()).cuda()
    known, asked = images(25, 1, 28), images(50, 1, 28)
    target = torch.arange(5, device="cuda").repeat_interleave(10)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> float:
        optimizer.zero_grad()
        found = model(torch.cat([known, asked], 0))
        means = found[:25].view(5, 5, -1).mean(1)
        logs = functional.log_softmax(-(torch.cdist(found[25:], means) ** 2), dim=1)
        loss = functional.nll_loss(logs, target)
        torch.autograd.backward(loss)
        optimizer.step()
        return logs.argmax(1).eq(target).float().mean().item()

    return step


class TwinCritic(nn.Module):
    """Two critics of a state and an action."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (perceptron(23, 256, 256, 1) for _ in range(2))

    def forward(self, state: torch.Tensor, action: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return both values."""
        both = torch.cat([state, action], 1)
        return self.first(both), self.second(both)


def twin_critics() -> Work:
    """Train TD3: two critics, a delayed actor, a replay memory in NumPy, and target networks."""
    actor, actor_target = perceptron(17, 256, 256, 6), perceptron(17, 256, 256, 6)
    critic, critic_target = TwinCritic(), TwinCritic()
    actor_steps = torch.optim.Adam(actor.parameters(), lr=3e-4)
    critic_steps = torch.optim.Adam(critic.parameters(), lr=3e-4)
    memory = [torch.randn(2_000, n).numpy() for n in (17, 6, 17, 1, 1)]

    def step() -> None:
        chosen = torch.randint(0, 2_000, (256,)).numpy()
        state, action, after, reward, going = (
            torch.FloatTensor(item[chosen]).to("cuda") for item in memory
        )
        with torch.no_grad():
            noise = (torch.randn_like(action) * 0.2).clamp(-0.5, 0.5)
            next_action = (torch.tanh(actor_target(after)) + noise).clamp(-1, 1)
            wanted = torch.min(*critic_target(after, next_action))
            wanted = reward + going * 0.99 * wanted
        first, second = critic(state, action)
        loss = functional.mse_loss(first, wanted) + functional.mse_loss(second, wanted)
        critic_steps.zero_grad()
        torch.autograd.backward(loss)
        critic_steps.step()
        actor_loss = -critic(state, torch.tanh(actor(state)))[0].mean()
        actor_steps.zero_grad()
        torch.autograd.backward(actor_loss)
        actor_steps.step()
        for network, kept in ((critic, critic_target), (actor, actor_target)):
            for new, old in zip(network.parameters(), kept.parameters(), strict=True):
                old.data.copy_(0.005 * new.data + 0.995 * old.data)

    return step


def cells() -> Work:
    """Train two LSTM cells to continue a wave, one time step after another."""
    first, second = nn.LSTMCell(1, 51).cuda(), nn.LSTMCell(51, 51).cuda()
    head = nn.Linear(51, 1).cuda()
    parameters = [*first.parameters(), *second.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    x, y = torch.randn(32, 12, device="cuda"), torch.randn(32, 12, device="cuda")

    def loss_of() -> torch.Tensor:
        h, c, h2, c2 = (torch.zeros(32, 51, device="cuda") for _ in range(4))
        outputs = []
        for part in x.split(1, dim=1):
            h, c = first(part, (h, c))
            h2, c2 = second(h, (h2, c2))
            outputs.append(head(h2))
        return functional.mse_loss(torch.cat(outputs, dim=1), y)

    return training(optimizer, loss_of)


def pointers() -> Work:
    """Train a decoder that points at one place of its input after another."""
    width = 64
    encoder = nn.LSTM(2, width, batch_first=True).cuda()
    decoder: Any = nn.LSTMCell(2, width).cuda()
    places, query = nn.Linear(width, width).cuda(), nn.Linear(width, width).cuda()
    score = nn.Linear(width, 1, bias=False).cuda()
    modules = nn.ModuleList([encoder, decoder, places, query, score])
    optimizer = torch.optim.Adam(modules.parameters(), lr=1e-3)
    x = torch.rand(32, 8, 2, device="cuda")
    order = torch.argsort(x[:, :, 0], dim=1)

    def loss_of() -> torch.Tensor:
        found, (h, c) = encoder(x)
        h, c = h[0], c[0]
        given, total = torch.zeros(32, 2, device="cuda"), torch.zeros((), device="cuda")
        mask = torch.zeros(32, 8, dtype=torch.bool, device="cuda")
        keys = places(found)
        for i in range(8):
            h, c = decoder(given, (h, c))
            scores = score(torch.tanh(keys + query(h).unsqueeze(1))).squeeze(-1)
            scores = scores.masked_fill(mask, float("-inf"))
            total = total + functional.cross_entropy(scores, order[:, i])
            mask = mask.scatter(1, order[:, i : i + 1], value=True)
            given = x[torch.arange(32, device="cuda"), order[:, i]]
        return total / 8

    return training(optimizer, loss_of)


def word_vectors() -> Work:
    """Train word vectors with negative samples."""
    inner, outer = nn.Embedding(5_000, 100).cuda(), nn.Embedding(5_000, 100).cuda()
    optimizer = torch.optim.SGD([*inner.parameters(), *outer.parameters()], lr=0.025)
    middle, around = (torch.randint(5_000, (512,), device="cuda") for _ in range(2))

    def step() -> float:
        others = torch.randint(5_000, (512, 5), device="cuda")
        here, there, wrong = inner(middle), outer(around), outer(others)
        right = functional.logsigmoid(torch.sum(here * there, dim=1).clamp(-10, 10))
        against = torch.bmm(wrong, here.unsqueeze(2)).squeeze().clamp(-10, 10)
        loss = -(right + functional.logsigmoid(-against).sum(dim=1)).mean()
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        return loss.item()

    return step


class WideAndDeep(nn.Module):
    """A linear part and a deep part over ten columns of categories."""

    def __init__(self) -> None:
        super().__init__()
        self.columns = nn.ModuleList(nn.Embedding(100, 8) for _ in range(10))
        self.wide = nn.ModuleList(nn.Embedding(100, 1) for _ in range(10))
        self.deep = nn.Sequential(
            *(nn.Linear(93, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2)),
            *(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2)),
            nn.Linear(32, 1),
        )

    def forward(self, kinds: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        """Return a probability for each row."""
        deep = [column(kinds[:, i]) for i, column in enumerate(self.columns)]
        wide = sum(column(kinds[:, i]) for i, column in enumerate(self.wide))
        return torch.sigmoid(wide + self.deep(torch.cat([*deep, numbers], dim=1))).squeeze(1)


def clicks() -> Work:
    """Train a wide and deep network to predict clicks."""
    model = WideAndDeep().cuda()
    kinds, numbers = torch.randint(100, (256, 10)), torch.randn(256, 13)
    y = torch.randint(2, (256,)).float()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)

    def loss_of() -> torch.Tensor:
        given = model(kinds.to("cuda"), numbers.to("cuda"))
        return functional.binary_cross_entropy(given, y.to("cuda"))

    return training(optimizer, loss_of)


class LowRank(nn.Module):
    """A frozen linear layer with a trained correction of low rank."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.base = nn.Linear(n_in, n_out)
        self.base.requires_grad_(requires_grad=False)
        self.down, self.up = nn.Linear(n_in, 4, bias=False), nn.Linear(4, n_out, bias=False)
        self.dropout = nn.Dropout(0.05)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the corrected output."""
        out: torch.Tensor = self.base(x) + 2.0 * self.up(self.down(self.dropout(x)))
        return out


def low_rank() -> Work:
    """Tune low-rank corrections of a frozen transformer in bfloat16."""
    blocks = []
    for _ in range(3):
        block = Block(128, 4)
        block.requires_grad_(requires_grad=False)
        block.attention.qkv = LowRank(128, 384)  # type: ignore[assignment] # in place of a linear layer
        blocks.append(block)
    model = nn.Sequential(*blocks, nn.Linear(128, 200)).cuda()
    x, y = torch.randn(4, 64, 128, device="cuda"), labels(4 * 64, 200)
    parameters = [item for item in model.parameters() if item.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)

    def loss_of() -> torch.Tensor:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return functional.cross_entropy(model(x).view(-1, 200), y)

    return training(optimizer, loss_of, clip=1.0)


class MaskedConv(nn.Conv2d):
    """A convolution that sees only the pixels before its own."""

    def __init__(self, n_in: int, n_out: int, size: int, *, sees_itself: bool) -> None:
        super().__init__(n_in, n_out, size, padding=size // 2)
        mask = torch.ones_like(self.weight)
        mask[:, :, size // 2, size // 2 + sees_itself :] = 0
        mask[:, :, size // 2 + 1 :] = 0
        self.register_buffer("mask", mask)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the convolution with the masked weight."""
        self.weight.data *= self.mask  # type: ignore[operator] # a buffer
        return super().forward(x)


def pixels() -> Work:
    """Train a network that predicts each pixel from those before it."""
    layers: list[nn.Module] = [MaskedConv(1, 32, 7, sees_itself=False), nn.BatchNorm2d(32)]
    for _ in range(4):
        layers += [nn.ReLU(), MaskedConv(32, 32, 7, sees_itself=True), nn.BatchNorm2d(32)]
    model = nn.Sequential(*layers, nn.ReLU(), nn.Conv2d(32, 64, 1)).cuda()
    x = torch.rand(8, 1, 16, 16, device="cuda")
    optimizer = torch.optim.Adam(model.parameters())

    def loss_of() -> torch.Tensor:
        target = (x[:, 0] * 63).long()
        return functional.cross_entropy(model(x), target)

    return training(optimizer, loss_of)


def scores() -> Work:
    """Train a network by denoising score matching, with an exponential learning rate."""
    model = perceptron(3, 128, 128, 128, 2, activation=nn.Softplus)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    rate: Any = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9999)
    data = torch.randn(256, 2, device="cuda")

    def step() -> None:
        t = torch.rand(data.shape[0], device="cuda") * (1.0 - 1e-5) + 1e-5
        std = torch.sqrt((25.0 ** (2 * t) - 1.0) / 2.0 / 3.2189)
        z = torch.randn_like(data)
        moved = data + z * std[:, None]
        found = model(torch.cat([moved, t[:, None]], dim=1)) / std[:, None]
        loss = torch.mean(torch.sum((found * std[:, None] + z) ** 2, dim=1))
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        rate.step()

    return step


class Denoiser(nn.Module):
    """Convolutions with an embedding of the time."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 32))
        self.start, self.end = nn.Conv2d(1, 32, 3, padding=1), nn.Conv2d(32, 1, 3, padding=1)
        self.convs = nn.ModuleList(nn.Conv2d(32, 32, 3, padding=1) for _ in range(3))
        self.norms = nn.ModuleList(nn.GroupNorm(8, 32) for _ in range(3))

    def forward(self, x: torch.Tensor, when: torch.Tensor) -> torch.Tensor:
        """Return the predicted noise."""
        rates = torch.exp(torch.arange(16, device=x.device) * -0.6)
        angles = when[:, None].float() * rates[None, :]
        time = self.time(torch.cat([angles.sin(), angles.cos()], dim=-1))
        x = self.start(x)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = x + functional.silu(norm(conv(x + time[:, :, None, None])))
        out: torch.Tensor = self.end(x)
        return out


def denoising() -> Work:
    """Turn noise into images in eight steps of a diffusion model."""
    model = Denoiser().cuda().eval()
    betas = torch.linspace(1e-4, 0.02, 1000, device="cuda")
    alphas = 1.0 - betas
    products = torch.cumprod(alphas, dim=0)

    @torch.no_grad()
    def step() -> torch.Tensor:
        x = torch.randn(8, 1, 16, 16, device="cuda")
        for i in reversed(range(8)):
            when = torch.full((8,), i, device="cuda", dtype=torch.long)
            noise = model(x, when)
            share = betas[when].view(-1, 1, 1, 1) / torch.sqrt(1 - products[when]).view(
                -1, 1, 1, 1
            )
            x = (x - share * noise) / torch.sqrt(alphas[when]).view(-1, 1, 1, 1)
            if i > 0:
                x = x + torch.sqrt(betas[when]).view(-1, 1, 1, 1) * torch.randn_like(x)
        return x.clamp(-1, 1)

    return step


class Experts(nn.Module):
    """Four experts; each word is sent to its best two."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, 4, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))
            for _ in range(4)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the weighted sum of the experts' outputs."""
        flat = x.view(-1, x.shape[-1])
        shares, chosen = torch.topk(functional.softmax(self.gate(flat), dim=1), 2, dim=-1)
        shares = shares / shares.sum(dim=-1, keepdim=True)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            # As many models do it: the host waits for the number of words of each expert.
            rows, columns = torch.where(chosen == i)
            found = expert(flat[rows]) * shares[rows, columns, None]
            out.index_add_(0, rows, found)
        return out.view(x.shape)


def experts() -> Work:
    """Train two layers of experts with residual connections."""
    layers = nn.ModuleList(Experts(64) for _ in range(2)).cuda()
    norms = nn.ModuleList(nn.LayerNorm(64) for _ in range(2)).cuda()
    head = nn.Linear(64, 100).cuda()
    x, y = torch.randn(8, 32, 64, device="cuda"), labels(8 * 32, 100)
    parameters = [*layers.parameters(), *norms.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)

    def loss_of() -> torch.Tensor:
        found = x
        for layer, norm in zip(layers, norms, strict=True):
            found = found + layer(norm(found))
        return functional.cross_entropy(head(found).view(-1, 100), y)

    return training(optimizer, loss_of)


class RelativeAttention(nn.Module):
    """Attention with a learned bias for each distance, and a norm by root mean squares."""

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.scale = nn.Parameter(torch.ones(width))
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.bias = nn.Embedding(32, n_heads)
        self.up, self.down = (
            nn.Linear(width, 2 * width, bias=False),
            nn.Linear(2 * width, width, bias=False),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's output."""
        batch, length, width = x.shape
        variance = x.pow(2).mean(-1, keepdim=True)
        normed = self.scale * (x * torch.rsqrt(variance + 1e-6))
        heads = (batch, length, self.n_heads, width // self.n_heads)
        q, k, v = (part(normed).view(heads).transpose(1, 2) for part in (self.q, self.k, self.v))
        places = torch.arange(length, device=x.device)
        distance = (places[None, :] - places[:, None]).abs().clamp(max=31)
        bias = self.bias(distance).permute(2, 0, 1).unsqueeze(0)
        scores = torch.matmul(q, k.transpose(3, 2)) + bias
        shares = functional.softmax(scores.float(), dim=-1).type_as(scores)
        mixed = torch.matmul(functional.dropout(shares, 0.1, self.training), v)
        x = x + self.o(mixed.transpose(1, 2).contiguous().view(batch, -1, width))
        out: torch.Tensor = x + self.down(functional.relu(self.up(x)))
        return out


def relative_positions() -> Work:
    """Train a transformer with relative positions, with AdamW and clipping."""
    model = nn.Sequential(*[RelativeAttention(64, 4) for _ in range(3)], nn.Linear(64, 200)).cuda()
    x, y = torch.randn(8, 32, 64, device="cuda"), labels(8 * 32, 200)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_of = nn.CrossEntropyLoss(ignore_index=-100)
    return training(optimizer, lambda: loss_of(model(x).view(-1, 200), y), clip=1.0)


def segmentation() -> Work:
    """Train a segmentation network with cross entropy and Dice, and count right pixels."""
    model = nn.Sequential(
        *(nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU()),
        *(nn.Conv2d(32, 64, 3, 1, 2, dilation=2), nn.BatchNorm2d(64), nn.ReLU()),
        nn.Conv2d(64, 4, 1),
        nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False),
    ).cuda()
    x, y = images(8, 3, 64), torch.randint(4, (8, 64, 64), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)

    def step() -> float:
        optimizer.zero_grad()
        out = model(x)
        shares = functional.softmax(out, dim=1)
        wanted = functional.one_hot(y, 4).permute(0, 3, 1, 2).float()
        common = (shares * wanted).sum(dim=(2, 3))
        union = shares.sum(dim=(2, 3)) + wanted.sum(dim=(2, 3))
        dice = 1 - ((2 * common + 1e-6) / (union + 1e-6)).mean()
        torch.autograd.backward(functional.cross_entropy(out, y) + dice)
        optimizer.step()
        with torch.no_grad():
            return (out.argmax(1) == y).float().mean().item()

    return step


def averaged() -> Work:
    """Train a residual network and an exponential average of its weights."""
    model: Any = resnet((16, 32))
    mean: Any = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
    x, y = images(32, 3, 32), labels(32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    train = training(optimizer, lambda: functional.cross_entropy(model(x), y))

    def step() -> None:
        train()
        mean.update_parameters(model)

    return step


def scheduled() -> Work:
    """Train a perceptron with warm-up and cosine, two batches for each step, and logs."""
    model = perceptron(64, 256, 256, 256, 10, activation=nn.GELU)
    decayed = [item for item in model.parameters() if item.ndim > 1]
    plain = [item for item in model.parameters() if item.ndim == 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
    optimizer: Any = torch.optim.AdamW(groups, lr=3e-4)
    warm_up: Any = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=10)
    cosine: Any = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
    rate = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm_up, cosine], [10])
    x, y = torch.randn(2, 64, 64), torch.randint(10, (2, 64))
    logs: list[float] = []

    def step() -> None:
        total = 0.0
        for i in range(2):
            loss = functional.cross_entropy(model(x[i].to("cuda")), y[i].to("cuda")) / 2
            torch.autograd.backward(loss)
            total += loss.item()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rate.step()
        optimizer.zero_grad(set_to_none=True)
        logs[:] = [total, norm.item(), rate.get_last_lr()[0]]

    return step


def evolution() -> Work:
    """Change a policy's weights by the results of ten random changes, without gradients."""
    policy = perceptron(8, 32, 32, 4, activation=nn.Tanh)
    weights = nn.utils.parameters_to_vector(policy.parameters()).detach()
    x, y = torch.randn(128, 8, device="cuda"), torch.randn(128, 4, device="cuda")

    @torch.no_grad()
    def step() -> None:
        nonlocal weights
        noises, results = [], []
        for _ in range(10):
            noise = torch.randn_like(weights)
            nn.utils.vector_to_parameters(weights + 0.1 * noise, policy.parameters())
            results.append(-functional.mse_loss(policy(x), y))
            noises.append(noise)
        gains = torch.stack(results)
        gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        weights = weights + 0.01 * (gains[:, None] * torch.stack(noises)).mean(0)

    return step


class Columns(nn.Module):
    """A transformer over the columns of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds = nn.ModuleList(nn.Embedding(20, 32) for _ in range(6))
        self.norm = nn.LayerNorm(6)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Sequential(nn.Linear(6 * 32 + 6, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, kinds: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        """Return a score for each row."""
        words = torch.stack([kind(kinds[:, i]) for i, kind in enumerate(self.kinds)], dim=1)
        found = self.encoder(words).flatten(1)
        out: torch.Tensor = self.head(torch.cat([found, self.norm(numbers)], dim=1))
        return out.squeeze(-1)


def columns() -> Work:
    """Train a transformer over columns with binary cross entropy."""
    model = Columns().cuda()
    kinds, numbers = torch.randint(20, (128, 6), device="cuda"), torch.randn(128, 6, device="cuda")
    y = torch.randint(2, (128,), device="cuda").float()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_of = nn.BCEWithLogitsLoss()
    return training(optimizer, lambda: loss_of(model(kinds, numbers), y))


def sets() -> Work:
    """Train a network on sets, by the sums and maxima over their elements."""
    each, head = perceptron(8, 128, 128, 64), perceptron(128, 64, 1)
    x, mask = (
        torch.randn(64, 50, 8, device="cuda"),
        torch.rand(64, 50, 1, device="cuda").bernoulli().bool(),
    )
    y = torch.randn(64, 1, device="cuda")
    optimizer = torch.optim.NAdam([*each.parameters(), *head.parameters()], lr=1e-3)

    def loss_of() -> torch.Tensor:
        found = each(x) * mask
        largest = found.masked_fill(~mask, -1e9).amax(dim=1)
        return functional.huber_loss(head(torch.cat([found.sum(dim=1), largest], dim=1)), y)

    return training(optimizer, loss_of)


def tasks() -> Work:
    """Train three heads on one body, with a learned weight for each task."""
    body = perceptron(64, 128, 128, 128)
    heads = nn.ModuleDict(
        {"a": nn.Linear(128, 10), "b": nn.Linear(128, 5), "c": nn.Linear(128, 1)}
    )
    heads = heads.cuda()
    noise = nn.Parameter(torch.zeros(3, device="cuda"))
    x, y = torch.randn(128, 64, device="cuda"), {"a": labels(128), "b": labels(128, 5)}
    y["c"] = torch.randn(128, 1, device="cuda")
    optimizer = torch.optim.Adamax([*body.parameters(), *heads.parameters(), noise], lr=1e-3)
    seen: dict[str, float] = {}

    def step() -> None:
        optimizer.zero_grad()
        shared = functional.relu(body(x))
        losses = []
        for name, head in heads.items():
            loss_of = functional.mse_loss if name == "c" else functional.cross_entropy
            losses.append(loss_of(head(shared), y[name]))
        total = sum(torch.exp(-noise[i]) * loss + noise[i] for i, loss in enumerate(losses))
        torch.autograd.backward(total)
        optimizer.step()
        seen.update({name: loss.item() for name, loss in zip(heads, losses, strict=True)})

    return step


def simulation() -> Work:
    """Learn forces through twenty steps of a simulation of masses."""
    force = perceptron(4, 32, 2, activation=nn.SiLU)
    place, speed = torch.randn(32, 2, device="cuda"), torch.zeros(32, 2, device="cuda")
    goal = torch.zeros(32, 2, device="cuda")
    optimizer = torch.optim.Adam(force.parameters(), lr=1e-3)

    def loss_of() -> torch.Tensor:
        x, v, cost = place, speed, torch.zeros((), device="cuda")
        for _ in range(20):
            push = force(torch.cat([x, v], dim=-1))
            v = v + 0.05 * (push - 9.8 * x - 0.1 * v)
            x = x + 0.05 * v
            cost = cost + 1e-3 * push.pow(2).sum(dim=-1).mean()
        return cost + (x - goal).norm(dim=-1).mean()

    return training(optimizer, loss_of)


def gaussian_process() -> Work:
    """Fit the length and the noise of a Gaussian process by its marginal likelihood."""
    logs = [torch.zeros((), device="cuda", requires_grad=True) for _ in range(3)]
    x = torch.linspace(0, 1, 64, device="cuda").unsqueeze(1)
    y = torch.sin(6 * x) + 0.1 * torch.randn(64, 1, device="cuda")
    optimizer = torch.optim.Adam(logs, lr=0.05)
    eye = torch.eye(64, device="cuda")

    def loss_of() -> torch.Tensor:
        length, height, noise = (item.exp() for item in logs)
        covariance = height * torch.exp(-0.5 * torch.cdist(x, x) ** 2 / length**2)
        factor = torch.linalg.cholesky(covariance + (noise + 1e-4) * eye)
        solved = torch.cholesky_solve(y, factor)
        return 0.5 * (y.t() @ solved).squeeze() + factor.diagonal().log().sum()

    return training(optimizer, loss_of)


def pinned_loader() -> Work:
    """Train on three batches of a loader with pinned memory, and count the right answers."""
    data = TensorDataset(torch.randn(192, 3, 32, 32), torch.randint(10, (192,)))
    batches: Any = DataLoader(data, batch_size=64, shuffle=True, pin_memory=True)
    model = nn.Sequential(
        *(nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 10)),
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step() -> int:
        n_right = 0
        for pair in batches:
            x, y = (item.to("cuda", non_blocking=True) for item in pair)
            optimizer.zero_grad()
            out = model(x)
            torch.autograd.backward(functional.cross_entropy(out, y))
            optimizer.step()
            n_right += int((out.argmax(1) == y).sum().item())
        return n_right

    return step


def checkpointed_sequence() -> Work:
    """Train a perceptron whose layers are computed again in the backward pass, in three parts."""
    model = perceptron(*(128,) * 10, 10, activation=nn.GELU)
    x, y = torch.randn(64, 128, device="cuda"), labels(64)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def loss_of() -> torch.Tensor:
        out: Any = checkpoint_sequential(model, 3, x, use_reentrant=False)
        return functional.cross_entropy(out, y)

    return training(optimizer, loss_of)


def self_distillation() -> Work:
    """Train a student to answer small crops as its running mean answers large ones."""

    def network() -> nn.Sequential:
        layers = [nn.Conv2d(3, 16, 3, 2, 1), nn.GELU(), nn.Conv2d(16, 32, 3, 2, 1), nn.GELU()]
        pooled = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 64), nn.GELU()]
        return nn.Sequential(*layers, *pooled, nn.Linear(64, 128)).cuda()

    student, teacher = network(), network()
    teacher.load_state_dict(student.state_dict())
    for item in teacher.parameters():
        item.requires_grad = False
    crops = [images(16, 3, size) for size in (32, 32, 16, 16)]
    center = torch.zeros(1, 128, device="cuda")
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-4)

    def step() -> None:
        nonlocal center
        answers = [teacher(item) for item in crops[:2]]
        wanted = [functional.softmax((item - center) / 0.04, dim=-1).detach() for item in answers]
        given = [functional.log_softmax(student(item) / 0.1, dim=-1) for item in crops]
        total, n_terms = torch.zeros((), device="cuda"), 0
        for i, first in enumerate(wanted):
            for j, second in enumerate(given):
                if i != j:
                    total = total + torch.sum(-first * second, dim=-1).mean()
                    n_terms += 1
        optimizer.zero_grad()
        torch.autograd.backward(total / n_terms)
        optimizer.step()
        with torch.no_grad():
            for new, old in zip(student.parameters(), teacher.parameters(), strict=True):
                old.data.mul_(0.996).add_((1 - 0.996) * new.detach().data)
            center = center * 0.9 + torch.cat(answers).mean(dim=0, keepdim=True) * 0.1

    return step


PROGRAMS: dict[str, Callable[[], Work]] = {
    "WGAN with clipped weights": clipped_wgan,
    "DCGAN": dcgan,
    "style transfer": style,
    "L-BFGS": quasi_newton,
    "physics-informed network": physics,
    "learning to learn": inner_loops,
    "prototypes": prototypes,
    "TD3": twin_critics,
    "LSTM cells": cells,
    "pointer network": pointers,
    "word vectors": word_vectors,
    "wide and deep": clicks,
    "low-rank tuning, bfloat16": low_rank,
    "masked pixels": pixels,
    "score matching": scores,
    "denoising loop": denoising,
    "mixture of experts": experts,
    "relative positions": relative_positions,
    "segmentation with Dice": segmentation,
    "averaged weights": averaged,
    "warm-up and cosine": scheduled,
    "evolution strategy": evolution,
    "column transformer": columns,
    "deep sets": sets,
    "several tasks": tasks,
    "simulation": simulation,
    "Gaussian process": gaussian_process,
    "loader with pinned memory": pinned_loader,
    "checkpointed sequence": checkpointed_sequence,
    "self-distillation": self_distillation,
}
