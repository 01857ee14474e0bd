"""Run every operator of PyTorch's own test database on the virtual GPU and the CPU, and compare.

    python -m benchmarks.operators run --write docs/virtual-gpu.md
    python -m benchmarks.operators run --names addmm softmax --dtypes float16
    python -m benchmarks.operators errors --out errors.json

run     tries each operator with the database's own samples: as a function, in place, with out=,
        and backward, in each type that a GPU supports. With --extreme some values are huge, nan or
        out of range, and the virtual GPU must return what the CPU returns, nan, or an error. It
        counts the outcomes, and lists what differs, crashes or is refused. Use several cores by
        starting it several times with other --dtypes.
errors  makes wrong calls, and tells whether the error comes at the line of the call: the error
        inputs of the database, each operator with each type, and the lines of ``wrong_calls``.

The database comes with PyTorch and needs the package expecttest.
"""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.command_line import call_command, parser_of

DEVICES = ("virtual", "virtual-without-values", "cuda")
KINDS = ("database", "modules", "written", "types")
DTYPES = ("float32", "float16", "bfloat16", "complex64", "int64", "bool")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    parser = parser_of("benchmarks.operators", __doc__)
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="try the operators")
    run.add_argument("--names", nargs="+", default=[], help="operators; default: all")
    run.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES, help="data types")
    run.add_argument("--samples", type=int, default=8, help="samples of each operator and type")
    run.add_argument("--write", type=Path, default=None, help="page to update")
    run.add_argument("--extreme", action="store_true", help="try extreme and wrong values instead")
    run.set_defaults(command="benchmarks.operators.sweep:print_outcomes")
    errors = commands.add_parser("errors", help="make wrong calls")
    errors.add_argument("--device", choices=DEVICES, default="virtual", help="where")
    errors.add_argument("--out", type=Path, default=None, help="file of outcomes")
    errors.set_defaults(command="benchmarks.operators.wrong_inputs_run:run")
    errors.add_argument("--names", nargs="+", default=[], help="operators; default: all")
    errors.add_argument(
        "--kinds", nargs="+", choices=KINDS, default=KINDS, help="calls; default: all"
    )
    call_command(parser, arguments)


if __name__ == "__main__":
    main()
