"""Print the operators of PyTorch's database whose index CPU and virtual GPU do not check.

    python -m tests.support.trusted_indices

Each line is an operator, the position of a tensor of integers, and how its call with a wrong
number ends on the CPU and on the virtual GPU: "computes", "raises" or "dies". Each call runs in a
process of its own, because a kernel may write outside of its tensors.
"""

import os
import sys
import warnings
from collections.abc import Callable
from itertools import islice
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map_only, tree_unflatten

import gpulab
from benchmarks.operators.database import operators
from gpulab.virtual.operators import operator_of
from tests.support.failing_indices import Recording, has_integers

WRONG = 300  # beyond the sizes of the samples, and near enough to hit memory of this process
Call = tuple[Any, list[Any], Any]


def recorded() -> dict[str, Call]:
    """Return a call of each operator that takes a tensor of integers beside one of other numbers.

    Operators that work element by element take no indices.
    """
    calls: dict[str, Call] = {}
    for info in operators():
        if not info.supports_dtype(torch.float32, "cpu") or not info.supports_autograd:
            continue
        for sample in islice(info.sample_inputs("cpu", torch.float32, requires_grad=True), 4):
            with Recording() as found:
                _run_backward(info(sample.input, *sample.args, **sample.kwargs))
            for func, values, structure in found.calls:
                is_pointwise = torch.Tag.pointwise in func.tags
                tensors = [item for item in values if isinstance(item, torch.Tensor)]
                if not is_pointwise and not all(map(has_integers, tensors)):
                    calls.setdefault(operator_of(func).name, (func, values, structure))
    return calls


def _run_backward(result: object) -> None:
    given = [item for item in tree_leaves(result) if isinstance(item, torch.Tensor)]
    results = [item for item in given if item.requires_grad and item.layout is torch.strided]
    if results:
        torch.autograd.backward(results, [torch.ones_like(item) for item in results])


def end_of(call: Callable[[], object]) -> str:
    """Return how a call ends in a process of its own."""
    child = os.fork()
    if not child:
        try:
            call()
            code = 0
        except (RuntimeError, IndexError):
            code = 1
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return "dies" if code < 0 else ("computes", "raises")[code]


def on_virtual_gpu(func: Any, values: list[Any], structure: Any) -> None:  # noqa: ANN401 # as recorded
    """Call an operator on the virtual GPU, and read its results."""
    with gpulab.virtual_gpu("H200", first_use=False, value_budget_s=10):
        moved = tree_map_only(torch.Tensor, lambda item: item.detach().cuda(), values)
        args, kwargs = tree_unflatten(moved, structure)
        results = func(*args, **kwargs)
        torch.cuda.synchronize()
        tree_map_only(torch.Tensor, torch.Tensor.cpu, results)


def unchecked(func: Any, values: list[Any], structure: Any) -> list[str]:  # noqa: ANN401 # as recorded
    """Return a line for each position at which the CPU's kernel takes a wrong number."""
    lines = []
    for position in (i for i, item in enumerate(values) if has_integers(item) and item.numel()):
        wrong = list(values)
        wrong[position] = torch.full_like(values[position], WRONG)
        args, kwargs = tree_unflatten(wrong, structure)
        on_cpu = end_of(lambda args=args, kwargs=kwargs: func(*args, **kwargs))  # type: ignore[misc] # bound now
        if on_cpu != "raises":
            ours = end_of(lambda wrong=wrong: on_virtual_gpu(func, wrong, structure))  # type: ignore[misc] # as above
            lines.append(f"{operator_of(func).name} {position} {on_cpu} {ours}")
    return lines


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    # Its modules are imported here, once for all processes.
    with gpulab.virtual_gpu("H200"):
        torch.ones(2, device="cuda").sum().item()
    for call in recorded().values():
        for line in unchecked(*call):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
