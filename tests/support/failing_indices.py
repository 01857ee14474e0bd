"""Print the operators of PyTorch's database that the CPU refuses to compute with a wrong index.

    python -m tests.support.failing_indices

In a process of its own, because the import of the database changes settings of PyTorch.
"""

import sys
import warnings
from itertools import islice
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from benchmarks.operators.database import operators
from gpulab.virtual.operators import operator_of

# Wrong values in some of these end the process; the virtual GPU refuses sparse tensors.
SKIPPED = {
    *("nn.functional.embedding_bag", "nn.functional.ctc_loss", "_segment_reduce"),
    *("sparse.mm", "sparse.sampled_addmm"),
}


class Recording(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's is untyped
    """Keeps copies of the arguments of operators with a tensor of integers."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # as above
        self.calls: list[tuple[Any, list[Any], Any]] = []

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 # an operator
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 # its result
        given, structure = tree_flatten((args, kwargs or {}))
        if any(has_integers(item) for item in given):
            copies = [item.clone() if isinstance(item, torch.Tensor) else item for item in given]
            self.calls.append((func, copies, structure))
        return func(*args, **(kwargs or {}))


def has_integers(value: object) -> bool:
    """Return whether a value is a tensor of integers."""
    return isinstance(value, torch.Tensor) and value.dtype in {torch.int32, torch.int64}


def _raises_on_wrong_integers(func: Any, given: list[Any], structure: Any) -> bool:  # noqa: ANN401 # as recorded
    for position in (i for i, item in enumerate(given) if has_integers(item)):
        wrong = [item.clone() if isinstance(item, torch.Tensor) else item for item in given]
        wrong[position].fill_(1_000_000)
        args, kwargs = tree_unflatten(wrong, structure)
        try:
            func(*args, **kwargs)
        except (IndexError, RuntimeError):
            return True
    return False


def failing() -> set[str]:
    """Return the names of the operators."""
    names = set()
    for info in operators():
        if not info.supports_dtype(torch.float32, "cpu") or info.name in SKIPPED:
            continue
        samples = list(islice(info.sample_inputs("cpu", torch.float32), 4))
        given = [(sample.input, sample.args, sample.kwargs) for sample in samples]
        if not any(has_integers(item) for item in tree_leaves(given)):
            continue
        for sample in samples:
            with Recording() as recorded:
                info(sample.input, *sample.args, **sample.kwargs)
            names |= {
                operator_of(func).name
                for func, values, structure in recorded.calls
                if not operator_of(func).host_reads
                and _raises_on_wrong_integers(func, values, structure)
            }
    return names


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.stdout.write("\n".join(sorted(failing())))
