"""Why a call of a user's benchmark gave no reading."""

import math

from gpulab.core.errors import shown
from gpulab.core.foreign_text import one_line
from gpulab.tracing.trials import Rule, Trial, first_fitting, text_of

# Each problem is the end of a sentence about the benchmark.
_PROBLEMS: tuple[Rule[Trial, str], ...] = (
    (
        lambda trial: trial.error is not None,
        lambda trial: f"raised {type(trial.error).__name__}: {one_line(text_of(trial.error))}",
    ),
    (lambda trial: not trial.calls, "never called fn, so it timed nothing"),
    (
        lambda trial: bool(trial.real_clock),
        lambda trial: (
            f"read {trial.real_clock}, which shows the real time of this machine and not that of "
            "the virtual GPU (read time.perf_counter())"
        ),
    ),
    (
        lambda trial: trial.seconds is None,
        lambda trial: (
            f"returned {shown(trial.value)} of type {type(trial.value).__name__}, which is no "
            "seconds"
        ),
    ),
    (
        lambda trial: not 0 < (trial.seconds or 0.0) < math.inf,
        lambda trial: f"returned {trial.seconds:g}, and a time is above 0 and finite",
    ),
)


def problem_of(trial: Trial) -> str:
    """Return why a call of a benchmark gave no time, or an empty text if it gave one."""
    return first_fitting(_PROBLEMS, trial) or ""
