"""Write docs/fidelity.md from ``page.md``: its text, with the figures and tables put in."""

from collections import Counter
from pathlib import Path

from benchmarks.fidelity.table import (
    Lines,
    Recording,
    details,
    errors_of,
    failures,
    family_summary,
    misses,
    paced,
    summary,
    times_of,
    verdict,
)
from benchmarks.fidelity.workload import EARLIER, FIT, HELD_OUT, UNSEEN
from benchmarks.two_gpus import compared, extrapolated

_ORIGIN = (
    "- `{path}`: {date}, one {gpu}, driver {driver}, torch {torch}, CUDA {cuda}, Python {python}, "
    "{cpu}"
)


def page(recorded: Recording, computed: Recording) -> str:
    """Return the page in Markdown."""
    workloads, programs = (
        times_of(recorded, computed, part) for part in ("workloads", "programs")
    )
    counts = Counter(entry["role"] for entry in recorded["workloads"].values())
    tables: dict[str, Lines] = {
        "summary": summary(workloads, programs),
        "misses": misses(workloads),
        "origins": [_ORIGIN.format(**origin) for origin in recorded.get("origins", ())],
        "families": family_summary(workloads),
        "programs": details(programs, ("wall", "host", "busy")),
        "workloads": details(workloads, ("hot", "cold", "event", "host")),
    }
    text = (
        Path(__file__)
        .with_suffix(".md")
        .read_text("utf-8")
        .format(
            verdict=verdict(workloads),
            paced=paced(errors_of(workloads, ("host",), UNSEEN)),
            source=recorded.get("source"),
            extrapolated=extrapolated(compared()),
            n_fit=counts[FIT],
            n_held_out=counts[HELD_OUT],
            n_unseen=counts[UNSEEN],
            n_earlier=counts[EARLIER],
            n_programs=len(recorded["programs"]),
            **{name: "\n".join(lines) for name, lines in tables.items()},
        )
    )
    broken = failures(recorded, computed)
    return text + "\n".join(["\n## Not read\n", *broken, ""] if broken else [])
