"""Run the solved lessons and cases, and save the values that they find for their claims.

    CUDA_VISIBLE_DEVICES= python -m benchmarks.lesson_claims     values of the virtual H200
    python -m benchmarks.lesson_claims --gpu h100.json           values of the CUDA GPU, in a file
    python -m benchmarks.lesson_claims --gpu h100.json 03 05     only these lessons
    python -m benchmarks.lesson_claims --take h100.json          save what such a file recorded

A claim is a sentence of a lesson that a measurement can confirm, such as "a cold call takes
longer". The saved file has a value of each claim for the virtual H200 and for each GPU that was
recorded. The mark "times_cpu" of a claim whose virtual value depends on the processor of this
machine is set by hand. A claim that no lesson states any more is dropped. With --gpu, lessons that
are in the file already are not run again, so you can continue an interrupted run with the same
command. The table at the end shows all GPUs side by side. A lesson takes about a minute; case-01
is the first case, and "case" means all of them.
"""

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
from benchmarks.common.notebooks import SOURCES, chosen, client_of
from gpulab.exercises._claims import DATA, SCHEMA, Claim
from gpulab.exercises._lesson_index import package_of, unit_of
from gpulab.lessons._build import solved

if TYPE_CHECKING:
    from nbformat import NotebookNode

SAVED = ROOT / "gpulab" / "data" / DATA
# The values of one GPU, as --gpu writes them and --take reads them.
GPU_SCHEMA = "gpulab.claims-of-a-gpu/1"
# A run on the virtual GPU may differ so much from the saved value; more is a change of the model.
TOLERANCE = 0.1
_MARK = "claims given: "
LAST_CELL = f"""
import datetime, json, torch
from gpulab import device
from gpulab.exercises._claims import given
from gpulab.exercises._progress import exercise_progress
place = device.current()
print({_MARK!r} + json.dumps({{
    "source": place.source, "name": place.name, "values": given(),
    "not_right": [name for name, entry in exercise_progress().items() if not entry.ok],
    "torch": torch.__version__, "date": datetime.date.today().isoformat(),
}}))
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the lessons, or take the values of a GPU; print a table, and write the file."""
    parser = parser_of("benchmarks.lesson_claims", __doc__)
    parser.add_argument("lessons", nargs="*", help="such as 03 05 case-01; default: all")
    parser.add_argument("--gpu", type=Path, help="run on the CUDA GPU, and write this file")
    parser.add_argument(
        "--take", type=Path, help="save the values in a file that --gpu has written"
    )
    parser.add_argument("--out", type=Path, default=SAVED, help="file of all values")
    options = parser.parse_args(arguments)
    if options.gpu is not None:
        record_gpu(options.gpu, tuple(options.lessons))
        return
    content = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
    gpus: dict[str, Any] = content.get("gpus", {})
    # Claims that no lesson states any more are dropped here; those of lessons that do not run now
    # stay.
    claims = {name: kept for name, kept in content.get("claims", {}).items() if name in stated()}
    if options.take is not None:
        take(gpus, claims, json.loads(options.take.read_text("utf-8")))
        write(options.out, gpus, claims)
    else:
        for source in chosen(options.lessons):
            run = values_of(source)
            if run["source"] != "virtual":
                sys.exit("this is a CUDA GPU: name a file for its values, --gpu h100.json")
            merge(claims, run)
            print("\n".join(rows(run)), flush=True)
            # After each lesson, so that an interrupt loses only one lesson.
            write(options.out, gpus, claims)
    print("\n".join(side_by_side(claims, tuple(options.lessons))))


def record_gpu(out: Path, lessons: Sequence[str]) -> None:
    """Run lessons on the CUDA GPU, and write the value of each claim into a file after each."""
    content = json.loads(out.read_text("utf-8")) if out.exists() else {"schema": GPU_SCHEMA}
    for source in chosen(lessons):
        runs = content.setdefault("lessons", {})
        if unit_of(source) not in runs:
            run = values_of(source)
            if run["source"] != "measured":
                sys.exit("there is no CUDA GPU here, so there is nothing to record")
            content |= {key: run[key] for key in ("name", "torch", "date")}
            runs[unit_of(source)] = {key: run[key] for key in ("values", "not_right", "errors")}
            out.write_text(f"{json.dumps(content, indent=1)}\n", "utf-8")
            print("\n".join(rows(run)), flush=True)


def take(gpus: dict[str, Any], claims: dict[str, Any], content: Mapping[str, Any]) -> None:
    """Add the values that ``record_gpu`` has written to the saved ones."""
    if content.get("schema") != GPU_SCHEMA:
        sys.exit(f"the file is no recording of claims: its schema is not {GPU_SCHEMA!r}")
    name = content["name"]
    gpus[name] = {key: content[key] for key in ("torch", "date")}
    for run in content["lessons"].values():
        for claim_id, value in run["values"].items():
            if claim_id in stated():
                claims.setdefault(claim_id, {}).setdefault("recorded", {})[name] = value


def write(out: Path, gpus: Mapping[str, Any], claims: Mapping[str, Any]) -> None:
    """Write the file of all values."""
    content = {"schema": SCHEMA, "gpus": gpus, "claims": dict(sorted(claims.items()))}
    out.write_text(f"{json.dumps(content, indent=1)}\n", "utf-8")


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
    """Run a solved lesson in its own kernel; return its GPU, values of claims, and errors."""
    import nbformat

    notebook = solved(source)
    notebook.cells.append(nbformat.v4.new_code_cell(LAST_CELL))
    with tempfile.TemporaryDirectory() as folder:
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        client = client_of(notebook, folder)
        # A cell that fails on a GPU must not cost the values of the cells after it.
        client.allow_errors = True
        client.execute(env=os.environ | {"PYTHONPATH": path})
    outputs = (each for cell in notebook.cells for each in cell.get("outputs", ()))
    errors = [f"{each.ename}: {each.evalue}" for each in outputs if each.output_type == "error"]
    return values_in(notebook) | {"errors": errors}


def values_in(notebook: "NotebookNode") -> dict[str, Any]:
    """Return what the last cell of a notebook, :data:`LAST_CELL`, has printed."""
    text: str = notebook.cells[-1].outputs[-1].text
    values: dict[str, Any] = json.loads(text.removeprefix(_MARK))
    return values


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
        claim = saved.get(name, {})
        if not claim.get("times_cpu", False):
            expected = claim.get("virtual")
            if not _is_near(value, expected):
                lines.append(f"{name}: {value!s} now, {expected!s} saved")
    return lines


def _is_near(value: float | str, expected: float | str | None) -> bool:
    if isinstance(value, str) or isinstance(expected, str) or expected is None:
        return value == expected
    return math.isclose(value, expected, rel_tol=TOLERANCE)


def merge(claims: dict[str, Any], run: Mapping[str, Any]) -> None:
    """Add the values of one run on the virtual GPU to the saved ones."""
    for name, value in run["values"].items():
        claims.setdefault(name, {})["virtual"] = value


def rows(run: Mapping[str, Any]) -> list[str]:
    """Return a line for each value, each exercise that is not right, and each error."""
    gpu = f"{run['name']}, {run['source']}"
    lines = [f"{name:<32}{value!s:<24}{gpu}" for name, value in run["values"].items()]
    wrong = [f"{name:<32}NOT RIGHT" for name in run.get("not_right", ())]
    return [*lines, *wrong, *(f"ERROR: {error}" for error in run.get("errors", ()))]


def side_by_side(claims: Mapping[str, Any], lessons: tuple[str, ...]) -> list[str]:
    """Return a line for each claim: its value and whether it holds, on each GPU."""
    known = stated()
    gpus = sorted({name for saved in claims.values() for name in saved.get("recorded", ())})
    lines = ["".join(f"{head:<32}" for head in ("claim", "virtual", *gpus)).rstrip()]
    for name, saved in sorted(claims.items()):
        if not lessons or name.startswith(lessons):
            values = [saved.get("virtual"), *map(saved.get("recorded", {}).get, gpus)]
            shown = "".join(f"{_shown(known[name], value):<32}" for value in values)
            lines.append(f"{name:<32}{shown}".rstrip())
    return lines


def _shown(claim: Claim, value: float | str | None) -> str:
    if value is None:
        return "-"
    number = value if isinstance(value, str) else f"{value:.4g} {claim.unit}".strip()
    return f"{number}: {'holds' if claim.holds(value) else 'FAILS'}"


if __name__ == "__main__":
    sys.exit(main())
