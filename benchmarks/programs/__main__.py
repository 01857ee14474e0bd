"""Run other people's unmodified programs on the virtual GPU and on the CPU, and compare.

    python -m benchmarks.programs run FOLDER --out programs.json
    python -m benchmarks.programs run FOLDER --names MNIST "GPT from the video" --show
    python -m benchmarks.programs report programs.json --write docs/virtual-gpu.md
    python -m benchmarks.programs blind --seed 7 --out virtual.json --gpu H100
    python -m benchmarks.programs blind --seed 7 --out h100.json
    python -m benchmarks.programs compare h100.json virtual.json

FOLDER contains the repositories of catalogue.py, each in a folder owner+name, at the commit that
is given there. Do not add their files to this project. Programs that need torchvision or another
package are left out where it is not installed.

run     starts each program in its own processes and folders, and compares the values that it
        calls backward() on.
report  prints the table, or puts it into a page.
blind   reads 30 whole models of torchvision, transformers and timm that the seed draws: busy time,
        kernels and memory of a step. Read the virtual GPU first, and keep the digest: then the
        examination is blind. Host times change with what else the machine does: read them again
        with --host-only.
compare prints the errors of the virtual values.
"""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.command_line import call_command, parser_of


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    parser = parser_of("benchmarks.programs", __doc__)
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="run the programs")
    run.add_argument("folder", type=Path, help="folder of the repositories")
    run.add_argument("--names", nargs="+", default=[], help="programs; default: all")
    run.add_argument("--workers", type=int, default=2, help="programs at once")
    run.add_argument("--limit-s", type=float, default=180, help="seconds for one program")
    run.add_argument("--out", type=Path, default=None, help="file of outcomes")
    run.add_argument("--alone", action="store_true", help="run on the virtual GPU only")
    run.add_argument("--show", action="store_true", help="print what the programs print")
    run.set_defaults(command="benchmarks.programs.run:run")
    report = commands.add_parser("report", help="print the table")
    report.add_argument("outcomes", type=Path, help="file that run has written")
    report.add_argument("--write", type=Path, default=None, help="page to update")
    report.set_defaults(command="benchmarks.programs.run:report")
    blind = commands.add_parser("blind", help="read whole models that a seed draws")
    blind.add_argument("--seed", type=int, required=True, help="draws the programs")
    blind.add_argument("--out", type=Path, required=True, help="file of readings")
    blind.add_argument("--gpu", default="", help="virtual GPU; default: the CUDA GPU")
    blind.add_argument("--workers", type=int, default=2, help="virtual programs at once")
    blind.add_argument("--host-only", action="store_true", help="read no records: only host times")
    blind.add_argument("--limit-s", type=float, default=150, help="start no program later")
    blind.set_defaults(command="benchmarks.programs.blind:examine")
    compare = commands.add_parser("compare", help="print the errors of virtual readings")
    compare.add_argument("recorded", type=Path, help="readings of the CUDA GPU")
    compare.add_argument("virtual", type=Path, help="readings of the virtual GPU")
    compare.set_defaults(command="benchmarks.programs.blind:compare")
    call_command(parser, arguments)


if __name__ == "__main__":
    main()
