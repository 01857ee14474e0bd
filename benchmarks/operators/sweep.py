"""Try operators of PyTorch's database one after the other, and collect their outcomes."""

from collections.abc import Sequence
from pathlib import Path

import torch

import gpulab
from benchmarks.common.markdown import put_between_markers
from benchmarks.operators.database import operators
from benchmarks.operators.extremes import try_extremes
from benchmarks.operators.outcomes import Outcome, counted, summary
from benchmarks.operators.trial import try_operator
from gpulab.core.progress import Bar


def print_outcomes(
    names: Sequence[str],
    dtypes: Sequence[str],
    *,
    samples: int,
    extreme: bool,
    write: Path | None,
) -> None:
    """Try operators, print what differs and the counts, and put the counts into a page."""
    outcomes = run(names, dtypes, n_samples=samples, is_extreme=extreme, progress=True)
    print("\n".join(summary(outcomes)))
    if write is not None:
        put_between_markers(write, "operators", "\n".join(counted(outcomes)))


def run(
    names: Sequence[str],
    dtypes: Sequence[str],
    *,
    n_samples: int,
    is_extreme: bool = False,
    progress: bool = False,
) -> list[Outcome]:
    """Try the operators with these names, or all, and return their outcomes.

    Parameters
    ----------
    names, dtypes
        Operators to try, and the types of their inputs.
    n_samples
        Number of samples of the database to try for each operator and type.
    is_extreme
        Whether to try extreme and wrong values instead of the database's own.
    progress
        Whether to show a bar with the name of the operator that runs: if it ends this process,
        its name is the last one.
    """
    # With one thread, sums have the same order in each run.
    torch.set_num_threads(1)
    with gpulab.virtual_gpu("H200"):  # its modules are imported here, and not in the first call
        torch.manual_seed(0)
    attempt = try_extremes if is_extreme else try_operator
    outcomes: list[Outcome] = []
    with Bar(operators(names), desc="trying", unit=" operators", disable=not progress) as bar:
        for info in bar:
            bar.set_postfix_str(info.name)
            for dtype in dtypes:
                outcomes += attempt(info, getattr(torch, dtype), n_samples)
    return outcomes
