"""Ask the GPU in use which calls PyTorch refuses under deterministic algorithms.

    CUBLAS_WORKSPACE_CONFIG=:4096:8 python -m benchmarks.switches answers.json

Without a CUDA GPU the virtual H200 answers. The answers have the form of
``benchmarks/recordings/h100-switches.json``: for each call the error forward and backward.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.command_line import parser_of


def main(arguments: Sequence[str] | None = None) -> None:
    """Make all calls, and write what PyTorch says to each."""
    options = parser().parse_args(arguments)
    import torch

    from benchmarks.common.environment import gpu_in_use
    from benchmarks.switches.calls import alerts, deterministic_calls

    with gpu_in_use(virtual=not torch.cuda.is_available()):
        answers = {name: alerts(call) for name, call in deterministic_calls().items()}
    options.out.write_text(json.dumps(answers, indent=1), "utf-8")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.switches", __doc__)
    made.add_argument("out", type=Path, help="file of answers")
    return made


if __name__ == "__main__":
    main()
