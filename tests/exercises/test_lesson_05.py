"""Lesson 05: right answers pass, and each mistake is told its own reason, word for word."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from gpulab import clocks
from gpulab.clocks import Reading
from gpulab.errors import InvalidOptionError
from gpulab.exercises._exercise import Exercise, Verdict
from gpulab.exercises.answers._forms import Choice, Table
from gpulab.exercises.lesson_05 import _exercises as lesson
from gpulab.exercises.lesson_05 import _regime_filter, asked_for, over_time

Keep = Callable[[list[float], list[Reading | None]], object]

CAPPED, NOISE = ("power cap", "name the regime"), ("noise", "more samples")
TRACES = {"a": CAPPED, "b": NOISE}
REGIMES = {"a": "burst", "b": "settled", "c": "settled", "d": "burst"}

RIGHT: list[tuple[Exercise, object]] = [
    (lesson.TWO_TRACES, TRACES),
    (lesson.TWO_TRACES, {"A": list(CAPPED), "b ": ("NOISE", "More samples")}),
    (lesson.BURST_OR_SETTLED, REGIMES),
    (lesson.IN_TURNS, "c"),
    (lesson.GPU_UTIL, " B "),
]
SLOW = (
    "b scatters more than a does, but its clock is 1980 MHz at every reading, and the driver "
    "names no reason. Slow samples alone are no sign of a lower clock; here something else was "
    "in the way. (Wrong so far: b.)"
)
MEAN = (
    "No call takes the mean of the two: it is either at the one clock or at the other. How long "
    "does the work go on, and did it rest before? (Wrong so far: {}.)"
)
RESTED = (
    "It starts at the highest clock, yes, and loses it after about 0.1 s. Which share of the work "
    "runs in that time? (Wrong so far: {}.)"
)
HEAVY = (
    "The kernel is a heavy one, but the clock needs about 0.1 s of it to fall. How long does this "
    "work last, and what was the GPU doing before? (Wrong so far: {}.)"
)
WRONG: list[tuple[Exercise, object, str, str]] = [
    (lesson.TWO_TRACES, TRACES | {"b": CAPPED}, "slow-is-throttled", SLOW),
    (lesson.TWO_TRACES, TRACES | {"b": ("heat", "more samples")}, "slow-is-throttled", SLOW),
    (
        *(lesson.TWO_TRACES, TRACES | {"a": NOISE}, "step-is-noise"),
        (
            "a does not scatter: its times rise once and stay. Put sm_mhz beside duration_s, row "
            "by row: do they move together? (Wrong so far: a.)"
        ),
    ),
    (
        *(lesson.TWO_TRACES, {"a": NOISE, "b": CAPPED}, "step-is-noise"),
        (
            "a does not scatter: its times rise once and stay. Put sm_mhz beside duration_s, row "
            "by row: do they move together? (Wrong so far: a, b.)"
        ),
    ),
    (
        *(lesson.TWO_TRACES, TRACES | {"a": ("heat", "name the regime")}, "warm-is-throttled"),
        (
            "a gets warm because it spends power, but 56 °C is far below where a GPU protects "
            "itself. Read what the driver names in a from 0.09 s on. (Wrong so far: a.)"
        ),
    ),
    (
        *(lesson.TWO_TRACES, TRACES | {"a": ("power cap", "more samples")}, "more-samples"),
        (
            "More samples of a give a narrower interval, of a median that moves with the number "
            "of samples: the more you take, the larger the share of the lower clock. (Wrong so "
            "far: a.)"
        ),
    ),
    (
        *(lesson.TWO_TRACES, TRACES | {"b": ("noise", "name the regime")}, "regime-of-noise"),
        (
            "b has one regime only: 1980 MHz from the first row to the last. What scatters about "
            "one value is made more certain by something else. (Wrong so far: b.)"
        ),
    ),
    (lesson.TWO_TRACES, {"a": CAPPED}, "incomplete", "There is no answer yet for b."),
    (lesson.BURST_OR_SETTLED, REGIMES | {"a": "settled"}, "heavy-is-settled", HEAVY.format("a")),
    (lesson.BURST_OR_SETTLED, REGIMES | {"d": "settled"}, "heavy-is-settled", HEAVY.format("d")),
    (lesson.BURST_OR_SETTLED, REGIMES | {"b": "burst"}, "starts-rested", RESTED.format("b")),
    (lesson.BURST_OR_SETTLED, REGIMES | {"c": "burst"}, "starts-rested", RESTED.format("c")),
    *(
        (lesson.BURST_OR_SETTLED, REGIMES | {key: "mean"}, "mean-of-both", MEAN.format(key))
        for key in REGIMES
    ),
    (
        *(lesson.IN_TURNS, "a", "averages-out"),
        (
            "A falling clock is no scatter: it hits whoever comes second, however many samples "
            "you take. More samples only make you more certain of the wrong ratio."
        ),
    ),
    (
        *(lesson.IN_TURNS, "b", "compare-locks"),
        (
            "compare locks nothing: that needs rights, and you would be told. Look at the "
            "interval of A alone: it is wide, because the clock moved while it was taken."
        ),
    ),
    (
        *(lesson.IN_TURNS, "d", "waits-for-settled"),
        (
            "It warms up only until times are steady, which they are in a burst as well. The wide "
            "interval of A shows that the clock moved while the samples were taken."
        ),
    ),
    (
        *(lesson.GPU_UTIL, "a", "all-multiprocessors"),
        (
            "The kernel that you watched kept a single thread busy, and GPU-Util was at 100 %. It "
            "counts time, not parts of the chip."
        ),
    ),
    (
        *(lesson.GPU_UTIL, "c", "as-fast-as-it-can"),
        (
            "A kernel that waits for memory, or runs in one thread, counts as much as the best "
            "one. 100 % says nothing about speed."
        ),
    ),
    (
        *(lesson.GPU_UTIL, "d", "memory"),
        "How full the memory is stands in another column. GPU-Util is about kernels.",
    ),
]


@pytest.mark.parametrize(("exercise", "answer"), RIGHT)
def test_right_answers_pass(exercise: Exercise, answer: object) -> None:
    """However it is written, a right answer is right, and it is told why."""
    verdict = exercise.judge(answer, None)
    assert (verdict.ok, verdict.diagnosis_code) == (True, "")
    assert verdict.message == exercise.judge.why  # type: ignore[attr-defined]  # all of them say


@pytest.mark.parametrize(("exercise", "answer", "code", "message"), WRONG)
def test_mistakes_are_told_apart(
    exercise: Exercise, answer: object, code: str, message: str
) -> None:
    """Each typical mistake has its name and its explanation."""
    verdict = exercise.judge(answer, None)
    assert (verdict.ok, verdict.diagnosis_code, verdict.message) == (False, code, message)


@pytest.mark.parametrize("exercise", lesson.EXERCISES, ids=lambda each: each.exercise_id)
def test_no_answer_is_no_mistake(exercise: Exercise) -> None:
    """The placeholder is answered with how to answer, and a letter too many with the form."""
    for blank in (..., None):
        verdict = exercise.judge(blank, None)
        assert (verdict.ok, verdict.message) == (None, exercise.judge.how)
    strange = exercise.judge(3.5j, None)
    assert strange.diagnosis_code == "not-a-choice"
    assert strange.message == f"3.5j isn't a valid answer. {exercise.judge.how}"


@pytest.mark.parametrize("exercise", lesson.EXERCISES, ids=lambda each: each.exercise_id)
def test_exercises_are_whole(exercise: Exercise) -> None:
    """Every exercise has two hints, and every letter and key is among the choices."""
    judge = exercise.judge
    assert exercise.exercise_id.startswith("05.")
    assert len(exercise.hints) == 2
    if isinstance(judge, Choice):
        assert exercise.choices is not None
        assert set(exercise.choices) == {judge.right, *judge.wrong}
    if isinstance(judge, Table):
        assert {key for key, _ in judge.wrong} <= set(judge.right)


# The two traces


def test_traces_say_where_they_come_from() -> None:
    """They are computed, and labelled so; times are in seconds."""
    frame = lesson.TWO_TRACES.readings()  # type: ignore[misc]  # this one has readings
    assert set(zip(frame["source"], frame["device_name"], strict=True)) == {
        ("virtual", "NVIDIA H200")
    }
    assert frame["duration_s"].between(1.4e-3, 1.8e-3).all()


def test_only_one_of_the_traces_follows_the_clock() -> None:
    """In a the clock falls and the times rise with it; in b it stands, and they vary as much."""
    frame = lesson.TWO_TRACES.readings()  # type: ignore[misc]  # this one has readings
    a, b = (part for _, part in frame.groupby("series"))
    for part in (a, b):
        assert part["duration_s"].max() > 1.15 * part["duration_s"].min()
    assert a["duration_s"].is_monotonic_increasing
    assert a["sm_mhz"].is_monotonic_decreasing
    assert set(a["reasons"]) == {"", "power cap"}
    assert set(b["sm_mhz"]) == {1980}
    assert set(b["reasons"]) == {""}
    assert a["temperature_c"].max() == 56


# Which samples to discard


def judged(keep: Any) -> Verdict:  # noqa: ANN401  # any answer
    """Return the verdict on a function."""
    return lesson.WHICH_TO_DISCARD.judge(keep, None)


def by_flag(samples_s: list[float], readings: list[Reading | None]) -> list[float]:
    """Keep what is not flagged: the right answer."""
    flags = clocks.flag(readings)
    return [sample_s for sample_s, other in zip(samples_s, flags, strict=True) if not other]


def keeping(is_kept: Callable[[float, Reading], bool]) -> Keep:
    """Return a filter that looks at one sample and its reading at a time."""

    def keep(samples_s: list[float], readings: list[Reading | None]) -> list[float]:
        pairs = zip(samples_s, readings, strict=True)
        return [one for one, seen in pairs if seen is None or is_kept(one, seen)]

    return keep


def without_none(samples_s: list[float], readings: list[Reading | None]) -> list[float]:
    """Keep the usual clock, but drop what has no reading."""
    pairs = zip(samples_s, readings, strict=True)
    return [one for one, seen in pairs if seen and 1400 < (seen.sm_mhz or 0) < 1500]


def usual(reading: Reading) -> bool:
    """Tell whether this is the clock of most, give or take some steps."""
    return 1400 < (reading.sm_mhz or 0) < 1500


def test_the_flag_is_the_answer() -> None:
    """What clocks.flag leaves is right, as a list or as anything that can be gone through."""
    why = (
        "You kept every sample of the usual clock, slow ones too, and none of another. The number "
        "of discarded samples belongs into your report."
    )
    for keep in (by_flag, lambda *given: iter(by_flag(*given)), keeping(lambda _, r: usual(r))):
        verdict = judged(keep)
        assert (verdict.ok, verdict.diagnosis_code, verdict.message) == (True, "", why)


KEEPS: list[tuple[Keep, str, str]] = [
    (
        *(lambda samples_s, _: samples_s, "kept-all"),
        (
            "You kept samples that were taken at another clock than most. Of the ten that it was "
            "tried on, the first two were taken at 1980 MHz and the ninth at 1185; the usual "
            "clock was 1440."
        ),
    ),
    (
        *(lambda samples_s, _: [*samples_s[1:8], samples_s[9]], "kept-all"),
        _regime_filter._KEPT_ALL.message,
    ),
    (
        *(keeping(lambda _, seen: seen.sm_mhz == 1980), "kept-burst"),
        (
            "You kept the samples of the highest clock: two of ten. The others were settled, and "
            "the median would be one of a burst that hardly took place. Keep the regime of most "
            "samples, or measure the burst on its own."
        ),
    ),
    (
        *(keeping(lambda _, seen: not usual(seen)), "inverted"),
        (
            "You kept what should go: clocks.flag says True of a sample that was taken in another "
            "regime."
        ),
    ),
    (
        *(keeping(lambda one, seen: usual(seen) and one < 1.9e-3), "by-duration"),
        (
            "You discarded a sample because it is slow. It was taken at the usual clock: its "
            "slowness is a property of the work, and belongs to the answer. Discard by the "
            "clock, never by the duration, or you choose your result."
        ),
    ),
    (
        *(keeping(lambda _, seen: seen.sm_mhz == 1440), "one-step"),
        (
            "You discarded a sample at 1455 MHz, where most have 1440. That is one step of the "
            "clock, 1 %, and a settled clock always trembles by some. Allow for 3 %, as "
            "clocks.flag does."
        ),
    ),
    (
        *(keeping(lambda _, seen: (seen.sm_mhz or 0) < 1900), "dip-kept"),
        (
            "You left out the beginning, but the ninth sample was taken at 1185 MHz: a settled "
            "clock dips now and then. Look at the clock of every sample."
        ),
    ),
    (
        *(lambda samples_s, _: samples_s[2:7], "left-out"),
        (
            "You kept no sample of another clock, but left out some at the usual one. Every "
            "sample that was taken in the regime of most belongs to the answer."
        ),
    ),
    (
        *(without_none, "no-reading"),
        (
            "Where a reading is None your function fails, or leaves the sample out. Not to know "
            "the clock is no reason to discard a sample; clocks.flag copes with it."
        ),
    ),
    (
        *(
            lambda samples_s, readings: [
                one for one, seen in zip(samples_s, readings, strict=True) if usual(seen)
            ],
            "no-reading",
        ),
        _regime_filter._NO_READING.message,
    ),
    (lambda *_: None, "nothing-returned", "Your function returned nothing; end it with return."),
    (
        *(lambda _, readings: clocks.flag(readings), "not-samples"),
        (
            "Your function must return a list of samples, in seconds, out of those that it got. "
            "What clocks.flag gives are True and False: they say which samples to leave out."
        ),
    ),
    (lambda *_: 1.65e-3, "not-samples", _regime_filter._NOT_SAMPLES.message),
    (lambda *_: [], "not-samples", _regime_filter._NOT_SAMPLES.message),
    (
        *(lambda samples_s, _: samples_s["x"], "raised"),
        (
            "Your function raised TypeError: list indices must be integers or slices, not str\n\n"
            "Call it yourself in a cell to see the line."
        ),
    ),
]


@pytest.mark.parametrize(("keep", "code", "message"), KEEPS, ids=[row[1] for row in KEEPS])
def test_filters_are_diagnosed(keep: Keep, code: str, message: str) -> None:
    """What a filter keeps too much or too little tells what it goes by."""
    verdict = judged(keep)
    assert (verdict.ok, verdict.diagnosis_code, verdict.message) == (False, code, message)


# What the lesson draws


@pytest.fixture
def ax() -> Any:  # noqa: ANN401  # matplotlib is loaded late
    """Return axes that belong to no window."""
    from matplotlib.figure import Figure

    return Figure().add_subplot()


def test_one_series_is_shaded_where_a_reason_is_named(ax: Any) -> None:  # noqa: ANN401  # axes
    """The line shows the column as it is, and the legend says why the clock is low."""
    frame = pd.DataFrame(
        {"time_s": [0.0, 0.1, 0.2], "sm_mhz": [1980, 1440, 1440], "reasons": ["", "x", "x"]}
    )
    assert over_time(frame, ax) == ax
    assert ax.lines[0].get_ydata().tolist() == [1980, 1440, 1440]
    assert ax.get_legend_handles_labels()[1] == ["clock (MHz)", "the driver names: x"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == (
        "time since the first reading (s)",
        "clock (MHz)",
    )
    span = ax.collections[0].get_paths()[0].get_extents()
    assert (span.x0, span.x1) == (0.1, 0.2)


def test_nothing_is_shaded_without_a_reason(ax: Any) -> None:  # noqa: ANN401  # axes
    """A driver that names none, or gives no answer, leaves the picture plain."""
    frame = pd.DataFrame({"time_s": [0.0, 0.1], "sm_mhz": [1980, 1980], "reasons": ["", None]})
    over_time(frame, ax)
    assert not ax.collections


def test_durations_get_a_unit_and_series_their_names(ax: Any) -> None:  # noqa: ANN401  # axes
    """Seconds are drawn in the unit that a reader would choose, and each series its line."""
    frame = pd.DataFrame(
        {"time_s": [0.0, 0.1] * 2, "duration_s": [1e-3, 2e-3] * 2, "series": [*"abab"]}
    )
    options: dict[str, Any] = {"column": "duration_s", "label": "time"}
    over_time(frame.assign(reasons="x"), ax, **options)
    assert [line.get_label() for line in ax.lines] == ["a", "b"]
    assert ax.lines[1].get_ydata().tolist() == [2.0, 2.0]
    assert ax.get_ylabel() == "time (ms)"
    assert not ax.collections


def test_frames_without_the_column_are_refused(ax: Any) -> None:  # noqa: ANN401  # axes
    """The message names the column that is missing."""
    with pytest.raises(InvalidOptionError) as error:
        over_time(pd.DataFrame({"time_s": [0.0]}), ax)
    assert str(error.value) == "the frame has no column sm_mhz; it must have time_s, sm_mhz"


def test_a_clock_that_is_asked_for_gives_way_to_the_power_limit() -> None:
    """Of the clocks asked for, only the one below the settled clock is kept."""
    frame = asked_for([1980, 1695, 1200])
    clocks_mhz = frame.groupby("asked_mhz")["sm_mhz"]
    assert clocks_mhz.first().to_dict() == {1200: 1200, 1695: 1695, 1980: 1980}
    assert clocks_mhz.last().to_dict() == {1200: 1200, 1695: 1440, 1980: 1440}
    assert frame["time_s"].max() == 0.6
    assert frame["series"].iloc[0] == "asked for 1980 MHz"
    assert set(zip(frame["source"], frame["device_name"], strict=True)) == {
        ("virtual", "NVIDIA H200")
    }
