"""How near to the truth are gpulab and the tools of others? Ask the driver's own records.

``python benchmarks/accuracy.py run`` times some sixty cases with every tool that can be found, on
the GPU in use, and reads the driver's records before and after each answer in the same state of
the cache; it takes about six minutes and changes no setting of the GPU. ``--deadline 300`` ends
in time. ``--virtual`` tries the script on the virtual GPU, which judges nothing.
``python benchmarks/accuracy.py report --write README.md`` makes the table and the figure of it.
"""

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.environment import gpu_in_use

RESULTS = Path(__file__).parents[1] / "results" / "accuracy-h200.json"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    options = _parser().parse_args(arguments)
    warnings.simplefilter("ignore")  # tools warn of what is meant here
    options.command(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="judge every tool by every case")
    run.add_argument("--out", type=Path, default=RESULTS)
    run.add_argument("--virtual", action="store_true", help="on the virtual H200")
    run.add_argument("--deadline", type=float, default=600.0, help="seconds in all")
    run.add_argument("--cases", type=int, default=None, help="only so many of the cases")
    run.add_argument("--processes", type=int, default=20, help="so many fresh processes")
    run.add_argument("--nvbench", type=int, default=12, help="so many cases for NVBench")
    run.set_defaults(command=_run)
    report = commands.add_parser("report", help="make the table and the figure")
    report.add_argument("--results", type=Path, default=RESULTS)
    report.add_argument("--write", type=Path, default=None, help="page with the two markers")
    report.add_argument("--image", type=Path, default=None, help="where the figure goes")
    report.set_defaults(command=_report)
    check = commands.add_parser("check", help="check the catalogue against float64")
    check.set_defaults(command=_check)
    # The other processes that a run starts.
    worker = commands.add_parser("worker")
    worker.set_defaults(command=_worker)
    process = commands.add_parser("process")
    process.add_argument("--virtual", action="store_true")
    process.set_defaults(command=_process)
    nvbench = commands.add_parser("nvbench")
    nvbench.add_argument("--cases", type=int, required=True)
    nvbench.add_argument("--out", type=Path, required=True)
    nvbench.set_defaults(command=_nvbench)
    return parser


def _run(options: argparse.Namespace) -> None:
    from benchmarks.accuracy.session import run

    run(
        options.out,
        virtual=options.virtual,
        limit_s=options.deadline,
        n_cases=options.cases,
        n_processes=options.processes,
        n_nvbench=options.nvbench,
    )


def _report(options: argparse.Namespace) -> None:
    from benchmarks.accuracy.report import write

    write(options.results, options.write, options.image)


def _check(_options: argparse.Namespace) -> None:
    from gpulab.workloads import WORKLOADS

    for listed in WORKLOADS.values():
        for dtype in listed.dtypes:
            print(f"{listed.name} {dtype}: {listed.check(dtype=dtype)}", flush=True)


def _worker(_options: argparse.Namespace) -> None:
    from benchmarks.accuracy.worker import serve

    serve()


def _process(options: argparse.Namespace) -> None:
    from benchmarks.accuracy.processes import serve

    with gpu_in_use(virtual=options.virtual):
        serve()


def _nvbench(options: argparse.Namespace) -> None:
    from benchmarks.accuracy.nvbench import NAMES, run

    run(NAMES[: options.cases], options.out)


if __name__ == "__main__":
    main()
