"""Networks that the programs of both sets share, and their training steps."""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional
from torch.optim import Optimizer

from gpulab.device.work import Work

Loss = Callable[[], torch.Tensor]


class Attention(nn.Module):
    """Causal self-attention, as in small language models."""

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the mixed sequences."""
        batch, length, width = x.shape
        parts = self.qkv(x).split(width, dim=2)
        # With views and a copy, as small language models are written: the host pays for each
        # operator, even if it launches nothing.
        q, k, v = (item.view(batch, length, self.n_heads, -1).transpose(1, 2) for item in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        merged = mixed.transpose(1, 2).contiguous().view(batch, length, width)
        out: torch.Tensor = self.dropout(self.out(merged))
        return out


class Block(nn.Module):
    """A layer of a transformer: attention and a small network, each with a residual connection."""

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, n_heads)
        self.inner = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's output for a batch of sequences."""
        x = x + self.attention(self.before(x))
        out: torch.Tensor = x + self.inner(self.between(x))
        return out


class Gpt(nn.Module):
    """A small language model."""

    def __init__(self, *, width: int, n_blocks: int, n_words: int, length: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(n_words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, max(1, width // 32)) for _ in range(n_blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, n_words, bias=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Return the logits of the next words."""
        positions = torch.arange(words.shape[1], device=words.device)
        x = self.words(words) + self.places(positions)
        for block in self.blocks:
            x = block(x)
        out: torch.Tensor = self.head(self.norm(x))
        return out


class BasicBlock(nn.Module):
    """Two convolutions with a residual connection, as in ResNet-18."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.relu = nn.ReLU(inplace=True)
        self.down: nn.Module | None = None
        if stride != 1 or n_in != n_out:
            self.down = nn.Sequential(
                nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's output for a batch of images."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out = out + (x if self.down is None else self.down(x))
        result: torch.Tensor = self.relu(out)
        return result


def resnet(widths: tuple[int, ...], n_classes: int = 10) -> nn.Sequential:
    """Return a residual network with two blocks of each width."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, widths[0], 3, 1, 1, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(inplace=True),
    ]
    n_in = widths[0]
    for i, width in enumerate(widths):
        layers += [BasicBlock(n_in, width, 2 if i else 1), BasicBlock(width, width, 1)]
        n_in = width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n_in, n_classes)]
    return nn.Sequential(*layers).cuda()


def perceptron(*widths: int, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """Return linear layers of these widths with an activation in between."""
    layers: list[nn.Module] = []
    for i, width in enumerate(widths[1:]):
        layers += [nn.Linear(widths[i], width), activation()]
    return nn.Sequential(*layers[:-1]).cuda()


def training(optimizer: Optimizer, loss_of: Loss, *, clip: float = 0.0) -> Work:
    """Return a training step."""
    parameters = [item for group in optimizer.param_groups for item in group["params"]]

    def step() -> None:
        optimizer.zero_grad()
        torch.autograd.backward(loss_of())
        if clip:
            nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()

    return step


def scaled_training(optimizer: Optimizer, loss_of: Loss, *, clip: float = 0.0) -> Work:
    """Return a training step in half precision with a gradient scaler."""
    scaler = torch.amp.GradScaler("cuda")
    parameters = [item for group in optimizer.param_groups for item in group["params"]]

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = loss_of()
        torch.autograd.backward(scaler.scale(loss))
        if clip:
            # Before clipping, or the norm would be that of the scaled gradients.
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(parameters, clip)
        scaler.step(optimizer)
        scaler.update()

    return step


def images(n: int, n_channels: int, size: int) -> torch.Tensor:
    """Return random images."""
    return torch.randn(n, n_channels, size, size, device="cuda")


def labels(n: int, n_classes: int = 10) -> torch.Tensor:
    """Return random classes."""
    return torch.randint(n_classes, (n,), device="cuda")
