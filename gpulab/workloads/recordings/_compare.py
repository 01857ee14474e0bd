"""Compare two recordings task by task; raise an error if they have no task in common."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from gpulab.core.errors import NotComparableError
from gpulab.core.foreign_text import visible_row
from gpulab.workloads.sweeps import Point, Task

if TYPE_CHECKING:
    import pandas as pd

    from gpulab.workloads.recordings._recording import Recording


_RATIO_COLUMNS = ("a_s", "b_s", "ratio", "low", "high", "verdict")


def refuse_incomparable(a: "Recording", b: "Recording", *, virtual: bool) -> None:
    """Raise `NotComparableError` if two recordings share no task, or if only one is virtual."""
    if a.is_virtual != b.is_virtual and not virtual:
        model, real = (a, b) if a.is_virtual else (b, a)
        raise NotComparableError(
            f"{model.name} was computed by the model of a virtual GPU and {real.name} was "
            "measured on a real one, so their ratio judges the model and no GPU; if that is what "
            "you want: compare(a, b, virtual=True)"
        )
    if not _timed(a).keys() & _timed(b).keys():
        raise NotComparableError(
            f"{a.name} and {b.name} have no task in common: {_difference(a, b)}"
        )


def ratios(a: "Recording", b: "Recording") -> "pd.DataFrame":
    """Return a table with a row for each task that was timed in both, in the order of ``a``."""
    import pandas as pd

    timed_a, timed_b = _timed(a), _timed(b)
    rows = [
        {**visible_row(asdict(point.task)), **_ratio(point, timed_b[key])}
        for key, point in timed_a.items()
        if key in timed_b
    ]
    task_columns = [field.name for field in fields(Task)]
    # Columns are named even without rows, and Int64 has a value for "no number of threads".
    table = pd.DataFrame(rows, columns=[*task_columns, *_RATIO_COLUMNS]).astype(
        {"n_threads": "Int64"}
    )
    n_both = len(rows)
    # How many tasks have no row: a table that silently leaves tasks out would mislead.
    table.attrs = {
        "a": a.name,
        "b": b.name,
        "only_in_a": len(timed_a) - n_both,
        "only_in_b": len(timed_b) - n_both,
    }
    return table


def _timed(recording: "Recording") -> dict[str, Point]:
    # A time of 0 has no ratio. Very short work can have it, because the floor is subtracted.
    return {p.task.key: p for p in recording.points if p.ok and p.median_s > 0}


def _ratio(a: Point, b: Point) -> dict[str, Any]:
    """Return the ratio of two medians with its interval, for independent errors.

    The logarithm of a ratio is a difference, so its half width is the root of the sum of squares
    of both half widths. Each side of the interval is computed from the sides that stretch it.
    """
    ratio = b.median_s / a.median_s
    low = ratio * math.exp(-math.hypot(_log(b.median_s, b.low_s), _log(a.high_s, a.median_s)))
    high = ratio * math.exp(math.hypot(_log(b.high_s, b.median_s), _log(a.median_s, a.low_s)))
    verdict = "no difference seen" if low <= 1 <= high else "b longer" if low > 1 else "b less"
    values = (a.median_s, b.median_s, ratio, low, high, verdict)
    return dict(zip(_RATIO_COLUMNS, values, strict=True))


def _log(over_s: float, under_s: float) -> float:
    # An end at zero leaves the ratio open on that side.
    return math.log(over_s / under_s) if under_s > 0 else math.inf


def _difference(a: "Recording", b: "Recording") -> str:
    """Return in words how the tasks of two recordings differ, if they share none."""
    # The usual reason comes first: the same work, timed in another way.
    parts_a, parts_b = _by_work(a), _by_work(b)
    for name, part in parts_a.items():
        if name in parts_b:
            return (
                f"{name} is timed in both, but {part} in the first and {parts_b[name]} in the "
                "second, which are answers to different questions; record both in the same way: "
                "gpulab record --out FILE"
            )
    return (
        f"no workload has the same size and type in both ({_most(a)} and {_most(b)}); record both "
        "in the same way: gpulab record --out FILE"
    )


def _by_work(recording: "Recording") -> Mapping[str, str]:
    return {
        f"{task.workload} n={task.size:,} {task.dtype}": (
            f"{task.on.upper()}, {task.cache}, {task.method}, transfers {task.transfers}"
            f"{'' if task.n_threads is None else f', threads {task.n_threads}'}"
        )
        for task in (point.task for point in _timed(recording).values())
    }


def _most(recording: "Recording") -> str:
    counted = Counter(point.task.workload for point in _timed(recording).values())
    return f"{counted.most_common(1)[0][0]} among others" if counted else "nothing timed"
