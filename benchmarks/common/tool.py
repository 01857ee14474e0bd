"""Something that times work, what it answers, and how the answer is judged by the referee."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import gpulab
from benchmarks.common.referee import READ, Reading
from gpulab.work import Work

OWN, DEFAULT = "gpulab", "measure"
OWN_INTERVAL = "95 % interval of the median"
_US_PER_S = 1e6


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool says of some work.

    Attributes
    ----------
    time_s
        The one number that it prints or returns, in seconds.
    low_s, high_s
        The interval that it prints beside it, or None.
    remark
        What else it says: where the floor is from, and codes of findings.
    """

    time_s: float
    low_s: float | None = None
    high_s: float | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that times work.

    Attributes
    ----------
    name
        What it is called in results.
    owner
        Whose it is.
    state
        State of the cache that it times in, as the referee names it.
    ask
        Times some work.
    interval
        What the printed interval is; empty where none is printed.
    needs
        Module without which it cannot run.
    counts_gaps
        Whether gaps between kernels are in its number; it is judged accordingly.
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
        """Why it cannot run here, or nothing."""
        return "" if _is_there(self.needs) else f"{self.needs} is not installed"


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def default_tool() -> Tool:
    """Return ``gpulab.measure`` as it is called without options."""
    return Tool(DEFAULT, OWN, READ, measured(), OWN_INTERVAL)


def measured(**options: Any) -> Callable[[Work], Answer]:  # noqa: ANN401 # options of measure
    """Return what asks ``gpulab.measure``, called with some options."""

    def ask(work: Work) -> Answer:
        measurement = gpulab.measure(work, progress=False, **options)
        codes = [finding.code for finding in measurement.findings]
        said = " ".join([measurement.floor_method, *codes]).strip()
        return Answer(measurement.median_s, *measurement.interval_s, said)

    return ask


def judged(tool: Tool, answer: Answer, before: Reading, after: Reading) -> dict[str, Any]:
    """Return an answer beside what the referee read just before and after it."""
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
        "drift": round(after.median_us / before.median_us - 1, 5),
        **({"remark": answer.remark} if answer.remark else {}),
    }


def described(error: Exception) -> str:
    """Return kind and first line of an error."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:160]
