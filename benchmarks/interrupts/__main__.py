"""Interrupt gpulab at many places, use the same GPU again, and count what has changed.

    python -m benchmarks.interrupts boundaries
    python -m benchmarks.interrupts boundaries --processes 32
    python -m benchmarks.interrupts files --step 20
    python -m benchmarks.interrupts waits --n 500
    python -m benchmarks.interrupts points --n 2000
    python -m benchmarks.interrupts points --n 2000 --device cuda --processes 12 --seconds 420

boundaries  interrupts at every bytecode of the beginning and the end of each context.
files       Ctrl-C at every bytecode of what opens, writes and closes a file.
waits       how long Ctrl-C waits in loops of steps.
points      interrupts at random calls of measure, compare, ladder, timeline, sweep, crossover,
            hazards, live, training, graphs, streams, %%cudatime and cells of a notebook.
            Several processes share the interrupts, and the GPU.

--kind chooses the interrupt: Ctrl-C, SystemExit from a handler of SIGTERM, an exception of the
program's own handler, or a MemoryError that no handler can defer. The exit code is 1 if anything
failed.
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

_KINDS = ("interrupt", "exit", "handler", "memory")
_HEAD = ("target", "strikes", "failed", "longest wait")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    options = parser().parse_args(arguments)
    options.command(options)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.interrupts", __doc__)
    commands = made.add_subparsers(required=True)
    boundaries = commands.add_parser("boundaries", help="at every bytecode of enter and exit")
    boundaries.add_argument("--step", type=int, default=1, help="interrupt at every n-th of them")
    boundaries.set_defaults(command=_boundaries, device="virtual")
    files = commands.add_parser("files", help="at every bytecode of what writes a file")
    files.add_argument("--step", type=int, default=1, help="interrupt at every n-th of them")
    files.set_defaults(command=_files)
    waits = commands.add_parser("waits", help="how long Ctrl-C waits in loops of steps")
    waits.add_argument("--n", type=int, default=500, help="how many, shared among the programs")
    waits.add_argument("--seed", type=int, default=1)
    waits.set_defaults(command=_waits)
    points = commands.add_parser("points", help="at random calls of programs")
    points.add_argument("--n", type=int, default=200, help="interrupts, shared among the targets")
    points.add_argument("--seed", type=int, default=0, help="seed of the random calls")
    points.add_argument("--device", choices=("virtual", "cuda"), default="virtual")
    points.set_defaults(command=_points)
    for command in (boundaries, points):
        command.add_argument(
            "--processes", type=int, default=1, help="how many share the interrupts (default: 1)"
        )
        command.add_argument(
            "--seconds", type=float, default=math.inf, help="stop after this time (default: never)"
        )
        command.add_argument("--kind", choices=(*_KINDS, "all"), default="interrupt")
        command.add_argument("--targets", nargs="*", default=None, help="default: all")
    return made


def _boundaries(options: argparse.Namespace) -> None:
    import gpulab
    from benchmarks.interrupts.targets import contexts

    targets = [*contexts(gpulab.virtual_gpu())]
    _strike(options, targets, n=0, seed=0, step=options.step)


def _files(options: argparse.Namespace) -> None:
    from benchmarks.interrupts.files import failures, writers

    n_failed = n_tried = 0
    for name, write in writers().items():
        outcomes = [*failures(write, options.step)]
        failed = [outcome for outcome in outcomes if outcome]
        print(f"{name}: {len(failed)} of {len(outcomes)} failed", *failed[:9], sep="\n  ")
        n_tried, n_failed = n_tried + len(outcomes), n_failed + len(failed)
    print(f"{n_failed} of {n_tried} failed")
    if n_failed:
        raise SystemExit(1)


def _waits(options: argparse.Namespace) -> None:
    from statistics import median

    from benchmarks.interrupts.waits import PROGRAMS, waits_s

    every_s: list[float] = []
    for name in PROGRAMS:
        of_program_s = waits_s(name, options.n // len(PROGRAMS), options.seed)
        every_s += of_program_s
        middle_ms, worst_ms = median(of_program_s) * 1e3, max(of_program_s) * 1e3
        print(f"{name}: median {middle_ms:.1f} ms, worst {worst_ms:.0f} ms")
    print(
        f"{len(every_s)} tries: median {median(every_s) * 1e3:.1f} ms, "
        f"worst {max(every_s) * 1e3:.0f} ms, lost {sum(map(math.isinf, every_s))}"
    )


def _points(options: argparse.Namespace) -> None:
    from benchmarks.interrupts.targets import notebook_programs, programs

    notebook = [] if options.device == "cuda" else [*notebook_programs()]
    _strike(options, [*programs(), *notebook], n=options.n, seed=options.seed)


def _strike(
    options: argparse.Namespace,
    targets: Sequence[str],
    *,
    n: int,
    seed: int,
    step: int | None = None,
) -> None:
    from benchmarks.interrupts.processes import Plan, strike_in_processes

    kinds = _kinds(options)
    outcomes: list[tuple[str, Outcome]] = []
    ended_early: list[str] = []
    for kind in kinds:
        plan = Plan(
            names=options.targets or targets,
            kind=kind,
            device=options.device,
            n=n,
            seed=seed,
            duration_s=options.seconds / len(kinds),
            n_processes=options.processes,
            step=step,
        )
        found, ended = strike_in_processes(plan)
        ended_early += ended
        outcomes += [(kind, outcome) for outcome in found]
    _report(outcomes, ended_early)


def _kinds(options: argparse.Namespace) -> Sequence[str]:
    warnings.simplefilter("ignore")  # measurements warn of the tracer
    return _KINDS if options.kind == "all" else (options.kind,)


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
