"""Count the outcomes of a sweep, and list what differs, crashes or is refused."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.markdown import put_between_markers, table
from benchmarks.operators.outcomes import KINDS, Outcome

_FORMS = ("forward", "in place", "out=", "backward", "extreme forward", "extreme backward")
_BAD = ("differs", "crashes", "died")


def report(path: Path, page: Path | None) -> None:
    """Print the counts and lists of a sweep, or put its table into a page."""
    outcomes = [Outcome(**each) for each in json.loads(path.read_text("utf-8"))]
    if page is None:
        print("\n".join(summary(outcomes)))
    else:
        put_between_markers(page, "operators", "\n".join(_counts(outcomes)))


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the table, a line for each call that differs or crashes, and what is refused."""
    bad = sorted(
        (each for each in outcomes if each.kind in _BAD), key=lambda each: (each.kind, each.name)
    )
    lines = [f"{o.kind}: {o.name}, {o.dtype}, {o.form}: {o.note}" for o in bad]
    refused = Counter(each.name for each in outcomes if each.kind == "refused")
    return [*_counts(outcomes), "", *lines, "", f"refused: {', '.join(sorted(refused))}"]


def _counts(outcomes: Sequence[Outcome]) -> list[str]:
    counts = Counter((each.dtype, each.form, each.kind) for each in outcomes)
    dtypes = list(dict.fromkeys(each.dtype for each in outcomes))
    rows = [
        [f"{dtype}, {form}", *(str(counts[dtype, form, kind]) for kind in KINDS)]
        for dtype in dtypes
        for form in _FORMS
        if any(counts[dtype, form, kind] for kind in KINDS)
    ]
    total = Counter(each.kind for each in outcomes)
    rows.append(["all", *(str(total[kind]) for kind in KINDS)])
    return table(["calls", *KINDS], rows)
