"""The statements of random programs: source text, with a name for each tensor that it needs.

``{x}`` is a tensor of the statement's kind, ``{same}`` one of the same shape (perhaps ``{x}``
itself), ``{new}`` a name that the program has not used yet, and ``{few}`` and ``{many}`` are whole
numbers. ``{eye}`` is a matrix of the shape of ``{x}`` that can be inverted.
"""

from collections.abc import Iterator
from dataclasses import dataclass

# How a random program gets its first tensors, and which sizes they have. A tensor of 16 MB has
# 4,194,304 elements; the large ones are rare, because a computer computes their values.
SIZES: dict[str, tuple[str, ...]] = {
    "vector": ("1", "1", "2", "31", "1000", "4096", "65536", "300000", "1048576", "4194304"),
    "matrix": ("1, 1", "3, 3", "17, 17", "64, 64", "64, 64", "128, 128", "256, 256", "512, 512"),
    "rows": ("1, 8", "7, 33", "32, 64", "100, 100", "256, 128", "1000, 300"),
    "images": ("1, 3, 8, 8", "2, 3, 16, 16", "4, 3, 32, 32", "8, 3, 32, 32"),
}
MAKING = (
    'torch.randn({size}, device="cuda")',
    'torch.ones({size}, device="cuda")',
    'torch.zeros({size}, device="cuda")',
    'torch.randn({size}).cuda()',
    'torch.ones({size}).to("cuda", non_blocking=True)',
    'torch.ones({size}).pin_memory().to("cuda", non_blocking=True)',
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement with names to fill in.

    Attributes
    ----------
    text
        Its source, of one line or more.
    kind
        The kind of tensor that it takes, a key of :data:`SIZES`; ``"any"`` takes all kinds, and an
        empty text none.
    family
        Its family of operators, or of other calls.
    makes
        What later statements may use ``{new}`` for: ``"same"`` has the kind and the shape of
        ``{x}``, ``"other"`` an unknown shape; with an empty text they do not use it.
    reads_values
        Whether it raises an error where values are switched off, because its result or its way
        depends on them.
    """

    text: str
    kind: str
    family: str
    makes: str = ""
    reads_values: bool = False


# For each family and kind: statements whose ``{new}`` has the shape of ``{x}``, and others.
_OPERATORS: dict[tuple[str, str], tuple[tuple[str, ...], tuple[str, ...]]] = {
    ("elementwise", "any"): (
        (
            "{new} = torch.relu({x})",
            "{new} = {x} * 2 + 1",
            "{new} = torch.exp(-{x}.abs())",
            "{new} = {x} + {same}",
            "{new} = torch.where({x} > 0, {x}, {same})",
            "{new} = torch.lerp({x}, {same}, 0.5)",
            "{new} = {x}.clone()",
            "{new} = torch.zeros_like({x})",
            "{new} = {x}.half().float()",
            "for _ in range({many}):\n    {new} = torch.relu({x})",
            "{new} = {x}\nfor _ in range({many}):\n    {new} = torch.tanh({new})",
            "for _ in range({few}):\n    {new} = torch.zeros_like({x})",
        ),
        ("{x}.isnan()", "{x}.to(torch.int32)"),
    ),
    ("in place", "any"): (
        (),
        (
            "{x}.add_(1)",
            "{x}.mul_(0.5).clamp_(-1, 1)",
            "{x}.copy_({same})",
            "{x}.zero_()",
            "{x}.fill_(3)",
            "torch.add({x}, {same}, out={x})",
            "for _ in range({many}):\n    {x}.mul_(0.9)",
            "for _ in range({many}):\n    {x}.zero_()",
            "{x}.masked_fill_({x} > 1, 0)",
        ),
    ),
    ("reduction", "any"): (
        (),
        (
            "{x}.sum()",
            "{x}.mean()",
            "{x}.amax()",
            "{x}.std()",
            "{x}.norm()",
            "{x}.argmax()",
            "({x} > 0).all()",
            "torch.logsumexp({x}, -1)",
            "for _ in range({few}):\n    {x}.sum()",
        ),
    ),
    ("view", "any"): (
        ("{new} = {x}.view_as({x})", "{new} = {x}.detach()"),
        (
            "{new} = {x}[:1]",
            "{new} = {x}.flatten()[::2]",
            "{x}[..., ::2].mul_(2)",
            "{x}.unsqueeze(0).expand(2, *{x}.shape).sum()",
            "{new} = torch.stack([{x}, {same}])",
            "{new} = torch.cat([{x}, {same}])",
            "{x}.flatten()[:1].fill_(2)",
        ),
    ),
    ("random", "any"): (
        (
            "{new} = torch.rand_like({x})",
            "{new} = torch.nn.functional.dropout({x}, 0.5)",
            "for _ in range({few}):\n    {new} = torch.randn_like({x})",
        ),
        (
            "{x}.normal_()",
            "{x}.uniform_(-1, 1)",
            "for _ in range({many}):\n    {x}.normal_()",
            "torch.manual_seed({few})",
            'torch.randint(0, 9, ({many},), device="cuda")',
            'torch.randperm({many}, device="cuda")',
        ),
    ),
    ("cumulative", "rows"): (
        ("{new} = torch.cumsum({x}, -1)", "{new} = torch.cummax({x}, -1).values"),
        ("{x}.logcumsumexp(0)",),
    ),
    ("sort", "rows"): (
        ("{new} = {x}.sort(-1).values", "{new} = {x}.argsort(0).float()"),
        ("{x}.topk(1, -1)", "{x}.median()", "{x}.kthvalue(1)"),
    ),
    ("index", "rows"): (
        (
            "{new} = {x}.index_select(0, torch.arange({x}.shape[0], device='cuda'))",
            "{new} = {x}.gather(1, torch.zeros({x}.shape, dtype=torch.long, device='cuda'))",
            "{new} = {x}.roll(1, 0)",
        ),
        (
            "{new} = {x}[torch.zeros(3, dtype=torch.long, device='cuda')]",
            "{x}.index_add_(0, torch.zeros(2, dtype=torch.long, device='cuda'),"
            " torch.ones(2, {x}.shape[1], device='cuda'))",
            "{x}.scatter_add_(1, torch.zeros({x}.shape, dtype=torch.long, device='cuda'), {x} + 1)",
            "{x}[[0]] = 1.0",
            "torch.nn.functional.embedding(torch.zeros(9, dtype=torch.long, device='cuda'), {x})",
        ),
    ),
    ("softmax and norm", "rows"): (
        (
            "{new} = torch.softmax({x}, -1)",
            "{new} = torch.nn.functional.layer_norm({x}, {x}.shape[1:])",
            "{new} = torch.nn.functional.normalize({x})",
        ),
        (
            "torch.log_softmax({x}, 0)",
            "torch.nn.functional.cross_entropy({x},"
            " torch.zeros({x}.shape[0], dtype=torch.long, device='cuda'))",
        ),
    ),
    ("fft", "rows"): (
        ("{new} = torch.fft.fft({x}).real", "{new} = torch.fft.fft({x}).abs()"),
        ("torch.fft.rfft2({x})",),
    ),
    ("matmul", "matrix"): (
        (
            "{new} = {x} @ {same}",
            "{new} = torch.addmm({x}, {x}, {same})",
            "{new} = ({x}.half() @ {same}.half()).float()",
            "{new} = {x}.t() @ {same}",
            "{new} = torch.bmm({x}[None], {same}[None])[0]",
            "{new} = torch.empty_like({x})\nfor _ in range({few}):\n"
            "    torch.mm({x}, {x}, out={new})",
            "for _ in range({many}):\n    {new} = {x} @ {x}",
        ),
        (
            "{new} = torch.nn.functional.linear({x}, {same}, {x}[0])",
            "torch.einsum('ij,kj->ik', {x}, {same})",
            "with torch.autocast('cuda', torch.bfloat16):\n    {x} @ {same}",
        ),
    ),
    # Each makes a matrix of its own: an error for a singular one would depend on the values.
    ("factorization", "matrix"): (
        (),
        (
            "torch.linalg.cholesky({eye})",
            "torch.linalg.inv({eye})",
            "torch.linalg.solve({eye}, torch.ones({x}.shape[0], 2, device='cuda'))",
            "torch.linalg.qr({eye})",
            "torch.linalg.lu_factor({eye})",
            "torch.linalg.det({eye})",
            "torch.linalg.solve_triangular({eye}, torch.ones({x}.shape[0], 2, device='cuda'),"
            " upper=True)",
        ),
    ),
    ("convolution", "images"): (
        (
            "{new} = torch.nn.functional.conv2d({x}, torch.ones(3, 3, 3, 3, device='cuda'),"
            " padding=1)",
            "{new} = torch.nn.functional.batch_norm({x}, None, None, training=True)",
            "{new} = torch.nn.functional.group_norm({x}, 3)",
            "{new} = {x}.to(memory_format=torch.channels_last)",
        ),
        (
            "torch.nn.functional.conv2d({x}, torch.ones(8, 3, 5, 5, device='cuda'), stride=2)",
            "torch.nn.functional.max_pool2d({x}, 2)",
            "torch.nn.functional.interpolate({x}, scale_factor=2, mode='bilinear')",
            "torch.nn.functional.conv_transpose2d({x}, torch.ones(3, 2, 3, 3, device='cuda'))",
            "torch.nn.functional.adaptive_avg_pool2d({x}, 1)",
        ),
    ),
    ("attention", "rows"): (
        (),
        (
            "torch.nn.functional.scaled_dot_product_attention({x}[None, None], {x}[None, None],"
            " {same}[None, None])",
        ),
    ),
}
_BACKWARD = (
    "{new} = {x}.detach().clone().requires_grad_()\n({new} * {new}).sum().backward()",
    "{new} = {x}.detach().clone().requires_grad_()\n"
    "for _ in range({few}):\n    torch.tanh({new}).mean().backward()",
    "{new} = {x}.detach().clone().requires_grad_()\n"
    "torch.autograd.grad(torch.exp({new}).sum(), {new})",
)
_MODEL = (
    "{new} = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(),"
    " torch.nn.Linear(64, 8)).cuda()\n"
    "{new}_optimizer = torch.optim.{optimizer}\n"
    "for _ in range({few}):\n"
    "    {new}_optimizer.zero_grad()\n"
    "    {new}(torch.randn(16, 32, device='cuda')).square().mean().backward()\n"
    "    {new}_optimizer.step()"
)
_OPTIMIZERS = (
    "SGD({new}.parameters(), lr=0.1)",
    "SGD({new}.parameters(), lr=0.1, momentum=0.9, foreach=False)",
    "Adam({new}.parameters(), foreach=True)",
    "Adam({new}.parameters(), foreach=False)",
    "AdamW({new}.parameters(), fused=True)",
    "Adam({new}.parameters(), capturable=True)",
    "RMSprop({new}.parameters())",
    "Adagrad({new}.parameters())",
)
_SCALED = (
    "{new} = torch.nn.Linear(32, 8).cuda()\n"
    "{new}_optimizer = torch.optim.SGD({new}.parameters(), lr=0.1)\n"
    "{new}_scaler = torch.amp.GradScaler('cuda')\n"
    "for _ in range({few}):\n"
    "    with torch.autocast('cuda', torch.float16):\n"
    "        {new}_loss = {new}(torch.randn(16, 32, device='cuda')).float().square().mean()\n"
    "    {new}_scaler.scale({new}_loss).backward()\n"
    "    {new}_scaler.step({new}_optimizer)\n"
    "    {new}_scaler.update()"
)
_LAYERS = (
    "torch.nn.LSTM(16, 16).cuda()(torch.randn(5, 2, 16, device='cuda'))",
    "torch.nn.TransformerEncoderLayer(16, 2, 32).cuda()(torch.randn(5, 2, 16, device='cuda'))",
    "torch.nn.EmbeddingBag(10, 4).cuda()(torch.zeros(3, 2, dtype=torch.long, device='cuda'))",
)
_STREAMS = (
    "with torch.cuda.stream(side[0]):\n    {new} = torch.relu({x})",
    "with torch.cuda.stream(side[1]):\n    {x}.add_(1)\n    {x}.mul_(2)",
    "side[0].wait_stream(torch.cuda.current_stream())",
    "torch.cuda.current_stream().wait_stream(side[0])",
    "side[1].wait_stream(side[0])",
    "event.record()\nside[1].wait_event(event)",
    "event.record(side[0])\nevent.wait()",
    "with torch.cuda.stream(side[0]):\n    {new} = torch.rand_like({x})\n"
    "    {new}.record_stream(torch.cuda.default_stream())",
    "event.record()\nwhile not event.query():\n    pass",
    "torch.cuda._sleep({many}000)",
    "with torch.cuda.stream(side[1]):\n    torch.cuda._sleep({many}00000)",
    "torch.cuda.current_stream().query()",
)
# For each wait the streams that it waits for: 0 is the default stream, 1 and 2 are ``side``.
AWAITED: dict[str, tuple[int, ...]] = {
    "torch.cuda.synchronize()": (0, 1, 2),
    "torch.cuda.current_stream().synchronize()": (0,),
    "side[0].synchronize()": (1,),
    "side[1].synchronize()": (2,),
    "event.record()\nevent.synchronize()": (0,),
    "event.record(side[0])\nevent.synchronize()": (1,),
}
_COPIES = (
    "{x}.cpu()",
    "{x}.to('cpu', non_blocking=True)",
    "{new}_host = torch.ones({x}.shape)\n{x}.copy_({new}_host)",
    "{new}_host = torch.ones({x}.shape).pin_memory()\n"
    "for _ in range({few}):\n    {x}.copy_({new}_host, non_blocking=True)",
    "{new}_host = torch.empty({x}.shape, pin_memory=True)\n"
    "for _ in range({few}):\n    {new}_host.copy_({x}, non_blocking=True)",
    "{new}_host = torch.empty({x}.shape)\n{new}_host.copy_({x})",
    "{new}_host = torch.ones({x}.shape)\n"
    "for _ in range({few}):\n    {new}_host.add_(1)\n    {x}.copy_({new}_host)",
    "{x}.cpu().numpy().sum()",
)
_READS = (
    "{x}.sum().item()",
    "float({x}.mean())",
    "{x}.flatten()[:3].tolist()",
    "repr({x}.flatten()[:5])",
    "str({x}.sum())",
    "f'{{x}.sum():.3f}'",
    "{x}.detach().numpy(force=True)",
    "{x}.untyped_storage().nbytes()",
    "copy.deepcopy({x}.detach())",
)
_VALUE_READS = (
    "{new} = {x}[{x} > 0]",
    "({x} > 0).nonzero()",
    "torch.unique({x})",
    "bool(({x} > 0).any())",
    "torch.equal({x}, {same})",
    "torch.allclose({x}, {same})",
    "{x}.argmax().item()",
    "print({x}.flatten()[:3].int(), file=io.StringIO())",
)
_MEMORY = (
    "del {x}",
    "del {x}",
    "torch.cuda.empty_cache()",
    "gc.collect()",
    "torch.cuda.memory_allocated()",
    "torch.cuda.reset_peak_memory_stats()",
    "for _ in range({few}):\n    {new} = torch.empty_like({x})\n    del {new}",
    "{x}.set_()",
)
_HOST = (
    "time.sleep(0.0001)",
    "torch.ones({many}).sum()",
    "torch.randn({many}, {many}).sort().values.mean()",
    "torch.cuda.nvtx.range_push('part')\ntorch.cuda.nvtx.range_pop()",
    "time.perf_counter()",
)
_GRAPHS = (
    "torch.cuda.synchronize()\n{new}_graph = torch.cuda.CUDAGraph()\n"
    "with torch.cuda.graph({new}_graph):\n    {new} = torch.relu({x}) + 1\n    {x}.mul_(0.5)\n"
    "for _ in range({few}):\n    {new}_graph.replay()",
    "torch.cuda.synchronize()\n{new}_graph = torch.cuda.CUDAGraph()\n"
    "with torch.cuda.graph({new}_graph):\n    {x}.normal_()\n    {new} = {x}.sum()\n"
    "{new}_graph.replay()\ntorch.cuda.synchronize()\n{new}_graph.replay()",
    "torch.cuda.synchronize()\n{new}_graph = torch.cuda.CUDAGraph()\n"
    "with torch.cuda.graph({new}_graph):\n    {x}.zero_()\n    {x}.add_(1)\n"
    "{new}_graph.replay()\ndel {new}_graph",
)
_FAILURES = (
    "try:\n    with torch.cuda.graph(torch.cuda.CUDAGraph()):\n        torch.relu({x})\n"
    "        torch.cuda.synchronize()\nexcept RuntimeError:\n    pass",
    "try:\n    with torch.cuda.graph(torch.cuda.CUDAGraph()):\n        {x}.sum().item()\n"
    "except RuntimeError:\n    pass",
    "try:\n    with torch.cuda.graph(torch.cuda.CUDAGraph()):\n        torch.relu({x})\n"
    "        raise ValueError\nexcept ValueError:\n    pass",
    "try:\n    {x}.flatten() + torch.ones({x}.numel() + 2, device='cuda')\n"
    "except RuntimeError:\n    pass",
    "try:\n    {x} @ torch.ones(7, 9, 2, device='cuda')\nexcept RuntimeError:\n    pass",
    "try:\n    torch.empty(1 << 44, device='cuda')\nexcept RuntimeError:\n    pass",
    "try:\n    torch.linalg.cholesky(torch.ones(2, 3, device='cuda'))\n"
    "except RuntimeError:\n    pass",
    "try:\n    torch.cuda.Event().elapsed_time(event)\nexcept (RuntimeError, ValueError):\n    pass",
    "try:\n    {x}.numpy()\nexcept TypeError:\n    pass",
    "try:\n    signal.raise_signal(signal.SIGINT)\nexcept KeyboardInterrupt:\n    pass",
    "try:\n    torch.relu({x})\n    raise KeyboardInterrupt\nexcept KeyboardInterrupt:\n    pass",
)


def _statements() -> Iterator[Statement]:
    for (family, kind), by_shape in _OPERATORS.items():
        for makes, texts in zip(("same", "other"), by_shape, strict=True):
            for text in texts:
                yield Statement(text, kind, family, makes if "{new}" in text else "")
    for family, texts in _CALLS.items():
        for text in texts:
            yield Statement(text, "any" if "{x}" in text else "", family)
    for text in _VALUE_READS:
        yield Statement(text, "any", "data-dependent", reads_values=True)


_CALLS: dict[str, tuple[str, ...]] = {
    "backward": _BACKWARD,
    "optimizer": (*(_MODEL.replace("{optimizer}", item) for item in _OPTIMIZERS), _SCALED),
    "layer": _LAYERS,
    "stream": _STREAMS,
    "wait": tuple(AWAITED),
    "copy": _COPIES,
    "read": _READS,
    "memory": _MEMORY,
    "host": _HOST,
    "graph": _GRAPHS,
    "failure": _FAILURES,
}
# Families whose statements are nothing but operators on tensors of the GPU.
OPERATOR_FAMILIES: tuple[str, ...] = (*dict.fromkeys(family for family, _ in _OPERATORS), "backward")
STATEMENTS: tuple[Statement, ...] = tuple(_statements())
FAMILIES: tuple[str, ...] = tuple(dict.fromkeys(item.family for item in STATEMENTS))
