"""The outcomes of calling operators on the virtual GPU, and their counts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.common.markdown import table

# From the best to the worst; the worst outcome of the samples is the outcome of the call.
KINDS = ("same", "as a GPU", "random", "both refuse", "refused", "differs", "crashes")
_FORMS = ("forward", "in place", "out=", "backward", "extreme forward", "extreme backward")
_BAD = ("differs", "crashes")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an operator's samples of one type in one form.

    Attributes
    ----------
    name
        Name of the operator in the database.
    dtype
        Type of its inputs, such as ``"float32"``.
    form
        ``"forward"``, ``"in place"``, ``"out="`` or ``"backward"``.
    kind
        One of ``KINDS``.
    note
        What differs in the worst sample, or its error message.
    """

    name: str
    dtype: str
    form: str
    kind: str
    note: str = ""


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the table, a line for each call that differs or crashes, and what is refused."""
    bad = sorted(
        (each for each in outcomes if each.kind in _BAD), key=lambda each: (each.kind, each.name)
    )
    lines = [f"{o.kind}: {o.name}, {o.dtype}, {o.form}: {o.note}" for o in bad]
    refused = Counter(each.name for each in outcomes if each.kind == "refused")
    return [*counted(outcomes), "", *lines, "", f"refused: {', '.join(sorted(refused))}"]


def counted(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the table of counts."""
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
