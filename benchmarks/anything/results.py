"""Measure each example with ``gpulab.measure``, and compare with the driver's own records."""

import json
import time
from pathlib import Path
from typing import Any

from benchmarks.anything.examples import EXAMPLES, Example
from benchmarks.common.environment import gpu_in_use, provenance
from benchmarks.common.markdown import put_between_markers, source, table
from benchmarks.common.referee import READ, Referee
from benchmarks.common.tool import default_tool, described, judged

_HEAD = ("work", "kernels and copies", "`gpulab.measure`", "the driver's records")


def run(out: Path, *, virtual: bool) -> None:
    """Measure every example on the GPU in use, and write the results after each."""
    with gpu_in_use(virtual=virtual):
        found: dict[str, Any] = {"provenance": provenance()}
        for example in EXAMPLES.values():
            found[example.__name__] = said = compared(example)
            print(f"{example.__name__}: {said}", flush=True)
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


def compared(example: Example) -> dict[str, Any]:
    """Return the answer of ``gpulab.measure``, with the referee's readings before and after."""
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


def report(results: Path, page: Path | None) -> None:
    """Print the table, or put it into the page."""
    text = as_markdown(json.loads(results.read_text("utf-8")))
    if page is None:
        print(text)
    else:
        put_between_markers(page, "anything", text)


def as_markdown(found: dict[str, Any]) -> str:
    """Return the table of all examples, and where its figures come from."""
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
