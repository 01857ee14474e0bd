"""Let every tool time every case, with the referee before and after, until the time is up."""

import itertools
import json
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks.accuracy.cases import Case
from benchmarks.accuracy.worker import Worker
from benchmarks.common.referee import HOT, READ, Reading, Referee
from benchmarks.common.tool import Answer, Tool, described, judged
from gpulab.device.work import Work

_N_SLOW = 12  # number of cases for the tools that take a second for an answer

Record = dict[str, Any]


@dataclass(slots=True)
class Results:
    """The results so far; the file is written again after each case, so that nothing is lost.

    Attributes
    ----------
    path
        The file.
    content
        What the file contains, as :mod:`benchmarks.accuracy.session` lays it out.
    """

    path: Path
    content: Record

    def save(self) -> None:
        """Write the file: a line for each answer, so that it can be read and compared."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(as_text(self.content) + "\n", "utf-8")


def as_text(content: Record) -> str:
    """Return JSON with a line for each answer, so that it can be read and compared."""
    head = {name: part for name, part in content.items() if name != "cases"}
    opened = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
    cases = ",\n".join(_case_text(case) for case in content["cases"])
    return f'{opened},\n "cases": [\n{cases}\n ]\n}}'


def _case_text(case: Record) -> str:
    head = {name: part for name, part in case.items() if name != "answers"}
    lines = [
        f"   {_line(name)}: {_line(answer)}" for name, answer in case.get("answers", {}).items()
    ]
    answers = ",\n".join(lines)
    return f'{_line(head).removesuffix("}")}, "answers": {{\n{answers}\n  }}}}'


def _line(part: object) -> str:
    return json.dumps(part, ensure_ascii=False)


@dataclass(slots=True)
class Deadline:
    """The moment when a run must be over.

    Parameters
    ----------
    limit_s
        Seconds from now, in real time on the virtual GPU, too.
    """

    limit_s: float
    clock: Callable[[], float] = time.monotonic
    start_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.start_s = self.clock()

    @property
    def left_s(self) -> float:
        """Seconds that are left; negative when it has passed."""
        return self.start_s + self.limit_s - self.clock()


def run_cases(
    cases: Iterable[Case],
    tools: Iterable[Tool],
    results: Results,
    deadline: Deadline,
    worker: Worker | None,
) -> None:
    """Compare every tool with the referee on every case, until the time is up."""
    ready = [tool for tool in tools if not tool.obstacle]
    quick = [tool for tool in ready if not tool.is_slow]
    for place, case in enumerate(cases):
        if deadline.left_s < 0:
            results.content["left_out"].append(case.name)
            continue
        start_s = deadline.left_s
        try:
            is_first = place < _N_SLOW
            record = run_case(case, ready if is_first else quick, worker if is_first else None)
        except Exception as error:  # noqa: BLE001 # the other cases are still worth having
            record = {"name": case.name, "group": case.group, "error": described(error)}
        record["took_s"] = round(start_s - deadline.left_s, 2)
        results.content["cases"].append(record)
        results.save()
        print(f"{deadline.left_s:6.0f} s left  {case.name}: {_short(record)}", flush=True)


def _short(record: Record) -> str:
    if "error" in record:
        return str(record["error"])
    said = record["answers"].get("measure", {})
    if "error" in said:
        return f"measure failed: {said['error']}"
    return f"{said.get('us')} µs by measure, {said.get('referee_us')} by the referee"


def run_case(case: Case, tools: Iterable[Tool], worker: Worker | None) -> Record:
    """Return each tool's answer about a case, with the referee's readings."""
    work = case.build()
    referee = Referee(work)
    answers: dict[str, Record] = {}
    asked = [(tool, _asker(tool, work)) for tool in tools]
    if worker is not None:
        asked.append((worker.tool, lambda: worker.ask(case.name)))
    for _, group in itertools.groupby(asked, key=lambda pair: pair[0].state):
        answers |= _judge(list(group), referee)
    # Read for every case, whatever tools took part: the report compares each answer with a clean
    # cold cache, too.
    states = {name: referee.read(name) for name in (HOT, READ)}
    return {
        "name": case.name,
        "group": case.group,
        "n_records": states[READ].n_records,
        **{f"{name}_us": _spread(reading) for name, reading in states.items()},
        "stretch_us": states[READ].stretch_us,
        "answers": answers,
    }


def _asker(tool: Tool, work: Work) -> Callable[[], Answer]:
    return lambda: tool.ask(work)


def _judge(asked: list[tuple[Tool, Callable[[], Answer]]], referee: Referee) -> dict[str, Record]:
    """Return the answers of tools that time in one cache state, each between two readings."""
    answers: dict[str, Record] = {}
    before = referee.read(asked[0][0].state)
    for tool, ask in asked:
        torch.cuda.synchronize()
        start_s = time.perf_counter()
        try:
            answer, failure = ask(), ""
        except Exception as error:  # noqa: BLE001 # a tool's failure is a result
            answer, failure = None, described(error)
        wall_s = time.perf_counter() - start_s
        if answer is None:
            torch.cuda.synchronize()
            # A tool that failed has no reading after it, so the next tool needs a new one before
            # it.
            answers[tool.name] = {"error": failure}
            before = referee.read(tool.state)
            continue
        after = referee.read(tool.state)
        answers[tool.name] = judged(tool, answer, before, after) | {"wall_s": round(wall_s, 5)}
        # The tools are sorted by the state of the cache, so one reading is both the last after
        # this tool and the first before the next.
        before = after
    return answers


def _spread(reading: Reading) -> list[float]:
    """Return smallest, median and largest of the spans, and the median busy time."""
    spans = sorted(reading.span_us)
    return [
        spans[0],
        round(statistics.median(spans), 4),
        spans[-1],
        round(statistics.median(reading.busy_us), 4),
    ]
