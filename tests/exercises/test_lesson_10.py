"""The exercises on the roofline: keys follow from the model; mistakes get their diagnosis."""

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
import pytest
import torch

import gpulab
from gpulab import roofline
from gpulab.exercises._api import exercise
from gpulab.exercises._exercise import Verdict
from gpulab.exercises.answers import CaseFunction
from gpulab.exercises.lesson_10 import draw_gaps
from gpulab.exercises.lesson_10._claims import CLAIMS
from gpulab.exercises.lesson_10._which_bound import WORKS, bound_of
from gpulab.gpus import data_sheet, gpu
from gpulab.workloads import WORKLOADS
from tests.support.judging import check_function, judged, right_of

RESULTS = Path(__file__).parents[2] / "benchmarks" / "recordings"
SHEET = data_sheet(gpu("H200"))
A100, LEAST, BOUND = map(exercise, ("10.a100", "10.least-time", "10.which-bound"))
REASONS = right_of("10.three-gaps")


@pytest.mark.slow
def test_the_key_is_what_the_explorer_shows() -> None:
    """The explorer names the key's farthest operations and predicts the diagnoses' times."""
    from gpulab.views.explorers import roofline_explorer

    explorer = roofline_explorer(operations=WORKLOADS)
    assert "Farthest: argmax n = 1,024, predicted 0.855 ns" in str(explorer)
    explorer.choose(span=64 << 20)
    assert "Farthest: topk n = 4,096, predicted 14.1 µs" in str(explorer)
    explorer.choose(span=None, model="refined")
    assert "Farthest: linear n = 16" in str(explorer)


def test_open_numbers_are_no_answer() -> None:
    """A dict that contains only placeholders counts as not answered."""
    blank = judged(A100, dict.fromkeys(right_of("10.a100"), ...))
    assert blank == Verdict(ok=None, message=A100.judge.how)


def test_numbers_say_how_they_are_given() -> None:
    """The keys contain the units, so the values are plain numbers."""
    assert A100.judge.how == (
        "Answer with a dict that has the keys 'ridge', 'compute_ms', 'memory_ms'; each value is a "
        "plain number."
    )


def test_the_most_telling_mistake_comes_first() -> None:
    """With several wrong numbers, the diagnosis is that of the exercise's main point."""
    verdict = judged(A100, {"ridge": 1, "compute_ms": 0.22, "memory_ms": 0.1})
    assert verdict.diagnosis_code == "bytes-twice"


# The least time


Least = Callable[..., object]


def both(*given: float) -> tuple[float, float]:
    """Return the times of the arithmetic and of the bytes."""
    m, k, n, peak, bandwidth = given
    size_bytes = 2 * (m * k + k * n + m * n)
    return 2 * m * k * n / peak, size_bytes / bandwidth


def raising(*_args: object) -> float:
    """Raise an error, as a learner's function may."""
    raise ZeroDivisionError("division by zero")


@pytest.mark.parametrize(
    ("function", "code", "part"),
    [
        (lambda *g: max(both(*g)), "", "Arithmetic and memory work side by side"),
        (lambda *g: np.float64(max(both(*g))), "", "at least as long as the longer"),
        (lambda *g: f"{max(both(*g)) * 1e6} us", "", "side by side"),
        (lambda *g: sum(both(*g)), "added", "You add the two times."),
        (lambda *g: min(both(*g)), "smaller", "You take the smaller time."),
        (
            lambda *g: max(both(*g)[0] / 2, both(*g)[1]),
            "multiply-add-is-two",
            "Your arithmetic is half",
        ),
        (lambda *g: max(both(*g)[0], 2 * both(*g)[1]), "bytes-twice", "Your bytes are twice"),
        (
            lambda m, k, n, peak, band: max(2 * m * k * n / peak, (m * k + k * n) * 2 / band),
            "result-forgotten",
            "You count only what is read.",
        ),
        (
            lambda *g: max(both(*g)[0], both(*g)[1] / 2),
            "elements-are-not-bytes",
            "You divide elements",
        ),
        (lambda *g: both(*g)[0], "compute-alone", "That is the arithmetic alone."),
        (lambda *g: both(*g)[1], "memory-alone", "Those are the bytes alone."),
        (lambda *g: 1e3 * max(both(*g)), "milliseconds", "The number is 1,000 times"),
        (lambda *_g: 1.0, "unexplained", "returned 1.0. The matmul had m = 4096, k = 4096"),
        (lambda *_g: "soon", "unexplained", "returned 'soon'. The matmul had m = 4096, k = 4096"),
        (
            # This is right for the first case, so the message shows the second one.
            lambda *g: max(both(*g)) if g[0] > 1 else 1.0,
            "unexplained",
            "The matmul had m = 1, k = 4096, n = 8192, on a GPU of 312 TFLOP/s and 2.00 TB/s.",
        ),
        (
            raising,
            "raised",
            "Your function raised ZeroDivisionError: division by zero\n\nCall it ",
        ),
    ],
)
def test_each_function_gets_its_verdict(function: Least, code: str, part: str) -> None:
    """The results for all matmuls of the judge decide the diagnosis of a function."""
    check_function(LEAST, function, code, part)


def test_a_function_without_a_body_is_no_answer() -> None:
    """The notebook's stub, which returns None, counts as not answered."""
    assert judged(LEAST, lambda *_given: None) == Verdict(ok=None, message=LEAST.judge.how)


# The slow programs


def addition(n: int) -> float:
    """Return how many times its least time the addition of two vectors takes."""
    x, y = torch.randn(2, n, device="cuda")
    return gap(lambda: x + y, SHEET.memory_s(12 * n))


def chain(n: int) -> float:
    """Return how many times its least time a chain of three operations takes."""
    x = torch.randn(n, device="cuda", dtype=torch.half)
    return gap(lambda: x.sub(0.5).mul(2.0).add(1.0), SHEET.memory_s(4 * n))


def matmul(side: int) -> float:
    """Return how many times its least time a square matmul in half precision takes."""
    x = torch.randn(side, side, device="cuda", dtype=torch.half)
    return gap(lambda: x @ x, SHEET.compute_s(2 * side**3, "float16"))


def gap(work: Callable[[], object], least_s: float) -> float:
    """Return a measured time over the least time."""
    return gpulab.measure(work, n_samples=11, progress=False).median_s / least_s


def n_kernels(work: Callable[[], object]) -> int:
    """Return the number of kernels of one call."""
    return sum(span.kind == "kernel" for span in gpulab.timeline(work).spans)


def test_each_gap_closes_by_the_experiment_of_its_reason() -> None:
    """Each program is 3 times too slow, and only the experiment of its reason closes the gap."""
    with gpulab.virtual_gpu("H200", max_value_elements=0):
        as_given = {"a": addition(2**17), "b": chain(2**23), "c": matmul(2047)}
        grown = {"a": addition(2**21), "b": chain(2**27), "c": matmul(8191)}
        rounded = matmul(2048)
        half = torch.randn(2**23, device="cuda", dtype=torch.half)
        kernels = n_kernels(lambda: half.sub(0.5).mul(2.0).add(1.0))
    assert min(as_given.values()) > 3
    assert {letter for letter, times in grown.items() if times < 1.5} == {
        letter for letter, reason in REASONS.items() if reason == "too small"
    }
    assert grown["b"] > 3
    assert (kernels, REASONS["b"]) == (3, "moves more")
    assert (rounded < 1.5, REASONS["c"]) == (True, "slow kernel")


def test_the_picture_of_the_gaps_says_which_experiment_closes_each() -> None:
    """The title follows the numbers: what is below two times has no gap left."""
    tried = {"as given": [5.0, 4.0, 8.0], "grown": [1.1, 3.9, 9.0], "rounded": [None, None, 1.5]}
    gaps = pd.DataFrame(tried | {"kernels": [1, 3, 1]}, index=["a: x", "b: y", "c: z"])
    title = draw_gaps(gaps.astype(float)).title
    assert title.startswith("Growing helps a; b stays, with 3 kernels; rounding helps c")
    gaps.loc["b: y", "grown"] = 1.2
    assert "growing helps b" in draw_gaps(gaps.astype(float)).title


# The keys and the text


BOUNDS = ("compute", "memory", "launch", "memory", "memory", "launch")


def test_the_bounds_are_those_of_the_model() -> None:
    """The refined model finds the bound that the key names for each work."""
    predict = roofline.predict
    found = (
        predict("matmul", 8192, "float16", "H200"),
        predict("add", 2**28, "float32", "H200"),
        predict("add", 1000, "float32", "H200"),
        predict("linear", 1, "float16", "H200"),
        predict("softmax", 8192, "float32", "H200"),
        predict("matmul", 256, "float16", "H200"),
    )
    assert tuple(item.bound for item in found) == BOUNDS
    works = tuple((float(item.flops), float(item.size_bytes)) for item in found)
    assert works == tuple(WORKS)[: len(works)]  # the last one is of no workload
    assert tuple(bound_of(*work) for work in works) == BOUNDS


def longest(flops: float, size_bytes: float) -> str:
    """Return the name of the longest of the three times, which is the right answer."""
    times_s = {"compute": flops / 989.4e12, "memory": size_bytes / 4.8e12, "launch": 1e-6}
    return max(times_s, key=lambda name: times_s[name])


def shortest(size_bytes: float) -> str:
    """Return the name of the shorter of the times of bytes and launch."""
    return "memory" if size_bytes / 4.8e12 < 1e-6 else "launch"


@pytest.mark.parametrize(
    ("function", "code", "part"),
    [
        (longest, "", "Three limits, and the longest one is the bound"),
        (lambda *w: longest(*w).upper(), "", "Three limits"),
        (
            lambda f, b: "compute" if f / 989.4e12 > b / 4.8e12 else "memory",
            "floor-forgotten",
            "leave out the third bound",
        ),
        (
            lambda f, b: "memory" if f / 989.4e12 > b / 4.8e12 else "compute",
            "ridge-reversed",
            "Compute and memory are exchanged.",
        ),
        (
            lambda f, b: "compute" if f / 989.4e12 < min(b / 4.8e12, 1e-6) else shortest(b),
            "the-shortest-hides",
            "the bound is what takes longest",
        ),
        (
            lambda f, b: "launch" if min(f / 989.4e12, b / 4.8e12) < 1e-6 else longest(f, b),
            "either-is-short",
            "as soon as one of the two times is below the floor",
        ),
        (
            lambda f, b: "memory" if b > 3e5 else longest(f, b),
            "unexplained",
            "returned 'memory'. The work was a matmul of half-precision matrices of side 8192",
        ),
        (lambda *_w: 3, "unexplained", "returned 3. The work was a matmul"),
        (lambda _w: "compute", "raised", "Your function raised TypeError"),
    ],
)
def test_a_function_for_the_bound(function: Least, code: str, part: str) -> None:
    """Six works are judged together, so that a function cannot be right by chance."""
    check_function(BOUND, function, code, part)


def test_figures_in_the_diagnoses_are_right() -> None:
    """The numbers of an H200 in the messages follow from its data sheet."""
    assert round(SHEET.ridge("float16")) == 206
    assert SHEET.memory_s(12_000) * 1e9 == pytest.approx(2.5)
    assert round(SHEET.memory_s(12 * 2**28) * 1e6) == 671
    assert round(989 * 1980 / 1830) == 1070


def test_the_recorded_figures_of_the_lesson() -> None:
    """The times of softmaxes and matmuls in the lesson's text are those of the recordings."""
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
    odd, aligned = matmuls_over_plain(calls["matmul"])
    assert (len(odd), round(min(odd)), round(max(odd))) == (5, 8, 10)
    assert (len(aligned), round(median(aligned), 1)) == (10, 1.3)


def matmuls_over_plain(calls: dict[str, list[object]]) -> tuple[list[float], list[float]]:
    """Return recorded over plain times of large 16-bit matmuls: odd sides, aligned sides."""
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


@pytest.mark.parametrize("judge", [LEAST.judge, BOUND.judge])
def test_each_mistake_of_a_function_has_its_own_code(judge: CaseFunction) -> None:
    """No two mistakes share a code, and no wrong formula is right for all cases."""
    codes = [diagnosis.code for _, diagnosis in judge.mistakes]
    assert len(set(codes)) == len(codes)
    rights = [judge.right(*case) for case in judge.cases]
    assert all([mistake(*case) for case in judge.cases] != rights for mistake, _ in judge.mistakes)


def test_claims_of_the_lesson_can_fail() -> None:
    """Each claim holds for the lesson's value and fails for an opposite one."""
    values = {
        "10.copy-below-sheet": (89.0, 101.0),
        "10.floor": (500.0, 2.0),
        "10.wave": (35.0, 0.0),
        "10.softmax-is-no-copy": (1.5, 1.0),
    }
    for claim in CLAIMS:
        assert tuple(map(claim.holds, values[claim.claim_id])) == (True, False)
    assert len(CLAIMS) == len(values)
