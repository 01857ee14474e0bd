"""More programs to which the host costs are fitted; they tested an earlier fit."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from benchmarks.host_time.networks import (
    BasicBlock,
    Gpt,
    images,
    labels,
    perceptron,
    resnet,
    scaled_training,
    training,
)
from gpulab.device.work import Work


def logistic() -> Work:
    """Train a logistic regression by hand."""
    weight = torch.zeros(100, 10, device="cuda", requires_grad=True)
    bias = torch.zeros(10, device="cuda", requires_grad=True)
    x, y = torch.randn(256, 100, device="cuda"), labels(256)

    def step() -> None:
        loss = functional.cross_entropy(x @ weight + bias, y)
        torch.autograd.backward(loss)
        with torch.no_grad():
            for item in (weight, bias):
                if item.grad is not None:
                    item.sub_(0.1 * item.grad)
                    item.grad.zero_()

    return step


class ResidualMlp(nn.Module):
    """A norm and two linear layers, with a residual connection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.up = nn.LayerNorm(width), nn.Linear(width, 2 * width)
        self.down, self.drop = nn.Linear(2 * width, width), nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's output."""
        inner = functional.silu(self.up(self.norm(x)))
        out: torch.Tensor = x + self.drop(self.down(inner))
        return out


def tabular(width: int, batch: int) -> Work:
    """Train a perceptron with residual connections on tabular data."""
    blocks = [ResidualMlp(width) for _ in range(5)]
    model = nn.Sequential(nn.Linear(40, width), *blocks, nn.Linear(width, 1)).cuda()
    x, y = torch.randn(batch, 40, device="cuda"), torch.randn(batch, 1, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return training(optimizer, lambda: functional.smooth_l1_loss(model(x), y))


class Mixer(nn.Module):
    """A layer of MLP-Mixer."""

    def __init__(self, n_patches: int, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = nn.Sequential(nn.Linear(n_patches, 64), nn.GELU(), nn.Linear(64, n_patches))
        self.channels = nn.Sequential(nn.Linear(width, 256), nn.GELU(), nn.Linear(256, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the mixed patches."""
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        out: torch.Tensor = x + self.channels(self.norm2(x))
        return out


def mixer() -> Work:
    """Train an MLP-Mixer."""
    cut = nn.Conv2d(3, 128, 4, 4).cuda()
    layers = nn.Sequential(*[Mixer(64, 128) for _ in range(4)], nn.LayerNorm(128)).cuda()
    head = nn.Linear(128, 10).cuda()
    x, y = images(64, 3, 32), labels(64)
    parameters = [*cut.parameters(), *layers.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)

    def loss_of() -> torch.Tensor:
        patches = cut(x).flatten(2).transpose(1, 2)
        return functional.cross_entropy(head(layers(patches).mean(1)), y)

    return training(optimizer, loss_of)


def mobile() -> Work:
    """Train depthwise and pointwise convolutions with RMSprop."""
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32)]
    n_in = 32
    for width in (64, 128, 128, 256):
        layers += [nn.Conv2d(n_in, n_in, 3, 1, 1, groups=n_in, bias=False), nn.BatchNorm2d(n_in)]
        layers += [nn.ReLU6(), nn.Conv2d(n_in, width, 1, bias=False), nn.BatchNorm2d(width)]
        layers += [nn.ReLU6()]
        n_in = width
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n_in, 10)]
    model, x, y = nn.Sequential(*layers, *head).cuda(), images(16, 3, 32), labels(16)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9)
    return training(optimizer, lambda: functional.cross_entropy(model(x), y))


class ConvVae(nn.Module):
    """A convolutional variational autoencoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            *(nn.Conv2d(1, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 4, 2, 1), nn.ReLU()),
            nn.Flatten(),
        )
        self.mu, self.logvar = nn.Linear(64 * 49, 16), nn.Linear(64 * 49, 16)
        self.start = nn.Linear(16, 64 * 49)
        self.decoder = nn.Sequential(
            *(nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU()),
            nn.ConvTranspose2d(32, 1, 4, 2, 1),
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the reconstruction, the means and the logarithms of the variances."""
        hidden = self.encoder(x)
        mu, logvar = self.mu(hidden), self.logvar(hidden)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.decoder(self.start(z).view(-1, 64, 7, 7)), mu, logvar


def conv_vae() -> Work:
    """Train a convolutional variational autoencoder."""
    model, x = ConvVae().cuda(), torch.rand(64, 1, 28, 28, device="cuda")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def loss_of() -> torch.Tensor:
        again, mu, logvar = model(x)
        cross_entropy = functional.binary_cross_entropy_with_logits(again, x, reduction="sum")
        loss: torch.Tensor = cross_entropy - 0.5 * (1 + logvar - mu**2 - logvar.exp()).sum()
        return loss

    return training(optimizer, loss_of)


def diffusion() -> Work:
    """Train a denoiser, and keep a running mean of its weights."""
    model = perceptron(66, 256, 256, 256, 2, activation=nn.SiLU)
    mean = perceptron(66, 256, 256, 256, 2, activation=nn.SiLU)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = torch.randn(512, 2, device="cuda")
    shares = torch.linspace(0.999, 0.01, 1000, device="cuda")
    steps = torch.arange(32, device="cuda").float() / 32

    def step() -> None:
        when = torch.randint(0, 1000, (512,), device="cuda")
        noise = torch.randn_like(data)
        share = shares[when].unsqueeze(1)
        noisy = share.sqrt() * data + (1 - share).sqrt() * noise
        angle = when.unsqueeze(1) * torch.exp(-steps)
        x = torch.cat([noisy, angle.sin(), angle.cos()], dim=1)
        loss = functional.mse_loss(model(x), noise)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        with torch.no_grad():
            for average, new in zip(mean.parameters(), model.parameters(), strict=True):
                average.mul_(0.999).add_(new, alpha=0.001)

    return step


class Recurrent(nn.Module):
    """A recurrent layer over words, with a linear layer on all of its outputs or on the last."""

    def __init__(self, kind: type[nn.RNNBase], width: int, *, both_ways: bool) -> None:
        super().__init__()
        self.words = nn.Embedding(2_000, width)
        self.rnn: Any = kind(width, width, batch_first=True, bidirectional=both_ways)  # type: ignore[call-arg,arg-type] # the base class takes the mode first
        self.head = nn.Linear(2 * width if both_ways else width, 12)
        self.each = both_ways

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        out, _ = self.rnn(self.words(words))
        logits: torch.Tensor = self.head(out if self.each else out[:, -1])
        return logits.flatten(0, -2)


def gru() -> Work:
    """Train a classifier of sequences with clipped gradients."""
    model = Recurrent(nn.GRU, 128, both_ways=False).cuda()
    words, y = torch.randint(2_000, (32, 40), device="cuda"), labels(32, 12)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return training(optimizer, lambda: functional.cross_entropy(model(words), y), clip=1.0)


def tagger() -> Work:
    """Train a bidirectional LSTM with fused Adam."""
    model = Recurrent(nn.LSTM, 96, both_ways=True).cuda()
    words, y = torch.randint(2_000, (16, 24), device="cuda"), labels(16 * 24, 12)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    return training(optimizer, lambda: functional.cross_entropy(model(words), y))


def translation() -> Work:
    """Train PyTorch's own encoder and decoder."""
    core = nn.Transformer(128, 4, 2, 2, 256, batch_first=True).cuda()
    words, head = nn.Embedding(1_000, 128).cuda(), nn.Linear(128, 1_000).cuda()
    source = torch.randint(1_000, (16, 30), device="cuda")
    target = torch.randint(1_000, (16, 31), device="cuda")
    parameters = [*core.parameters(), *words.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-4)
    mask = torch.triu(torch.full((30, 30), float("-inf"), device="cuda"), diagonal=1)

    def loss_of() -> torch.Tensor:
        out = core(words(source), words(target[:, :-1]), tgt_mask=mask)
        return functional.cross_entropy(head(out).reshape(-1, 1_000), target[:, 1:].reshape(-1))

    return training(optimizer, loss_of)


class VitBlock(nn.Module):
    """A layer of a vision transformer with PyTorch's own attention."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.inner = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's output."""
        normed = self.norm1(x)
        x = x + self.attention(normed, normed, normed, need_weights=False)[0]
        out: torch.Tensor = x + self.inner(self.norm2(x))
        return out


class Vit(nn.Module):
    """A small vision transformer."""

    def __init__(self, width: int, n_blocks: int) -> None:
        super().__init__()
        self.cut = nn.Conv2d(3, width, 8, 8)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.zeros(1, 65, width))
        self.blocks = nn.Sequential(*[VitBlock(width) for _ in range(n_blocks)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of each image."""
        patches = self.cut(x).flatten(2).transpose(1, 2)
        first = self.first.expand(x.shape[0], -1, -1)
        x = torch.cat([first, patches], dim=1) + self.places
        out: torch.Tensor = self.head(self.norm(self.blocks(x)[:, 0]))
        return out


def vit(width: int, n_blocks: int, batch: int) -> Work:
    """Train a small vision transformer."""
    model, x, y = Vit(width, n_blocks).cuda(), images(batch, 3, 64), labels(batch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return training(optimizer, lambda: functional.cross_entropy(model(x), y))


def vit_inference() -> Work:
    """Classify images with a vision transformer in bfloat16."""
    model, x = Vit(192, 4).cuda().eval(), images(32, 3, 64)

    def step() -> torch.Tensor:
        with torch.inference_mode(), torch.autocast("cuda", dtype=torch.bfloat16):
            best: torch.Tensor = model(x).softmax(-1)
            return best

    return step


class BertLayer(nn.Module):
    """A layer of BERT, with attention written out: two matmuls with a softmax between them."""

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads, self.scale = n_heads, (width // n_heads) ** -0.5
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out, self.norm1, self.norm2 = (
            nn.Linear(width, width),
            *(nn.LayerNorm(width) for _ in range(2)),
        )
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(0.1)

    def _heads(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.shape[0], x.shape[1], self.n_heads, -1).permute(0, 2, 1, 3)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the layer's output."""
        query, key, value = (self._heads(layer(x)) for layer in (self.query, self.key, self.value))
        scores = torch.matmul(query, key.transpose(-1, -2)) * self.scale + mask
        shares = self.dropout(functional.softmax(scores, dim=-1))
        mixed = torch.matmul(shares, value).permute(0, 2, 1, 3).contiguous().view(x.shape)
        x = self.norm1(x + self.dropout(self.out(mixed)))
        inner = self.down(functional.gelu(self.up(x)))
        out: torch.Tensor = self.norm2(x + self.dropout(inner))
        return out


def masked_words() -> Work:
    """Train a small BERT to guess masked words, with AdamW in a loop."""
    words, head = nn.Embedding(1_000, 128).cuda(), nn.Linear(128, 1_000).cuda()
    layers = nn.ModuleList(BertLayer(128, 4) for _ in range(2)).cuda()
    tokens = torch.randint(1_000, (8, 64), device="cuda")
    targets = torch.randint(1_000, (8 * 64,), device="cuda")
    mask = torch.zeros(8, 1, 1, 64, device="cuda")
    parameters = [*words.parameters(), *layers.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, foreach=False)

    def loss_of() -> torch.Tensor:
        x = words(tokens)
        for layer in layers:
            x = layer(x, mask)
        return functional.cross_entropy(head(x).view(-1, 1_000), targets, ignore_index=-100)

    return training(optimizer, loss_of)


def checkpointed() -> Work:
    """Train a language model that computes its layers again in the backward pass."""
    model = Gpt(width=128, n_blocks=3, n_words=256, length=32).cuda()
    words = torch.randint(256, (8, 32), device="cuda")
    targets = torch.randint(256, (8 * 32,), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss_of() -> torch.Tensor:
        x = model.words(words)
        for block in model.blocks:
            x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
        return functional.cross_entropy(model.head(model.norm(x)).view(-1, 256), targets)

    return training(optimizer, loss_of)


def siamese() -> Work:
    """Train two branches with shared weights to tell pairs apart."""
    branch = nn.Sequential(
        *(nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 16, 64)),
    ).cuda()
    first, second = images(32, 1, 28), images(32, 1, 28)
    same = torch.randint(2, (32,), device="cuda").float()
    optimizer = torch.optim.Adam(branch.parameters(), lr=1e-3)

    def loss_of() -> torch.Tensor:
        # The same modules run twice in a step, and their gradients are added up.
        distance = functional.pairwise_distance(branch(first), branch(second))
        apart = torch.clamp(1.0 - distance, min=0.0)
        return (same * distance.pow(2) + (1 - same) * apart.pow(2)).mean()

    return training(optimizer, loss_of)


def contrastive() -> Work:
    """Train a residual network by comparing two views of each image."""
    model = resnet((32, 64), 64)
    views = [images(32, 3, 32) for _ in range(2)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    diagonal = torch.eye(64, dtype=torch.bool, device="cuda")
    partner = (torch.arange(64, device="cuda") + 32) % 64

    def loss_of() -> torch.Tensor:
        features = functional.normalize(model(torch.cat(views)), dim=1)
        alike = (features @ features.t() / 0.5).masked_fill(diagonal, -1e9)
        return functional.cross_entropy(alike, partner)

    return training(optimizer, loss_of)


def ratings() -> Work:
    """Train vectors of users and films with Adagrad."""
    users, films = nn.Embedding(4_000, 32).cuda(), nn.Embedding(2_000, 32).cuda()
    biases = [nn.Embedding(4_000, 1).cuda(), nn.Embedding(2_000, 1).cuda()]
    who = torch.randint(4_000, (1024,), device="cuda")
    what = torch.randint(2_000, (1024,), device="cuda")
    y = torch.rand(1024, device="cuda") * 5
    parameters = [item.weight for item in (users, films, *biases)]
    optimizer = torch.optim.Adagrad(parameters, lr=0.05)

    def loss_of() -> torch.Tensor:
        score = (users(who) * films(what)).sum(1)
        score = score + biases[0](who).squeeze(1) + biases[1](what).squeeze(1)
        return functional.mse_loss(score, y)

    return training(optimizer, loss_of)


def q_learning() -> Work:
    """Learn from a batch of stored moves, and update the target network."""
    policy, target = perceptron(8, 128, 128, 4), perceptron(8, 128, 128, 4)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-4, amsgrad=True)
    state, after = (torch.randn(128, 8, device="cuda") for _ in range(2))
    action = torch.randint(4, (128, 1), device="cuda")
    reward = torch.randn(128, device="cuda")

    def step() -> None:
        chosen = policy(state).gather(1, action)
        with torch.no_grad():
            wanted = target(after).max(1).values * 0.99 + reward
        loss = functional.smooth_l1_loss(chosen, wanted.unsqueeze(1))
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_value_(policy.parameters(), 100)
        optimizer.step()
        # By state dicts, as tutorials do it: many small operators that autograd does not record.
        target_state, new = target.state_dict(), policy.state_dict()
        for name in new:
            target_state[name] = new[name] * 0.005 + target_state[name] * 0.995
        target.load_state_dict(target_state)

    return step


def ppo() -> Work:
    """Train actor and critic on one small batch."""
    actor = perceptron(16, 64, 64, 6, activation=nn.Tanh)
    critic = perceptron(16, 64, 64, 1, activation=nn.Tanh)
    parameters = [*actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=2.5e-4, eps=1e-5)
    x, actions = torch.randn(256, 16, device="cuda"), labels(256, 6)
    before, gain, wanted = (torch.randn(256, device="cuda") for _ in range(3))

    def loss_of() -> torch.Tensor:
        # Validation would read values in each step, and so wait for the GPU.
        choice: Any = torch.distributions.Categorical(logits=actor(x), validate_args=False)
        ratio = (choice.log_prob(actions) - before).exp()
        better = (gain - gain.mean()) / (gain.std() + 1e-8)
        clipped = -better * torch.clamp(ratio, 0.8, 1.2)
        policy_loss = torch.max(-better * ratio, clipped).mean()
        value_loss = 0.5 * ((critic(x).view(-1) - wanted) ** 2).mean()
        loss: torch.Tensor = policy_loss - 0.01 * choice.entropy().mean() + 0.5 * value_loss
        return loss

    return training(optimizer, loss_of, clip=0.5)


def graph_net() -> Work:
    """Train a graph network: two layers that add up the features of neighbours."""
    layers = nn.ModuleList([nn.Linear(64, 64), nn.Linear(64, 7)]).cuda()
    x, y = torch.randn(2_000, 64, device="cuda"), labels(2_000, 7)
    source, target = (torch.randint(2_000, (10_000,), device="cuda") for _ in range(2))
    optimizer = torch.optim.Adam(layers.parameters(), lr=0.01, weight_decay=5e-4)

    def loss_of() -> torch.Tensor:
        nodes = x
        for i, layer in enumerate(layers):
            nodes = layer(nodes)
            gathered = torch.zeros_like(nodes).index_add_(0, target, nodes[source])
            nodes = functional.dropout(functional.relu(gathered), 0.5) if i == 0 else gathered
        return functional.nll_loss(functional.log_softmax(nodes, dim=1), y)

    return training(optimizer, loss_of)


def gradient_penalty() -> Work:
    """Train a critic whose gradients are kept near one."""
    critic = perceptron(64, 128, 128, 1, activation=nn.Tanh)
    optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
    real, made = (torch.randn(64, 64, device="cuda") for _ in range(2))

    def loss_of() -> torch.Tensor:
        share = torch.rand(64, 1, device="cuda")
        between = (share * real + (1 - share) * made).requires_grad_()
        # A backward pass that autograd records, so that the penalty can be differentiated in its
        # turn.
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = ((slope.norm(2, dim=1) - 1) ** 2).mean()
        loss: torch.Tensor = critic(made).mean() - critic(real).mean() + 10 * penalty
        return loss

    return training(optimizer, loss_of)


def sampling() -> Work:
    """Sample ten words, with a cache of the keys and values of the words before."""
    width, n_heads = 128, 4
    layers = nn.ModuleList(
        nn.ModuleDict(
            {
                "norm": nn.LayerNorm(width),
                "qkv": nn.Linear(width, 3 * width),
                "out": nn.Linear(width, width),
                "mlp": nn.Sequential(
                    nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)
                ),
            }
        )
        for _ in range(2)
    ).cuda()
    words, head = nn.Embedding(500, width).cuda(), nn.Linear(width, 500).cuda()
    first = torch.randint(500, (4, 1), device="cuda")

    @torch.no_grad()
    def step() -> torch.Tensor:
        last, caches = first, [[] for _ in layers]  # type: ignore[var-annotated] # filled below
        for _ in range(10):
            x = words(last)
            for layer, cache in zip(layers, caches, strict=True):
                parts = layer["qkv"](layer["norm"](x)).chunk(3, dim=-1)  # type: ignore[index] # a dict of modules
                q, k, v = (item.view(4, 1, n_heads, -1).transpose(1, 2) for item in parts)
                if cache:
                    # The cache grows by one word in each round, so no two rounds have the same
                    # shapes.
                    k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
                cache[:] = [k, v]
                mixed = functional.scaled_dot_product_attention(q, k, v)
                x = x + layer["out"](mixed.transpose(1, 2).reshape(4, 1, width))  # type: ignore[index] # as above
                x = x + layer["mlp"](x)  # type: ignore[index] # as above
            shares = functional.softmax(head(x[:, -1]) / 0.8, dim=-1)
            last = torch.multinomial(shares, num_samples=1)
        return last

    return step


class Dense(nn.Module):
    """Densely connected layers: each reads the outputs of all layers before it."""

    def __init__(self, n_in: int, growth: int, n_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(n_in + i * growth),
                nn.ReLU(),
                nn.Conv2d(n_in + i * growth, growth, 3, padding=1, bias=False),
            )
            for i in range(n_layers)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return all layers' outputs side by side."""
        for layer in self.layers:
            x = torch.cat([x, layer(x)], dim=1)
        return x


def dense_net(batch: int) -> Work:
    """Train densely connected convolutions."""
    model = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), Dense(16, 12, 4), nn.Conv2d(64, 32, 1)),
        *(nn.AvgPool2d(2), Dense(32, 12, 4), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        nn.Linear(80, 10),
    ).cuda()
    x, y = images(batch, 3, 32), labels(batch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    loss_of = nn.CrossEntropyLoss(label_smoothing=0.1)
    return training(optimizer, lambda: loss_of(model(x), y))


def speech() -> Work:
    """Train convolutions over time in half precision, with a gradient scaler and clipping."""
    layers: list[nn.Module] = []
    n_in = 16
    for width in (32, 32, 64):
        layers += [nn.Conv1d(n_in, width, 9, 2, 4), nn.GroupNorm(4, width), nn.GELU()]
        n_in = width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(n_in, 20))
    model = model.cuda()
    x, y = torch.randn(16, 16, 400, device="cuda"), labels(16, 20)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return scaled_training(optimizer, lambda: functional.cross_entropy(model(x), y), clip=1.0)


def ordinary_equation() -> Work:
    """Train a vector field through eight Runge-Kutta steps."""
    field = perceptron(2, 50, 2, activation=nn.Tanh)
    start, end = torch.randn(64, 2, device="cuda"), torch.randn(64, 2, device="cuda")
    optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-3)

    def loss_of() -> torch.Tensor:
        y, h = start, 0.125
        for _ in range(8):
            k1 = field(y)
            k2 = field(y + h / 2 * k1)
            k3 = field(y + h / 2 * k2)
            k4 = field(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return (y - end).abs().mean()

    return training(optimizer, loss_of)


def super_resolution(batch: int) -> Work:
    """Train a net that makes images larger."""
    model = nn.Sequential(
        *(nn.Conv2d(1, 64, 5, 1, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1, 1), nn.ReLU()),
        *(nn.Conv2d(64, 32, 3, 1, 1), nn.ReLU(), nn.Conv2d(32, 9, 3, 1, 1), nn.PixelShuffle(3)),
    ).cuda()
    x, y = images(batch, 1, 32), images(batch, 1, 96)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    return training(optimizer, lambda: functional.l1_loss(model(x), y))


def half_inference() -> Work:
    """Compute features of images in half precision, in channels-last layout."""
    layers = [BasicBlock(64, 64, 1) for _ in range(6)]
    model: Any = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3), *layers).cuda().half().eval()
    model = model.to(memory_format=torch.channels_last)
    x = images(32, 3, 64).half().to(memory_format=torch.channels_last)

    def step() -> torch.Tensor:
        with torch.inference_mode():
            out: torch.Tensor = model(x).mean((2, 3))
            return out

    return step


def point_cloud() -> Work:
    """Train a classifier of point clouds that takes the maximum of each feature."""
    each = nn.Sequential(
        *(nn.Conv1d(3, 64, 1), nn.BatchNorm1d(64), nn.ReLU()),
        *(nn.Conv1d(64, 256, 1), nn.BatchNorm1d(256), nn.ReLU()),
    ).cuda()
    head = perceptron(256, 128, 10)
    x, y = torch.randn(32, 3, 512, device="cuda"), labels(32)
    optimizer = torch.optim.Adam([*each.parameters(), *head.parameters()], lr=1e-3)
    rate: Any = torch.optim.lr_scheduler.StepLR(optimizer, 20)

    def step() -> None:
        optimizer.zero_grad()
        features = torch.max(each(x), dim=2)[0]
        torch.autograd.backward(functional.cross_entropy(head(features), y))
        optimizer.step()
        rate.step()

    return step


# Networks, optimizers and training loops of other kinds than those in the first set
# (docs/virtual-gpu.md).
PROGRAMS: dict[str, Callable[[], Work]] = {
    "logistic regression by hand": logistic,
    "table, batch 512": partial(tabular, 128, 512),
    "table, batch 16384": partial(tabular, 1024, 16384),
    "MLP-Mixer": mixer,
    "depthwise convolutions, RMSprop": mobile,
    "VAE of convolutions": conv_vae,
    "diffusion with a running mean": diffusion,
    "GRU, clipped": gru,
    "LSTM both ways, Adam fused": tagger,
    "translation": translation,
    "vision transformer": partial(vit, 128, 3, 32),
    "vision transformer, larger": partial(vit, 768, 6, 128),
    "vision transformer inference, bfloat16": vit_inference,
    "masked words, AdamW in a loop": masked_words,
    "checkpointed GPT": checkpointed,
    "pairs of images": siamese,
    "contrastive learning": contrastive,
    "ratings, Adagrad": ratings,
    "Q-learning": q_learning,
    "PPO": ppo,
    "graph network": graph_net,
    "gradient penalty": gradient_penalty,
    "sampling with a cache": sampling,
    "dense net, batch 16": partial(dense_net, 16),
    "speech, scaled and clipped": speech,
    "Runge-Kutta": ordinary_equation,
    "super resolution, batch 4": partial(super_resolution, 4),
    "super resolution, batch 64": partial(super_resolution, 64),
    "half-precision inference": half_inference,
    "point cloud": point_cloud,
}
