"""Call one operator on the CPU and on the virtual GPU, in every form, and compare."""

import functools
import math
import operator
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.utils import _pytree as pytree

import gpulab
from benchmarks.operators.database import full_name
from benchmarks.operators.outcomes import KINDS, Outcome
from gpulab.core.errors import NotModelledError

if TYPE_CHECKING:
    from torch.testing._internal.opinfo.core import OpInfo, SampleInput

_SEED = 0
_OTHER_SEEDS = (1, 2, 3, 4)
_NOTE_LENGTH = 200
# Operators that return uninitialized memory.
UNWRITTEN = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty"}
UNWRITTEN |= {"new_empty_strided"}
# Their statistics have another type or size on a GPU than on a CPU, and so on the virtual GPU.
OTHER_ON_GPU = {"_batch_norm_with_update", "_native_batch_norm_legit", "native_batch_norm"}
OTHER_ON_GPU |= {"native_layer_norm"}
_TAKES_HOST_TENSORS = {"tensor_split"}  # its positions must stay on the host; `_moved` moves all
# CUDA refuses the other drivers of LAPACK.
_DRIVERS_ON_GPU = {"linalg.lstsq": {None, "gels"}}
# The virtual GPU computes values with the CPU's own kernels, but half types partly in float32, so
# that they round differently.
TOLERANCES = {torch.float16: 0.03, torch.bfloat16: 0.25}

_EXACT = 1e-4

Call = Callable[["SampleInput"], object]
Compared = tuple[str, str]  # one of ``KINDS``, and what differs, or the message of an error
Compare = Callable[[str, Call, "Sequence[SampleInput]"], list[Compared]]
Operator = Callable[..., Any]


def try_operator(info: "OpInfo", dtype: torch.dtype, n_samples: int) -> list[Outcome]:
    """Return one outcome for each form in which the operator can be called.

    Parameters
    ----------
    info
        Its entry in the database.
    dtype
        Type of the inputs; there is no outcome if CPU or GPU do not support it.
    n_samples
        Number of the database's samples to try.
    """

    def compare(form: str, call: Call, samples: "Sequence[SampleInput]") -> list[Compared]:
        expected = [on_cpu(call, sample, _SEED) for sample in samples]
        pairs = zip(samples, expected, on_virtual(call, samples), strict=True)
        return [_compared(info, dtype, form, call, *pair) for pair in pairs]

    return worst_of_each_form(info, dtype, n_samples, compare)


def worst_of_each_form(
    info: "OpInfo", dtype: torch.dtype, n_samples: int, compare: Compare
) -> list[Outcome]:
    """Return for each form of an operator the worst outcome of its samples."""
    warnings.simplefilter("ignore")
    if dtype not in info.dtypes or dtype not in info.dtypesIfCUDA:
        return []
    worst = []
    made: dict[bool, list[SampleInput]] = {}
    for form, call, needs_gradient in forms_of(info, dtype):
        if needs_gradient not in made:  # most forms need none; each call gets copies
            torch.manual_seed(_SEED)
            made[needs_gradient] = [
                *samples_of(info, dtype, n_samples, requires_grad=needs_gradient)
            ]
        compared = compare(form, call, made[needs_gradient])
        if compared:
            kind, note = max(compared, key=lambda each: KINDS.index(each[0]))
            note = " ".join(note.split())[:_NOTE_LENGTH]
            dtype_name = str(dtype).removeprefix("torch.")
            worst.append(Outcome(full_name(info), dtype_name, form, kind, note))
    return worst


def samples_of(
    info: "OpInfo", dtype: torch.dtype, n_samples: int, **options: bool
) -> Iterator["SampleInput"]:
    """Yield samples that are spread evenly over the database's list."""
    samples = list(info.sample_inputs("cpu", dtype, **options))
    if info.name in _TAKES_HOST_TENSORS:
        samples = [s for s in samples if not isinstance(s.args[0], torch.Tensor)]
    if info.name in _DRIVERS_ON_GPU:
        drivers = _DRIVERS_ON_GPU[info.name]
        samples = [s for s in samples if s.kwargs.get("driver") in drivers]
    # The database lists similar samples one after the other, so the first few would miss whole
    # kinds.
    step = max(1, (len(samples) - 1) // max(1, n_samples - 1))
    yield from samples[::step]


def forms_of(info: "OpInfo", dtype: torch.dtype) -> Iterator[tuple[str, Call, bool]]:
    """Yield each form: its name, a function that calls it, and whether it needs gradients."""
    op = _looked_up(info)
    yield "forward", lambda s: op(s.input, *s.args, **s.kwargs), False
    inplace = info.get_inplace()
    if inplace is not None:
        yield "in place", lambda s: _in_place(inplace, s), False
    if info.supports_out:
        yield "out=", lambda s: _with_out(op, s), False
    backward = info.supported_backward_dtypes("cpu") & info.supported_backward_dtypes("cuda")
    if info.supports_autograd and dtype in backward:
        yield "backward", lambda s: _backward(op, s), True


def _looked_up(info: "OpInfo") -> Operator:
    """Return a function that looks the operator up in torch at each call, as a program does."""
    if info.name == "__getitem__":
        return operator.getitem
    *path, last = info.name.split(".")
    owner = functools.reduce(lambda owner, name: getattr(owner, name, None), path, torch)
    if getattr(owner, last, None) is not info.op:
        return cast("Operator", info.op)
    return lambda *args, **kwargs: getattr(owner, last)(*args, **kwargs)  # noqa: PLW0108 # at the call


def _in_place(inplace: Operator, sample: "SampleInput") -> object:
    if sample.broadcasts_input:
        raise NotCalledError
    target = pytree.tree_map_only(torch.Tensor, torch.clone, sample.input)
    return inplace(target, *sample.args, **sample.kwargs), target


def _with_out(op: Operator, sample: "SampleInput") -> object:
    out = pytree.tree_map_only(
        torch.Tensor, torch.empty_like, op(sample.input, *sample.args, **sample.kwargs)
    )
    op(sample.input, *sample.args, out=out, **sample.kwargs)
    return out


def _fills_out(info: "OpInfo", sample: "SampleInput", out: object, dtype: torch.dtype) -> bool:
    """Return whether the CPU itself gives the same result with ``out=`` as without."""
    returned, _ = on_cpu(lambda s: info.op(s.input, *s.args, **s.kwargs), sample, _SEED)
    return not _difference(out, returned, dtype)


def _backward(op: Operator, sample: "SampleInput") -> object:
    arguments = pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
    leaves = [item for item in arguments if isinstance(item, torch.Tensor) and item.requires_grad]
    out = op(sample.input, *sample.args, **sample.kwargs)
    if sample.output_process_fn_grad is not None:
        out = sample.output_process_fn_grad(out)
    results = [
        item
        for item in pytree.tree_leaves(out)
        if isinstance(item, torch.Tensor) and item.requires_grad
    ]
    if not leaves or not results:
        raise NotCalledError
    gradients = [torch.ones_like(item) for item in results]
    return torch.autograd.grad(results, leaves, gradients, allow_unused=True)


class NotCalledError(Exception):
    """The form does not fit the sample."""


def _compared(  # noqa: PLR0911, PLR0913, PLR0917 # one for each kind of outcome; from one caller
    info: "OpInfo",
    dtype: torch.dtype,
    form: str,
    call: Call,
    sample: "SampleInput",
    on_the_cpu: tuple[object, Exception | None],
    result: object,
) -> Compared:
    expected, refusal = on_the_cpu
    if form == "out=" and refusal is None and not _fills_out(info, sample, expected, dtype):
        refusal = NotCalledError()
    if isinstance(refusal, NotCalledError):
        return "same", ""
    if isinstance(result, NotModelledError):
        return "refused", str(result)
    if isinstance(result, Exception):
        kind = "crashes" if refusal is None else "both refuse"
        return kind, f"{type(result).__name__}: {result}"
    if refusal is not None:
        return "both refuse", ""  # a GPU may do what a CPU does not
    if info.name in UNWRITTEN:
        return "random", ""
    difference = _difference(result, expected, dtype)
    if not difference:
        return "same", ""
    is_drawn = is_random(info, call, sample, expected)
    kind = "as a GPU" if info.name in OTHER_ON_GPU else "random" if is_drawn else "differs"
    return kind, f"{difference} for {described(sample)}"


def on_cpu(call: Call, sample: "SampleInput", seed: int) -> tuple[object, Exception | None]:
    """Return what a call returns on the CPU, or its error."""
    torch.manual_seed(seed)
    try:
        return _fetched(call(_moved(sample, "cpu"))), None
    except Exception as error:  # noqa: BLE001 # where the CPU refuses, the GPU may refuse, too
        return None, error


def on_virtual(call: Call, samples: "Sequence[SampleInput]") -> list[object]:
    """Return what a call returns on the virtual GPU for each sample, or its error.

    Results are tensors of the host. After an error comes a new GPU: that one may be of no use.
    """
    results: list[object] = []
    while len(results) < len(samples):
        try:
            # The default budget of 0.05 s would leave some values out, and nothing could be
            # compared.
            with gpulab.virtual_gpu(
                "H200", first_use=False, max_value_elements=1 << 24, value_budget_s=1
            ):
                for sample in samples[len(results) :]:
                    torch.manual_seed(_SEED)
                    results.append(_fetched(call(_moved(sample, "cuda"))))
        except Exception as error:  # noqa: BLE001 # any error is an outcome
            results.append(error)
    return results


def _moved(sample: "SampleInput", device: str) -> "SampleInput":
    """Return a copy of a sample on a device; leaves that need a gradient stay leaves."""

    def move(item: object) -> object:
        if isinstance(item, torch.Tensor):
            copied = item.detach().clone().to(device)
            return copied.requires_grad_(item.requires_grad)
        if isinstance(item, torch.device):
            return torch.device(device)
        return device if isinstance(item, str) and item == "cpu" else item

    return mapped(sample, move)


def mapped(sample: "SampleInput", change: Callable[[object], object]) -> "SampleInput":
    """Return a copy of a sample in which each part is changed."""
    made = type(sample)(
        pytree.tree_map(change, sample.input),
        args=pytree.tree_map(change, sample.args),
        kwargs=pytree.tree_map(change, sample.kwargs),
    )
    made.broadcasts_input = sample.broadcasts_input
    made.output_process_fn_grad = sample.output_process_fn_grad
    return made


def _fetched(value: object) -> object:
    def fetch(item: torch.Tensor) -> torch.Tensor:
        return item.detach().cpu().resolve_conj().resolve_neg()

    return pytree.tree_map_only(torch.Tensor, fetch, value)


def _difference(result: object, expected: object, dtype: torch.dtype) -> str:
    """Return how two results differ, or an empty text if they agree."""
    ours, theirs = pytree.tree_leaves(result), pytree.tree_leaves(expected)
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    near = TOLERANCES.get(dtype, _EXACT)
    for one, other in zip(ours, theirs, strict=True):
        if not isinstance(other, torch.Tensor):
            is_plain = isinstance(other, (int, float))
            if is_plain and one != other and not math.isnan(other):
                return f"{one!r}, not {other!r}"
        elif other.layout is torch.strided:
            try:
                least = max(near, _rounding(other)) if near > _EXACT else near
                torch.testing.assert_close(one, other, rtol=near, atol=least, equal_nan=True)
            except AssertionError as error:
                return str(error)
    return ""


def is_random(info: "OpInfo", call: Call, sample: "SampleInput", expected: object) -> bool:
    """Return whether the operator draws random numbers.

    It does if the CPU's result depends on the seed, or if the database sets the seed itself.
    """
    code = getattr(info.op, "__code__", None)
    if code is not None and "wrapper_set_seed" in code.co_names:
        return True
    results = (on_cpu(call, sample, seed)[0] for seed in _OTHER_SEEDS)
    return any(_difference(result, expected, torch.float32) for result in results)


def described(sample: "SampleInput") -> str:
    """Return a sample as text, with the shapes of its tensors."""

    def describe(item: object) -> object:
        return f"tensor{tuple(item.shape)}" if isinstance(item, torch.Tensor) else item

    return str(pytree.tree_map(describe, (sample.input, sample.args, sample.kwargs)))


def _rounding(tensor: torch.Tensor) -> float:
    """Return the rounding step of the largest element: CPU kernels round sums of halves to it."""
    if not tensor.is_floating_point() or not tensor.numel():
        return 0.0
    largest = float(tensor.nan_to_num(0, 0, 0).abs().max())
    return torch.finfo(tensor.dtype).eps * largest
