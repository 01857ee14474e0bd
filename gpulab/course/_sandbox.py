"""The grader's side of the process that runs answers: start it, send it answers, check replies."""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Self

from gpulab.core.errors import GradingError
from gpulab.core.foreign_text import visible
from gpulab.course._answers import Unread
from gpulab.course._confine import AnswerLimits, bubblewrap, confinement

SECRET_VARIABLE = "GPULAB_GRADER_SECRET"  # noqa: S105  # the name of a variable
_CPU_CODES = (-24, -9)  # SIGXCPU, and SIGKILL, which follows a second later
_SHOWN = 200  # characters of a learner's own text that a message repeats


# The numbers that a trial recorded, by name, or why it did not finish.
Outcome = dict[str, object] | Unread


class Sandbox:
    """Runs learners' functions in a process that has no keys; use it in a ``with`` statement."""

    def __init__(self, limits: AnswerLimits | None = None) -> None:
        self.limits = limits or AnswerLimits()
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def run(self, trial: str, function: str, source: str, draw: Sequence[str]) -> Outcome:
        """Run an answer and return its facts, or the problem.

        ``trial`` and ``function`` are names: of the trial, and of the learner's function that it
        calls. ``source`` is the answer's cell, and ``draw`` the seed of the trial's numbers.
        """
        request = {
            "trial": trial,
            "function": function,
            "source": source,
            "draw": list(draw),
            "limits": asdict(self.limits),
            "mark": (mark := secrets.token_hex()),
        }
        reply = self._ask(json.dumps(request))
        if reply is None:
            self.close()
            return Unread("ended", "It ended the process that runs the answers.")
        return _read(json.loads(reply), mark)

    def _ask(self, line: str) -> str | None:
        """Send a line and return the reply, or None if the process has ended."""
        process = self._process or self._start()
        if process.stdin is None or process.stdout is None:
            raise GradingError("the process for answers has no pipes; start the grading again")
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            return process.stdout.readline() or None
        except BrokenPipeError:
            return None

    def _start(self) -> "subprocess.Popen[str]":
        if sys.platform == "win32":
            raise GradingError(
                "Windows cannot limit what an answer uses; grade on Linux or macOS, or in WSL"
            )
        if not bubblewrap():
            warnings.warn(f"Answers run behind {confinement()}.", stacklevel=2)
        # No other variable is passed on: the grader's secret may be one of them.
        names = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT")
        environment = {name: os.environ[name] for name in names if name in os.environ}
        environment |= {
            "PYTHONPATH": os.pathsep.join([_import_root(), *filter(None, sys.path)]),
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",  # an answer that imports must not be taken for misuse
            "HOME": tempfile.gettempdir(),
        }
        self._process = subprocess.Popen(  # noqa: S603  # our own interpreter and module
            # -P keeps the working folder, to which every user may write, off the import path.
            [*bubblewrap(), sys.executable, "-P", "-m", f"{__package__}._answer_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=tempfile.gettempdir(),
            # Ctrl-C then reaches the grader alone. When the grader ends, the pipe closes, and the
            # process ends too.
            start_new_session=True,
        )
        return self._process


def _import_root() -> str:
    return str(Path(__file__).parents[2])


def _read(reply: dict[str, object], mark: str) -> Outcome:
    """Return the outcome that a reply reports, although the answer may have forged lines of it."""
    report: dict[str, list[object]] = {}
    for text in reply["lines"]:  # type: ignore[attr-defined]  # our own list
        line = _line(text)
        if line.pop("mark", None) != mark:
            line = {"forged": text}
        for name, value in line.items():
            report.setdefault(name, []).append(value)
    facts = report.get("facts", [])
    # The first that applies is returned, so causes come before their effects: an answer that
    # printed too much or took too long was ended, and so also has no facts.
    for flag, applies, text in (
        ("output", reply["stopped"] == "output", "It printed more than is allowed."),
        ("forged", "forged" in report, "It wrote into the checker's report."),
        ("time", _ran_long(reply), "It took longer than is allowed."),
        ("patched", "patched" in report, f"It replaced {_first(report, 'patched')}."),
        ("memory", _used_up(report), "It needed more memory than is allowed."),
        ("missing", "missing" in report, f"There is no function {_first(report, 'missing')}."),
        ("error", "error" in report, f"It raised {_first(report, 'error')}."),
    ):
        if applies:
            return Unread(flag, text)
    if len(facts) == 1 and isinstance(facts[0], dict):
        return facts[0]
    return Unread("ended", "It ended its process.")


def _ran_long(reply: dict[str, object]) -> bool:
    return reply["stopped"] == "time" or reply["code"] in _CPU_CODES


def _used_up(report: dict[str, list[object]]) -> bool:
    """Return whether the answer ran out of memory; torch then raises RuntimeError, by its text."""
    texts = [*report.get("error", ()), *map(str, report.get("facts", ()))]
    return "memory" in report or any("can't allocate memory" in str(text) for text in texts)


def _first(report: dict[str, list[object]], name: str) -> str:
    text = visible(str(report.get(name, [""])[0]))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."


def _line(text: str) -> dict[str, object]:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return line if isinstance(line, dict) else {}
