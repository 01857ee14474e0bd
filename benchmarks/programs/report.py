"""Put the outcomes of the programs into a table."""

import json
from pathlib import Path

from benchmarks.common.markdown import put_between_markers, table
from benchmarks.programs.catalogue import BY_NAME
from benchmarks.programs.run import Outcome


def report(path: Path, page: Path | None) -> None:
    """Print the table, or put it into a page."""
    outcomes = [Outcome(**each) for each in json.loads(path.read_text("utf-8"))]
    rows = []
    for outcome in outcomes:
        program = BY_NAME[outcome.name]
        source = f"{program.repository}@{program.commit[:7]}, `{program.path}`"
        rows.append([outcome.name, source, outcome.verdict, outcome.note])
    lines = table(["program", "source", "verdict", "note"], rows, n_names=4)
    if page is None:
        print("\n".join(lines))
    else:
        put_between_markers(page, "programs", "\n".join(lines))
