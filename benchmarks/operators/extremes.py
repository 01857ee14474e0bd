"""Call an operator with extreme and wrong values, and see that no value is invented.

Where the CPU returns numbers, the virtual GPU returns the same ones, nan, or an error. Where the
CPU refuses values, e.g. an index out of range, the virtual GPU raises an error, or returns nan.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch.utils import _pytree as pytree

from benchmarks.operators.outcomes import Outcome
from benchmarks.operators.trial import (
    OTHER_ON_GPU,
    TOLERANCES,
    UNWRITTEN,
    Call,
    Compared,
    NotCalledError,
    described,
    is_random,
    mapped,
    on_cpu,
    on_virtual,
    worst_of_each_form,
)

if TYPE_CHECKING:
    from torch.testing._internal.opinfo.core import OpInfo, SampleInput

_FLOATS = (0.0, -1.0, 1e30, -1e30, 1e-30, math.inf, -math.inf, math.nan)
_INTEGERS = (0, -1, 7, 50, -50)
_N_CHANGED = 3  # elements of each tensor
_SEEDS = (0, 1)
_FORMS = ("forward", "backward")
_NEAR = 1e-3
_WIDER = {torch.float32: torch.float64, torch.complex64: torch.complex128}
# PyTorch's CPU code checks these values; its CUDA code does not, so that the host need not wait.
_CHECKED_ON_CPU_ALONE = {"quantile", "nanquantile"}
# CUDA solves by a QR decomposition, which rounds numbers of 1e30 otherwise and checks no rank.
_OTHER_ALGORITHM_ON_GPU = {"linalg.lstsq"}
# With wrong values the CPU kernels inside these read or write outside of their tensors: on plain
# tensors of the CPU, too, which this compares with. `linalg.eigvals` does for nan, the gradient of
# `grid_sample` for positions that are not finite, and in torch 2.11 `linalg.ldl_solve` for wrong
# pivots.
_ENDS_THE_PROCESS = {
    *("nn.functional.ctc_loss", "nn.functional.linear_cross_entropy", "_segment_reduce"),
    *("linalg.eigvals", "linalg.ldl_solve", "nn.functional.grid_sample"),
}


def try_extremes(info: "OpInfo", dtype: torch.dtype, n_samples: int) -> list[Outcome]:
    """Return one outcome for the function and one for its gradient, with extreme values.

    Parameters
    ----------
    info
        The operator's entry in the database.
    dtype
        Type of the inputs; there is no outcome if CPU or GPU do not support it.
    n_samples
        Number of the database's samples to try.
    """
    if info.name in _CHECKED_ON_CPU_ALONE | _ENDS_THE_PROCESS:
        return []

    def compare(form: str, call: Call, samples: "Sequence[SampleInput]") -> list[Compared]:
        if form not in _FORMS:
            return []
        changed = [
            _changed(sample, f"{seed} {number}")
            for number, sample in enumerate(samples)
            for seed in _SEEDS
        ]
        pairs = zip(changed, on_virtual(call, changed), strict=True)
        return [_compared(info, dtype, call, *pair) for pair in pairs]

    return [
        replace(outcome, form=f"extreme {outcome.form}")
        for outcome in worst_of_each_form(info, dtype, n_samples, compare)
    ]


def _changed(sample: "SampleInput", seed: str) -> "SampleInput":
    """Return a copy of a sample in which some elements have extreme values."""
    chosen = random.Random(seed)  # noqa: S311 # no secret

    def change(item: object) -> object:
        if not isinstance(item, torch.Tensor) or not item.numel():
            return item
        if item.layout is not torch.strided:
            return item
        copied = item.detach().clone().contiguous()
        flat = copied.view(-1)
        for _ in range(min(_N_CHANGED, flat.numel())):
            index = chosen.randrange(flat.numel())
            if copied.is_floating_point() or copied.is_complex():
                flat[index] = chosen.choice(_FLOATS)
            elif copied.dtype == torch.bool:
                flat[index] = not flat[index]
            else:
                flat[index] = chosen.choice(_INTEGERS)
        return copied.requires_grad_(item.requires_grad)

    return mapped(sample, change)


def _as_types(sample: "SampleInput", types: Mapping[torch.dtype, torch.dtype]) -> "SampleInput":
    """Return a copy of a sample in which tensors of some types have others."""

    def convert(item: object) -> object:
        if not isinstance(item, torch.Tensor) or item.dtype not in types:
            return item
        return item.detach().to(types[item.dtype]).requires_grad_(item.requires_grad)

    return mapped(sample, convert)


def _cast(results: object, dtype: torch.dtype) -> object:
    def cast(item: torch.Tensor) -> torch.Tensor:
        return item.to(dtype) if item.is_floating_point() else item

    return pytree.tree_map_only(torch.Tensor, cast, results)


def _compared(
    info: "OpInfo", dtype: torch.dtype, call: Call, sample: "SampleInput", result: object
) -> Compared:
    expected, refusal = on_cpu(call, sample, 0)
    if isinstance(refusal, NotCalledError):
        return "same", ""
    if isinstance(result, Exception):  # an error invents no value
        return ("refused" if refusal is None else "both refuse"), ""
    if refusal is None:
        difference = _invented(result, expected)
        if not difference or _is_rounded(result, expected, call, sample, dtype):
            return "same", ""
    elif _is_nan(result):
        return "same", ""
    else:
        difference = f"a value, not {type(refusal).__name__}: {refusal}"
    kind = "differs"
    if info.name in OTHER_ON_GPU | _OTHER_ALGORITHM_ON_GPU:
        kind = "as a GPU"
    elif refusal is None and (info.name in UNWRITTEN or is_random(info, call, sample, expected)):
        kind = "random"
    return kind, f"{' '.join(difference.split())[:120]} for {described(sample)}"


def _is_rounded(
    result: object, expected: object, call: Call, sample: "SampleInput", dtype: torch.dtype
) -> bool:
    """Return whether another precision of the CPU explains the difference."""
    if dtype in TOLERANCES:
        # CUDA sums half precision in float32, which rounds and overflows less.
        wide, error = on_cpu(call, _as_types(sample, dict.fromkeys(TOLERANCES, torch.float32)), 0)
        return error is None and not _invented(result, _cast(wide, dtype))
    if dtype in _WIDER:
        # What is left of terms that nearly cancel; the CPU itself finds another number.
        wide, error = on_cpu(call, _as_types(sample, _WIDER), 0)
        return error is None and not _invented(result, expected, wide)
    return False


def _is_nan(value: object) -> bool:
    leaves = [item for item in pytree.tree_leaves(value) if isinstance(item, torch.Tensor)]
    return bool(leaves) and all(bool(item.isnan().all()) for item in leaves)


def _invented(result: object, expected: object, wide: object = None) -> str:
    """Return the first value that is neither nan nor the CPU's, or an empty text.

    Numbers that the CPU itself finds otherwise in ``wide``, its results in double precision, do
    not count.
    """
    leaves = pytree.tree_leaves(expected)
    others = leaves if wide is None else pytree.tree_leaves(wide)
    for ours, theirs, exact in zip(pytree.tree_leaves(result), leaves, others, strict=True):
        if not isinstance(theirs, torch.Tensor) or theirs.layout is not torch.strided:
            continue
        if ours.shape != theirs.shape:
            return f"shape {tuple(ours.shape)}, not {tuple(theirs.shape)}"
        if ours.dtype is not theirs.dtype:
            return f"{ours.dtype}, not {theirs.dtype}"
        one, other, third = (
            torch.view_as_real(x) if x.is_complex() else x for x in (ours, theirs, exact)
        )
        if other.is_floating_point():
            near = TOLERANCES.get(other.dtype, _NEAR)
            is_same = torch.isclose(one, other, rtol=near, atol=near, equal_nan=True)
            is_same |= one.isnan()
            is_rounded = ~torch.isclose(other.to(third.dtype), third, rtol=near, atol=near)
            is_same |= is_rounded & other.isfinite() & third.isfinite()
            if (
                other.dtype in TOLERANCES
            ):  # a sum in half precision overflows before one in float32
                is_same |= one.isinf() & other.isnan()
        else:
            is_same = one == other
        if not is_same.all():
            return f"{one[~is_same][0].item()!r}, not {other[~is_same][0].item()!r}"
    return ""
