"""The judge for a double buffer, by its values, the order of its accesses, and its overlap."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulab.exercises._exercise import Verdict
from gpulab.exercises.answers import Diagnosis, no_function, raised, unanswered
from gpulab.units import counted

if TYPE_CHECKING:
    from collections.abc import Collection

    from gpulab.exercises.lesson_08.pipelines import PipelineRun


LEAST_OVERLAP = 0.5
_N_TRIES = 3  # the best counts: if other programs delay the host's launches, the overlap is small

_HOST_RACE = "host write into a buffer in flight"
_DEVICE_RACE = "write while it is read"
_NOT_ARRIVED = "read before the write is done"


@dataclass(frozen=True, slots=True)
class DoubleBuffer:
    """A judge for a double buffer: right data in every step, no data races, and enough overlap."""

    how: str = (
        "Answer with the function: write def pipeline(slots, copying, fill, compute, n_steps). "
        "The two slots have .pinned, .on_device and two events, .copied and .computed."
    )

    def __call__(self, answer: object, readings: object = None) -> Verdict:  # noqa: ARG002  # Judge
        """Run the function on the GPU in use: for values and time, and again to find races."""
        if not callable(answer):
            return no_function(answer, self.how)
        from gpulab.exercises.lesson_08.pipelines import hazards_of, run

        seen = run(answer)
        if seen.error is None and not seen.n_filled and not seen.n_computed:
            return unanswered(self.how)
        # Races before wrong values: they are the cause, and the values may be right by luck. The
        # detector gets a run of its own, because it follows each operator, which slows launches.
        found = _broken(seen) or _unordered({h.kind for h in hazards_of(answer)}, seen)
        found = found or _without_order(seen)
        n_tries = 1
        while found is None and _is_slow(seen) and n_tries < _N_TRIES:
            again = run(answer)
            found = _broken(again) or _without_order(again)
            seen = max(seen, again, key=lambda tried: tried.overlap)
            n_tries += 1
        found = found or _without_overlap(seen)
        return found.verdict() if found else Verdict(ok=True, message=_why(seen))


def _broken(seen: "PipelineRun") -> Diagnosis | None:
    if seen.error is not None:
        return raised(seen.error)
    if (seen.n_filled, seen.n_computed) != (seen.n_steps, seen.n_steps):
        return Diagnosis(
            "steps-missing",
            f"For {counted(seen.n_steps, 'step')} your function called fill "
            f"{counted(seen.n_filled, 'time')} and compute {counted(seen.n_computed, 'time')}. "
            "Each step needs both, once.",
        )
    return None


def _unordered(kinds: "Collection[str]", seen: "PipelineRun") -> Diagnosis | None:
    """Return which waits are missing, by the kinds of data races, or None."""
    if not kinds:
        return None
    values = (
        f"{seen.n_wrong} of {seen.n_steps} steps computed on wrong data. "
        if seen.n_wrong
        else "Every value was right this time, by luck: nothing fixes the order. "
    )
    if {_HOST_RACE, _DEVICE_RACE} <= set(kinds):
        found = _BOTH
    else:
        found = next((told for kind, told in _RACES.items() if kind in kinds), _OTHER)
    return Diagnosis(found.code, f"{values}{found.message}")


def _without_order(seen: "PipelineRun") -> Diagnosis | None:
    if not seen.n_wrong:
        return None
    return Diagnosis(
        "wrong-data",
        f"{seen.n_wrong} of {seen.n_steps} steps computed on wrong data, although their order is "
        "fixed. It is the wrong order, or a copy is missing: follow one batch through its slot.",
    )


def _is_slow(seen: "PipelineRun") -> bool:
    return seen.overlap < LEAST_OVERLAP


def _without_overlap(seen: "PipelineRun") -> Diagnosis | None:
    """Return the diagnosis of a pipeline with too little overlap, or None.

    A pipeline that waits for whole streams is accepted, because that is what the messages of
    `gpulab.hazards` propose.
    """
    if not _is_slow(seen) or (seen.n_queue_waits and not seen.n_device_waits):
        return None
    cause = (
        "torch.cuda.synchronize() waits for all streams, also for what could go on."
        if seen.n_device_waits
        else "Something waits for more than it must: keep the copies in the stream copying."
    )
    return Diagnosis(
        "no-overlap",
        f"Values and order are right, but the overlap is {100 * seen.overlap:.0f} % of what is "
        f"possible; you need {100 * LEAST_OVERLAP:.0f} %. {cause} Let each wait name one event.",
    )


def _why(seen: "PipelineRun") -> str:
    overlap = f"the overlap is {100 * seen.overlap:.0f} % of what is possible"
    safe = "Every step computed on its own data, and gpulab.hazards() finds nothing"
    if seen.n_device_waits or seen.n_queue_waits:
        return (
            f"{safe}; {overlap}. You wait for whole queues, which is safe, and more than needed: "
            "one step's copy then waits for the other step's work too. Wait for the events of the "
            "slot, slot.copied and slot.computed, and compare the overlap."
        )
    return (
        f"{safe}; {overlap}. Each writer waits for the last reader of its buffer, and for "
        "nothing else."
    )


_BOTH = Diagnosis(
    "both-races",
    "Both waits are missing: the host refills a pinned buffer whose copy has not run yet, and a "
    "copy overwrites a device buffer that compute still reads.",
)
_RACES = {
    _HOST_RACE: Diagnosis(
        "host-race",
        "The host refills a pinned buffer whose copy has not run yet. Let the host wait for that "
        "copy before fill; a wait in a stream does not block the host.",
    ),
    _DEVICE_RACE: Diagnosis(
        "device-race",
        "A copy overwrites a device buffer that compute still reads. Let the stream copying wait "
        "for the event that follows the last compute on this slot.",
    ),
    _NOT_ARRIVED: Diagnosis(
        "copy-not-awaited",
        "compute reads a device buffer whose copy may not be done. Let the current stream wait "
        "for the event recorded after the copy.",
    ),
}
_OTHER = Diagnosis(
    "order-open",
    "Run it inside gpulab.hazards() and read which two lines are in no order.",
)
