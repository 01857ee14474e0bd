"""Start programs in their own processes, on the virtual GPU and on the CPU, and compare."""

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.common.folders import ROOT
from benchmarks.common.markdown import print_or_write, table
from benchmarks.programs.catalogue import BY_NAME, N_COMPARED, PROGRAMS, Program

_WORLDS = ("virtual", "cpu")
_TOLERANCE = 0.02
_N_LINES_SHOWN = 25


@dataclass(frozen=True)
class Outcome:
    """The outcome of running a program.

    Attributes
    ----------
    verdict
        "as on the CPU", "runs", "differs", "refused" or "fails".
    note
        The reason for the verdict: losses, or an error.
    """

    name: str
    verdict: str
    note: str


def run(  # noqa: PLR0913 # the command's options
    folder: Path,
    names: Sequence[str],
    *,
    workers: int,
    limit_s: float,
    out: Path | None,
    alone: bool,
    show: bool,
) -> None:
    """Run programs, print a line for each, and write the outcomes to a file."""
    chosen = [BY_NAME[name] for name in names] or list(PROGRAMS)
    worlds = _WORLDS[:1] if alone else _WORLDS
    outcomes = []
    with ThreadPoolExecutor(workers) as pool:
        for outcome, text in pool.map(lambda each: _try(each, folder, limit_s, worlds), chosen):
            print(f"{outcome.verdict:14} {outcome.name}: {outcome.note}", flush=True)
            if show:
                print(text)
            outcomes.append(asdict(outcome))
            if out is not None:  # after each program, so that an interrupt loses nothing
                out.write_text(json.dumps(outcomes, indent=1), "utf-8")


def report(outcomes: Path, write: Path | None) -> None:
    """Print the table of the programs, or put it into a page."""
    rows = []
    for each in json.loads(outcomes.read_text("utf-8")):
        program = BY_NAME[each["name"]]
        source = f"{program.repository}@{program.commit[:7]}, `{program.path}`"
        rows.append([each["name"], source, each["verdict"], each["note"]])
    lines = table(["program", "source", "verdict", "note"], rows, n_names=4)
    print_or_write("\n".join(lines), write, "programs")


def _try(
    program: Program, folder: Path, limit_s: float, worlds: Sequence[str]
) -> tuple[Outcome, str]:
    outcomes, text = {"cpu": {"error": "not tried", "losses": []}}, ""
    for world in worlds:
        outcomes[world], printed = _run_in(world, program, folder, limit_s)
        text += f"--- {world}\n{printed}\n"
    verdict, note = _compare(outcomes["virtual"], outcomes["cpu"])
    return Outcome(program.name, verdict, note), text


def _run_in(world: str, program: Program, folder: Path, limit_s: float) -> tuple[Any, str]:
    command = [sys.executable, "-m", "benchmarks.programs.one", program.name]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        at = Path(scratch, "work", "here")  # two levels deep: some programs write to ../
        at.mkdir(parents=True)
        outcome = Path(scratch, "outcome.json")
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "MPLBACKEND": "Agg",
            # Several programs run at once; with more threads they would disturb each other.
            "OMP_NUM_THREADS": "1",
        }
        try:
            done = subprocess.run(  # noqa: S603 # our own module
                [*command, str(folder.resolve()), world, str(outcome)],
                cwd=at,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=limit_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"error": f"over {limit_s:.0f} s", "losses": []}, ""
        printed = "\n".join(done.stdout.splitlines()[-_N_LINES_SHOWN:])
        if not outcome.exists():
            return {"error": f"died: {printed[-200:]}", "losses": []}, printed
        return json.loads(outcome.read_text("utf-8")), printed


def _compare(virtual: dict[str, Any], cpu: dict[str, Any]) -> tuple[str, str]:
    if virtual["error"]:
        kind, _, words = virtual["error"].partition("\n")[0].partition(": ")
        verdict = "refused" if kind == "NotModelledError" else "fails"
        both = " (and on the CPU)" if cpu["error"] == virtual["error"] else ""
        return verdict, (words or kind) + both
    pairs = list(zip(virtual["losses"], cpu["losses"], strict=False))[:N_COMPARED]
    if cpu["error"] or not pairs:
        reason = "not on the CPU" if cpu["error"] else "nothing to compare"
        return "runs", f"{len(virtual['losses'])} losses, {reason}"
    shown = ", ".join(f"{ours:.4g}/{theirs:.4g}" for ours, theirs in pairs)
    if any(math.isnan(ours) and not math.isnan(theirs) for ours, theirs in pairs):
        return "runs", f"without values: {shown}"
    if all(math.isclose(*pair, rel_tol=_TOLERANCE, abs_tol=1e-4) for pair in pairs):
        return "as on the CPU", f"losses {shown}"
    # The random numbers of the device are not those of the CPU, so other losses prove nothing.
    if virtual["draws_on_device"]:
        return "runs", f"with random numbers of the device: {shown}"
    return "differs", shown
