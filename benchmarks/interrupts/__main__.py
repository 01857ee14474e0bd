"""Interrupt gpulab at many places, use the same GPU again, and count what has changed.

    python -m benchmarks.interrupts --n 2000
    python -m benchmarks.interrupts --n 2000 --device cuda --seconds 420

It interrupts at random calls of measure, compare, ladder, timeline, sweep, crossover, hazards,
live, training, graphs, streams, %%cudatime and cells of a notebook, each in a process of its own.
A target ends with the first interrupt after which something has changed. --kind chooses the
interrupt: Ctrl-C, SystemExit from a SIGTERM handler, or an exception of the program's own handler.
The exit code is 1 if anything failed. To use several cores, start it several times with other
seeds.
"""

import math
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from benchmarks.common.command_line import parser_of
from benchmarks.common.markdown import padded_table

_COUNTS = ("n", "n_failed")
_HEAD = ("target", "strikes", "failed", "longest wait")


def main(arguments: Sequence[str] | None = None) -> None:
    """Interrupt, and print the table of failures."""
    from benchmarks.interrupts.campaign import interrupted
    from benchmarks.interrupts.injection import KINDS
    from benchmarks.interrupts.targets import notebook_programs, programs

    made = parser_of("benchmarks.interrupts", __doc__)
    made.add_argument("--n", type=int, default=200, help="interrupts, shared among the targets")
    made.add_argument("--seed", type=int, default=0, help="seed of the random calls")
    made.add_argument("--device", choices=("virtual", "cuda"), default="virtual")
    made.add_argument(
        "--seconds", type=float, default=math.inf, help="stop after this time (default: never)"
    )
    made.add_argument("--kind", choices=(*KINDS, "all"), default="interrupt")
    made.add_argument("--targets", nargs="*", default=None, help="default: all")
    options = made.parse_args(arguments)
    notebook = {} if options.device == "cuda" else notebook_programs()
    kinds = KINDS if options.kind == "all" else (options.kind,)
    tasks = [
        (kind, name) for kind in kinds for name in options.targets or [*programs(), *notebook]
    ]
    n_each = -(-options.n // len(tasks))
    end_s = time.monotonic() + options.seconds
    outcomes = {}
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as process:
        for index, (kind, name) in enumerate(tasks):
            # What a quick target leaves is shared among the targets after it.
            now_s = time.monotonic()
            own_end_s = now_s + (end_s - now_s) / (len(tasks) - index)
            arguments_of = (kind, options.device, own_end_s, name, n_each, options.seed)
            outcomes[f"{kind}: {name}"] = process.submit(interrupted, *arguments_of).result()
    rows = [
        (title, f"{each.n:,}", f"{each.n_failed:,}", f"{1e3 * each.worst_wait_s:.1f} ms")
        for title, each in outcomes.items()
    ]
    faults = [f"{title}: {fault}" for title, each in outcomes.items() for fault in each.faults]
    n, n_failed = (sum(getattr(each, key) for each in outcomes.values()) for key in _COUNTS)
    print(*padded_table(_HEAD, rows), *faults, f"{n_failed} of {n} failed", sep="\n")
    if faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
