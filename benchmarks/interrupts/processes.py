"""Share the interrupts among processes, which use the same GPU side by side."""

import math
import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

import torch

from benchmarks.interrupts.campaign import Campaign, Outcome
from benchmarks.interrupts.targets import notebook_programs

Running = dict[Connection, tuple[SpawnProcess, int]]  # by the end of its pipe: process and seed

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
        Time after which all processes are stopped, wherever they are.
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
    """Interrupt targets in several processes at once.

    Ctrl-C stops the processes as the end of the time does; what they have found is returned.

    Returns
    -------
    outcomes
        One for each target, with the strikes of all processes.
    ended_early
        A line for each process that ended by itself before it had tried all targets, and one for
        Ctrl-C.
    """
    end_s = time.monotonic() + plan.duration_s
    running: Running = {}
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the new processes inherit it
    for seed in range(plan.seed, plan.seed + plan.n_processes):
        receiver, sender = _NEW.Pipe(duplex=False)
        process = _NEW.Process(target=_strike, args=(sender, plan, seed, end_s), daemon=True)
        process.start()
        sender.close()
        running[receiver] = process, seed
    signal.signal(signal.SIGINT, before)
    outcomes = {name: Outcome(name) for name in plan.names}
    ended_early: list[str] = []
    try:
        while running and time.monotonic() < end_s:
            _collect(running, end_s, outcomes, ended_early)
    except KeyboardInterrupt:
        ended_early.append("Ctrl-C stopped all processes")
    for process, _ in running.values():
        process.kill()  # not SIGTERM, which is one of the interrupts
        process.join()
    return [*outcomes.values()], ended_early


def _collect(
    running: Running, end_s: float, outcomes: dict[str, Outcome], ended_early: list[str]
) -> None:
    """Wait for the next strikes, and count them."""
    left_s = None if end_s == math.inf else max(0.0, end_s - time.monotonic())
    for receiver in wait([*running], left_s):
        try:
            found = receiver.recv()  # type: ignore[union-attr]  # all of them are connections
        except EOFError:
            process, seed = running.pop(receiver)  # type: ignore[arg-type]
            process.join()
            if process.exitcode:
                ended_early.append(f"the process of seed {seed} ended: {process.exitcode}")
            continue
        outcomes[found.name].merge(found)


def _strike(sender: Connection, plan: Plan, seed: int, end_s: float) -> None:
    """Interrupt all targets in a new process, and send the outcome of each strike."""
    if hasattr(os, "setsid"):
        os.setsid()  # a Ctrl-C in the terminal is for the campaign, and no strike
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.simplefilter("ignore")  # measurements warn of the tracer
    # All threads of all processes together, so that they do not wait for cores.
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // plan.n_processes))
    campaign = Campaign(kind=plan.kind, device=plan.device, found=sender.send)
    n = -(-plan.n // (len(plan.names) * plan.n_processes))
    notebook = notebook_programs()
    for index, name in enumerate(plan.names):
        strike = campaign.notebook_points if name in notebook else campaign.points
        now_s = time.monotonic()
        # What a quick target leaves is shared among the targets after it.
        campaign.end_s = now_s + (end_s - now_s) / (len(plan.names) - index)
        strike(name, n, seed)
    if campaign.is_beyond_repair:
        raise SystemExit("an interrupt left this process with no usable GPU")
