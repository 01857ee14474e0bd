"""Share the interrupts among processes, which use the same GPU side by side."""

import multiprocessing
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

import torch

from benchmarks.interrupts.campaign import Campaign, Outcome
from benchmarks.interrupts.targets import notebook_programs

_NEW = multiprocessing.get_context("spawn")  # a fork of a process that uses CUDA cannot use it


@dataclass(frozen=True, slots=True)
class Plan:
    """What to interrupt, and how often.

    Attributes
    ----------
    names
        The targets. Each of them gets the same share of the time.
    kind, device
        The kind of interrupt, and the GPU: ``"virtual"`` or ``"cuda"``.
    n
        Number of interrupts, shared among the targets and the processes, rounded up.
    seed
        Seed of the first process; the next ones count on from it.
    duration_s
        Time after which no interrupt begins.
    n_processes
        Number of processes.
    """

    names: Sequence[str]
    kind: str
    device: str
    n: int
    seed: int
    duration_s: float
    n_processes: int


def strike_in_processes(plan: Plan) -> tuple[list[Outcome], list[str]]:
    """Interrupt targets at random calls, in several processes at once.

    Returns
    -------
    outcomes
        One for each target, with the strikes of all processes.
    ended_early
        A line for each process that ended before it had tried all targets.
    """
    running = {}
    for seed in range(plan.seed, plan.seed + plan.n_processes):
        receiver, sender = _NEW.Pipe(duplex=False)
        process = _NEW.Process(target=_strike, args=(sender, plan, seed))
        process.start()
        sender.close()
        running[receiver] = process, seed
    outcomes = {name: Outcome(name) for name in plan.names}
    ended_early = []
    while running:
        for receiver in wait([*running]):
            try:
                found = receiver.recv()  # type: ignore[union-attr]  # all of them are connections
            except EOFError:
                process, seed = running.pop(receiver)
                process.join()
                if process.exitcode:
                    ended_early.append(f"the process of seed {seed} ended: {process.exitcode}")
                continue
            outcomes[found.name].merge(found)
    return [*outcomes.values()], ended_early


def _strike(sender: Connection, plan: Plan, seed: int) -> None:
    """Interrupt all targets in a new process, and send the outcome of each."""
    warnings.simplefilter("ignore")  # measurements warn of the tracer
    # All threads of all processes together, so that they do not wait for cores.
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // plan.n_processes))
    end_s = time.monotonic() + plan.duration_s
    campaign = Campaign(kind=plan.kind, device=plan.device)
    n = -(-plan.n // (len(plan.names) * plan.n_processes))
    notebook = notebook_programs()
    for index, name in enumerate(plan.names):
        strike = campaign.notebook_points if name in notebook else campaign.points
        now_s = time.monotonic()
        # What a quick target leaves is shared among the targets after it.
        campaign.end_s = now_s + (end_s - now_s) / (len(plan.names) - index)
        sender.send(strike(name, n, seed))
    if campaign.is_beyond_repair:
        raise SystemExit("an interrupt left this process with no usable GPU")
