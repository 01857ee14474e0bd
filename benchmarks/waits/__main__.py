"""Ask calls of PyTorch whether they wait for the GPU, and compare the answers of two machines.

    python -m benchmarks.waits ask --out h100.json                on the CUDA GPU of this machine
    python -m benchmarks.waits ask --out here.json --gpu H200     on a virtual GPU
    python -m benchmarks.waits compare h100.json here.json

ask      asks each call of benchmarks.waits.calls: does it return only after a sleep of the GPU
         before it, does torch.cuda.set_sync_debug_mode("error") refuse it, how many kernels does
         it launch, and may it be captured in a CUDA graph. The last is asked only of calls that
         do not wait, because a failed capture can leave a GPU's libraries of no more use.
compare  prints which answers differ; the exit status is 1 if one of the waits does.
"""

import argparse
import contextlib
import json
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch

from benchmarks.common.command_line import parser_of
from benchmarks.waits import ask
from benchmarks.waits.calls import call_of, names

Rows = dict[str, dict[str, Any]]

# The questions whose answers a virtual GPU must share. Kernels are counted for information.
QUESTIONS = ("waits", "debug", "captured")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    options = parser().parse_args(arguments)
    options.command(options)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.waits", __doc__)
    commands = made.add_subparsers(required=True)
    asking = commands.add_parser("ask", help="ask the calls")
    asking.add_argument("--out", type=Path, required=True, help="file of answers")
    asking.add_argument("--gpu", default="", help="virtual GPU; default: the CUDA GPU")
    asking.add_argument("--only", default="", help="ask only calls that contain this text")
    asking.add_argument(
        "--limit-s", type=float, default=150.0, help="count no more kernels after these seconds"
    )
    asking.set_defaults(command=_ask)
    comparing = commands.add_parser("compare", help="print which answers differ")
    comparing.add_argument("first", type=Path, help="answers of the GPU that is right")
    comparing.add_argument("second", type=Path, help="answers to judge")
    comparing.set_defaults(command=_compare)
    return made


def _ask(options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")
    asked = [name for name in names() if options.only in name]
    with _gpu(options.gpu):
        rows = answers(asked, limit_s=options.limit_s)
        gpu = f"virtual {options.gpu}" if options.gpu else torch.cuda.get_device_name()
    save(options.out, {"gpu": gpu, "torch": torch.__version__}, rows)
    failed = {name: row for name, row in rows.items() if str in map(type, row.values())}
    print(f"{len(rows)} calls, of which {sum(row['waits'] is True for row in rows.values())} wait")
    for name, row in failed.items():
        print(f"  failed: {name}: {row}")


def save(path: Path, provenance: dict[str, str], rows: Rows) -> None:
    """Write answers as JSON, one call a line."""
    lines = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items()]
    head = json.dumps(provenance)[1:-1]
    path.write_text(f'{{{head}, "rows": {{\n' + ",\n".join(lines) + "\n}}\n")


def _gpu(name: str) -> AbstractContextManager[object]:
    if not name:
        return contextlib.nullcontext()
    import gpulab

    return gpulab.virtual_gpu(name)


def answers(asked: Sequence[str], limit_s: float) -> Rows:
    """Return the answers of each call."""
    start_s = time.monotonic()
    rows: Rows = {name: {} for name in asked}
    for name, row in rows.items():
        for question in (ask.waits, ask.debug):
            row[question.__name__] = _answer(question, name)
    print(f"{time.monotonic() - start_s:.0f} s for waits and the debug mode", flush=True)
    for name, row in rows.items():
        if time.monotonic() - start_s > limit_s:
            break
        row["kernels"] = _answer(ask.kernels, name)
    print(f"{time.monotonic() - start_s:.0f} s with kernels", flush=True)
    for name, row in rows.items():
        if row["waits"] is False and row["debug"] is False:
            row["captured"] = _answer(ask.captured, name)
            if not row["captured"] and not ask.repaired_after_capture():
                print(f"no more captures after {name}", flush=True)
                break
    print(f"{time.monotonic() - start_s:.0f} s in all", flush=True)
    return rows


def _answer(question: Any, name: str) -> ask.Answer:  # noqa: ANN401 # one of several questions
    try:
        call = call_of(name)
    except Exception as error:  # noqa: BLE001 # this version of PyTorch lacks an input
        return f"{type(error).__name__}: {error}"[:200]
    return ask.answer(question, call)


def differences(first: Rows, second: Rows, question: str) -> dict[str, tuple[Any, Any]]:
    """Return the calls that two machines answer differently, leaving out failed ones."""
    return {
        name: (first[name][question], second[name][question])
        for name in first
        if name in second
        and all(type(rows[name].get(question)) in {bool, int} for rows in (first, second))
        and first[name][question] != second[name][question]
    }


def _compare(options: argparse.Namespace) -> None:
    first, second = (json.loads(path.read_text()) for path in (options.first, options.second))
    n_wrong = 0
    for question in (*QUESTIONS, "kernels"):
        differing = differences(first["rows"], second["rows"], question)
        print(f"{question}: {len(differing)} of {len(first['rows'])} differ")
        if question in QUESTIONS:
            n_wrong += len(differing)
            for name, both in differing.items():
                print(f"  {name}: {both[0]} on {first['gpu']}, {both[1]} on {second['gpu']}")
    sys.exit(bool(n_wrong))


if __name__ == "__main__":
    main()
