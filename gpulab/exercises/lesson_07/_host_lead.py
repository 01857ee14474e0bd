"""The judge for the length of a sleep that puts the host ahead of the GPU in every sample."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from gpulab import device
from gpulab.core.torch_private import spin
from gpulab.exercises.answers import (
    STUB,
    Diagnosis,
    FunctionJudge,
    idle_again,
    raising,
    returning_no_number,
    returning_nothing,
)
from gpulab.timing import elapsed_s, new_pairs
from gpulab.tracing.trials import Rule, Trial, WatchedWork, first_fitting, tried

N_SAMPLES = 40
_N_TRIES = 3  # the best counts: other programs may delay the host in one of them
# Launches per call of the two works. 40 samples of 16 launches, with their events, still fit into
# the launch queue of about 1,000 entries.
_LAUNCHES = (1, 16)
_CYCLES_TIMED = 1_000_000
_MOST = 20.0  # longest useful sleep, in multiples of the time that the host needs
_OTHER_UNIT = 1 / 400  # a tenth of what one sample needs; less is no number of cycles
_FEW = 4  # a sleep that is long enough for one sample puts the host ahead in at most so many


@dataclass(frozen=True, slots=True)
class HostLead:
    """The effect of a sleep of the learner's length, in clock cycles of the GPU.

    ``n_launches`` are those of one call of the work, and ``n_needed`` the cycles, as the judge
    measures them, in which the host enqueues all samples. Of ``N_SAMPLES``, ``n_ahead`` were
    enqueued before the GPU reached their first event.
    """

    n_launches: int
    n_cycles: float
    n_needed: float
    n_ahead: int


@dataclass(frozen=True, slots=True)
class HeadStart(FunctionJudge):
    """A judge for a function ``f(work)`` that returns how many cycles the GPU should sleep."""

    why: str
    how: str = (
        "Answer with the function: write def head_start(work), where work is a function "
        "without arguments that puts work into the queue, and return clock cycles."
    )

    def judge_function(self, function: Callable[..., object]) -> Diagnosis | str:
        """Let the GPU sleep for the learner's cycles, and count in how many the host was ahead."""
        leads: list[HostLead] = []
        with device.active():
            cycles_per_s = _cycles_per_s()
            for n_launches in _LAUNCHES:
                work = _launching(n_launches)
                work()
                n_needed = _lead(work, 0)[1] * cycles_per_s
                trial = tried(function, WatchedWork(work))
                # It has called the first work, so if it does nothing now it is no stub.
                rules = (idle_again("work()"), *_WITHOUT_CYCLES) if leads else _WITHOUT_CYCLES
                fault = first_fitting(rules, trial)
                if fault is not None:
                    return fault
                leads.append(_sleep(work, n_launches, trial.number or 0.0, n_needed))
        return first_fitting(_MISTAKES, (leads[0], leads[1])) or self.why


def _launching(n_launches: int) -> Callable[[], None]:
    def work() -> None:
        for _ in range(n_launches):
            spin(1)

    return work


def _sleep(
    work: Callable[[], object], n_launches: int, n_cycles: float, n_needed: float
) -> HostLead:
    """Return the effect of a sleep of the learner's length before all samples of a work."""
    n_ahead = 0
    if n_cycles <= _MOST * n_needed:  # a longer one is wrong; nobody has to wait for it
        n_ahead = max(_lead(work, max(0, int(n_cycles)))[0] for _ in range(_N_TRIES))
    return HostLead(n_launches, n_cycles, n_needed, n_ahead)


def _lead(work: Callable[[], object], n_cycles: int) -> tuple[int, float]:
    """Enqueue all samples after a sleep; return the samples with the host ahead, and its time."""
    pairs = new_pairs(N_SAMPLES)
    spin(n_cycles)
    n_ahead = 0
    begin_s = time.perf_counter()
    for start, end in pairs:
        start.record()  # not start.record(stream), which is faster: learners write it like this
        work()
        end.record()
        n_ahead += not start.query()  # type: ignore[no-untyped-call]  # torch's gap
    host_s = time.perf_counter() - begin_s
    torch.cuda.synchronize()
    return n_ahead, host_s


def _cycles_per_s() -> float:
    [pair] = new_pairs(1)
    pair[0].record()
    spin(_CYCLES_TIMED)
    pair[1].record()
    torch.cuda.synchronize()
    return _CYCLES_TIMED / elapsed_s(pair)


def _is_finite(trial: Trial) -> bool:
    return trial.number is not None and math.isfinite(trial.number)


_WITHOUT_CYCLES = (
    STUB,
    raising(),
    returning_nothing("the work"),
    returning_no_number("a number of clock cycles", _is_finite),
    (
        lambda trial: not trial.calls,
        Diagnosis(
            "guess",
            "Your function never called work(), so the number is a guess. The host needs longer "
            "for a work of many launches than for one launch. Measure its time with perf_counter.",
        ),
    ),
)


def _is_too_long(lead: HostLead) -> bool:
    return lead.n_cycles > _MOST * lead.n_needed


def _too_long(lead: HostLead) -> Diagnosis:
    return Diagnosis(
        "too-long",
        f"Your sleep is {lead.n_cycles / lead.n_needed:,.0f} times as long as the host needs. "
        "The readings would be right, but you wait for every cycle. Twice the host's time is "
        "enough. (Cycles are seconds times cycles per second.)",
    )


# By the sleeps for a work of one launch and for one of many.
_MISTAKES: tuple[Rule[tuple[HostLead, HostLead], Diagnosis], ...] = (
    (lambda leads: _is_too_long(leads[0]), lambda leads: _too_long(leads[0])),
    (lambda leads: _is_too_long(leads[1]), lambda leads: _too_long(leads[1])),
    (
        lambda leads: abs(leads[0].n_cycles) < _OTHER_UNIT * leads[0].n_needed,
        lambda leads: Diagnosis(
            "forgot-cycles",
            f"{leads[0].n_cycles:,.4g} clock cycles are too few even for one sample. "
            "torch.cuda._sleep takes cycles: multiply the seconds by the cycles per second that "
            "you measured above.",
        ),
    ),
    (
        lambda leads: leads[0].n_ahead == N_SAMPLES > leads[1].n_ahead,
        lambda leads: Diagnosis(
            "only-light",
            "Your sleep is long enough for a work of one launch, but too short for one of "
            f"{leads[1].n_launches}: there the host was ahead in {leads[1].n_ahead} of "
            f"{N_SAMPLES} samples. Measure the work that you are given.",
        ),
    ),
    (
        lambda leads: leads[0].n_ahead <= _FEW,
        lambda leads: Diagnosis(
            "one-sample",
            f"The host was ahead in {leads[0].n_ahead} of {N_SAMPLES} samples. There is one sleep "
            f"for all of them. It must last as long as the host needs for {N_SAMPLES} samples.",
        ),
    ),
    (
        lambda leads: leads[0].n_ahead < N_SAMPLES,
        lambda leads: Diagnosis(
            "too-short",
            f"The host was ahead in {leads[0].n_ahead} of {N_SAMPLES} samples. work() is not all: "
            "the host also needs time for two records and the loop. Time a whole batch on the "
            "host, and add a margin.",
        ),
    ),
)
