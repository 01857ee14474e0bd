"""The exercises on the roofline: keys follow from the model; mistakes get their diagnosis."""

from collections.abc import Callable

import pandas as pd
import pytest
import torch

import gpulab
from gpulab import roofline
from gpulab.core.units import format_time
from gpulab.exercises._api import exercise
from gpulab.exercises._exercise import Exercise
from gpulab.exercises.lesson_10 import draw_gaps
from gpulab.exercises.lesson_10._which_bound import WORKS, bound_of
from gpulab.gpus import data_sheet, gpu
from gpulab.workloads import WORKLOADS
from tests.support.judging import check_function, judged, right_of

SHEET = data_sheet(gpu("H200"))
A100, LEAST, BOUND = map(exercise, ("10.a100", "10.least-time", "10.which-bound"))
REASONS = right_of("10.three-gaps")


@pytest.mark.slow
def test_the_key_is_what_the_explorer_shows() -> None:
    """The explorer names the key's farthest operations and predicts the diagnoses' times."""
    from gpulab.views.explorers import roofline_explorer

    explorer = roofline_explorer(operations=WORKLOADS)

    def farthest(model: str) -> tuple[str, int, str]:
        first = explorer.to_frame().iloc[0]
        return first["workload"], int(first["size"]), format_time(first[f"{model}_s"])

    assert farthest("plain") == ("argmax", 1024, "0.855 ns")
    explorer.choose(span=64 << 20)
    assert farthest("plain") == ("topk", 4096, "14.1 µs")
    explorer.choose(span=None, model="refined")
    assert farthest("refined")[:2] == ("linear", 16)


def test_the_most_telling_mistake_comes_first() -> None:
    """With several wrong numbers, the diagnosis is that of the exercise's main point."""
    verdict = judged(A100, {"ridge": 1, "compute_ms": 0.22, "memory_ms": 0.1})
    assert verdict.diagnosis_code == "bytes-twice"


# The functions


@pytest.mark.parametrize(
    ("asked", "function", "part"),
    [
        (LEAST, lambda *_g: "soon", "returned 'soon'. The matmul had m = 4096, k = 4096"),
        (
            # This is right for the first case, so the message shows the second one.
            LEAST,
            lambda m, k, n, peak, _band: 2 * m * k * n / peak if m > 1 else 1.0,
            "The matmul had m = 1, k = 4096, n = 8192, on a GPU of 312 TFLOP/s and 2.00 TB/s.",
        ),
        (
            BOUND,
            lambda f, b: "memory" if b > 3e5 else bound_of(f, b),
            "returned 'memory'. The work was a matmul of half-precision matrices of side 8192",
        ),
    ],
)
def test_an_unknown_mistake_is_shown_with_its_case(
    asked: Exercise, function: Callable[..., object], part: str
) -> None:
    """The message has the first result that is wrong, and the work."""
    check_function(asked, function, "unexplained", part)


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
    predictions = (
        predict("matmul", 8192, "float16", "H200"),
        predict("add", 2**28, "float32", "H200"),
        predict("add", 1000, "float32", "H200"),
        predict("linear", 1, "float16", "H200"),
        predict("softmax", 8192, "float32", "H200"),
        predict("matmul", 256, "float16", "H200"),
    )
    assert tuple(item.bound for item in predictions) == BOUNDS
    works = tuple((float(item.flops), float(item.size_bytes)) for item in predictions)
    assert works == tuple(WORKS)[: len(works)]  # the last one is of no workload
    assert tuple(bound_of(*work) for work in works) == BOUNDS


def test_figures_in_the_diagnoses_are_right() -> None:
    """The numbers of an H200 in the messages follow from its data sheet."""
    assert round(SHEET.ridge("float16")) == 206
    assert SHEET.memory_s(12_000) * 1e9 == pytest.approx(2.5)
    assert round(SHEET.memory_s(12 * 2**28) * 1e6) == 671
    assert round(989 * 1980 / 1830) == 1070
