"""Probes of the layers of torch.nn, forward and backward, and of its losses."""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from tests.probes.table import Probe, Same, integers, normal


def _trained(make: Callable[[], nn.Module], *sizes: int) -> Callable[[str], object]:
    """Return a program that runs a module forward and backward."""

    def run(d: str) -> list[torch.Tensor | None]:
        module = make().to(d)
        x = normal(d, *sizes).requires_grad_()
        out = module(x)
        first = out[0] if isinstance(out, tuple) else out
        first.square().sum().backward()
        return [first, x.grad, *(p.grad for p in module.parameters()), *module.buffers()]

    return run


def _attended(
    *, dtype: torch.dtype = torch.float32, causal: bool = False, masked: bool = False
) -> Callable[[str], object]:
    """Return a program that runs fused attention forward and backward."""

    def run(d: str) -> list[torch.Tensor | None]:
        q, k, v = (normal(d, 2, 2, 8, 16, dtype=dtype).requires_grad_() for _ in range(3))
        mask = (normal(d, 8, 8) > 0).fill_diagonal_(fill_value=True) if masked else None
        out = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        out.float().square().sum().backward()
        return [out, q.grad, k.grad, v.grad]

    return run


def _multihead(d: str) -> list[object]:
    module = nn.MultiheadAttention(16, 2, batch_first=True).to(d)
    x = normal(d, 2, 5, 16)
    out, weights = module(x, x, x)
    out.sum().backward()
    return [out, weights, *(p.grad for p in module.parameters())]


def _encoder_in_evaluation(d: str) -> torch.Tensor:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).to(d).eval()
    with torch.no_grad():
        return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)(normal(d, 2, 5, 16))


def _decoder(d: str) -> list[object]:
    layer = nn.TransformerDecoderLayer(16, 2, 32, dropout=0.0, batch_first=True).to(d)
    mask = nn.Transformer.generate_square_subsequent_mask(4, device=torch.device(d))
    out = layer(normal(d, 2, 4, 16), normal(d, 2, 5, 16), tgt_mask=mask, tgt_is_causal=True)
    out.sum().backward()
    return [out, *(p.grad for p in layer.parameters())]


def _packed(d: str) -> torch.Tensor:
    packed = nn.utils.rnn.pack_padded_sequence(
        normal(d, 4, 2, 3), torch.tensor([4, 2]), enforce_sorted=True
    )
    out, _ = nn.GRU(3, 5).to(d)(packed)
    return nn.utils.rnn.pad_packed_sequence(out)[0]


def _lost(loss: nn.Module, *, of_classes: bool = False) -> Callable[[str], object]:
    """Return a program that computes a loss and its gradient."""

    def run(d: str) -> list[torch.Tensor | None]:
        x = normal(d, 4, 5).requires_grad_()
        target = integers(d, 5, 4) if of_classes else normal(d, 4, 5).sigmoid()
        value = loss.to(d)(x, target)
        value.backward()
        return [value, x.grad]

    return run


def _embedded(d: str) -> list[torch.Tensor | None]:
    table = nn.Embedding(6, 3, padding_idx=0).to(d)
    bags = nn.EmbeddingBag(6, 3, mode="mean").to(d)
    rows = table(integers(d, 6, 2, 4))
    sums = bags(integers(d, 6, 7), torch.tensor([0, 3], device=d))
    (rows.sum() + sums.square().sum()).backward()
    return [rows, sums, table.weight.grad, bags.weight.grad]


def _ctc(d: str) -> torch.Tensor:
    log_p = normal(d, 6, 2, 4).log_softmax(-1)
    targets, lengths = torch.tensor([[1, 2], [3, 1]], device=d), torch.tensor([6, 6], device=d)
    return functional.ctc_loss(log_p, targets, lengths, torch.tensor([2, 1], device=d))


def _normed_in_evaluation(d: str) -> torch.Tensor:
    return nn.BatchNorm2d(3).to(d).eval()(normal(d, 2, 3, 4, 4))


def _dropped(d: str) -> list[object]:
    x = torch.ones(1000, device=d)
    y = functional.dropout(x, 0.25)
    kept = y[y > 0]
    return [
        bool((kept - 4 / 3).abs().max() < 1e-6),
        600 < len(kept) < 900,
        bool((functional.dropout(x, 0.5, training=False) == x).all()),
        functional.dropout2d(torch.ones(2, 3, 4, 4, device=d)).shape,
    ]


def _channels_last(d: str) -> tuple[torch.Tensor, bool]:
    net = nn.Conv2d(3, 4, 3).to(d, memory_format=torch.channels_last)
    y = net(normal(d, 2, 3, 8, 8).to(memory_format=torch.channels_last))
    return y, y.is_contiguous(memory_format=torch.channels_last)


FAMILIES: dict[str, list[Probe]] = {
    "convolution": [
        Same("depthwise", _trained(lambda: nn.Conv2d(4, 4, 3, groups=4), 2, 4, 6, 6)),
        Same("half", lambda d: nn.Conv2d(3, 4, 3).to(d).half()(normal(d, 2, 3, 8, 8).half())),
        Same("channels last", _channels_last),
    ],
    "norms": [
        Same("batch 1d", _trained(lambda: nn.BatchNorm1d(4), 6, 4)),
        Same("batch 2d", _trained(lambda: nn.BatchNorm2d(3), 2, 3, 4, 4)),
        Same("batch, in evaluation", _normed_in_evaluation),
        Same(
            "weight norm",
            _trained(lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), 2, 4),
        ),
        Same(
            "spectral norm",
            lambda d: (
                nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3))
                .eval()
                .to(d)(normal(d, 2, 4))
            ),
        ),
    ],
    "embedding": [Same("table and bags", _embedded)],
    "recurrent": [
        Same("LSTM", _trained(lambda: nn.LSTM(3, 5, num_layers=2, batch_first=True), 2, 4, 3)),
        Same("LSTM, bidirectional", _trained(lambda: nn.LSTM(3, 5, bidirectional=True), 4, 2, 3)),
        Same("GRU", _trained(lambda: nn.GRU(3, 5), 4, 2, 3)),
        Same("RNN", _trained(lambda: nn.RNN(3, 5, nonlinearity="relu"), 4, 2, 3)),
        Same(
            "cells",
            lambda d: (
                nn.LSTMCell(3, 4).to(d)(normal(d, 2, 3)),
                nn.GRUCell(3, 4).to(d)(normal(d, 2, 3)),
            ),
        ),
        Same("packed sequences", _packed),
    ],
    "attention": [
        Same("float", _attended()),
        Same("half", _attended(dtype=torch.float16)),
        Same("bfloat16", _attended(dtype=torch.bfloat16)),
        Same("causal", _attended(causal=True)),
        Same("half, causal", _attended(dtype=torch.float16, causal=True)),
        Same("masked", _attended(masked=True)),
        Same(
            "without gradient",
            lambda d: functional.scaled_dot_product_attention(
                normal(d, 2, 2, 8, 16), normal(d, 2, 2, 6, 16), normal(d, 2, 2, 6, 16)
            ),
        ),
        Same(
            "grouped heads",
            lambda d: functional.scaled_dot_product_attention(
                normal(d, 1, 4, 8, 16),
                normal(d, 1, 2, 8, 16),
                normal(d, 1, 2, 8, 16),
                enable_gqa=True,
            ),
        ),
        Same("MultiheadAttention", _multihead),
    ],
    "transformer": [
        Same(
            "encoder layer",
            _trained(
                lambda: nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True),
                2,
                5,
                16,
            ),
        ),
        Same("encoder, in evaluation", _encoder_in_evaluation),
        Same("decoder layer", _decoder),
    ],
    "losses": [
        *(
            Same(type(loss).__name__, _lost(loss))
            for loss in (
                *(nn.MSELoss(), nn.L1Loss(), nn.SmoothL1Loss(), nn.HuberLoss()),
                *(nn.BCEWithLogitsLoss(), nn.KLDivLoss(reduction="batchmean")),
            )
        ),
        Same("CrossEntropyLoss", _lost(nn.CrossEntropyLoss(), of_classes=True)),
        Same(
            "CrossEntropyLoss, weighted",
            _lost(
                nn.CrossEntropyLoss(weight=torch.arange(1.0, 6.0), ignore_index=2), of_classes=True
            ),
        ),
        Same("CTC", _ctc),
    ],
    "dropout": [Same("drops a share and scales the rest", _dropped)],
}
