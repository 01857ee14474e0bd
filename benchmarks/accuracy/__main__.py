"""Compare gpulab and other people's tools with the driver's own records.

    python -m benchmarks.accuracy run
    python -m benchmarks.accuracy summary
    python -m benchmarks.accuracy report --write docs/accuracy.md
    python -m benchmarks.accuracy examples --write docs/measuring-anything.md

run       times some sixty cases with every tool that can be found, on the GPU in use, and reads
          the driver's records before and after each answer in the same state of the cache. It
          takes about six minutes and changes no setting of the GPU. --deadline 300 ends it within
          300 s; --virtual tries the program on the virtual GPU, and its figures mean nothing.
summary   prints the goals of gpulab.measure beside what a run measured.
report    makes the tables and the figure from the results of a run.
examples  measures work that is not plain PyTorch in the same way: CuPy, Triton, a CUDA graph and a
          training step, as docs/measuring-anything.md shows them.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.command_line import call_command, parser_of
from benchmarks.common.folders import RESULTS

# The default, so that `report` makes the page again from the results in the repository, without a
# GPU.
_RESULTS = RESULTS / "accuracy-h200.json"
_OF_EXAMPLES = RESULTS / "accuracy-anything-h200.json"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    parser = parser_of("benchmarks.accuracy", __doc__)
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="compare every tool with the driver's records")
    run.add_argument("--out", type=Path, default=_RESULTS, help="file of results")
    run.add_argument("--virtual", action="store_true", help="run on the virtual H200")
    run.add_argument("--deadline", type=float, default=600.0, help="time limit in seconds")
    run.add_argument("--cases", type=int, default=None, help="number of cases; default: all")
    run.add_argument("--processes", type=int, default=20, help="number of fresh processes")
    run.add_argument(
        "--tools", nargs="+", default=("",), help="only tools whose names begin with one of these"
    )
    run.set_defaults(command="benchmarks.accuracy.run:run")
    summary = commands.add_parser("summary", help="print the goals and what was measured")
    summary.add_argument("--results", type=Path, default=_RESULTS, help="file of results")
    summary.set_defaults(command="benchmarks.accuracy.report:print_goals")
    report = commands.add_parser("report", help="make the tables and the figure")
    report.add_argument("--results", type=Path, default=_RESULTS, help="file of results")
    report.add_argument("--write", type=Path, default=None, help="page to update")
    report.add_argument("--image", type=Path, default=None, help="file of the figure")
    report.set_defaults(command="benchmarks.accuracy.report:write_report")
    examples = commands.add_parser("examples", help="measure the examples of a page")
    examples.add_argument("--out", type=Path, default=_OF_EXAMPLES, help="file of results")
    examples.add_argument("--virtual", action="store_true", help="run on the virtual H200")
    examples.add_argument("--write", type=Path, default=None, help="page to update")
    examples.set_defaults(command="benchmarks.accuracy.examples:run")
    warnings.simplefilter("ignore")  # the tools warn of conditions that this creates on purpose
    call_command(parser, arguments)


if __name__ == "__main__":
    main()
