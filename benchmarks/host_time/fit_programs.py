"""Whole programs to which the host costs of the virtual GPU are fitted."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.host_time.networks import (
    Gpt,
    images,
    labels,
    perceptron,
    resnet,
    scaled_training,
    training,
)
from gpulab.device.work import Work

_WORDS = 512

State = tuple[torch.Tensor, ...]  # of a recurrent layer


def mlp(widths: tuple[int, ...], batch: int, make: Callable[..., Any], **options: bool) -> Work:
    """Train a perceptron."""
    model = perceptron(*widths)
    x, y = torch.randn(batch, widths[0], device="cuda"), labels(batch, widths[-1])
    optimizer = make(model.parameters(), lr=1e-3, **options)
    return training(optimizer, lambda: functional.cross_entropy(model(x), y))


class MnistNet(nn.Module):
    """The convolutional net of PyTorch's first example."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3, 1), nn.Conv2d(32, 64, 3, 1)
        self.dropout1, self.dropout2 = nn.Dropout(0.25), nn.Dropout(0.5)
        self.fc1, self.fc2 = nn.Linear(9216, 128), nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logarithms of the classes' probabilities."""
        x = functional.relu(self.conv1(x))
        x = functional.relu(self.conv2(x))
        x = torch.flatten(self.dropout1(functional.max_pool2d(x, 2)), 1)
        x = self.dropout2(functional.relu(self.fc1(x)))
        return functional.log_softmax(self.fc2(x), dim=1)


def mnist(batch: int) -> Work:
    """Train the first example's net with Adadelta, the batch copied from the host each step."""
    model = MnistNet().cuda()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    x, y = torch.randn(batch, 1, 28, 28), torch.randint(10, (batch,))

    def loss_of() -> torch.Tensor:
        # In each step, as loaders do it: copies from pageable memory block the host.
        data, target = x.to("cuda"), y.to("cuda")
        return functional.nll_loss(model(data), target)

    return training(optimizer, loss_of)


def convolutions(*layers: int) -> nn.Sequential:
    """Return convolutions with batch norms, and a classifier."""
    modules: list[nn.Module] = []
    n_in = 3
    for width in layers:
        modules += [nn.Conv2d(n_in, width, 3, 1, 1), nn.BatchNorm2d(width), nn.ReLU()]
        modules += [nn.MaxPool2d(2)]
        n_in = width
    return nn.Sequential(
        *modules, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n_in, 10)
    ).cuda()


def cifar(batch: int) -> Work:
    """Train a small convolutional net with SGD and momentum."""
    model, x, y = convolutions(32, 64, 128), images(batch, 3, 32), labels(batch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    return training(optimizer, lambda: functional.cross_entropy(model(x), y))


def autoencoder() -> Work:
    """Train an autoencoder."""
    model = perceptron(784, 256, 64, 16, 64, 256, 784)
    x = torch.rand(128, 784, device="cuda")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return training(optimizer, lambda: functional.mse_loss(torch.sigmoid(model(x)), x))


class Vae(nn.Module):
    """A variational autoencoder of linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc21, self.fc22 = (
            nn.Linear(784, 400),
            nn.Linear(400, 20),
            nn.Linear(400, 20),
        )
        self.fc3, self.fc4 = nn.Linear(20, 400), nn.Linear(400, 784)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the reconstruction, the means and the logarithms of the variances."""
        hidden = functional.relu(self.fc1(x.view(-1, 784)))
        mu, logvar = self.fc21(hidden), self.fc22(hidden)
        std = torch.exp(0.5 * logvar)
        z = mu + torch.randn_like(std) * std
        return torch.sigmoid(self.fc4(functional.relu(self.fc3(z)))), mu, logvar


def vae() -> Work:
    """Train a variational autoencoder, reading the loss each step."""
    model = Vae().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x = torch.rand(128, 1, 28, 28, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        again, mu, logvar = model(x)
        bce = functional.binary_cross_entropy(again, x.view(-1, 784), reduction="sum")
        loss = bce - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        torch.autograd.backward(loss)
        optimizer.step()
        loss.item()

    return step


def gpt(
    width: int, n_blocks: int, batch: int, length: int, *, half: bool = False, **options: bool
) -> Work:
    """Train a small language model with AdamW."""
    model = Gpt(width=width, n_blocks=n_blocks, n_words=_WORDS, length=length).cuda()
    kind: Any = torch.optim.AdamW
    optimizer = kind(model.parameters(), lr=3e-4, **options)
    words = torch.randint(_WORDS, (batch, length), device="cuda")
    targets = torch.randint(_WORDS, (batch * length,), device="cuda")

    def loss_of() -> torch.Tensor:
        if not half:
            return functional.cross_entropy(model(words).view(-1, _WORDS), targets)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return functional.cross_entropy(model(words).view(-1, _WORDS), targets)

    return training(optimizer, loss_of)


def scaled_cnn() -> Work:
    """Train a convolutional net in half precision with a gradient scaler."""
    model, x, y = convolutions(16, 32), images(32, 3, 32), labels(32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return scaled_training(optimizer, lambda: functional.cross_entropy(model(x), y))


class WordModel(nn.Module):
    """A recurrent language model."""

    def __init__(self, width: int, n_layers: int) -> None:
        super().__init__()
        self.words, self.dropout = nn.Embedding(1_000, width), nn.Dropout(0.2)
        self.rnn = nn.LSTM(width, width, n_layers)
        self.head = nn.Linear(width, 1_000)

    def forward(self, words: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        """Return the logits and the new state."""
        out, state = self.rnn(self.dropout(self.words(words)), state)
        return self.head(self.dropout(out)).view(-1, 1_000), state


def lstm(width: int, n_layers: int, length: int) -> Work:
    """Train a recurrent language model with clipped gradients and SGD by hand."""
    model = WordModel(width, n_layers).cuda()
    words = torch.randint(1_000, (length, 20), device="cuda")
    targets = torch.randint(1_000, (length * 20,), device="cuda")
    state: State = tuple(torch.zeros(n_layers, 20, width, device="cuda") for _ in range(2))

    def step() -> None:
        model.zero_grad()
        out, _ = model(words, tuple(item.detach() for item in state))
        torch.autograd.backward(functional.cross_entropy(out, targets))
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for item in model.parameters():
            if item.grad is not None:
                # Without an optimizer, so that the operators of a step are separate calls.
                item.data.add_(item.grad, alpha=-0.1)

    return step


def hooked() -> Work:
    """Train a perceptron with a hook on each layer that stores the mean of its output."""
    model = perceptron(128, 128, 128, 128, 128, 10)
    means: dict[int, torch.Tensor] = {}

    def keep(index: int, _module: nn.Module, _inputs: object, out: torch.Tensor) -> None:
        means[index] = out.detach().abs().mean()

    for i, layer in enumerate(model):
        layer.register_forward_hook(partial(keep, i))
    x, y = torch.randn(64, 128, device="cuda"), labels(64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return training(optimizer, lambda: functional.cross_entropy(model(x), y))


def greedy() -> Work:
    """Generate twelve words, always the most probable one."""
    model = Gpt(width=128, n_blocks=2, n_words=_WORDS, length=64).cuda().eval()
    prompt = torch.randint(_WORDS, (1, 8), device="cuda")

    @torch.no_grad()
    def step() -> torch.Tensor:
        words = prompt
        for _ in range(12):
            best = model(words)[:, -1, :].argmax(dim=-1, keepdim=True)
            words = torch.cat((words, best), dim=1)
        return words

    return step


def resnet_training(batch: int, size: int) -> Work:
    """Train a residual network."""
    model, x, y = resnet((64, 128, 256, 512)), images(batch, 3, size), labels(batch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return training(optimizer, lambda: functional.cross_entropy(model(x), y))


def resnet_inference() -> Work:
    """Classify images with a residual network."""
    model, x = resnet((64, 128, 256, 512)).eval(), images(8, 3, 64)

    def step() -> torch.Tensor:
        with torch.no_grad():
            best: torch.Tensor = model(x).argmax(1)
            return best

    return step


class Double(nn.Sequential):
    """Two convolutions with batch norms."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__(
            *(nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU()),
            *(nn.Conv2d(n_out, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU()),
        )


class UNet(nn.Module):
    """A small U-Net."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([Double(3, 16), Double(16, 32)])
        self.middle = Double(32, 64)
        self.ups = nn.ModuleList(
            [nn.ConvTranspose2d(64, 32, 2, stride=2), nn.ConvTranspose2d(32, 16, 2, stride=2)]
        )
        self.up = nn.ModuleList([Double(64, 32), Double(32, 16)])
        self.head = nn.Conv2d(16, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of each pixel."""
        skipped = []
        for layer in self.down:
            x = layer(x)
            skipped.append(x)
            x = functional.max_pool2d(x, 2)
        x = self.middle(x)
        for up, layer in zip(self.ups, self.up, strict=True):
            x = layer(torch.cat([skipped.pop(), up(x)], dim=1))
        out: torch.Tensor = self.head(x)
        return out


def unet() -> Work:
    """Train a small U-Net."""
    model, x = UNet().cuda(), images(4, 3, 64)
    y = torch.randint(2, (4, 64, 64), device="cuda")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return training(optimizer, lambda: functional.cross_entropy(model(x), y))


def gan() -> Work:
    """Train the discriminator and the generator of a GAN, one step each."""
    maker = perceptron(64, 128, 256, 784, activation=nn.Tanh)
    judge = nn.Sequential(
        *(nn.Linear(784, 256), nn.LeakyReLU(0.2), nn.Dropout(0.3)),
        *(nn.Linear(256, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1)),
    ).cuda()
    optimizers = [
        torch.optim.Adam(item.parameters(), lr=2e-4, betas=(0.5, 0.999)) for item in (maker, judge)
    ]
    bce = nn.BCEWithLogitsLoss()
    real = torch.randn(64, 784, device="cuda")

    def step() -> None:
        ones, zeros = torch.ones(64, 1, device="cuda"), torch.zeros(64, 1, device="cuda")
        made = maker(torch.randn(64, 64, device="cuda"))
        optimizers[1].zero_grad()
        loss = bce(judge(real), ones) + bce(judge(made.detach()), zeros)
        torch.autograd.backward(loss)
        optimizers[1].step()
        optimizers[0].zero_grad()
        torch.autograd.backward(bce(judge(made), ones))
        optimizers[0].step()

    return step


def reinforce() -> Work:
    """Play five moves with a policy, with a wait for each move, and learn from them."""
    policy = perceptron(4, 128, 2)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    state = torch.randn(4)

    def step() -> None:
        logs = []
        for _ in range(5):
            x = state.to("cuda").unsqueeze(0)
            choice: Any = torch.distributions.Categorical(logits=policy(x))
            action = choice.sample()
            logs.append(choice.log_prob(action))
            # A program of this kind waits for each move, because the environment needs it.
            action.item()
        returns = torch.arange(5, 0, -1, device="cuda", dtype=torch.float32)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = -(torch.cat(logs) * returns).sum()
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()

    return step


class TextClassifier(nn.Module):
    """A linear layer on the mean of word vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.EmbeddingBag(5_000, 64), nn.Linear(64, 4)

    def forward(self, words: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        """Return the logits of each text."""
        out: torch.Tensor = self.head(self.words(words, offsets))
        return out


def texts() -> Work:
    """Train a classifier of texts with clipped gradients."""
    model = TextClassifier().cuda()
    words = torch.randint(5_000, (64 * 30,), device="cuda")
    offsets, y = torch.arange(0, 64 * 30, 30, device="cuda"), labels(64, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    return training(
        optimizer, lambda: functional.cross_entropy(model(words, offsets), y), clip=0.1
    )


def encoder(n_layers: int, width: int) -> Work:
    """Train PyTorch's own transformer encoder."""
    layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, n_layers), nn.Linear(width, 10)).cuda()
    x, y = torch.randn(32, 64, width, device="cuda"), labels(32 * 64)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    return training(optimizer, lambda: functional.cross_entropy(model(x).view(-1, 10), y))


def distillation() -> Work:
    """Train a small network on the outputs of a large one."""
    teacher, student = perceptron(256, 512, 512, 512, 10).eval(), perceptron(256, 64, 10)
    x, y = torch.randn(128, 256, device="cuda"), labels(128)
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)

    def loss_of() -> torch.Tensor:
        with torch.no_grad():
            wanted = teacher(x)
        logits = student(x)
        soft = functional.softmax(wanted / 2, dim=-1)
        kl = functional.kl_div(
            functional.log_softmax(logits / 2, dim=-1), soft, reduction="batchmean"
        )
        return 0.75 * kl + 0.25 * functional.cross_entropy(logits, y)

    return training(optimizer, loss_of)


def accumulation() -> Work:
    """Accumulate the gradients of four small batches before a step of the optimizer."""
    model = perceptron(128, 256, 256, 10, activation=nn.GELU)
    parts = [(torch.randn(32, 128, device="cuda"), labels(32)) for _ in range(4)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step() -> None:
        for x, y in parts:
            torch.autograd.backward(functional.cross_entropy(model(x), y) / 4)
        optimizer.step()
        optimizer.zero_grad()

    return step


def serving() -> Work:
    """Answer three requests: copy in, compute, copy out."""
    model = perceptron(512, 1024, 1024, 100).eval()
    requests = [torch.randn(n, 512) for n in (1, 16, 64)]

    def step() -> None:
        with torch.inference_mode():
            for request in requests:
                functional.softmax(model(request.cuda()), dim=-1).cpu()

    return step


def loader() -> Work:
    """Train on four batches of a loader."""
    data = TensorDataset(torch.randn(256, 32), torch.randint(10, (256,)))
    batches = DataLoader(data, batch_size=64)
    model = perceptron(32, 64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        for x, y in batches:
            optimizer.zero_grad(set_to_none=True)
            loss = functional.cross_entropy(model(x.to("cuda")), y.to("cuda"))
            torch.autograd.backward(loss)
            optimizer.step()

    return step


def streams() -> Work:
    """Enqueue work in four streams, each of which waits for the one before."""
    side: list[Any] = [torch.cuda.Stream() for _ in range(4)]  # type: ignore[no-untyped-call] # torch's is untyped
    x, weight = torch.randn(256, 256, device="cuda"), torch.randn(256, 256, device="cuda")

    def step() -> None:
        here = torch.cuda.current_stream()
        for stream in side:
            stream.wait_stream(here)
            with torch.cuda.stream(stream):
                torch.relu(x @ weight).sum()
            here.wait_stream(stream)

    return step


# Each fitted cost occurs in several programs and in different mixtures, or the fit could not tell
# one cost from another.
PROGRAMS: dict[str, Callable[[], Work]] = {
    # Optimizers in their three ways: at once (the default), in a loop and fused.
    "MLP, SGD": partial(mlp, (128, 128, 128, 10), 64, torch.optim.SGD),
    "MLP, Adam, wide": partial(mlp, (1024, 1024, 1024, 1024), 256, torch.optim.Adam),
    # With a large batch the device decides the wall time, and the host's time is seen alone.
    "MLP, Adam, large batch": partial(mlp, (2048, 4096, 4096, 100), 4096, torch.optim.Adam),
    "MLP, AdamW in a loop, 12 layers": partial(
        mlp, (64,) * 13, 64, torch.optim.AdamW, foreach=False
    ),
    "MLP, Adam fused, 8 layers": partial(mlp, (256,) * 9, 32, torch.optim.Adam, fused=True),
    "MNIST example": partial(mnist, 64),
    "MNIST example, batch 1000": partial(mnist, 1000),
    "CIFAR CNN, batch 32": partial(cifar, 32),
    "CIFAR CNN, batch 1024": partial(cifar, 1024),
    "autoencoder": autoencoder,
    "VAE, loss read": vae,
    "GPT, AdamW": partial(gpt, 128, 4, 8, 64),
    "GPT, AdamW in a loop": partial(gpt, 128, 2, 8, 64, foreach=False),
    "GPT, AdamW fused": partial(gpt, 128, 4, 8, 64, fused=True),
    "GPT, larger, AdamW fused": partial(gpt, 512, 4, 32, 256, fused=True),
    "GPT, bfloat16 autocast": partial(gpt, 128, 4, 8, 64, half=True),
    "CNN, gradient scaler": scaled_cnn,
    # These two set no cost of the fit: the times of cuDNN's few kernels were set by hand.
    "LSTM, clipped": partial(lstm, 200, 2, 35),
    "LSTM, one layer": partial(lstm, 128, 1, 12),
    # From here on, programs that make much use of one cost: hooks, many small calls, waits, lists
    # of modules, a loader, streams.
    "MLP with hooks": hooked,
    "greedy decoding": greedy,
    "ResNet-18, batch 8": partial(resnet_training, 8, 32),
    "ResNet-18, batch 128": partial(resnet_training, 128, 64),
    "ResNet-18 inference": resnet_inference,
    "U-Net": unet,
    "GAN": gan,
    "REINFORCE": reinforce,
    "text classifier": texts,
    "transformer encoder": partial(encoder, 3, 128),
    "distillation": distillation,
    "gradient accumulation": accumulation,
    "serving": serving,
    "data loader": loader,
    "four streams": streams,
}
