"""Run the solved lessons and cases, and save the values that they find for their claims.

    CUDA_VISIBLE_DEVICES= python -m benchmarks.lesson_claims     values of the virtual H200
    python -m benchmarks.lesson_claims                           values of the CUDA GPU
    python -m benchmarks.lesson_claims --lessons 03 05           only these lessons
    python -m benchmarks.lesson_claims --lessons case            all cases; case-01: the first

A claim is a sentence of a lesson that a measurement can confirm, such as "a cold call takes
longer". With a CUDA GPU the recorded values are replaced, without one the virtual values; the
others stay, and so does the mark "times_cpu" of a claim whose virtual value depends on the
processor of this machine: it is set by hand. A claim that no lesson states any more is dropped.
The table at the end shows both side by side. A lesson takes about a minute.
"""

import argparse
import json
import math
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import ROOT
from benchmarks.common.notebooks import client_of
from gpulab.exercises._claims import DATA, SCHEMA, Claim
from gpulab.exercises._lesson_index import package_of, unit_of
from gpulab.lessons._build import solved

if TYPE_CHECKING:
    from nbformat import NotebookNode

SOURCES = sorted((ROOT / "notebooks" / "source").rglob("*.py"))
_OUT = ROOT / "gpulab" / "data" / DATA
# A run on the virtual GPU may differ so much from the saved value; more is a change of the model.
TOLERANCE = 0.1
_MARK = "claims given: "
LAST_CELL = f"""
import json
from gpulab import device
from gpulab.exercises._claims import given
from gpulab.exercises._progress import entries
place = device.current()
print({_MARK!r} + json.dumps({{
    "source": place.source, "name": place.name, "values": given(),
    "not_right": [name for name, entry in entries().items() if not entry.ok],
}}))
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the lessons, print a table, and write the file."""
    options = parser().parse_args(arguments)
    content = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
    # Claims that no lesson states any more are dropped here; those of lessons that do not run now
    # stay.
    claims = {name: kept for name, kept in content.get("claims", {}).items() if name in stated()}
    for source in SOURCES:
        if not options.lessons or unit_of(source).startswith(tuple(options.lessons)):
            found = values_of(source)
            merge(claims, found)
            print("\n".join(rows(found)), flush=True)
            write(options.out, claims)
    print("\n".join(both_worlds(claims, tuple(options.lessons))))


def write(out: Path, claims: Mapping[str, Any]) -> None:
    """Write the file; called after each lesson, so that an interrupt loses only one lesson."""
    text = json.dumps({"schema": SCHEMA, "claims": dict(sorted(claims.items()))}, indent=1)
    out.write_text(f"{text}\n", "utf-8")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.lesson_claims", __doc__)
    made.add_argument(
        "--lessons", nargs="*", default=(), help="such as 03 05 case-01; default: all"
    )
    made.add_argument("--out", type=Path, default=_OUT, help="file of the values")
    return made


def stated() -> dict[str, Claim]:
    """Return the claims that the notebooks declare, by their ids."""
    rooms = {f"{package_of(unit_of(source))}._claims" for source in SOURCES}
    return {
        each.claim_id: each
        for room in rooms
        if find_spec(room)
        for each in import_module(room).CLAIMS
    }


def values_of(source: Path) -> dict[str, Any]:
    """Run a solved lesson in its own kernel; return its GPU, and the value of each claim."""
    import nbformat

    notebook = solved(source)
    notebook.cells.append(nbformat.v4.new_code_cell(LAST_CELL))
    with tempfile.TemporaryDirectory() as folder:
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        client_of(notebook, folder).execute(env=os.environ | {"PYTHONPATH": path})
    return values_in(notebook)


def values_in(notebook: "NotebookNode") -> dict[str, Any]:
    """Return what the last cell of a notebook, :data:`LAST_CELL`, has printed."""
    text: str = notebook.cells[-1].outputs[-1].text
    given: dict[str, Any] = json.loads(text.removeprefix(_MARK))
    return given


def changed(values: Mapping[str, Any], saved: Mapping[str, Any]) -> list[str]:
    """Return a line for each virtual value that differs from the saved one by more than 10 %.

    Parameters
    ----------
    values
        The value of each claim in a run on the virtual H200.
    saved
        The saved claims. Where one has ``times_cpu``, its value times the processor that the
        program runs on, and may be another on each machine.
    """
    lines = []
    for name, value in values.items():
        kept = saved.get(name, {})
        if not kept.get("times_cpu", False):
            expected = kept.get("virtual", {}).get("value")
            if not _is_near(value, expected):
                lines.append(f"{name}: {value!s} now, {expected!s} saved")
    return lines


def _is_near(value: float | str, expected: float | str | None) -> bool:
    if isinstance(value, str) or isinstance(expected, str) or expected is None:
        return value == expected
    return math.isclose(value, expected, rel_tol=TOLERANCE)


def merge(claims: dict[str, Any], found: Mapping[str, Any]) -> None:
    """Add the values of one run to the saved ones; measured values become recorded ones."""
    # In the file a time that was measured on a real GPU is one "recorded", as other machines will
    # read it.
    world = "virtual" if found["source"] == "virtual" else "recorded"
    for name, value in found["values"].items():
        claims.setdefault(name, {})[world] = {"value": value, "device_name": found["name"]}


def rows(found: Mapping[str, Any]) -> list[str]:
    """Return a line for each value."""
    place = f"{found['name']}, {found['source']}"
    made = [f"{name:<32}{value!s:<24}{place}" for name, value in found["values"].items()]
    return [*made, *(f"{name:<32}NOT RIGHT" for name in found.get("not_right", ()))]


def both_worlds(claims: Mapping[str, Any], lessons: tuple[str, ...]) -> list[str]:
    """Return a line for each claim: its value and whether it holds, virtual and recorded."""
    known, worlds = stated(), ("virtual", "recorded")
    lines = [f"{'claim':<32}{'virtual':<32}{'recorded':<32}"]
    for name, values in sorted(claims.items()):
        if not lessons or name.startswith(lessons):
            shown = [_shown(known[name], values.get(world)) for world in worlds]
            lines.append(f"{name:<32}{shown[0]:<32}{shown[1]:<32}".rstrip())
    return lines


def _shown(claim: Claim, found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "-"
    value = found["value"]
    number = value if isinstance(value, str) else f"{value:.4g} {claim.unit}".strip()
    return f"{number}: {'holds' if claim.holds(value) else 'FAILS'}"


if __name__ == "__main__":
    sys.exit(main())
