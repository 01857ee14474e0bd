"""Ask the GPU in use what PyTorch's and CUDA's switches do, and write the answers as JSON.

    python -m benchmarks.switches ask answers.json      on a CUDA GPU, or on the virtual H200
    python -m benchmarks.switches compare a.json b.json

ask      calls what PyTorch may refuse under deterministic algorithms, forward and backward, and
         times calls with CUDA_LAUNCH_BLOCKING. Each switch needs processes of its own. It takes
         a few minutes, changes no setting of the GPU, and loses one CUDA context on purpose.
compare  lists the answers that differ.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from benchmarks.common.command_line import parser_of

_LIMIT_S = 900
_WORKSPACE = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
_BLOCKING = {"CUDA_LAUNCH_BLOCKING": "1"}
# Each run: its name, the part, and the variables that are set in its process.
_RUNS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("deterministic", "deterministic", _WORKSPACE),
    ("matmuls without workspace", "matmuls", {}),
    ("matmuls with workspace", "matmuls", _WORKSPACE),
    ("matmuls with another workspace", "matmuls", {"CUBLAS_WORKSPACE_CONFIG": ":2048:4"}),
    ("warns", "warns", _WORKSPACE),
    ("fills", "fills", _WORKSPACE),
    ("blocking off", "blocking", {}),
    ("blocking on", "blocking", _BLOCKING),
    ("blocking 0", "blocking", {"CUDA_LAUNCH_BLOCKING": "0"}),
    ("blocking 2", "blocking", {"CUDA_LAUNCH_BLOCKING": "2"}),
    ("late error, blocking off", "late_error", {}),
    ("late error, blocking on", "late_error", _BLOCKING),
    ("database", "database", _WORKSPACE),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    options = parser().parse_args(arguments)
    options.command(options)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.switches", __doc__)
    commands = made.add_subparsers(required=True)
    ask = commands.add_parser("ask", help="ask the GPU in use")
    ask.add_argument("out", type=Path, help="file of answers")
    ask.add_argument("--runs", nargs="+", default=[], help="names of runs; default: all")
    ask.set_defaults(command=_ask)
    one = commands.add_parser("part", help="one question, in this process")
    one.add_argument("name")
    one.set_defaults(command=_part)
    compare = commands.add_parser("compare", help="list the answers that differ")
    compare.add_argument("first", type=Path)
    compare.add_argument("second", type=Path)
    compare.set_defaults(command=_compare)
    return made


def _ask(options: argparse.Namespace) -> None:
    import torch

    answers: dict[str, Any] = {"torch": torch.__version__, "cuda": torch.version.cuda}
    for name, part, variables in _RUNS:
        if options.runs and name not in options.runs:
            continue
        known = {*_WORKSPACE, *_BLOCKING}
        kept = {key: value for key, value in os.environ.items() if key not in known}
        done = subprocess.run(  # noqa: S603 # this module itself
            [sys.executable, "-m", "benchmarks.switches", "part", part],
            env={**kept, **variables},
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
        *_, last = ["", *done.stdout.strip().splitlines()]
        try:
            answers[name] = json.loads(last)
        except ValueError:
            answers[name] = {"failed": (done.stderr or done.stdout)[-2000:]}
        print(f"{name}: {len(answers[name])} answers", flush=True)
        options.out.write_text(json.dumps(answers, indent=1), "utf-8")


def _part(options: argparse.Namespace) -> None:
    import torch

    import gpulab
    from benchmarks.switches.parts import PARTS

    with nullcontext() if torch.cuda.is_available() else gpulab.virtual_gpu("H200"):
        answers = PARTS[options.name]()
        # Within the context: an error that is still pending ends the process otherwise.
        print(json.dumps(answers), flush=True)
        os._exit(0)


def _compare(options: argparse.Namespace) -> None:
    first, second = (
        json.loads(path.read_text("utf-8")) for path in (options.first, options.second)
    )
    for run in first:
        if isinstance(first[run], dict):
            for name, answer in first[run].items():
                other = second.get(run, {}).get(name)
                if answer != other:
                    print(f"{run}: {name}\n    {answer}\n    {other}")


if __name__ == "__main__":
    main()
