"""A whole run within a time limit: the cases, the magic, and fresh processes.

The referee reads before and after each answer. The file is written again after each case, so that
nothing is lost.
"""

import itertools
import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

import gpulab
from benchmarks.accuracy import magic
from benchmarks.accuracy.cases import CASES, Case
from benchmarks.accuracy.processes import medians_of_processes
from benchmarks.accuracy.report import print_goals
from benchmarks.accuracy.tools import all_tools
from benchmarks.common.environment import clock_mhz, gpu_in_use, provenance
from benchmarks.common.referee import HOT, READ, Reading, Referee
from benchmarks.common.tool import Answer, Tool, described, judged
from gpulab.device.work import Work

SCHEMA = "gpulab.accuracy/1"

_N_SLOW = 12  # number of cases for the tools that take a second for an answer
_PROCESS_S = 3.0  # seconds that the cases leave for each process after them

Record = dict[str, Any]
Asked = list[tuple[Tool, Callable[[], Answer]]]


def run(  # noqa: PLR0913 # each is an option of the command
    out: Path,
    *,
    virtual: bool,
    deadline: float,
    cases: int | None,
    processes: int,
    tools: Sequence[str],
) -> None:
    """Compare every tool with the referee on every case, and write the results after each.

    Parameters
    ----------
    out
        The file of results.
    virtual
        Whether the GPU is a virtual one.
    deadline
        After how many seconds it ends.
    cases, processes
        How many cases and fresh processes there are; None: all cases.
    tools
        How the names of the tools begin that take part.
    """
    end_s = time.monotonic() + deadline
    known = [tool for tool in all_tools() if tool.name.startswith(tuple(tools))]
    not_run = {tool.name: tool.obstacle for tool in known if tool.obstacle}
    with gpu_in_use(virtual=virtual):
        content = _opened(not_run) | {"tools": _described(known)}
        later_s = 0.0 if virtual else _PROCESS_S * processes
        _run_cases(CASES[:cases], known, out, content, end_s - later_s)
        content["provenance"]["clock_after_mhz"] = clock_mhz()
        content["magic"] = _guarded(magic.overhead)
    if processes and (left_s := end_s - time.monotonic()) > 0:
        content["processes"] = _guarded(
            lambda: medians_of_processes(processes, virtual=virtual, limit_s=left_s)
        )
    save(out, content)
    print(f"{out}: {out.stat().st_size / 1024:.0f} kB")
    print_goals(out)


def _opened(not_run: dict[str, str]) -> Record:
    empty: Record = {"left_out": [], "magic": {}, "processes": {}, "cases": []}
    head = {"schema": SCHEMA, "provenance": provenance(), "first_answer_s": _first_answer_s()}
    return {**head, "not_run": not_run, **empty}


def _first_answer_s() -> float:
    """Return how long the first ``measure`` of a process takes; it also finds the floor."""
    # Before the clock starts, because this creates the CUDA context, which every program pays for
    # anyway.
    x = torch.zeros(1 << 20, device="cuda")
    start_s = time.perf_counter()
    gpulab.measure(lambda: x + 1, progress=False)
    return round(time.perf_counter() - start_s, 3)


def _described(known: Sequence[Tool]) -> dict[str, Record]:
    names = ("owner", "state", "interval", "counts_gaps")
    return {tool.name: {name: getattr(tool, name) for name in names} for tool in known}


def _guarded(action: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return action()
    except Exception as error:  # noqa: BLE001 # the rest is still worth having
        return {"error": described(error)}


def save(path: Path, content: Record) -> None:
    """Write JSON with a line for each answer, so that it can be read and compared."""
    head = {name: part for name, part in content.items() if name != "cases"}
    opened = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
    cases = ",\n".join(_case_text(case) for case in content["cases"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{opened},\n "cases": [\n{cases}\n ]\n}}\n', "utf-8")


def _case_text(case: Record) -> str:
    head = {name: part for name, part in case.items() if name != "answers"}
    answers = ",\n".join(
        f"   {_line(name)}: {_line(answer)}" for name, answer in case.get("answers", {}).items()
    )
    return f'{_line(head).removesuffix("}")}, "answers": {{\n{answers}\n  }}}}'


def _line(part: object) -> str:
    return json.dumps(part, ensure_ascii=False)


def _run_cases(
    cases: Iterable[Case], known: Iterable[Tool], out: Path, content: Record, end_s: float
) -> None:
    """Compare every tool with the referee on every case, until the time is up."""
    ready = [tool for tool in known if not tool.obstacle]
    quick = [tool for tool in ready if not tool.is_slow]
    for number, case in enumerate(cases):
        start_s = time.monotonic()
        if start_s > end_s:
            content["left_out"].append(case.name)
            continue
        try:
            record = _run_case(case, ready if number < _N_SLOW else quick)
        except Exception as error:  # noqa: BLE001 # the other cases are still worth having
            record = {"name": case.name, "group": case.group, "error": described(error)}
        now_s = time.monotonic()
        record["took_s"] = round(now_s - start_s, 2)
        content["cases"].append(record)
        save(out, content)
        print(f"{end_s - now_s:6.0f} s left  {case.name}: {_short(record)}", flush=True)


def _short(record: Record) -> str:
    if "error" in record:
        return str(record["error"])
    answer = record["answers"].get("measure", {})
    if "error" in answer:
        return f"measure failed: {answer['error']}"
    return f"{answer.get('us')} µs by measure, {answer.get('referee_us')} by the referee"


def _run_case(case: Case, known: Iterable[Tool]) -> Record:
    """Return each tool's answer about a case, with the referee's readings."""
    work = case.build()
    referee = Referee(work)
    answers: dict[str, Record] = {}
    asked: Asked = [(tool, _asker(tool, work)) for tool in known]
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


def _judge(asked: Asked, referee: Referee) -> dict[str, Record]:
    """Return the answers of tools that time in one cache state, each between two readings."""
    answers: dict[str, Record] = {}
    before = referee.read(asked[0][0].state)
    for tool, ask in asked:
        torch.cuda.synchronize()
        start_s = time.perf_counter()
        try:
            answer = ask()
        except Exception as error:  # noqa: BLE001 # a tool's failure is a result
            torch.cuda.synchronize()
            # A tool that failed has no reading after it, so the next tool needs a new one before
            # it.
            answers[tool.name] = {"error": described(error)}
            before = referee.read(tool.state)
            continue
        wall_s = time.perf_counter() - start_s
        after = referee.read(tool.state)
        answers[tool.name] = judged(tool, answer, before, after) | {"wall_s": round(wall_s, 5)}
        # The tools are sorted by the state of the cache, so one reading is both the last after
        # this tool and the first before the next.
        before = after
    return answers


def _spread(reading: Reading) -> list[float]:
    """Return smallest, median and largest of the spans, and the median busy time."""
    spans = sorted(reading.span_us)
    median_us, busy_us = (statistics.median(each) for each in (spans, reading.busy_us))
    return [spans[0], round(median_us, 4), spans[-1], round(busy_us, 4)]
