"""From an operator of PyTorch to the work its kernel must do: family, arithmetic and FLOPs."""

from functools import cache
from typing import Any

import torch

from gpulab.virtual.costs import Work
from gpulab.virtual.private import flop_formulas, has_kernel
from gpulab.virtual.storage import Layout

# By the name of the operator without its overload; what is missing here is "elementwise" when
# its outputs have the shape of its largest input, else "other".
_FAMILIES = {
    "gemm": ("mm", "bmm", "baddbmm", "mv", "dot", "addmv"),
    "linear": ("addmm", "linear"),
    "conv": ("convolution", "convolution_backward", "cudnn_convolution"),
    "attention": ("_scaled_dot_product_flash_attention", "_scaled_dot_product_attention_math"),
    "softmax": ("_softmax", "_log_softmax", "_softmax_backward_data"),
    "norm": ("native_layer_norm", "native_batch_norm", "native_group_norm", "native_dropout"),
    "reduction": (
        *("sum", "mean", "prod", "amax", "amin", "max", "min", "argmax", "argmin", "all", "any"),
        *("var", "std", "var_mean", "std_mean", "linalg_vector_norm", "logsumexp", "cumsum"),
    ),
    "gather": ("embedding", "gather", "index_select", "index", "scatter_add", "index_put"),
    "sort": ("sort", "topk", "_unique2", "kthvalue", "median"),
}
_FAMILY_OF = {name: family for family, names in _FAMILIES.items() for name in names}
_HALVES = {torch.float16: "float16", torch.bfloat16: "bfloat16"}
_RANDOM = ("rand", "normal", "uniform", "bernoulli", "random", "dropout", "multinomial")


def operator_name(func: Any) -> str:
    """Return the bare name of an operator: ``"add"`` for ``aten.add_.Tensor``."""
    return str(func.overloadpacket.__name__).removesuffix("_")


def work_of(
    func: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    out: Any,
    layouts: tuple[list[Layout], list[Layout]],
) -> Work:
    """Return what the kernel of ``func`` must do; ``layouts`` are those read and those written."""
    reads, writes = layouts
    n_outputs = max((item.n_elements for item in writes), default=1)
    n_inputs = max((item.n_elements for item in reads), default=n_outputs)
    name = operator_name(func)
    default = "elementwise" if n_outputs >= n_inputs else "other"
    dtype = (reads or writes)[0].dtype if reads or writes else torch.float32
    family = _FAMILY_OF.get(name, default)
    return Work(
        family=family,
        arithmetic=_arithmetic(dtype),
        flops=_flops(func, args, kwargs, out),
        n_outputs=n_inputs if family in {"reduction", "softmax", "norm"} else n_outputs,
    )


def parts_used(func: Any, work: Work) -> tuple[str, ...]:
    """Return the parts of CUDA that the operator loads at its first use."""
    if work.family in {"gemm", "linear"}:
        return ("gemm16",) if work.arithmetic.endswith("16") else ("gemm",)
    if work.family == "conv":
        return ("conv",)
    return ("random",) if is_random(func) else ()


@cache
def is_composite(func: Any) -> bool:
    """Tell whether the operator is defined by other operators only."""
    return bool(has_kernel(func.name(), "CompositeImplicitAutograd"))


def is_random(func: Any) -> bool:
    """Tell whether the operator draws random numbers."""
    return any(operator_name(func).lstrip("_").startswith(name) for name in _RANDOM)


def _arithmetic(dtype: torch.dtype) -> str:
    if dtype in _HALVES:
        return _HALVES[dtype]
    if dtype is torch.float64:
        return "float64"
    return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "float32"


def _flops(func: Any, args: Any, kwargs: Any, out: Any) -> int:
    formula = flop_formulas.get(func.overloadpacket)
    return int(formula(*args, **kwargs, out_val=out)) if formula is not None else 0
