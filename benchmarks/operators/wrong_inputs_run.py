"""Make wrong calls on the virtual GPU or on a CUDA GPU, and report where the errors come.

An error of the device loses the context of the process. So on a CUDA GPU the calls run in a
process of their own, which starts anew after such an error.
"""

import json
import multiprocessing
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from benchmarks.operators.recorded_errors import differences, load, pack
from benchmarks.operators.wrong_inputs import Tried, try_all, virtual

_WRITTEN_EVERY = 500
_LOST = 3  # the exit code of a process whose context is lost
_SPAWN = multiprocessing.get_context("spawn")  # a fork could not use CUDA


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
    recording = {**pack(outcomes, gpu, torch.__version__), "tried": tried}
    path.write_text(json.dumps(recording, indent=0), "utf-8")


def _on_hardware(
    kinds: Sequence[str], names: Sequence[str], on_outcome: Callable[[Tried], None]
) -> None:
    """Try the calls in a process that starts anew after an error that loses its context."""
    n_tried, code = 0, None
    while code != 0:
        pipe, theirs = _SPAWN.Pipe(duplex=False)
        process = _SPAWN.Process(target=_try_here, args=(theirs, kinds, names, n_tried))
        process.start()
        theirs.close()
        begun = ""
        with suppress(EOFError):  # the process has ended
            while True:
                message = pipe.recv()
                begun = message if isinstance(message, str) else ""
                if not begun:
                    n_tried += 1
                    on_outcome(message)
        process.join()
        code = process.exitcode
        if begun:
            n_tried += 1
            on_outcome(Tried(begun, "died", message=f"exit code {code}"))
        elif code not in {0, _LOST}:
            raise SystemExit(f"the process that tries the calls ended with code {code}")


def _try_here(pipe: Connection, kinds: Sequence[str], names: Sequence[str], skip: int) -> None:
    """Try the calls after the first ``skip``; send the key of each, and then its outcome."""

    def tell(outcome: Tried) -> None:
        pipe.send(outcome)
        if outcome.error == "AcceleratorError":
            sys.exit(_LOST)

    with nullcontext() if torch.cuda.is_available() else virtual(with_values=True):
        try_all(kinds, names, skip=skip, on_outcome=tell, on_begin=pipe.send)
