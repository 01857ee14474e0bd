"""Ask the GPU in use which calls PyTorch refuses under deterministic algorithms.

    CUBLAS_WORKSPACE_CONFIG=:4096:8 python -m benchmarks.switches answers.json

Without a CUDA GPU the virtual H200 answers. The calls are those of
``benchmarks/recordings/h100-switches.json``, each a line of Python with what an H100 said to it,
forward and backward. To ask another call, add its line there.
"""

import functools
import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from torch.utils import _pytree as pytree

from benchmarks.common.command_line import parser_of
from benchmarks.common.environment import gpu_in_use
from benchmarks.common.folders import RECORDINGS
from gpulab.core.foreign_text import first_line

_ALERT = "determinis"


def recorded() -> dict[str, dict[str, str | None]]:
    """Return each call by its name: its line, and what an H100 said forward and backward."""
    calls: dict[str, dict[str, str | None]]
    calls = json.loads((RECORDINGS / "h100-switches.json").read_text("utf-8"))
    return calls


def floats(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return numbers on the GPU that require gradients."""
    values = torch.linspace(0.1, 0.9, torch.Size(shape).numel()).reshape(shape)
    return values.to("cuda", dtype).requires_grad_()


# What a line may use, beside builtins.
NAMES: dict[str, Any] = {
    "torch": torch,
    "F": functional,
    "floats": floats,
    "plain": lambda *shape: floats(*shape).detach(),
    "indices": lambda *values: torch.tensor(values, device="cuda"),
    "labels": lambda *shape: torch.ones(*shape, dtype=torch.int64, device="cuda"),
}


def alerts(line: str) -> dict[str, str | None]:
    """Return the errors of a call under deterministic algorithms, or None where there is none.

    Where its result requires gradients, it is also run backward.
    """

    def call() -> Any:  # noqa: ANN401 # whatever the line returns
        return eval(line, NAMES)  # noqa: S307 # our own lines

    forward = _error(call, mode=True)
    results: list[Any] = []
    before = _error(lambda: results.append(call()), mode=False)
    tensors = [each for each in pytree.tree_leaves(results) if isinstance(each, torch.Tensor)]
    outs = [out for out in tensors if out.requires_grad]
    if before is not None or not outs:
        return {"forward": forward, "backward": before and f"no result: {before}"}
    loss = functools.reduce(torch.add, (out.abs().sum() for out in outs))
    return {"forward": forward, "backward": _error(loss.backward, mode=True)}


def _error(call: Callable[[], Any], *, mode: bool) -> str | None:
    torch._C._set_deterministic_algorithms(mode, warn_only=False)  # without the compiler's import
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
            torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001 # its text is the answer
        return f"{type(error).__name__}: {first_line(error)}"
    finally:
        torch._C._set_deterministic_algorithms(False, warn_only=False)  # noqa: FBT003 # as above
    texts = [str(each.message) for each in caught]
    return next((f"warns: {text}" for text in texts if _ALERT in text), None)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make all calls, and write what PyTorch says to each."""
    parser = parser_of("benchmarks.switches", __doc__)
    parser.add_argument("out", type=Path, help="file of answers")
    options = parser.parse_args(arguments)
    with gpu_in_use(virtual=not torch.cuda.is_available()):
        answers = {
            name: {"call": call["call"], **alerts(call["call"] or "")}
            for name, call in recorded().items()
        }
    options.out.write_text(json.dumps(answers, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
