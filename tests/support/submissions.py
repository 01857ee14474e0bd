"""Submissions of every kind, made by changing the cells of a lab's notebook as learners do."""

from collections.abc import Mapping
from pathlib import Path

from nbformat import NotebookNode

from gpulab.course import solutions
from gpulab.course._answers import answer_cell, grade_id
from gpulab.course._notebook import read_notebook, to_bytes

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


# Answers by lab, question and mistake, with the points that they get.
MISTAKES = {
    "timing.tail: no wait": (_TIMED.format(warm=10, wait="pass", scale=""), 0),
    "timing.tail: no warm-up": (_TIMED.format(warm=0, wait=_WAIT, scale=""), 3),
    "timing.tail: host's clock": (_TIMED.format(warm=10, wait=_WAIT, scale=""), 4),
    "timing.tail: one warm-up call": (_TIMED.format(warm=1, wait=_WAIT, scale=""), 3),
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
    # The name of the exception is the first word of a sentence about another answer.
    "streams.pipeline: raises": (
        f"class returned(Exception): pass\n{_STEPS.format('None', '')}    raise returned",
        0,
    ),
}

_LOOP = "def tail(work, n_calls):\n    {}\n    return 1.0, 1.0"
# Answers to timing.tail that misuse the process in which they run, with their flags.
CHEATS = {
    _LOOP.format("while True: pass"): "time",
    _LOOP.format("x = [bytearray(2**26) for _ in range(10**6)]"): "memory",
    "import torch\n" + _LOOP.format("torch.ones(2**34)"): "memory",
    _LOOP.format("for _ in range(100): print('x' * 2**20)"): "output",
    _LOOP.format("open('file', 'w')"): "misuse",
    "import gpulab.course\n" + _LOOP.format("pass"): "misuse",
    "import torch\n" + _LOOP.format("torch.os.fork()"): "misuse",
    "import torch\n" + _LOOP.format("torch.load('grader/secret')"): "misuse",
    "from torch import _C\n" + _LOOP.format("pass"): "misuse",
    _LOOP.format("work.__closure__[0].cell_contents"): "misuse",
    "import time\n" + _LOOP.format("time.perf_counter = lambda: 0.0"): "patched",
    "import torch\ntorch.cuda.synchronize = print\n" + _LOOP.format("pass"): "patched",
    "import torch\n" + _LOOP.format("torch.cuda.Event.elapsed_time = max"): "patched",
    _LOOP.format("raise SystemExit"): "error",
    "def tail(work, n_calls)\n    pass": "syntax",
    "def tail(work, n_calls):\n    ...  # your answer": "unanswered",
}


_CLOSURE = "def tail(work, n_calls):\n    {}\n    return 4e-4, 4e-4"
# Answers that would get points without the work, if they ran: question, how, source.
SLY = (
    (
        "streams.pipeline: replaced method of Tensor",
        (
            "import torch\ndef pipeline(side, copies, computes):\n"
            "    torch.Tensor.tolist = lambda self: [1.0]\n    for c in computes: c()"
        ),
    ),
    (
        "streams.pipeline: all values are right",
        (
            "import torch\ndef pipeline(side, copies, computes):\n"
            "    torch.Tensor.all = lambda self: True\n    for c in computes: c()"
        ),
    ),
    (
        "streams.pipeline: a copy that fills",
        (
            "import torch\ndef pipeline(side, copies, computes):\n"
            "    torch.Tensor.copy_ = lambda self, *_, **__: self.fill_(1)\n"
            "    for c in copies + computes: c()"
        ),
    ),
    (
        "cache.make_flush: the flush replaces a method of events",
        (
            "import torch\ndef make_flush(l2_bytes):\n    def flush():\n"
            "        torch.cuda.Event.elapsed_time = lambda *_: 0.05\n    return flush"
        ),
    ),
    (
        "streams.seconds_in: a format reads the closure",
        (
            "def seconds_in(stream, work):\n"
            "    return float('{0.__closure__[0].cell_contents}'.format(work)) / 2e9"
        ),
    ),
    (
        "timing.tail: a format reads the closure",
        _CLOSURE.format("'{{0.__closure__[0]}}'.format(work)"),
    ),
    (
        "timing.tail: a format made at run time",
        _CLOSURE.format("('{{0.' + '_' * 2 + 'closure' + '_' * 2 + '}}').format(work)"),
    ),
    (
        "timing.tail: the checker's own function",
        "from torch._prims_common import operator\n"
        + _CLOSURE.format("operator.attrgetter('tb_frame')"),
    ),
    (
        "timing.tail: a pattern reads the closure",
        _CLOSURE.format("match work:\n        case object(__closure__=cells): print(cells)"),
    ),
    (
        "timing.tail: a wrapper copies the closure",
        "import functools\n"
        + _CLOSURE.format("functools.update_wrapper(print, work, ['_' * 2 + 'closure'])"),
    ),
    (
        "timing.tail: a module through another",
        "from statistics import sys\n" + _CLOSURE.format("pass"),
    ),
    (
        "timing.tail: a module through torch.cuda",
        "from torch.cuda import sys\n" + _CLOSURE.format("pass"),
    ),
    ("timing.tail: sys.settrace", "import torch\n" + _CLOSURE.format("torch.sys.settrace(None)")),
    ("timing.tail: atexit", "import atexit\n" + _CLOSURE.format("pass")),
    ("timing.tail: a thread that outlives it", "import threading\n" + _CLOSURE.format("pass")),
    (
        "timing.tail: every name of a module",
        "from collections import *\n" + _CLOSURE.format("pass"),
    ),
    ("timing.tail: a finished timer", "import torch.utils.benchmark\n" + _CLOSURE.format("pass")),
    ("timing.tail: frames of generators", _CLOSURE.format("(0 for _ in '').gi_frame.f_back")),
    (
        "timing.tail: frames of errors",
        _CLOSURE.format("try: 1 / 0\n    except Exception as e: e.__traceback__.tb_frame.f_back"),
    ),
    (
        "timing.tail: the clock is replaced and put back",
        "import time\n"
        + _CLOSURE.format("old, time.time = time.time, work; time.time = old; work()"),
    ),
    (
        "timing.tail: a number that agrees with everything",
        "class Any(float):\n    __ge__ = __le__ = lambda *_: True\n"
        "    def __float__(self): return 4e-4\n" + _CLOSURE.format("pass"),
    ),
    ("timing.tail: no call of the work", _CLOSURE.format("pass")),
    (
        "timing.tail: the median is replaced",
        "import statistics\n" + _CLOSURE.format("statistics.median = max"),
    ),
)


def filled_in(release: Path, lab: str, student: str, answers: Mapping[str, str]) -> NotebookNode:
    """Return a lab's notebook with a learner's name and answers."""
    notebook = read_notebook(release)
    cells = {answer_cell(lab, name): source for name, source in answers.items()}
    for cell in notebook.cells:
        cell.source = cells.get(grade_id(cell), cell.source)
        if cell.source == 'learner = ""':
            cell.source = f'learner = "{student}"'
    return notebook


def submit(folder: Path, lab: str, student: str, notebook: NotebookNode | bytes) -> Path:
    """Write a notebook to the folder in which nbgrader looks for submissions."""
    path = folder / "submitted" / student / lab / f"{lab}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(notebook if isinstance(notebook, bytes) else to_bytes(notebook))
    return path


def solved(folder: Path, lab: str, student: str, **changed: str) -> NotebookNode:
    """Return a learner's notebook with right answers, except for those in ``changed``."""
    answers = solutions(folder, lab, student) | changed
    return filled_in(folder / "source" / lab / f"{lab}.ipynb", lab, student, answers)
