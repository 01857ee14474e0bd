"""The roofline's exercises: each key follows from the model, and each mistake has its name."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import gpulab
from gpulab import roofline
from gpulab.errors import InvalidOptionError, UnknownNameError
from gpulab.exercises import lesson_10
from gpulab.exercises._exercise import Exercise, Verdict
from gpulab.exercises.answers._forms import Diagnosis
from gpulab.exercises.answers._quantities import Quantities
from gpulab.exercises.lesson_10 import slow_program, steps
from gpulab.exercises.lesson_10._slow_programs import SlowProgram
from gpulab.gpus import data_sheet, gpu
from tests.support.judging import check_mistake, check_right, check_strange, check_whole, judged

LEAST, A100, ROOF, BOUND, GAPS = lesson_10.EXERCISES
RESULTS = Path(__file__).parents[2] / "benchmarks" / "recordings"
SHEET = data_sheet(gpu("H200"))

NOTES = {"ridge": 156, "compute_ms": 0.44, "memory_ms": 0.05}
ROOFS = {
    "a": "data sheet",
    "b": "live clocks",
    "c": "measured",
    "d": "data sheet",
    "e": "measured",
}
BOUNDS = {
    "a": "compute",
    "b": "memory",
    "c": "launch",
    "d": "memory",
    "e": "memory",
    "f": "launch",
}
REASONS = {"a": "too small", "b": "moves more", "c": "slow kernel"}

RIGHT: list[tuple[Exercise, object]] = [
    (A100, NOTES),
    (A100, {"ridge": 312e12 / 2e12, "compute_ms": 0.4405, "memory_ms": 0.0503}),
    (ROOF, ROOFS),
    (BOUND, BOUNDS),
    (GAPS, REASONS),
    (GAPS, {"A": "Too small", "b": "moves more", "c": "slow kernel"}),
]
WRONG: list[tuple[Exercise, object, str, str]] = [
    (A100, NOTES | {"memory_ms": 0.10}, "bytes-twice", "memory_ms: that is the figure"),
    (A100, NOTES | {"compute_ms": 0.22}, "multiply-add-is-two", "compute_ms: a mult"),
    (A100, NOTES | {"memory_ms": 0.025}, "elements-are-not-bytes", "memory_ms: you have"),
    (A100, NOTES | {"memory_ms": 0.0336}, "result-forgotten", "memory_ms: two matrices"),
    (A100, NOTES | {"ridge": 78}, "ridge-is-not-it", "ridge: that line is right."),
    (A100, NOTES | {"memory_ms": 50.3}, "microseconds", "memory_ms: that is in micro"),
    (A100, NOTES | {"memory_ms": 0.07}, "unexplained", "memory_ms: work it out again"),
    (A100, {"ridge": 156}, "incomplete", "There is no answer yet for compute_ms, memory_ms."),
    (ROOF, ROOFS | {"d": "measured"}, "measured-is-no-limit", "d: a measured roof"),
    (ROOF, ROOFS | {"c": "data sheet"}, "nobody-gets-there", "c: no copy reaches"),
    (ROOF, ROOFS | {"b": "data sheet"}, "boost-clock", "b: the data sheet's peaks"),
    (ROOF, ROOFS | {"a": "measured"}, "not-there-yet", "a: you have neither"),
    (ROOF, ROOFS | {"e": "data sheet"}, "no-sheet", "e: a name that matches"),
    (ROOF, ROOFS | {"e": "live clocks"}, "no-sheet", "e: clocks scale the figures"),
    (ROOF, ROOFS | {"a": "live clocks"}, "wrong-roof", "Ask for each:"),
    (BOUND, BOUNDS | {"d": "compute"}, "products-compute", "d: it is a product,"),
    (BOUND, BOUNDS | {"f": "compute"}, "small-product", "f: 33.6 MFLOP take 34 ns"),
    (BOUND, BOUNDS | {"f": "memory"}, "small-product", "f: its 393 kB take 82 ns"),
    (BOUND, BOUNDS | {"e": "compute"}, "exponentials", "e: exponentials are dear"),
    (BOUND, BOUNDS | {"c": "memory"}, "few-bytes", "c: 12 kB take 2.5 ns"),
    (BOUND, BOUNDS | {"d": "launch"}, "weights-count", "d: one row is little,"),
    (BOUND, BOUNDS | {"a": "memory"}, "above-the-ridge", "a: I = d/3 is 2,731"),
    (BOUND, BOUNDS | {"b": "launch"}, "wrong-bound", "Work out two times,"),
    (GAPS, REASONS | {"a": "moves more"}, "one-kernel", "a: it is one kernel,"),
    (GAPS, REASONS | {"a": "slow kernel"}, "same-kernel", "a: rounding changes nothing,"),
    (GAPS, REASONS | {"b": "too small"}, "stays-when-grown", "b: with 16 times as many"),
    (GAPS, REASONS | {"b": "slow kernel"}, "each-is-good", "b: each of its kernels"),
    (GAPS, REASONS | {"c": "too small"}, "stays-when-grown", "c: grown to a side of 8191"),
    (GAPS, REASONS | {"c": "moves more"}, "one-more-column", "c: a product of side 2047"),
    (GAPS, {"a": "too small"}, "incomplete", "There is no answer yet for b, c."),
]
STRANGE = ["z", 3.5j, [1], {"z": 1}, object(), {"a": ("b",)}, {"ridge": "much"}]


@pytest.mark.parametrize(("exercise", "answer"), RIGHT)
def test_right_answers_pass(exercise: Exercise, answer: object) -> None:
    """A right answer is right to two digits, and it is told why."""
    check_right(exercise, answer)


@pytest.mark.parametrize(("exercise", "answer", "code", "begins"), WRONG)
def test_typical_mistakes_are_recognised(
    exercise: Exercise, answer: object, code: str, begins: str
) -> None:
    """Each has its own name, begins with what it is about, and ends as a sentence."""
    check_mistake(exercise, answer, code, begins)


@pytest.mark.parametrize("exercise", lesson_10.EXERCISES, ids=lambda item: item.exercise_id)
def test_every_exercise_is_whole(exercise: Exercise) -> None:
    """Two hints or more, words for every key, and the placeholder is no answer."""
    check_whole(exercise)
    if isinstance(exercise.judge, Quantities):
        assert {key for key, _, _ in exercise.judge.wrong} <= set(exercise.judge.right)


@pytest.mark.parametrize("answer", STRANGE, ids=range(len(STRANGE)))
@pytest.mark.parametrize("exercise", lesson_10.EXERCISES, ids=lambda item: item.exercise_id)
def test_strange_answers_are_met_with_the_form(exercise: Exercise, answer: object) -> None:
    """What is no answer is shown back beside how to answer."""
    check_strange(exercise, answer)


def test_open_numbers_are_no_answer() -> None:
    """A dict of placeholders counts as not answered."""
    blank = judged(A100, dict.fromkeys(NOTES, ...))
    assert blank == Verdict(ok=None, message=A100.judge.how)


def test_numbers_say_how_they_are_given() -> None:
    """The keys carry the units, so the values are plain numbers."""
    assert A100.judge.how == (
        "Answer with a dict that has the keys 'ridge', 'compute_ms', 'memory_ms'; each value is a "
        "plain number."
    )


def test_the_most_telling_mistake_comes_first() -> None:
    """Of two wrong numbers the one that the exercise is about is talked about."""
    verdict = judged(A100, {"ridge": 1, "compute_ms": 0.22, "memory_ms": 0.1})
    assert verdict.diagnosis_code == "bytes-twice"


# The least time


Least = Callable[..., object]


def both(*given: float) -> tuple[float, float]:
    """Return both limits."""
    m, k, n, peak, bandwidth = given
    size_bytes = 2 * (m * k + k * n + m * n)
    return 2 * m * k * n / peak, size_bytes / bandwidth


def raising(*_args: object) -> float:
    """Fail, as a function with a slip does."""
    raise ZeroDivisionError("division by zero")


@pytest.mark.parametrize(
    "right",
    [
        lambda *given: max(both(*given)),
        lambda *given: np.float64(max(both(*given))),
        lambda *given: f"{max(both(*given)) * 1e6} us",
    ],
)
def test_the_larger_of_both_times_passes(right: Least) -> None:
    """Whatever kind of number the function returns, seconds are seconds."""
    verdict = judged(LEAST, right)
    assert (verdict.ok, verdict.message) == (True, LEAST.judge.why)  # type: ignore[attr-defined]  # it has one


@pytest.mark.parametrize(
    ("wrong", "code", "begins"),
    [
        (lambda *g: sum(both(*g)), "added", "You add the two times."),
        (lambda *g: min(both(*g)), "smaller", "You take the smaller time."),
        (
            lambda *g: max(both(*g)[0] / 2, both(*g)[1]),
            "multiply-add-is-two",
            "Your arithmetic is half",
        ),
        (lambda *g: max(both(*g)[0], 2 * both(*g)[1]), "bytes-twice", "You count the bytes"),
        (
            lambda m, k, n, peak, band: max(2 * m * k * n / peak, (m * k + k * n) * 2 / band),
            "result-forgotten",
            "You count what is read.",
        ),
        (
            lambda *g: max(both(*g)[0], both(*g)[1] / 2),
            "elements-are-not-bytes",
            "You divide elements",
        ),
        (lambda *g: both(*g)[0], "compute-alone", "That is the arithmetic alone."),
        (lambda *g: both(*g)[1], "memory-alone", "Those are the bytes alone."),
        (lambda *g: 1e3 * max(both(*g)), "milliseconds", "The number is 1,000 times"),
        (lambda *_g: 1.0, "unexplained", "For m = k = n = 4096, 312 TFLOP/s and 2 TB/s"),
        (lambda *_g: "soon", "unexplained", "For m = k = n = 4096, 312 TFLOP/s and 2 TB/s"),
        (
            raising,
            "raised",
            "Your function raised ZeroDivisionError: division by zero\n\nCall it ",
        ),
    ],
)
def test_functions_with_slips_are_told_apart(wrong: Least, code: str, begins: str) -> None:
    """A function is recognised by what it computes on three products."""
    verdict = judged(LEAST, wrong)
    assert (verdict.ok, verdict.diagnosis_code) == (False, code)
    assert verdict.message.startswith(begins)
    assert re.fullmatch(r"Not yet\. .{30,}[.)]", str(verdict), re.DOTALL)


def test_a_function_without_a_body_is_no_answer() -> None:
    """The stub that the notebook comes with returns nothing."""
    assert judged(LEAST, lambda *_given: None) == Verdict(ok=None, message=LEAST.judge.how)


# The slow programs


def gap(program: SlowProgram) -> float:
    """Return how many times as long a program takes as the plain roofline says."""
    flops_s = SHEET.compute_s(program.flops, program.arithmetic)
    plain_s = max(flops_s, SHEET.memory_s(program.size_bytes))
    return gpulab.measure(program.work, n_samples=11, progress=False).median_s / plain_s


@pytest.mark.parametrize("letter", REASONS)
def test_each_gap_closes_by_the_experiment_of_its_reason(letter: str) -> None:
    """Three times or more as given; what makes it less is what the key says, and nothing else."""
    with gpulab.virtual_gpu("H200", max_value_elements=0):
        as_given = gap(slow_program(letter))
        grown, rounded = (
            gap(slow_program(letter, grown=True)),
            gap(slow_program(letter, rounded=True)),
        )
        frame = gpulab.timeline(slow_program(letter).work).to_frame()
    assert as_given > 3
    assert (grown < 1.5) == (REASONS[letter] == "too small")
    assert (rounded < 1.5) == (REASONS[letter] == "slow kernel")
    n_kernels = int((frame["kind"] == "kernel").sum())
    assert (n_kernels > 1) == (REASONS[letter] == "moves more")
    assert min(grown, rounded) > 3 or REASONS[letter] != "moves more"


def test_an_unknown_program_is_refused() -> None:
    """There are three, and the message names them."""
    with pytest.raises(UnknownNameError) as error:
        slow_program("d")
    assert str(error.value) == "unknown program 'd'; Known: a, b, c"


# The keys and the text


def test_the_bounds_are_those_of_the_model() -> None:
    """The refined model finds the limit of each kernel that the key names."""
    predict = roofline.predict
    found = {
        "a": predict("matmul", 8192, "float16", "H200"),
        "b": predict("add", 2**28, "float32", "H200"),
        "c": predict("add", 1000, "float32", "H200"),
        "d": predict("linear", 1, "float16", "H200"),
        "e": predict("softmax", 8192, "float32", "H200"),
        "f": predict("matmul", 256, "float16", "H200"),
    }
    assert {letter: item.bound for letter, item in found.items()} == BOUNDS


def test_figures_in_the_diagnoses_are_right() -> None:
    """What a learner is told of an H200 follows from its data sheet."""
    assert round(SHEET.ridge("float16")) == 206
    assert round(SHEET.compute_s(2 * 256**3, "float16") * 1e9) == 34
    assert round(SHEET.memory_s(3 * 256**2 * 2) * 1e9) == 82
    assert SHEET.memory_s(12_000) * 1e9 == pytest.approx(2.5)
    assert round(SHEET.memory_s(4096**2 * 2) * 1e6) == 7
    assert round(8192 / 3) == 2731


def test_the_recorded_figures_of_the_lesson() -> None:
    """Softmaxes and products of the lesson's text are those of the recordings."""
    calls = json.loads((RESULTS / "h200-dense.json").read_text("utf-8"))["calls"]
    rows = pd.DataFrame(calls["along_rows"]["rows"], columns=calls["along_rows"]["columns"])
    chosen = rows.query("op == 'softmax' and rows == 16384 and columns == 4096")
    cold_us = chosen.query("dtype == 'float16'")["cold_us"].item()
    assert round(cold_us) == 212
    assert round(cold_us * 1e-6 / SHEET.memory_s(4 * 16384 * 4096), 1) == 3.8
    workloads = json.loads((RESULTS / "h200.json").read_text("utf-8"))["workloads"]
    cold_us = workloads["softmax float32 4096x1024"]["device"]["cold_us"]
    assert round(cold_us, 1) == 10.4
    assert round(cold_us * 1e-6 / SHEET.memory_s(8 * 4096 * 1024), 1) == 1.5
    odd, aligned = products_over_plain(calls["matmul"])
    assert (len(odd), round(min(odd)), round(max(odd))) == (5, 8, 10)
    assert (len(aligned), round(median(aligned), 1)) == (10, 1.3)


def products_over_plain(calls: dict[str, list[object]]) -> tuple[list[float], list[float]]:
    """Return recorded over plain times of large half products: odd sides, and aligned rows."""
    frame = pd.DataFrame(calls["rows"], columns=calls["columns"])
    odd, aligned = [], []
    for row in frame[frame["dtype"].isin(["float16", "bfloat16"])].itertuples():
        m, k, n = int(row.m), int(row.k), int(row.n)  # type: ignore[arg-type]  # numbers of a table
        if 2 * m * k * n > 20e9:
            size_bytes = 2 * (m * k + k * n + m * n)
            plain_s = max(SHEET.compute_s(2 * m * k * n, "float16"), SHEET.memory_s(size_bytes))
            ratios = odd if k % 8 or n % 8 else aligned
            ratios.append(float(row.cold_us) * 1e-6 / plain_s)  # type: ignore[arg-type]  # as above
    return odd, aligned


def test_a_diagnosis_of_the_least_time_has_a_name_of_its_own() -> None:
    """No two mistakes of the function share a name."""
    from gpulab.exercises.lesson_10 import _least_time

    found = [item for item in vars(_least_time).values() if isinstance(item, Diagnosis)]
    assert len({item.code for item in found}) == len(found) == 9


# The figure


def test_steps_are_drawn_from_zero() -> None:
    """One line a series in the order of sizes, both axes linear and from zero."""
    frame = pd.DataFrame(
        {
            "size": [512, 256, 256],
            "duration_s": [3e-6, 1e-6, 2e-6],
            "series": ["measured", "measured", "plain"],
        }
    )
    ax = steps(frame, Figure().subplots())
    drawn = {line.get_label(): np.asarray(line.get_xydata()).tolist() for line in ax.lines}
    assert drawn == {"measured": [[256, 1], [512, 3]], "plain": [[256, 2]]}
    assert (ax.get_xlim()[0], ax.get_ylim()[0]) == (0, 0)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("rows", "time per call (µs)")
    assert (ax.get_xscale(), ax.get_gid()) == ("linear", "Line chart")
    assert steps(frame, Figure().subplots(), size_label="batch").get_xlabel() == "batch"


def test_steps_without_their_columns() -> None:
    """A frame that cannot be drawn is refused with the columns that it lacks."""
    with pytest.raises(InvalidOptionError) as error:
        steps(pd.DataFrame({"size": [1]}), Figure().subplots())
    assert str(error.value) == (
        "the frame has no column duration_s, series; it must have size, duration_s, series"
    )
