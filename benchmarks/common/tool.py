"""A timing tool, its answers, and how an answer is compared with the referee's readings."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import gpulab
from benchmarks.common.referee import READ, Reading
from gpulab.core.foreign_text import first_line
from gpulab.device.work import Work

OWN, DEFAULT = "gpulab", "measure"
OWN_INTERVAL = "95 % interval of the median"
_US_PER_S = 1e6


@dataclass(frozen=True, slots=True)
class Answer:
    """A tool's answer about some work.

    Attributes
    ----------
    time_s
        The one number that it prints or returns, in seconds.
    low_s, high_s
        The interval that it prints beside it, or None.
    remark
        What else it reports: where the floor comes from, and codes of findings.
    """

    time_s: float
    low_s: float | None = None
    high_s: float | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that times work.

    Attributes
    ----------
    name
        Its name in the results.
    owner
        The project that it belongs to.
    state
        The state of the cache in which it times, by the referee's name.
    ask
        Times some work.
    interval
        What the printed interval is; empty where none is printed.
    needs
        The module that must be installed.
    counts_gaps
        Whether its number includes the gaps between kernels; it is compared accordingly.
    is_slow
        Whether an answer takes so long that it is asked about the first cases only.
    """

    name: str
    owner: str
    state: str
    ask: Callable[[Work], Answer]
    interval: str = ""
    needs: str = "torch"
    counts_gaps: bool = True
    is_slow: bool = False

    @property
    def obstacle(self) -> str:
        """Why it cannot run here, or an empty text."""
        return "" if _is_there(self.needs) else f"{self.needs} is not installed"


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def default_tool() -> Tool:
    """Return ``gpulab.measure`` without options, as a tool."""
    return Tool(DEFAULT, OWN, READ, measured(), OWN_INTERVAL)


def measured(**options: Any) -> Callable[[Work], Answer]:  # noqa: ANN401 # options of measure
    """Return a function that times work with ``gpulab.measure`` and these options."""

    def ask(work: Work) -> Answer:
        measurement = gpulab.measure(work, progress=False, **options)
        codes = [finding.code for finding in measurement.findings]
        remark = " ".join([measurement.floor_method, *codes]).strip()
        return Answer(measurement.median_s, *measurement.interval_s, remark)

    return ask


def judged(tool: Tool, answer: Answer, before: Reading, after: Reading) -> dict[str, Any]:
    """Return the record of an answer, with the referee's readings just before and after it."""
    # Readings before and after, so that a clock that drifts shifts both sides alike.
    both = before.joined(after)
    recorded_us = round(statistics.median(both.span_us if tool.counts_gaps else both.busy_us), 4)
    stretch_us = both.stretch_us if tool.counts_gaps else 0.0
    interval = {
        name: round(end_s * _US_PER_S, 4)
        for name, end_s in (("low_us", answer.low_s), ("high_us", answer.high_s))
        if end_s is not None
    }
    return {
        "us": round(answer.time_s * _US_PER_S, 4),
        **interval,
        "referee_us": round(recorded_us - stretch_us, 4),
        "recorded_us": recorded_us,
        # Saved beside the answer: a change of the kernel itself is no fault of the tool.
        "drift": round(after.median_us / before.median_us - 1, 5),
        **({"remark": answer.remark} if answer.remark else {}),
    }


def described(error: Exception) -> str:
    """Return the type and the first line of an error, cut to 160 characters."""
    return f"{type(error).__name__}: {first_line(error)}"[:160]
