"""Try laws over many random programs, and shrink the programs that break one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from benchmarks.laws.laws import Check, Law
from benchmarks.laws.programs import Program, program_of, shrunk
from benchmarks.laws.readings import Gpu, ProgramError
from gpulab.core.errors import GpulabError


@dataclass(frozen=True, slots=True)
class Break:
    """A law that a program breaks.

    Attributes
    ----------
    law
        The law.
    what
        What breaks it.
    program
        The program, shrunk.
    """

    law: Law
    what: str
    program: Program


@dataclass
class Count:
    """How many programs a law was tried on, and how they broke it."""

    n_programs: int = 0
    breaks: list[Break] = field(default_factory=list)


def broken(check: Check, program: Program, gpu: Gpu) -> str | None:
    """Return what breaks a law; a program that raises an error breaks it, too."""
    # On hardware PyTorch's generator raises errors after a capture that failed.
    fit = program if gpu.outlives_failed_captures else program.without_failed_captures()
    try:
        return check(fit, gpu)
    # The second one is raised where the law itself waits for the GPU.
    except (ProgramError, GpulabError) as error:
        return f"the program ended with an error: {error}"


def shrunk_break(law: Law, check: Check, program: Program, gpu: Gpu) -> Break:
    """Return the break of a law by the smallest program that shrinking finds."""

    def is_broken(smaller: Program) -> bool:
        what = broken(check, smaller, gpu)
        # A program without the step that makes a tensor is no program.
        return what is not None and "raised NameError" not in what

    smallest = shrunk(program, is_broken)
    return Break(law, broken(check, smallest, gpu) or "it broke the law once", smallest)


def try_laws(
    laws: Sequence[Law], n_programs: int, seed: int, gpu: Gpu, counts: dict[int, Count]
) -> Iterator[int]:
    """Try laws on programs, and yield after each how many breaks there are.

    Parameters
    ----------
    laws
        The laws.
    n_programs
        How many programs there are; a law that takes long is tried on a part of them.
    seed
        The seed of the first one; each further one has the next seed.
    gpu
        The GPU that runs them.
    counts
        What was found so far, by the laws' numbers; it is updated.
    """
    counts.update({law.number: Count() for law in laws})
    # Results may differ with the number of threads, but times must not; one takes less in all.
    torch.set_num_threads(1)
    for n in range(n_programs):
        program = program_of(seed + n)
        for law in laws:
            for check, every in law.checks:
                if n % every == 0:
                    _try(law, check, program, gpu, counts[law.number])
        yield sum(len(count.breaks) for count in counts.values())


def _try(law: Law, check: Check, program: Program, gpu: Gpu, count: Count) -> None:
    is_broken = broken(check, program, gpu) is not None
    # Afterwards, because Ctrl-C may end the check.
    count.n_programs += check is law.checks[0][0]
    if is_broken:
        count.breaks.append(shrunk_break(law, check, program, gpu))
