"""The judge for a double buffer, by its values, the order of its accesses, and its overlap."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulab.core.units import counted
from gpulab.exercises.answers import UNANSWERED, Diagnosis, FunctionJudge, raised
from gpulab.tracing.trials import Rule, first_fitting

if TYPE_CHECKING:
    from gpulab.exercises.lesson_08.pipelines import PipelineRun


LEAST_OVERLAP = 0.5
_FEW_WAITS = 2  # before and after the loop
_N_TRIES = 3  # the best counts: if other programs delay the host's launches, the overlap is small

_HOST_RACE = "host write into a buffer in flight"
_DEVICE_RACE = "write while it is read"
_NOT_ARRIVED = "read before the write is done"


@dataclass(frozen=True, slots=True)
class DoubleBuffer(FunctionJudge):
    """A judge for a double buffer: right data in every step, no data races, and enough overlap."""

    how: str = (
        "Answer with the function: write def pipeline(slots, copying, fill, compute, n_steps). "
        "The two slots have .pinned, .on_device and two events, .copied and .computed."
    )

    def judge_function(self, function: Callable[..., object]) -> Diagnosis | str:
        """Run the function on the GPU in use: for values and time, and again to find races."""
        from gpulab.exercises.lesson_08.pipelines import run, run_for_races

        best = run(function)
        if best.trial.error is None and not best.n_filled and not best.n_computed:
            return UNANSWERED
        fault = _broken(best)
        if fault is None:
            # The detector gets a run of its own, because it follows each operator, which slows
            # launches. An answer that stops early in this run has no races there, so it must do
            # all steps again.
            watched = run_for_races(function)
            # Races before wrong values: they are the cause, and the values may be right by luck.
            fault = (
                _broken(watched)
                or _unordered({hazard.kind for hazard in watched.trial.hazards or ()}, best)
                or first_fitting(_WRONG_DATA, best)
                or first_fitting(_WRONG_DATA, watched)
            )
        for _ in range(_N_TRIES - 1):
            if fault is None and best.overlap < LEAST_OVERLAP:
                again = run(function)
                fault = _broken(again) or first_fitting(_WRONG_DATA, again)
                best = max(best, again, key=lambda tried: tried.overlap)
        return fault or first_fitting(_SLOW, best) or _why(best)


def _broken(run: "PipelineRun") -> Diagnosis | None:
    """Return why a pipeline did not do all steps, or None."""
    return first_fitting(_INCOMPLETE, run)


def _unordered(kinds: set[str], run: "PipelineRun") -> Diagnosis | None:
    """Return which waits are missing, by the kinds of data races, or None."""
    missing = first_fitting(_RACES, kinds)
    if missing is None:
        return None
    values = (
        f"{run.n_wrong} of {run.n_steps} steps computed on wrong data. "
        if run.n_wrong
        else "Every value was right this time, by luck: nothing fixes the order. "
    )
    return Diagnosis(missing.code, f"{values}{missing.message}")


def _why(run: "PipelineRun") -> str:
    return (
        "Every step computed on its own data, gpulab.hazards() finds nothing, and the overlap is "
        f"{100 * run.overlap:.0f} % of what is possible."
    )


def _steps_missing(run: "PipelineRun") -> Diagnosis:
    return Diagnosis(
        "steps-missing",
        f"For {counted(run.n_steps, 'step')} your function called fill "
        f"{counted(run.n_filled, 'time')} and compute {counted(run.n_computed, 'time')}. "
        "Each step needs both, once.",
    )


_INCOMPLETE: tuple[Rule["PipelineRun", Diagnosis], ...] = (
    # Before the error: the results have no place for a step too many, so compute raises one.
    (lambda run: max(run.n_filled, run.n_computed) > run.n_steps, _steps_missing),
    (
        lambda run: run.trial.error is not None,
        lambda run: raised(run.trial.error or Exception()),
    ),
    (lambda run: {run.n_filled, run.n_computed} != {run.n_steps}, _steps_missing),
)
_WRONG_DATA: tuple[Rule["PipelineRun", Diagnosis], ...] = (
    (
        lambda run: bool(run.n_wrong),
        lambda run: Diagnosis(
            "wrong-data",
            f"{run.n_wrong} of {run.n_steps} steps computed on wrong data, although their order "
            "is fixed. It is the wrong order, or a copy is missing: follow one batch through its "
            "slot.",
        ),
    ),
)


def _is_in_one_stream(run: "PipelineRun") -> bool:
    """Return whether all copies ran in a stream in which kernels ran, too."""
    records = run.trial.records.records if run.trial.records else ()
    streams = {
        kind: {r.stream for r in records if r.kind == kind} for kind in ("memcpy", "kernel")
    }
    return bool(records) and streams["memcpy"] <= streams["kernel"]


# Why the overlap is small, by what the program did.
_CAUSES: tuple[Rule["PipelineRun", str], ...] = (
    (
        lambda run: run.n_device_waits > _FEW_WAITS,
        "torch.cuda.synchronize() waits for all streams, also for what could go on.",
    ),
    (
        lambda run: run.n_queue_waits > _FEW_WAITS,
        "It waits for whole streams, also for what was launched after the work that matters.",
    ),
    (_is_in_one_stream, "The copies run in the stream of the computing, one after the other."),
)


def _too_slow(run: "PipelineRun") -> Diagnosis:
    cause = first_fitting(_CAUSES, run)
    return Diagnosis(
        "speed",
        f"The order is right, the speed not yet: the overlap is {100 * run.overlap:.0f} % of what "
        f"is possible, and you need {100 * LEAST_OVERLAP:.0f} %. "
        + (f"{cause} " if cause else "")
        + "Let each wait name one event of the slot, slot.copied or slot.computed.",
    )


_SLOW: tuple[Rule["PipelineRun", Diagnosis], ...] = (
    (lambda run: run.overlap < LEAST_OVERLAP, _too_slow),
)

# By the kinds of data races.
_RACES: tuple[Rule[set[str], Diagnosis], ...] = (
    (
        lambda kinds: {_HOST_RACE, _DEVICE_RACE} <= kinds,
        Diagnosis(
            "both-races",
            "Both waits are missing: the host refills a pinned buffer whose copy has not run yet, "
            "and a copy overwrites a device buffer that compute still reads.",
        ),
    ),
    (
        lambda kinds: _HOST_RACE in kinds,
        Diagnosis(
            "host-race",
            "The host refills a pinned buffer whose copy has not run yet. Let the host wait for "
            "that copy before fill; a wait in a stream does not block the host.",
        ),
    ),
    (
        lambda kinds: _DEVICE_RACE in kinds,
        Diagnosis(
            "device-race",
            "A copy overwrites a device buffer that compute still reads. Let the stream copying "
            "wait for the event that follows the last compute on this slot.",
        ),
    ),
    (
        lambda kinds: _NOT_ARRIVED in kinds,
        Diagnosis(
            "copy-not-awaited",
            "compute reads a device buffer whose copy may not be done. Let the current stream "
            "wait for the event recorded after the copy.",
        ),
    ),
    (
        bool,
        Diagnosis(
            "order-open",
            "Run it inside gpulab.hazards() and read which two lines are in no order.",
        ),
    ),
)
