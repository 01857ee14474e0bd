"""Interrupt gpulab at many places, use the same GPU again, and count what has changed.

    python -m benchmarks.interrupts --n 2000
    python -m benchmarks.interrupts --n 2000 --device cuda --seconds 420

It interrupts at random calls of measure, compare, ladder, timeline, sweep, crossover, hazards,
live, training, graphs, streams, %%cudatime and cells of a notebook. --kind chooses the interrupt:
Ctrl-C, SystemExit from a SIGTERM handler, or an exception of the program's own handler. The exit
code is 1 if anything failed. To use several cores, start it several times with other seeds.
"""

import math
import time
import warnings
from collections.abc import Sequence

from benchmarks.common.command_line import parser_of
from benchmarks.common.markdown import padded_table

_HEAD = ("target", "strikes", "failed", "longest wait")


def main(arguments: Sequence[str] | None = None) -> None:
    """Interrupt, and print the table of failures."""
    from benchmarks.interrupts.campaign import Campaign, rows
    from benchmarks.interrupts.injection import KINDS
    from benchmarks.interrupts.targets import notebook_programs, programs

    made = parser_of("benchmarks.interrupts", __doc__)
    made.add_argument("--n", type=int, default=200, help="interrupts, shared among the targets")
    made.add_argument("--seed", type=int, default=0, help="seed of the random calls")
    made.add_argument("--device", choices=("virtual", "cuda"), default="virtual")
    made.add_argument(
        "--seconds", type=float, default=math.inf, help="stop after this time (default: never)"
    )
    kinds = ("interrupt", "exit", "handler", "all")
    made.add_argument("--kind", choices=kinds, default="interrupt")
    made.add_argument("--targets", nargs="*", default=None, help="default: all")
    options = made.parse_args(arguments)
    warnings.simplefilter("ignore")  # measurements warn of the tracer
    notebook = {} if options.device == "cuda" else notebook_programs()
    names = options.targets or [*programs(), *notebook]
    kinds = KINDS if options.kind == "all" else (options.kind,)
    tasks = [(kind, name) for kind in kinds for name in names]
    end_s = time.monotonic() + options.seconds
    table, faults, n, n_failed = [], [], 0, 0
    for index, (kind, name) in enumerate(tasks):
        campaign = Campaign(kind=kind, device=options.device)
        # What a quick target leaves is shared among the targets after it.
        now_s = time.monotonic()
        campaign.end_s = now_s + (end_s - now_s) / (len(tasks) - index)
        strike = campaign.notebook_points if name in notebook else campaign.points
        outcome = strike(name, -(-options.n // len(tasks)), options.seed)
        table += [(f"{kind}: {row[0]}", *row[1:]) for row in rows([outcome])]
        common = outcome.faults.most_common(12)
        faults += [f"{kind}: {name}: {count} x {fault}" for fault, count in common]
        n, n_failed = n + outcome.n, n_failed + outcome.n_failed
        if campaign.is_beyond_repair:
            faults.append(f"an interrupt of {name} left this process with no usable GPU")
            break
    print(*padded_table(_HEAD, table), *faults, f"{n_failed} of {n} failed", sep="\n")
    if faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
