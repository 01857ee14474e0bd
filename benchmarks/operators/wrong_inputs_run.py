"""Make wrong calls on the virtual GPU or on a CUDA GPU, and report where the errors come.

An error of the device loses the context of the process. So on a CUDA GPU the calls run in a
process of their own, which starts anew after such an error.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import torch

from benchmarks.common.command_line import python_command
from benchmarks.operators.recorded_errors import differences, load, pack
from benchmarks.operators.wrong_inputs import Tried, try_all, virtual

_WRITTEN_EVERY = 500
_LOST = 3  # the exit code of a process whose context is lost


def run(kinds: Sequence[str], names: Sequence[str], device: str, out: Path | None) -> None:
    """Try the calls on a device, print the counts and what is not as expected."""
    outcomes: list[Tried] = []

    def keep(outcome: Tried) -> None:
        outcomes.append(outcome)
        if out is not None and len(outcomes) % _WRITTEN_EVERY == 0:
            _write(out, device, outcomes)

    if device == "cuda":
        _on_hardware(kinds, names, keep)
    else:
        with virtual(with_values=device == "virtual"):
            try_all(kinds, names, on_outcome=keep)
    if out is not None:
        _write(out, device, outcomes)
    for kind in kinds:
        counts = Counter(each.outcome for each in outcomes if each.key.startswith(kind))
        print(kind, dict(counts))
    print("Other than recorded:", *differences(outcomes, load(), are_explained=True), sep="\n")


def _write(path: Path, device: str, outcomes: Sequence[Tried]) -> None:
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else device
    tried = [asdict(each) for each in outcomes]
    found = {**pack(outcomes, gpu, torch.__version__), "tried": tried}
    path.write_text(json.dumps(found, indent=0), "utf-8")


def _on_hardware(
    kinds: Sequence[str], names: Sequence[str], on_outcome: Callable[[Tried], None]
) -> None:
    """Try the calls in a process that starts anew after an error that loses its context."""
    n_tried = 0
    while True:
        arguments = ["errors-here", "--kinds", *kinds, "--skip", str(n_tried)]
        if names:
            arguments += ["--names", *names]
        process = subprocess.Popen(  # noqa: S603 # our own command
            python_command("benchmarks.operators", *arguments), stdout=subprocess.PIPE, text=True
        )
        begun = ""
        for line in process.stdout or ():
            if line.startswith("BEGIN "):
                begun = line.removeprefix("BEGIN ").strip()
            elif line.startswith("TRIED "):
                begun = ""
                n_tried += 1
                on_outcome(Tried(**json.loads(line.removeprefix("TRIED "))))
        code = process.wait()
        if code == 0:
            return
        if begun:
            n_tried += 1
            on_outcome(Tried(begun, "died", message=f"exit code {code}"))
        elif code != _LOST:
            raise SystemExit(f"the process that tries the calls ended with code {code}")


def run_here(kinds: Sequence[str], names: Sequence[str], skip: int) -> None:
    """Try the calls after the first ``skip`` on this machine's GPU, and print each outcome."""

    def tell(outcome: Tried) -> None:
        print("TRIED", json.dumps(asdict(outcome)), flush=True)
        if outcome.error == "AcceleratorError":
            sys.exit(_LOST)

    with nullcontext() if torch.cuda.is_available() else virtual(with_values=True):
        try_all(
            kinds,
            names,
            skip=skip,
            on_outcome=tell,
            on_begin=lambda key: print("BEGIN", key, flush=True),
        )
