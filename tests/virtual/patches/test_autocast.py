"""``torch.autocast("cuda")`` casts on the virtual GPU as it does with CUDA."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F  # noqa: N812 # PyTorch's own name for it
from torch.utils._python_dispatch import TorchDispatchMode

import gpulab
from gpulab.core.torch_private import has_kernel
from gpulab.virtual.operators import MODELS
from gpulab.virtual.patches import _autocast as autocast

HALVES = [torch.float16, torch.bfloat16]
Operation = Callable[[torch.Tensor], Any]


class Casts(TorchDispatchMode):
    """Counts the casts that are launched inside it."""

    def __init__(self) -> None:
        super().__init__()
        self.n = 0

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: object,  # torch's signature
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        """Pass every operation on."""
        self.n += func is torch.ops.aten._to_copy.default
        return func(*args, **(kwargs or {}))

    def of(self, work: Callable[[], object]) -> int:
        """Return how many casts a call launches."""
        before = self.n
        work()
        return self.n - before


# These were observed on an H200 with PyTorch 2.11, for float32 and for half inputs.
TO_LOWER: dict[str, Operation] = {
    "mm": lambda x: torch.mm(x, x),
    "a float32 factor": lambda x: torch.mm(x, torch.ones(8, 8, device="cuda")),
    "matmul": lambda x: x @ x,
    "matrix and vector": lambda x: x @ x[0],
    "bmm": lambda x: torch.bmm(x[None], x[None]),
    "addmm": lambda x: torch.addmm(x, x, x),
    "addmv": lambda x: torch.addmv(x[0], x, x[0]),
    "addr": lambda x: torch.addr(x, x[0], x[0]),
    "addbmm": lambda x: torch.addbmm(x, x[None], x[None]),
    "baddbmm": lambda x: torch.baddbmm(x[None], x[None], x[None]),
    "linear": lambda x: F.linear(x, x, x[0]),
    "einsum": lambda x: torch.einsum("ij,jk->ik", x, x),
    "multi_dot": lambda x: torch.linalg.multi_dot([x, x, x]),
    "vecdot": lambda x: torch.linalg.vecdot(x, x),
    "conv1d": lambda x: F.conv1d(x[None], x[None, :, :3].transpose(0, 1).expand(8, 8, 3)),
    "conv2d": lambda x: F.conv2d(x[None, None], x[None, None, :3, :3]),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x[None, None], x[None, None, :3, :3]),
    "prelu": lambda x: F.prelu(x, x[0, :1]),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
}
TO_FLOAT32: dict[str, Operation] = {
    "exp": torch.exp,
    "log": torch.log,
    "power": lambda x: x**2,
    "power of tensors": lambda x: x**x,
    "power of a number": lambda x: 2**x,
    "one over": lambda x: 1 / x,
    "rsqrt": torch.rsqrt,
    "softplus": F.softplus,
    "layer norm": lambda x: F.layer_norm(x, (8,)),
    "group norm": lambda x: F.group_norm(x[None], 2),
    "norm": torch.norm,
    "norm of the operator": torch.ops.aten.norm,
    "norm along a dimension": lambda x: torch.ops.aten.norm(x, 2, [1]),
    "matrix norm": torch.linalg.matrix_norm,
    "cosine similarity": lambda x: F.cosine_similarity(x, x),
    "mse loss": lambda x: F.mse_loss(x, x),
    "cross entropy": lambda x: F.cross_entropy(x, torch.arange(8, device="cuda")),
    "bce with logits": lambda x: F.binary_cross_entropy_with_logits(x, x),
    "cdist": lambda x: torch.cdist(x, x),
    "nearest": lambda x: F.interpolate(x[None, None], scale_factor=2),
    "softmax": lambda x: x.softmax(1),
    "log softmax": lambda x: x.log_softmax(1),
    "cumsum": lambda x: x.cumsum(1),
    "product": torch.prod,
    "sum": torch.sum,
    "sum along a dimension": lambda x: x.sum(1),
    "addcmul": lambda x: torch.addcmul(x, x, torch.ones(8, 8, device="cuda")),
    "dot": lambda x: torch.dot(x[0], torch.ones(8, device="cuda")),
}
WIDEST = {"addcmul", "dot"}
KEPT: dict[str, Operation] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "sin": torch.sin,
    "sqrt": torch.sqrt,
    "mean": torch.mean,
    "times two": lambda x: x * 2,
    "max pool": lambda x: F.max_pool2d(x[None], 2),
    "mm with out": lambda x: torch.mm(x, x, out=torch.empty_like(x)),
    "addmm in place": lambda x: x.clone().addmm_(x, x),
}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("lower", HALVES, ids=str)
@pytest.mark.parametrize("given", [torch.float32, *HALVES], ids=str)
def test_operators_run_in_the_type_that_cuda_gives_them(
    given: torch.dtype, lower: torch.dtype
) -> None:
    """Matmuls run in the lower type, sensitive operators in float32, others in their own type."""
    x = (torch.rand(8, 8, device="cuda") / 2 + 0.1).to(given)
    cases = [
        *[(name, work, lower) for name, work in TO_LOWER.items()],
        *[(name, work, torch.float32) for name, work in TO_FLOAT32.items()],
        *[(name, work, given) for name, work in KEPT.items()],
    ]
    with torch.autocast("cuda", dtype=lower):
        wrong = [
            f"{name}: {found}, not {expected}"
            for name, work, expected in cases
            if name not in WIDEST or given in {lower, torch.float32}
            if (found := work(x).dtype) != expected
        ]
    assert not wrong


def test_every_operator_that_cuda_casts_is_listed() -> None:
    """Each operator that has a kernel under CUDA's autocast has a model that says so."""
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    cast_on_cuda = {
        name.removeprefix("aten::").partition(".")[0]
        for name in names
        if has_kernel(name, "AutocastCUDA")
    }
    cast = {name for name, model in MODELS.items() if model.autocast is not None}
    # The recurrent layers of cuDNN are cast by the patch of these layers, one level higher.
    assert cast_on_cuda - {"_cudnn_rnn"} <= cast


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("lower", HALVES, ids=str)
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.filterwarnings("ignore:PyTorch was compiled without cuDNN")
def test_recurrent_layers_give_float16(kind: str, lower: torch.dtype) -> None:
    """A recurrent layer runs in float16 whatever type autocast has; a cell runs in that type."""
    layer = getattr(torch.nn, kind)(8, 4, num_layers=2).cuda()
    cell = getattr(torch.nn, f"{kind}Cell")(8, 4).cuda()
    x = torch.rand(3, 2, 8, device="cuda")
    with torch.autocast("cuda", dtype=lower):
        output, _ = layer(x)
        state = cell(x[0])
    output.float().sum().backward()
    assert output.dtype == torch.float16
    assert (state[0] if isinstance(state, tuple) else state).dtype == lower
    assert layer.weight_ih_l0.grad.dtype == torch.float32


@pytest.mark.usefixtures("gpu")
def test_weights_are_cast_once() -> None:
    """A float32 leaf is cast at its first use, and again only after autocast has ended."""
    linear, x = torch.nn.Linear(4, 4).cuda(), torch.ones(2, 4, device="cuda")
    with Casts() as casts:
        for _ in range(2):
            with torch.autocast("cuda"):
                assert casts.of(lambda: linear(x)) == 3
                with torch.autocast("cuda", enabled=False):
                    pass
                assert casts.of(lambda: linear(x)) == 1
        with torch.autocast("cuda", cache_enabled=False):
            assert [casts.of(lambda: linear(x)) for _ in range(2)] == [3, 3]
    assert not autocast._casts


@pytest.mark.usefixtures("gpu")
def test_only_casts_of_float32_leaves_are_reused() -> None:
    """A tensor that is not a float32 leaf with a gradient is cast at each use."""
    leaf = torch.ones(4, 4, device="cuda", requires_grad=True)
    half = torch.ones(4, 4, device="cuda", dtype=torch.float16)
    bf16 = torch.ones(4, 4, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    computed, no_gradient, leaf_half = leaf * 2, leaf.detach(), half.clone().requires_grad_()
    view = torch.ones(8, 4, device="cuda")[:4].requires_grad_()
    others: list[Callable[[], object]] = [
        lambda: torch.mm(computed, half),
        lambda: torch.mm(no_gradient, half),
        lambda: torch.mm(bf16, half),
        lambda: torch.exp(leaf_half),
        lambda: torch.mm(view, half),
    ]
    with Casts() as casts, torch.autocast("cuda"):
        n_casts = [casts.of(work) for work in [*others, *others]]
    assert n_casts == [1] * 10


def test_autocast_switched_on_before_is_on_inside() -> None:
    """If autocast for CUDA is already on, the virtual GPU casts from its start."""
    torch.set_autocast_enabled("cuda", True)  # noqa: FBT003 # torch's signature
    try:
        with gpulab.virtual_gpu("H200"):
            x = torch.ones(4, 4, device="cuda")
            assert (x @ x).dtype == torch.float16
    finally:
        torch.set_autocast_enabled("cuda", False)  # noqa: FBT003 # torch's signature
