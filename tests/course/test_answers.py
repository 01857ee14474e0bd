"""Answers are judged: right ones, each typical mistake, and every kind of misuse."""

from pathlib import Path

import pytest

from gpulab.course import solutions
from gpulab.course._judging import Grader, Mark
from gpulab.course._labs import LABS
from tests.course.submissions import filled_in, solved

pytestmark = pytest.mark.slow

_TIMED = """
import statistics, time, torch

def tail(work, n_calls):
    for _ in range({warm}):
        work()
    {wait}
    times_s = []
    for _ in range(n_calls):
        start_s = time.perf_counter()
        work()
        {wait}
        times_s.append(time.perf_counter() - start_s)
    return statistics.median(times_s){scale}, max(times_s){scale}
"""
_WAIT = "torch.cuda.synchronize()"


def marks_of(grader: Grader, folder: Path, lab: str, **changed: str) -> dict[str, Mark]:
    """Return the marks of a submission that is right but for some answers."""
    notebook = solved(folder, lab, "ada", **changed)
    return {mark.question: mark for mark in grader.marks(LABS[lab], notebook, "ada")}


@pytest.mark.parametrize("lab", LABS)
def test_right_answers_get_full_marks_and_no_answers_none(
    grader: Grader, folder: Path, lab: str
) -> None:
    """The keys are right by their own judges, twice the same, and nothing is given for nothing."""
    first, second = (marks_of(grader, folder, lab) for _ in range(2))
    assert {name: mark.points for name, mark in first.items()} == {
        question.name: question.points for question in LABS[lab].questions
    }
    assert first == second
    untouched = filled_in(folder / "source" / lab / f"{lab}.ipynb", lab, "ada", {})
    for cell in untouched.cells:  # as nbgrader releases it
        if "### BEGIN SOLUTION" in cell.source:
            cell.source = "...  # your answer"
    marks = grader.marks(LABS[lab], untouched, "ada")
    assert {(mark.points, mark.flag) for mark in marks} == {(0.0, "unanswered")}


_FLUSH = """
import torch
def make_flush(l2_bytes):
    buffer = torch.zeros({}, device="cuda")
    return lambda: {}
"""
_SAMPLES = """
import statistics, time, torch
def cold_seconds(work, flush, n_samples):
    times_s = []
    {once}
    for _ in range(n_samples):
        a, b = (torch.cuda.Event(enable_timing=True) for _ in "ab")
        torch.cuda._sleep(1_000_000)
        a.record()
        {inside}
        work()
        b.record()
        b.synchronize()
        times_s.append(a.elapsed_time(b) / 1000)
    return statistics.median(times_s)
"""
_IN_STREAM = """
import torch
def seconds_in(stream, work):
    a, b = (torch.cuda.Event(enable_timing=True) for _ in "ab")
    with torch.cuda.stream({}):
        a.record()
        work()
        b.record()
    {}.synchronize()
    return a.elapsed_time(b) / 1000
"""
_STEPS = """
import torch
def pipeline(side, copies, computes):
    for copy, compute in zip(copies, computes):
        with torch.cuda.stream({}):
            copy()
        {}
        compute()
"""


_MISTAKES = {
    "timing.tail: no wait": (_TIMED.format(warm=10, wait="pass", scale=""), 0),
    "timing.tail: no warm-up": (_TIMED.format(warm=0, wait=_WAIT, scale=""), 3),
    "timing.tail: host's clock": (_TIMED.format(warm=10, wait=_WAIT, scale=""), 4),
    "timing.tail: milliseconds": (_TIMED.format(warm=10, wait=_WAIT, scale=" * 1e3"), 0),
    "timing.tail: one number": ("def tail(work, n_calls):\n    work()\n    return 0.001", 0),
    "cache.make_flush: writes": (_FLUSH.format("l2_bytes // 2", "buffer.zero_()"), 2),
    "cache.make_flush: too small": (_FLUSH.format("l2_bytes // 64", "buffer.sum()"), 0),
    "cache.make_flush: one GPU": (_FLUSH.format("60 * 2**19", "buffer.sum()"), 3),
    "cache.make_flush: waits": (_FLUSH.format("l2_bytes // 2", "buffer.sum().item()"), 1),
    "cache.cold_seconds: hot": (_SAMPLES.format(once="flush()", inside=""), 2),
    "cache.cold_seconds: flush inside": (_SAMPLES.format(once="", inside="flush()"), 0),
    "streams.seconds_in: waits for all": (_IN_STREAM.format("stream", "torch.cuda"), 4),
    "streams.seconds_in: elsewhere": (_IN_STREAM.format("torch.cuda.Stream()", "b"), 4),
    "streams.pipeline: one stream": (_STEPS.format("None", ""), 2),
    "streams.pipeline: no wait": (_STEPS.format("side", ""), 0),
    "streams.pipeline: does nothing": ("def pipeline(*_):\n    return None", 0),
}


@pytest.mark.parametrize("mistake", _MISTAKES)
def test_mistakes_cost_their_part(grader: Grader, folder: Path, mistake: str) -> None:
    """Each typical mistake gets the marks for what it still gets right."""
    lab, question = mistake.partition(":")[0].split(".")
    source, points = _MISTAKES[mistake]
    mark = marks_of(grader, folder, lab, **{question: source})[question]
    assert (mark.points, mark.flag) == (points, "")


_LOOP = "def tail(work, n_calls):\n    {}\n    return 1.0, 1.0"


@pytest.mark.parametrize(
    ("flag", "source"),
    [
        ("time", _LOOP.format("while True: pass")),
        ("memory", _LOOP.format("x = [bytearray(2**26) for _ in range(10**6)]")),
        ("memory", "import torch\n" + _LOOP.format("torch.ones(2**34)")),
        ("output", _LOOP.format("for _ in range(100): print('x' * 2**20)")),
        ("misuse", "import torch\n" + _LOOP.format("torch.save(1, 'file')")),
        ("misuse", "import gpulab.course\n" + _LOOP.format("pass")),
        ("misuse", "import torch\n" + _LOOP.format("torch.os.fork()")),
        ("misuse", "import torch\n" + _LOOP.format("torch.os.kill(torch.os.getppid(), 9)")),
        ("patched", "import time\n" + _LOOP.format("time.perf_counter = lambda: 0.0")),
        ("patched", "import torch\ntorch.cuda.synchronize = print\n" + _LOOP.format("pass")),
        ("patched", "import torch\n" + _LOOP.format("torch.cuda.Event.elapsed_time = max")),
        ("ended", "import torch\n" + _LOOP.format("torch.os._exit(0)")),
        ("ended", "import torch\n" + _LOOP.format("torch.os.write(3, b'{\"facts\": {}}\\n')")),
        ("error", _LOOP.format("raise SystemExit")),
        ("syntax", "def tail(work, n_calls)\n    pass"),
        ("unanswered", "def tail(work, n_calls):\n    ...  # your answer"),
    ],
)
def test_misuse_is_marked_and_the_next_answer_is_unharmed(
    grader: Grader, folder: Path, flag: str, source: str
) -> None:
    """It gets nothing and a flag, and a right answer after it gets everything."""
    cheated = marks_of(grader, folder, "timing", tail=source)["tail"]
    assert (cheated.points, cheated.flag) == (0.0, flag)
    assert marks_of(grader, folder, "timing")["tail"].points == cheated.max_points


@pytest.mark.parametrize(
    ("question", "source", "points"),
    [
        ("waits", "waits = 'acefg'", 0),  # the key of exercise 01.hidden-sync
        ("waits", "waits = 'kmnprstu'", 0),
        ("waits", "waits = ['k']", 0),
        ("readings", "readings = {'slept': 1}", 0),
        ("readings", "readings = {name: 1.0 for name in ('slept', 'events')}", 0),
        ("readings", "readings = open('grader/timing.py').read()", 0),
    ],
)
def test_values_that_are_wrong_get_nothing(
    grader: Grader, folder: Path, question: str, source: str, points: float
) -> None:
    """Practice keys, guesses of everything and computed values are worth nothing."""
    assert marks_of(grader, folder, "timing", **{question: source})[question].points == points


def test_a_neighbours_answers_are_wrong(grader: Grader, folder: Path) -> None:
    """Another learner's values get at most a part of the marks: the numbers differ."""
    copied = solved(folder, "timing", "ada")
    marks = {mark.question: mark for mark in grader.marks(LABS["timing"], copied, "bob")}
    own = solutions(folder, "timing", "bob")
    assert own["readings"] != solutions(folder, "timing", "ada")["readings"]
    assert marks["readings"].points < marks["readings"].max_points
