"""Compare the virtual GPU with recordings of a real one, and fit it to them.

    python -m benchmarks.fidelity compare --write docs/fidelity.md
    python -m benchmarks.fidelity fit

compare  times the workloads of the recordings and 19 programs on the virtual GPU, and prints both
         sides; --write makes a page.
fit      fits the surfaces of efficiencies to recordings and writes them where gpulab reads them,
         in about ten minutes; --keep-scales computes the weights again and leaves the scales of
         the coordinates, after a change of the roofline.
"""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.command_line import call_command, parser_of
from benchmarks.common.folders import RECORDINGS
from benchmarks.fidelity.workload import EARLIER, FIT, HELD_OUT, UNSEEN

# Without the last two draws: a model that was fitted to them could not be examined with them.
_FITTED_TO = (
    *("h200-dense", "h200-focused", "h200-wide"),
    *("h200", "h200-earlier", "h200-earlier-2"),
)
# Without the three with thousands of random calls, which would bury the page.
_COMPARED = ("h200", "h200-unseen", "h200-earlier", "h200-earlier-2", "h200-earlier-3")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    parser = parser_of("benchmarks.fidelity", __doc__)
    commands = parser.add_subparsers(required=True)
    compare = commands.add_parser("compare", help="compare the virtual GPU with recordings")
    compare.add_argument("--recording", type=Path, nargs="+", default=_recordings(_COMPARED))
    compare.add_argument("--gpu", default="H200", help="the virtual GPU, by its short name")
    compare.add_argument("--write", type=Path, help="make a page in Markdown")
    roles = (FIT, HELD_OUT, UNSEEN, EARLIER)
    compare.add_argument("--only", default="", help="only names that contain this")
    compare.add_argument("--role", default="", choices=roles, help="only workloads of this role")
    compare.set_defaults(command="benchmarks.fidelity.page:compare")
    fit = commands.add_parser("fit", help="fit the model to recordings")
    fit.add_argument("--recording", type=Path, nargs="+", default=_recordings(_FITTED_TO))
    fit.add_argument("--out", type=Path, default=None, help="default: where gpulab reads it")
    fit.add_argument("--keep-scales", action="store_true", help="those of the shipped surfaces")
    fit.set_defaults(command="benchmarks.fidelity.fit:run")
    call_command(parser, arguments)


def _recordings(names: Sequence[str]) -> list[Path]:
    return [RECORDINGS / f"{name}.json" for name in names]


if __name__ == "__main__":
    main()
