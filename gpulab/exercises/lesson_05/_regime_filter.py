"""The judge for a function that selects the samples of the most common clock regime."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gpulab.clocks import Reading
from gpulab.exercises._exercise import Verdict
from gpulab.exercises.answers import Diagnosis, no_function, raised, read_number


def _at(*clocks_mhz: int | None) -> list[Reading | None]:
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
class RegimeFilter:
    """A judge for a function ``keep(samples_s, readings)`` that returns some of the samples.

    Attributes
    ----------
    why
        The message for a right answer.
    how
        How to write the answer.
    """

    why: str
    how: str = (
        "Answer with the function: write def keep(samples_s, readings), where readings has a "
        "Reading (or None) for each sample, and return a list of the samples that you keep."
    )

    def __call__(self, answer: object, readings: object = None) -> Verdict:  # noqa: ARG002  # Judge
        """Run the function on ten made-up samples with known clocks."""
        if not callable(answer):
            return no_function(answer, self.how)
        samples_s = [sample_ms / 1e3 for sample_ms in _SAMPLES_MS]
        try:
            # A copy, because the function may sort its list or remove samples from it.
            diagnosis = _explain_kept(answer(list(samples_s), _at(*_SAMPLES_MHZ)), samples_s)
        except Exception as error:  # noqa: BLE001  # a learner's function may raise anything
            return raised(error).verdict()
        diagnosis = diagnosis or _without_reading(answer, samples_s)
        return diagnosis.verdict() if diagnosis else Verdict(ok=True, message=self.why)


def _without_reading(keep: Callable[..., object], samples_s: list[float]) -> Diagnosis | None:
    """Return the diagnosis of a function that cannot handle a missing reading, or None."""
    few_s = samples_s[2:6]
    try:
        kept = _indices(keep(list(few_s), _at(1440, None, 1440, 1440)), few_s)
    except Exception:  # noqa: BLE001  # a learner's function may raise anything
        return _NO_READING
    return None if kept == {0, 1, 2, 3} else _NO_READING


def _explain_kept(returned: object, samples_s: list[float]) -> Diagnosis | None:
    """Return the diagnosis of a wrong selection, or None if it is right."""
    if returned is None or returned is ...:
        return _NOTHING_RETURNED
    kept = _indices(returned, samples_s)
    if kept is None:
        return _NOT_SAMPLES
    return _explain_choice(frozenset(kept))


def _explain_choice(kept: frozenset[int]) -> Diagnosis | None:
    # Whole selections first, then single samples that were kept or left out wrongly.
    known = {
        frozenset(range(len(_SAMPLES_MS))): _KEPT_ALL,
        frozenset(_KEPT): None,
        frozenset(_BURST): _KEPT_BURST,
        frozenset({*_BURST, _DIP}): _INVERTED,
    }
    if kept in known:
        return known[kept]
    if _SLOW not in kept:
        return _BY_DURATION
    if _STEP not in kept:
        return _ONE_STEP
    if _DIP in kept:
        return _DIP_KEPT
    return _LEFT_OUT if kept < _KEPT else _KEPT_ALL


def _indices(returned: object, samples_s: list[float]) -> set[int] | None:
    """Return the indices of the selected samples, or None if the result is not some of them."""
    if not isinstance(returned, Iterable):
        return None
    numbers = [read_number(item) for item in returned]
    if not numbers or any(number not in samples_s for number in numbers):
        return None
    if len(set(numbers)) < len(numbers):  # a sample kept twice would count twice
        return None
    return {samples_s.index(number) for number in numbers if number is not None}


_NOTHING_RETURNED = Diagnosis(
    "nothing-returned", "Your function returned nothing; end it with return."
)
_NOT_SAMPLES = Diagnosis(
    "not-samples",
    "Your function must return a list of samples in seconds, each taken once from those that it "
    "got. "
    "clocks.flag returns True and False; True marks the samples to leave out.",
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
