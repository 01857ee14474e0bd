"""The judge for the length of a sleep that puts the host ahead of the GPU in every sample."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import torch

from gpulab import device
from gpulab.exercises._exercise import Verdict, is_open
from gpulab.exercises.answers import Diagnosis, no_function, raised, unanswered
from gpulab.timing import elapsed_s, new_pairs
from gpulab.torch_private import spin

N_SAMPLES = 40
_N_TRIES = 3  # the best counts: other programs may delay the host in one of them
# Launches per call of the two works. 40 samples of 16 launches, with their events, still fit into
# the launch queue of about 1,000 entries.
_LAUNCHES = (1, 16)
_CYCLES_TIMED = 1_000_000
_MOST = 20.0  # longest useful sleep, in multiples of the time that the host needs
_SECONDS = 10.0  # a smaller number is probably in seconds: nobody sleeps for ten cycles
_FEW = 4  # a sleep that is long enough for one sample puts the host ahead in at most so many


@dataclass(frozen=True, slots=True)
class HostLead:
    """The effect of a sleep of the learner's length.

    Attributes
    ----------
    n_launches
        Number of launches in one call of the work.
    n_cycles
        Length of the sleep, in clock cycles of the GPU.
    n_needed
        Cycles during which the host enqueues all samples, as measured by the judge.
    n_ahead
        Number of samples that were enqueued before the GPU reached their first event, of
        ``N_SAMPLES``.
    """

    n_launches: int
    n_cycles: float
    n_needed: float
    n_ahead: int


@dataclass(frozen=True, slots=True)
class HeadStart:
    """A judge for a function ``f(work)`` that returns how many cycles the GPU should sleep.

    Attributes
    ----------
    name
        Name of the function in the question.
    why
        The message for a right answer.
    """

    name: str
    why: str

    @property
    def how(self) -> str:
        """How to write the answer."""
        return (
            f"Answer with the function: write def {self.name}(work), where work is a function "
            "without arguments that puts work into the queue, and return clock cycles."
        )

    def __call__(self, answer: object, readings: object = None) -> Verdict:  # noqa: ARG002  # Judge
        """Let the GPU sleep for the learner's cycles, and count in how many the host was ahead."""
        if not callable(answer):
            return no_function(answer, self.how)
        leads = []
        with device.active():
            cycles_per_s = _cycles_per_s()
            for n_launches in _LAUNCHES:
                found = _try(answer, n_launches, cycles_per_s)
                if found is None:
                    return unanswered(self.how)
                if isinstance(found, Diagnosis):
                    return found.verdict()
                leads.append(found)
        diagnosis = _explain(leads[0], leads[1])
        return diagnosis.verdict() if diagnosis else Verdict(ok=True, message=self.why)


def _try(
    function: Callable[..., object], n_launches: int, cycles_per_s: float
) -> HostLead | Diagnosis | None:
    """Return the effect of the learner's sleep, a diagnosis, or None if the function is a stub."""
    calls: list[None] = []

    def work() -> None:
        calls.append(None)
        for _ in range(n_launches):
            spin(1)

    work()
    n_needed = _lead(work, 0)[1] * cycles_per_s
    calls.clear()
    n_cycles = _asked(function, work, calls)
    if not isinstance(n_cycles, float):
        return n_cycles
    if n_cycles > _MOST * n_needed:  # the verdict says so; nobody has to wait for the sleep
        return HostLead(n_launches, n_cycles, n_needed, 0)
    n_ahead = max(_lead(work, max(0, int(n_cycles)))[0] for _ in range(_N_TRIES))
    return HostLead(n_launches, n_cycles, n_needed, n_ahead)


def _asked(
    function: Callable[..., object], work: Callable[[], None], calls: list[None]
) -> float | Diagnosis | None:
    """Return the cycles of a learner's function, a diagnosis, or None if it is a stub.

    ``calls`` grows by one entry with each call of the work.
    """
    try:
        value = function(work)
    except Exception as error:  # noqa: BLE001  # a learner's function may raise anything
        return raised(error)
    finally:
        torch.cuda.synchronize()
    if is_open(value):
        return None if not calls else _NOTHING_RETURNED
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(float(value)):
        message = f"Your function returned {value!r}; it must return a number of clock cycles."
        return Diagnosis("no-number", message)
    # A very small number is probably in seconds, which is explained first, even if it is a guess.
    return float(value) if calls or float(value) < _SECONDS else _GUESS


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


def _explain(light: HostLead, heavy: HostLead) -> Diagnosis | None:
    """Return the diagnosis of the sleeps for a work of one launch and one of many, or None."""
    for lead in (light, heavy):
        if abs(lead.n_cycles) < _SECONDS:
            return _NO_CYCLES
        if lead.n_cycles > _MOST * lead.n_needed:
            return _too_long(lead)
    if light.n_ahead == heavy.n_ahead == N_SAMPLES:
        return None
    if light.n_ahead == N_SAMPLES:
        return Diagnosis(
            "only-light",
            "Your sleep is long enough for a work of one launch, but too short for one of "
            f"{heavy.n_launches}: there the host was ahead in {heavy.n_ahead} of {N_SAMPLES} "
            "samples. Measure the work that you are given.",
        )
    if light.n_ahead <= _FEW:
        return Diagnosis(
            "one-sample",
            f"The host was ahead in {light.n_ahead} of {N_SAMPLES} samples. There is one sleep "
            f"for all of them. It must last as long as the host needs for {N_SAMPLES} samples.",
        )
    return Diagnosis(
        "too-short",
        f"The host was ahead in {light.n_ahead} of {N_SAMPLES} samples. work() is not all: the "
        "host also needs time for two records and the loop. Time a whole batch on the host, and "
        "add a margin.",
    )


def _too_long(lead: HostLead) -> Diagnosis:
    return Diagnosis(
        "too-long",
        f"Your sleep is {lead.n_cycles / lead.n_needed:,.0f} times as long as the host needs. "
        "The readings would be right, but you wait for every cycle. Twice the host's time is "
        "enough. (Cycles are seconds times cycles per second.)",
    )


_NOTHING_RETURNED = Diagnosis(
    "nothing-returned", "Your function called the work but returned nothing; end it with return."
)
_GUESS = Diagnosis(
    "guess",
    "Your function never called work(), so the number is a guess. The host needs longer for a "
    "work of many launches than for one launch. Measure its time with perf_counter.",
)
_NO_CYCLES = Diagnosis(
    "forgot-cycles",
    "That is less than ten clock cycles. torch.cuda._sleep takes cycles: multiply the seconds by "
    "the cycles per second that you measured above.",
)
