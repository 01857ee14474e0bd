"""The judge for a function that selects the samples of the most common clock regime."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from gpulab.device.clocks import Reading
from gpulab.exercises._exercise import is_open
from gpulab.exercises.answers import Diagnosis, FunctionJudge, raising, read_number
from gpulab.tracing.trials import Rule, Trial, called, first_fitting


def _readings_at(*clocks_mhz: int | None) -> list[Reading | None]:
    """Return a reading for each clock; None stays None."""
    return [
        None if clock_mhz is None else Reading(0.1 * index, clock_mhz, max_sm_mhz=1980)
        for index, clock_mhz in enumerate(clocks_mhz)
    ]


# Two samples at the burst clock, six at the settled clock (one of them slow, for another reason),
# one at a dip of the clock, and one more at the settled clock.
_SAMPLES_MS = (1.401, 1.412, 1.651, 1.662, 1.953, 1.663, 1.644, 1.665, 1.904, 1.656)
_SAMPLES_MHZ = (1980, 1980, 1440, 1440, 1440, 1455, 1440, 1440, 1185, 1440)
_BURST, _SLOW, _STEP, _DIP = {0, 1}, 4, 5, 8
_KEPT = {2, 3, 4, 5, 6, 7, 9}


@dataclass(frozen=True, slots=True)
class RegimeFilter(FunctionJudge):
    """A judge for a function ``keep(samples_s, readings)`` that returns some of the samples."""

    why: str
    how: str = (
        "Answer with the function: write def keep(samples_s, readings), where readings has a "
        "Reading (or None) for each sample, and return a list of the samples that you keep."
    )

    def judge_function(self, function: Callable[..., object]) -> Diagnosis | str:
        """Run the function on ten made-up samples with known clocks, and on four without one."""
        samples_s = [sample_ms / 1e3 for sample_ms in _SAMPLES_MS]
        # A copy, because the function may sort its list or remove samples from it.
        trial = called(_select, function, list(samples_s), _readings_at(*_SAMPLES_MHZ))
        fault = first_fitting((raising(), _NOTHING_RETURNED), trial)
        if fault is not None:
            return fault
        indices = _indices(trial, samples_s)
        if indices is None:
            return _NOT_SAMPLES
        few_s = samples_s[2:6]
        unread = called(_select, function, list(few_s), _readings_at(1440, None, 1440, 1440))
        fault = first_fitting(_MISTAKES, indices)
        if fault is None and _indices(unread, few_s) != {0, 1, 2, 3}:
            fault = _NO_READING
        return fault or self.why


def _select(keep: Callable[..., object], *arguments: object) -> object:
    selected = keep(*arguments)
    # One more than it got is too many already, and an iterator may have no end.
    return (
        list(islice(selected, len(_SAMPLES_MS) + 1))
        if isinstance(selected, Iterable)
        else selected
    )


def _indices(trial: Trial, samples_s: list[float]) -> set[int] | None:
    """Return the indices of the selected samples, or None if the result is not some of them."""
    if not isinstance(trial.value, Iterable):
        return None
    numbers = [read_number(item) for item in trial.value]
    if not numbers or any(number not in samples_s for number in numbers):
        return None
    if len(set(numbers)) < len(numbers):  # a sample kept twice would count twice
        return None
    return {samples_s.index(number) for number in numbers if number is not None}


_NOTHING_RETURNED = (
    lambda trial: is_open(trial.value),
    Diagnosis("nothing-returned", "Your function returned nothing; end it with return."),
)
_NOT_SAMPLES = Diagnosis(
    "not-samples",
    "Your function must return a list of samples in seconds, each taken once from those that it "
    "got. clocks.flag returns True and False; True marks the samples to leave out.",
)
_NO_READING = Diagnosis(
    "no-reading",
    "When a reading is None, your function fails or leaves the sample out. An unknown clock is no "
    "reason to discard a sample. clocks.flag accepts None.",
)
_KEPT_ALL = Diagnosis(
    "kept-all",
    "You kept samples at another clock than most. The check gave you ten samples: the first two "
    "at 1980 MHz, the ninth at 1185 MHz, the others at about 1440 MHz.",
)
_LEFT_OUT = Diagnosis(
    "left-out",
    "You kept no sample at another clock, but you left out some at the usual clock. Every sample "
    "from the most common regime belongs to the answer.",
)
_KEPT_BURST = Diagnosis(
    "kept-burst",
    "You kept the samples at the highest clock: two of ten. The others were settled. Keep the "
    "most common regime, or measure the burst in a run of its own.",
)
_INVERTED = Diagnosis(
    "inverted",
    "You kept the samples that should go: clocks.flag returns True for a sample from another "
    "regime.",
)
_BY_DURATION = Diagnosis(
    "by-duration",
    "You discarded a sample because it is slow. It was taken at the usual clock, so its time is a "
    "property of the work and belongs to the answer. Discard by the clock, never by the duration. "
    "Otherwise you choose your result.",
)
_ONE_STEP = Diagnosis(
    "one-step",
    "You discarded a sample at 1455 MHz, and most have 1440 MHz. That is one step of the clock, "
    "1 %. A settled clock always moves a little. Allow 3 %, as clocks.flag does.",
)
_DIP_KEPT = Diagnosis(
    "dip-kept",
    "You left out the beginning, but the ninth sample was taken at 1185 MHz: now and then a "
    "settled clock dips. Look at the clock of every sample.",
)
# Whole selections first, then single samples that were kept or left out wrongly.
_MISTAKES: tuple[Rule[set[int], Diagnosis], ...] = (
    (lambda kept: kept == {*range(len(_SAMPLES_MS))}, _KEPT_ALL),
    (lambda kept: kept == _BURST, _KEPT_BURST),
    (lambda kept: kept == {*_BURST, _DIP}, _INVERTED),
    (lambda kept: _SLOW not in kept, _BY_DURATION),
    (lambda kept: _STEP not in kept, _ONE_STEP),
    (lambda kept: _DIP in kept and not kept & _BURST, _DIP_KEPT),
    (lambda kept: kept < _KEPT, _LEFT_OUT),
    (lambda kept: kept != _KEPT, _KEPT_ALL),
)
