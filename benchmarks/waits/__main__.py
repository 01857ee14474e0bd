"""Ask calls of PyTorch whether they wait for the GPU, and compare with the answers of an H100.

    python -m benchmarks.waits h100.json                on the CUDA GPU of this machine
    python -m benchmarks.waits here.json --gpu H200     on a virtual GPU

It asks of each call in ``benchmarks/results/waits-h100.json``: does it return only after a sleep
of the GPU before it, does torch.cuda.set_sync_debug_mode("error") refuse it, how many kernels does
it launch, and may it be captured in a CUDA graph. The last is asked only of calls that do not
wait, because a failed capture can leave a GPU's libraries of no more use. The exit status is 1 if
an answer about a wait differs; kernels are counted for information.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

import gpulab
from benchmarks.common.command_line import parser_of
from benchmarks.waits import ask
from benchmarks.waits.calls import ANSWERED, call_of, names

Rows = dict[str, dict[str, Any]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Ask the calls, write the answers, and print those that differ from the recorded ones."""
    parser = parser_of("benchmarks.waits", __doc__)
    parser.add_argument("out", type=Path, help="file of answers")
    parser.add_argument("--gpu", default="", help="virtual GPU; default: the CUDA GPU")
    parser.add_argument("--only", default="", help="ask only calls that contain this text")
    parser.add_argument(
        "--limit-s", type=float, default=150.0, help="count no more kernels after these seconds"
    )
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    asked = [name for name in names() if options.only in name]
    with gpulab.virtual_gpu(options.gpu) if options.gpu else nullcontext():
        rows = answers(asked, limit_s=options.limit_s)
        gpu = f"virtual {options.gpu}" if options.gpu else torch.cuda.get_device_name()
    save(options.out, {"gpu": gpu, "torch": torch.__version__}, rows)
    print(f"{len(rows)} calls, of which {sum(row['waits'] is True for row in rows.values())} wait")
    for name, row in rows.items():
        if str in map(type, row.values()):
            print(f"  failed: {name}: {row}")
    recorded = json.loads(ANSWERED.read_text("utf-8"))["rows"]
    n_wrong = 0
    for question in ("waits", "debug", "captured", "kernels"):
        differing = [name for name in rows if _differs(rows[name], recorded[name], question)]
        print(f"{question}: {len(differing)} differ from those of an H100")
        if question != "kernels":
            n_wrong += len(differing)
            for name in differing:
                print(f"  {name}: {rows[name][question]}, not {recorded[name][question]}")
    sys.exit(bool(n_wrong))


def _differs(row: dict[str, Any], recorded: dict[str, Any], question: str) -> bool:
    pair = row.get(question), recorded.get(question)
    is_answered = all(type(each) in {bool, int} for each in pair)  # not an error, and not None
    return is_answered and pair[0] != pair[1]


def save(path: Path, provenance: dict[str, str], rows: Rows) -> None:
    """Write answers as JSON, one call a line."""
    lines = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items()]
    head = json.dumps(provenance)[1:-1]
    path.write_text(f'{{{head}, "rows": {{\n' + ",\n".join(lines) + "\n}}\n")


def answers(asked: Sequence[str], limit_s: float) -> Rows:
    """Return the answers of each call."""
    end_s = time.monotonic() + limit_s
    rows: Rows = {name: {} for name in asked}
    for name, row in rows.items():
        row["waits"], row["debug"] = _answer(ask.waits, name), _answer(ask.debug, name)
    for name, row in rows.items():
        if time.monotonic() > end_s:
            break
        row["kernels"] = _answer(ask.kernels, name)
    for name, row in rows.items():
        if row["waits"] is False and row["debug"] is False:
            row["captured"] = _answer(ask.captured, name)
            if not row["captured"] and not ask.repaired_after_capture():
                print(f"no more captures after {name}", flush=True)
                break
    return rows


def _answer(question: Callable[[ask.Call], ask.Answer], name: str) -> ask.Answer:
    try:
        call = call_of(name)
    except Exception as error:  # noqa: BLE001 # this version of PyTorch lacks an input
        return f"{type(error).__name__}: {error}"[:200]
    return ask.answer(question, call)


if __name__ == "__main__":
    main()
