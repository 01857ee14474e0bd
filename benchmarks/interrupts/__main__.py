"""Interrupt gpulab at many places, use the same GPU again, and count what has changed.

    python -m benchmarks.interrupts --n 2000
    python -m benchmarks.interrupts --n 2000 --device cuda --processes 12 --seconds 420

It interrupts at random calls of measure, compare, ladder, timeline, sweep, crossover, hazards,
live, training, graphs, streams, %%cudatime and cells of a notebook. Several processes share the
interrupts, and the GPU. --kind chooses the interrupt: Ctrl-C, SystemExit from a SIGTERM handler,
or an exception of the program's own handler. The exit code is 1 if anything failed.
"""

import argparse
import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.common.command_line import parser_of
from benchmarks.common.markdown import padded_table

if TYPE_CHECKING:
    from benchmarks.interrupts.campaign import Outcome

_HEAD = ("target", "strikes", "failed", "longest wait")


def main(arguments: Sequence[str] | None = None) -> None:
    """Interrupt, and print the table of failures."""
    from benchmarks.interrupts.injection import KINDS
    from benchmarks.interrupts.processes import Plan, strike_in_processes
    from benchmarks.interrupts.targets import notebook_programs, programs

    options = parser().parse_args(arguments)
    warnings.simplefilter("ignore")  # measurements warn of the tracer
    notebook = [] if options.device == "cuda" else [*notebook_programs()]
    kinds = KINDS if options.kind == "all" else (options.kind,)
    outcomes: list[tuple[str, Outcome]] = []
    ended_early: list[str] = []
    for kind in kinds:
        plan = Plan(
            names=options.targets or [*programs(), *notebook],
            kind=kind,
            device=options.device,
            n=options.n,
            seed=options.seed,
            duration_s=options.seconds / len(kinds),
            n_processes=options.processes,
        )
        found, ended = strike_in_processes(plan)
        ended_early += ended
        outcomes += [(kind, outcome) for outcome in found]
    _report(outcomes, ended_early)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.interrupts", __doc__)
    made.add_argument("--n", type=int, default=200, help="interrupts, shared among the targets")
    made.add_argument("--seed", type=int, default=0, help="seed of the random calls")
    made.add_argument("--device", choices=("virtual", "cuda"), default="virtual")
    made.add_argument(
        "--processes", type=int, default=1, help="how many share the interrupts (default: 1)"
    )
    made.add_argument(
        "--seconds", type=float, default=math.inf, help="stop after this time (default: never)"
    )
    kinds = ("interrupt", "exit", "handler", "all")
    made.add_argument("--kind", choices=kinds, default="interrupt")
    made.add_argument("--targets", nargs="*", default=None, help="default: all")
    return made


def _report(outcomes: Sequence[tuple[str, "Outcome"]], ended_early: Sequence[str] = ()) -> None:
    from benchmarks.interrupts.campaign import rows

    cells = [(f"{kind}: {row[0]}", *row[1:]) for kind, each in outcomes for row in rows([each])]
    print("\n".join(padded_table(_HEAD, cells)))
    for kind, outcome in outcomes:
        for fault, count in outcome.faults.most_common(12):
            print(f"{kind}: {outcome.name}: {count} x {fault}")
    n_failed = sum(outcome.n_failed for _, outcome in outcomes)
    print(f"{n_failed} of {sum(outcome.n for _, outcome in outcomes)} failed")
    print(*ended_early, sep="\n", end="\n" if ended_early else "")
    if n_failed or ended_early:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
