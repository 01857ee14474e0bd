"""The statements of random programs: source text, with a name for each tensor that it needs.

``{x}`` is a tensor, and ``{same}`` one of the same shape, perhaps ``{x}`` itself. ``{eye}`` is a
matrix of that shape that can be inverted. ``{new}`` is a new name for a tensor of that shape,
``{other}`` one for a tensor of another shape, and ``{own}`` one that no other statement uses.
``{few}`` and ``{many}`` are whole numbers. Empty lines separate statements.
"""

from collections.abc import Iterator
from dataclasses import dataclass

# The kinds of tensors with their sizes. A tensor of 16 MB has 4,194,304 elements; large ones are
# rare, because this computer computes their values.
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
    "torch.randn({size}).cuda()",
    'torch.ones({size}).to("cuda", non_blocking=True)',
    'torch.ones({size}).pin_memory().to("cuda", non_blocking=True)',
)
OPTIMIZERS = (
    "SGD({own}.parameters(), lr=0.1)",
    "SGD({own}.parameters(), lr=0.1, momentum=0.9, foreach=False)",
    "Adam({own}.parameters(), foreach=True)",
    "Adam({own}.parameters(), foreach=False)",
    "AdamW({own}.parameters(), fused=True)",
    "Adam({own}.parameters(), capturable=True)",
    "RMSprop({own}.parameters())",
    "Adagrad({own}.parameters())",
)
# The kind of tensor that a family needs; the others take all kinds.
_KINDS = {
    "cumulative": "rows",
    "sort": "rows",
    "index": "rows",
    "softmax and norm": "rows",
    "fft": "rows",
    "attention": "rows",
    "matmul": "matrix",
    "factorization": "matrix",
    "convolution": "images",
}
# Nothing but operators on tensors of the GPU, none of which reads values.
_OPERATORS: dict[str, str] = {
    "elementwise": """
{new} = torch.relu({x})

{new} = {x} * 2 + 1

{new} = torch.exp(-{x}.abs())

{new} = {x} + {same}

{new} = torch.where({x} > 0, {x}, {same})

{new} = torch.lerp({x}, {same}, 0.5)

{new} = {x}.clone()

{new} = torch.zeros_like({x})

{new} = {x}.half().float()

for _ in range({many}):
    {new} = torch.relu({x})

{new} = {x}
for _ in range({many}):
    {new} = torch.tanh({new})

for _ in range({few}):
    {new} = torch.zeros_like({x})

{x}.isnan()

{x}.to(torch.int32)
""",
    "in place": """
{x}.add_(1)

{x}.mul_(0.5).clamp_(-1, 1)

{x}.copy_({same})

{x}.zero_()

{x}.fill_(3)

torch.add({x}, {same}, out={x})

for _ in range({many}):
    {x}.mul_(0.9)

for _ in range({many}):
    {x}.zero_()

{x}.masked_fill_({x} > 1, 0)
""",
    "reduction": """
{x}.sum()

{x}.mean()

{x}.amax()

{x}.std(correction=0)

{x}.norm()

{x}.argmax()

({x} > 0).all()

torch.logsumexp({x}, -1)

for _ in range({few}):
    {x}.sum()
""",
    "view": """
{new} = {x}.view_as({x})

{new} = {x}.detach()

{other} = {x}[:1]

{other} = {x}.flatten()[::2]

{x}[..., ::2].mul_(2)

{x}.unsqueeze(0).expand(2, *{x}.shape).sum()

{other} = torch.stack([{x}, {same}])

{other} = torch.cat([{x}, {same}])

{x}.flatten()[:1].fill_(2)
""",
    "random": """
{new} = torch.rand_like({x})

{new} = functional.dropout({x}, 0.5)

for _ in range({few}):
    {new} = torch.randn_like({x})

{x}.normal_()

{x}.uniform_(-1, 1)

for _ in range({many}):
    {x}.normal_()

torch.manual_seed({few})

torch.randint(0, 9, ({many},), device="cuda")

torch.randperm({many}, device="cuda")
""",
    "cumulative": """
{new} = torch.cumsum({x}, -1)

{new} = torch.cummax({x}, -1).values

{x}.logcumsumexp(0)
""",
    "sort": """
{new} = {x}.sort(-1).values

{new} = {x}.argsort(0).float()

{x}.topk(1, -1)

{x}.median()

{x}.kthvalue(1)
""",
    "index": """
{new} = {x}.index_select(0, torch.arange({x}.shape[0], device="cuda"))

{new} = {x}.gather(1, torch.zeros({x}.shape, dtype=torch.long, device="cuda"))

{new} = {x}.roll(1, 0)

{other} = {x}[torch.zeros(3, dtype=torch.long, device="cuda")]

{x}.index_add_(0, torch.zeros(2, dtype=torch.long, device="cuda"), {x}[[0, 0]])

{x}.scatter_add_(1, torch.zeros({x}.shape, dtype=torch.long, device="cuda"), {x} + 1)

{x}[[0]] = 1.0

functional.embedding(torch.zeros(9, dtype=torch.long, device="cuda"), {x})
""",
    "softmax and norm": """
{new} = torch.softmax({x}, -1)

{new} = functional.layer_norm({x}, {x}.shape[1:])

{new} = functional.normalize({x})

torch.log_softmax({x}, 0)

functional.cross_entropy({x}, torch.zeros({x}.shape[0], dtype=torch.long, device="cuda"))
""",
    "fft": """
{new} = torch.fft.fft({x}).real

{new} = torch.fft.fft({x}).abs()

torch.fft.rfft2({x})
""",
    "matmul": """
{new} = {x} @ {same}

{new} = torch.addmm({x}, {x}, {same})

{new} = ({x}.half() @ {same}.half()).float()

{new} = {x}.t() @ {same}

{new} = torch.bmm({x}[None], {same}[None])[0]

{new} = torch.empty_like({x})
for _ in range({few}):
    torch.mm({x}, {x}, out={new})

for _ in range({many}):
    {new} = {x} @ {x}

{other} = functional.linear({x}, {same}, {x}[0])

torch.einsum("ij,kj->ik", {x}, {same})

with torch.autocast("cuda", torch.bfloat16):
    {x} @ {same}
""",
    "factorization": """
torch.linalg.cholesky({eye})

torch.linalg.inv({eye})

torch.linalg.solve({eye}, torch.ones({x}.shape[0], 2, device="cuda"))

torch.linalg.qr({eye})

torch.linalg.lu_factor({eye})

torch.linalg.det({eye})

torch.linalg.solve_triangular({eye}, torch.ones({x}.shape[0], 2, device="cuda"), upper=True)
""",
    "convolution": """
{new} = functional.conv2d({x}, torch.ones(3, 3, 3, 3, device="cuda"), padding=1)

{new} = functional.batch_norm({x}, None, None, training=True)

{new} = functional.group_norm({x}, 3)

{new} = {x}.to(memory_format=torch.channels_last)

functional.conv2d({x}, torch.ones(8, 3, 5, 5, device="cuda"), stride=2)

functional.max_pool2d({x}, 2)

functional.interpolate({x}, scale_factor=2, mode="bilinear")

functional.conv_transpose2d({x}, torch.ones(3, 2, 3, 3, device="cuda"))

functional.adaptive_avg_pool2d({x}, 1)
""",
    "attention": """
functional.scaled_dot_product_attention(*({x}[None, None],) * 3)
""",
    "backward": """
{own} = {x}.detach().clone().requires_grad_()
({own} * {own}).sum().backward()

{own} = {x}.detach().clone().requires_grad_()
for _ in range({few}):
    torch.tanh({own}).mean().backward()

{own} = {x}.detach().clone().requires_grad_()
torch.autograd.grad(torch.exp({own}).sum(), {own})

{own} = torch.ones(3, 4, device="cuda", requires_grad=True)
{own}.prod(1).sum().backward()
""",
}
# Everything else, except waits.
_CALLS: dict[str, str] = {
    "optimizer": """
{own} = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)).cuda()
{own}_optimizer = torch.optim.{optimizer}
for _ in range({few}):
    {own}_optimizer.zero_grad()
    {own}(torch.randn(16, 32, device="cuda")).square().mean().backward()
    {own}_optimizer.step()

{own} = nn.Linear(32, 8).cuda()
{own}_optimizer = torch.optim.SGD({own}.parameters(), lr=0.1)
{own}_scaler = torch.amp.GradScaler("cuda")
for _ in range({few}):
    with torch.autocast("cuda", torch.float16):
        {own}_loss = {own}(torch.randn(16, 32, device="cuda")).float().square().mean()
    {own}_scaler.scale({own}_loss).backward()
    {own}_scaler.step({own}_optimizer)
    {own}_scaler.update()
""",
    "layer": """
nn.LSTM(16, 16).cuda()(torch.randn(5, 2, 16, device="cuda"))

{own} = nn.GRU(16, 16).cuda()
{own}(torch.randn(5, 2, 16, device="cuda"))[0].sum().backward()

nn.TransformerEncoderLayer(16, 2, 32).cuda()(torch.randn(5, 2, 16, device="cuda"))

nn.EmbeddingBag(10, 4).cuda()(torch.zeros(3, 2, dtype=torch.long, device="cuda"))
""",
    "stream": """
with torch.cuda.stream(side[0]):
    {own} = torch.relu({x})

with torch.cuda.stream(side[1]):
    {x}.add_(1)
    {x}.mul_(2)

side[0].wait_stream(torch.cuda.current_stream())

torch.cuda.current_stream().wait_stream(side[0])

side[1].wait_stream(side[0])

event.record()
side[1].wait_event(event)

event.record(side[0])
event.wait()

with torch.cuda.stream(side[0]):
    {own} = torch.rand_like({x})
    {own}.record_stream(torch.cuda.default_stream())

event.record()
while not event.query():
    pass

with torch.cuda.stream(side[0]):
    {own} = torch.exp(torch.ones({many}00, device="cuda", requires_grad=True))
torch.cuda.current_stream().wait_stream(side[0])
{own}.sum().backward()

torch.cuda._sleep({many}000)

with torch.cuda.stream(side[1]):
    torch.cuda._sleep({many}00000)

torch.cuda.current_stream().query()
""",
    "copy": """
{x}.cpu()

{x}.to("cpu", non_blocking=True)

{own}_host = torch.ones({x}.shape)
{x}.copy_({own}_host)

{own}_host = torch.ones({x}.shape).pin_memory()
for _ in range({few}):
    {x}.copy_({own}_host, non_blocking=True)

{own}_host = torch.empty({x}.shape, pin_memory=True)
for _ in range({few}):
    {own}_host.copy_({x}, non_blocking=True)

{own}_host = torch.empty({x}.shape)
{own}_host.copy_({x})

{own}_host = torch.ones({x}.shape)
for _ in range({few}):
    {own}_host.add_(1)
    {x}.copy_({own}_host)

{x}.cpu().numpy().sum()
""",
    "read": """
{x}.sum().item()

float({x}.mean())

{x}.flatten()[:3].tolist()

repr({x}.flatten()[:5])

str({x}.sum())

f"{{x}.sum():.3f}"

{x}.detach().numpy(force=True)

{x}.untyped_storage().nbytes()

repr({x}.flatten()[:3].clone().untyped_storage())

copy.deepcopy({x}.detach())
""",
    "memory": """
del {x}

del {x}

torch.cuda.empty_cache()

gc.collect()

torch.cuda.memory_allocated()

torch.cuda.reset_peak_memory_stats()

for _ in range({few}):
    {own} = torch.empty_like({x})
    del {own}

{x}.set_()
""",
    "host": """
time.sleep(0.0001)

torch.ones({many}).sum()

torch.randn({many}, {many}).sort().values.mean()

torch.cuda.nvtx.range_push("part")
torch.cuda.nvtx.range_pop()

time.perf_counter()
""",
    "graph": """
torch.cuda.synchronize()
{own}_graph = torch.cuda.CUDAGraph()
with torch.cuda.graph({own}_graph):
    {own} = torch.relu({x}) + 1
    {x}.mul_(0.5)
for _ in range({few}):
    {own}_graph.replay()

torch.cuda.synchronize()
{own}_graph = torch.cuda.CUDAGraph()
with torch.cuda.graph({own}_graph):
    {x}.normal_()
    {own} = {x}.sum()
{own}_graph.replay()
torch.cuda.synchronize()
{own}_graph.replay()

torch.cuda.synchronize()
{own}_graph = torch.cuda.CUDAGraph()
with torch.cuda.graph({own}_graph):
    {x}.zero_()
    {x}.add_(1)
{own}_graph.replay()
del {own}_graph
""",
    "failure": """
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        torch.relu({x})
        torch.cuda.synchronize()
except RuntimeError:
    pass

try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        {x}.sum().item()
except RuntimeError:
    pass

try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        torch.relu({x})
        raise ValueError
except ValueError:
    pass

try:
    {x}.flatten() + torch.ones({x}.numel() + 2, device="cuda")
except RuntimeError:
    pass

try:
    {x} @ torch.ones(7, 9, 2, device="cuda")
except RuntimeError:
    pass

try:
    torch.empty(1 << 44, device="cuda")
except RuntimeError:
    pass

try:
    torch.linalg.cholesky(torch.ones(2, 3, device="cuda"))
except RuntimeError:
    pass

try:
    torch.cuda.Event().elapsed_time(event)
except (RuntimeError, ValueError):
    pass

try:
    {x}.numpy()
except TypeError:
    pass

try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    pass

try:
    torch.relu({x})
    raise KeyboardInterrupt
except KeyboardInterrupt:
    pass
""",
}
# For each wait the streams that it waits for: 0 is the default stream, 1 and 2 are ``side``.
AWAITED: dict[str, tuple[int, ...]] = {
    "torch.cuda.synchronize()": (0, 1, 2),
    "torch.cuda.current_stream().synchronize()": (0,),
    "side[0].synchronize()": (1,),
    "side[1].synchronize()": (2,),
    "event.record()\nevent.synchronize()": (0,),
    "event.record(side[0])\nevent.synchronize()": (1,),
}
# These raise an error where values are switched off: their result or their way depends on values.
_VALUE_READS = """
{own} = {x}[{x} > 0]

({x} > 0).nonzero()

torch.unique({x})

bool(({x} > 0).any())

torch.equal({x}, {same})

torch.allclose({x}, {same})

{x}.argmax().item()

print({x}.flatten()[:3].int(), file=io.StringIO())
"""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement with names to fill in.

    Attributes
    ----------
    text
        Its source, of one line or more.
    family
        Its family of operators, or of other calls.
    kind
        The kind of tensor that it takes, a key of :data:`SIZES`; ``"any"`` takes all kinds, and an
        empty text none.
    reads_values
        Whether it raises an error where values are switched off.
    """

    text: str
    family: str
    kind: str
    reads_values: bool = False


def _statements() -> Iterator[Statement]:
    families = {**_OPERATORS, **_CALLS, "data-dependent": _VALUE_READS}
    texts = {family: block.strip().split("\n\n") for family, block in families.items()}
    for family, each in {**texts, "wait": [*AWAITED]}.items():
        for text in each:
            takes = "{x}" in text or "{eye}" in text
            kind = _KINDS.get(family, "any") if takes else ""
            yield Statement(text, family, kind, reads_values=family == "data-dependent")


OPERATOR_FAMILIES = tuple(_OPERATORS)
STATEMENTS: tuple[Statement, ...] = tuple(_statements())
FAMILIES = tuple(dict.fromkeys(item.family for item in STATEMENTS))
