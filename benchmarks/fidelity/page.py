"""Write docs/fidelity.md from ``page.md``: its text, with the figures and tables put in."""

from collections import Counter
from pathlib import Path

from benchmarks.fidelity.table import (
    Lines,
    Recording,
    chosen,
    details,
    failures,
    family_summary,
    misses,
    paced,
    program_rows,
    summary,
    verdict,
    workload_rows,
)
from benchmarks.fidelity.workload import EARLIER, FIT, HELD_OUT, UNSEEN
from benchmarks.two_gpus import compared, extrapolated

_ORIGIN = (
    "- `{path}`: {date}, one {gpu}, driver {driver}, torch {torch}, CUDA {cuda}, Python {python}, "
    "{cpu}"
)


def page(recorded: Recording, computed: Recording) -> str:
    """Return the page in Markdown."""
    rows, whole = workload_rows(recorded, computed), program_rows(recorded, computed)
    counts = Counter(row.role for row in rows)
    tables: dict[str, Lines] = {
        "summary": summary(recorded, computed),
        "misses": misses(rows),
        "origins": [_ORIGIN.format(**origin) for origin in recorded.get("origins", ())],
        "families": family_summary(rows),
        "programs": details(whole, ("wall", "host", "busy")),
        "workloads": details(rows, ("hot", "cold", "event", "host")),
    }
    text = (
        Path(__file__)
        .with_suffix(".md")
        .read_text("utf-8")
        .format(
            verdict=verdict(rows),
            paced=paced(chosen(rows, ("host",), UNSEEN)),
            source=recorded.get("source"),
            extrapolated=extrapolated(compared()),
            n_fit=counts[FIT],
            n_held_out=counts[HELD_OUT],
            n_unseen=counts[UNSEEN],
            n_earlier=counts[EARLIER],
            n_programs=len(whole),
            **{name: "\n".join(lines) for name, lines in tables.items()},
        )
    )
    broken = failures([*rows, *whole])
    return text + "\n".join(["\n## Not read\n", *broken, ""] if broken else [])
