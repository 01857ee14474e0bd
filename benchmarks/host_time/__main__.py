"""Fit the costs that the virtual GPU charges the host between launches to recorded programs.

    python -m benchmarks.host_time
    python -m benchmarks.host_time --write

It prints the costs before and after, and how well each program's time follows from a fit without
it; --write writes the costs to gpulab/data. Each file of times has a host of its own; how much
slower the others are than the first is fitted, too. Without a file it takes the recordings of the
repository. The programs of the H100's need torchvision and transformers.
"""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import RECORDINGS

_H200, _H100 = (RECORDINGS / f"{gpu}-host-time.json" for gpu in ("h200", "h100"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit the costs, and print them."""
    parser = parser_of("benchmarks.host_time", __doc__)
    parser.add_argument(
        "times", type=Path, nargs="*", default=[_H200, _H100], help="files of times"
    )
    parser.add_argument("--write", action="store_true", help="write the costs to gpulab/data")
    options = parser.parse_args(arguments)
    from benchmarks.host_time.fitting import fit

    print(fit(options.times, is_written=options.write))


if __name__ == "__main__":
    main()
