"""Write docs/fidelity.md from ``page.md``: its text, with the figures and tables put in."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.fidelity.readings import chosen_of, compute, read
from benchmarks.fidelity.recorded import calls
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
    table,
    times_of,
    verdict,
)
from benchmarks.fidelity.workload import EARLIER, FIT, HELD_OUT, UNSEEN
from benchmarks.two_gpus import compared, extrapolated

_ORIGIN = (
    "- `{path}`: {date}, one {gpu}, driver {driver}, torch {torch}, CUDA {cuda}, Python {python}, "
    "{cpu}"
)


def compare(recording: Sequence[Path], gpu: str, write: Path | None, only: str, role: str) -> None:
    """Print the tables of recorded and virtual times, and write the page if one is named.

    Parameters
    ----------
    recording
        Files of recordings.
    gpu
        The virtual GPU, by its short name.
    write
        The page.
    only, role
        Only what has this in its name, or this role.
    """
    recorded = chosen_of(read(recording), only, role)
    workloads = [workload for path in recording for workload, _, _ in calls(path)]
    computed = compute(gpu, workloads, only, role)
    print(table(recorded, computed))
    if write:
        write.write_text(page(recorded, computed), "utf-8")


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
