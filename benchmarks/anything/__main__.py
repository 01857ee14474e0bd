"""Measure the examples of docs/measuring-anything.md beside the driver's own records.

    python -m benchmarks.anything run
    python -m benchmarks.anything report --write docs/measuring-anything.md

run     measures each example and reads the driver's records before and after; --virtual tries
        the examples that can run on the virtual GPU.
report  puts the results of the last run into the page.
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import RESULTS
from benchmarks.common.markdown import put_between_markers, source, table

if TYPE_CHECKING:
    from benchmarks.anything.examples import Example

_RESULTS = RESULTS / "accuracy-anything-h200.json"
_HEAD = ("work", "kernels and copies", "`gpulab.measure`", "the driver's records")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    made = parser_of("benchmarks.anything", __doc__)
    commands = made.add_subparsers(required=True)
    run = commands.add_parser("run", help="measure every example")
    run.add_argument("--out", type=Path, default=_RESULTS, help="file of results")
    run.add_argument("--virtual", action="store_true", help="run on the virtual H200")
    run.set_defaults(command=_run)
    report = commands.add_parser("report", help="make the table")
    report.add_argument("--results", type=Path, default=_RESULTS, help="file of results")
    report.add_argument("--write", type=Path, default=None, help="page to update")
    report.set_defaults(command=_report)
    options = made.parse_args(arguments)
    options.command(options)


def _run(options: argparse.Namespace) -> None:
    """Measure every example on the GPU in use, and write the results after each."""
    from benchmarks.anything.examples import EXAMPLES
    from benchmarks.common.environment import gpu_in_use, provenance

    with gpu_in_use(virtual=options.virtual):
        found: dict[str, Any] = {"provenance": provenance()}
        for example in EXAMPLES.values():
            found[example.__name__] = said = compared(example)
            print(f"{example.__name__}: {said}", flush=True)
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


def compared(example: "Example") -> dict[str, Any]:
    """Return the answer of ``gpulab.measure``, with the referee's readings before and after."""
    from benchmarks.common.referee import READ, Referee
    from benchmarks.common.tool import default_tool, described, judged

    tool = default_tool()
    try:
        with example() as work:
            referee = Referee(work)
            before = referee.read(READ)
            start_s = time.perf_counter()
            answer = tool.ask(work)
            wall_s = time.perf_counter() - start_s
            after = referee.read(READ)
    except Exception as error:  # noqa: BLE001 # the other examples go on
        return {"error": described(error)}
    said = judged(tool, answer, before, after)
    return said | {"n_records": after.n_records, "wall_s": round(wall_s, 4)}


def _report(options: argparse.Namespace) -> None:
    text = as_markdown(json.loads(options.results.read_text("utf-8")))
    if options.write is None:
        print(text)
    else:
        put_between_markers(options.write, "anything", text)


def as_markdown(found: dict[str, Any]) -> str:
    """Return the table of all examples, and where its figures come from."""
    from benchmarks.anything.examples import EXAMPLES

    rows = [
        _cells(title, found.get(example.__name__, {"error": "not run"}))
        for title, example in EXAMPLES.items()
    ]
    return "\n".join([*table(_HEAD, rows), "", source(found["provenance"])])


def _cells(title: str, said: dict[str, Any]) -> list[str]:
    if "error" in said:
        return [title, "", f"no answer: {said['error']}", ""]
    interval = f"[{said['low_us']:.2f}, {said['high_us']:.2f}]"
    return [
        title,
        str(said["n_records"]),
        f"{said['us']:.2f} µs {interval}",
        f"{said['referee_us']:.2f} µs",
    ]


if __name__ == "__main__":
    main()
