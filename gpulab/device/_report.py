"""The report of ``gpulab doctor``: one row for each thing that timing depends on."""

from dataclasses import asdict, dataclass

from gpulab.core.foreign_text import one_line
from gpulab.core.markup import table


@dataclass(frozen=True, slots=True)
class DiagnosisRow:
    """One thing that timing depends on.

    Attributes
    ----------
    topic, state
        What was checked, and what was found.
    reason
        Why.
    instead
        What is used in its place; empty if nothing is missing.
    """

    topic: str
    state: str
    reason: str
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What was found on this machine, one row per topic.

    It says what can be timed, not how accurately.
    """

    rows: tuple[DiagnosisRow, ...]

    def __str__(self) -> str:
        widths = [max(len(getattr(row, name)) for row in self.rows) for name in ("topic", "state")]
        return "\n".join(
            one_line(f"{row.topic:{widths[0]}}  {row.state:{widths[1]}}  {explain(row)}")
            for row in self.rows
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return table(
            ((row.topic, row.state, explain(row)) for row in self.rows),
            caption="What this machine has for timing GPU work",
            headings=("Topic", "State", "Why"),
            has_row_headings=True,
            is_text=True,
        )

    def to_dict(self) -> dict[str, object]:
        """Return the rows as plain data, ready for JSON."""
        return {"schema": "gpulab.doctor/1", "rows": [asdict(row) for row in self.rows]}


def explain(row: DiagnosisRow) -> str:
    """Return the reason of a row, and what is used in place of what is missing."""
    reason = f"{row.reason}; used instead: {row.instead}" if row.instead else row.reason
    return one_line(reason)
