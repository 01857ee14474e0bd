"""Check the laws of the virtual GPU over random programs, and print the smallest that break one.

    python -m benchmarks.laws --programs 5000 --seed 1
    python -m benchmarks.laws --programs 200 --seed 7 --law 1,2
    python -m benchmarks.laws --programs 50 --seed 1 --device cuda

A law that takes long is tried on a part of the programs. Each program that breaks a law is shrunk
and printed as Python. Ctrl-C ends the benchmark; it prints what it has found so far. The exit code
is 1 if a law is broken.
"""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.common.command_line import parser_of
from benchmarks.common.markdown import padded_table

if TYPE_CHECKING:
    from benchmarks.laws.campaign import Count
    from benchmarks.laws.laws import Law

_HEAD = ("law", "programs", "broken")
_MOST_SHOWN = 5  # of the programs that break a law


def main(arguments: Sequence[str] | None = None) -> None:
    """Try the laws and print what breaks them."""
    made = parser_of("benchmarks.laws", __doc__)
    made.add_argument("--programs", type=_whole, default=200, help="how many (default: 200)")
    made.add_argument("--seed", type=_whole, default=1, help="seed of the first one (default: 1)")
    made.add_argument("--law", type=_laws, default=None, help="numbers, as in 1,2 (default: all)")
    made.add_argument("--device", choices=("virtual", "cuda"), default="virtual")
    made.set_defaults(command=_try)
    options = made.parse_args(arguments)
    options.command(options)


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number; write one, as in 17")
    return int(text)


def _laws(text: str) -> list[int]:
    from benchmarks.laws.laws import LAWS

    numbers = text.split(",")
    for number in numbers:
        if not number.isdecimal() or int(number) not in LAWS:
            known = ", ".join(map(str, LAWS))
            raise argparse.ArgumentTypeError(
                f"{number!r} is not the number of a law; choose from {known}"
            )
    return [int(number) for number in numbers]


def _try(options: argparse.Namespace) -> None:
    from benchmarks.laws.campaign import Count, try_laws
    from benchmarks.laws.laws import LAWS
    from benchmarks.laws.readings import CUDA, VIRTUAL
    from gpulab.core.progress import Bar

    is_virtual = options.device == "virtual"
    laws = [
        law
        for number, law in LAWS.items()
        if (options.law is None or number in options.law) and (is_virtual or law.is_hardware_s)
    ]
    gpu = VIRTUAL if is_virtual else CUDA
    counts: dict[int, Count] = {}
    tried = try_laws(laws, options.programs, options.seed, gpu, counts)
    bar = Bar(tried, total=options.programs, desc="laws", unit="program", disable=False)
    try:
        for n_broken in bar:
            bar.set_postfix(broken=n_broken, refresh=False)
    except KeyboardInterrupt:
        print("stopped by Ctrl-C; this was found until then")
    _report(laws, counts)


def _report(laws: "Sequence[Law]", counts: "dict[int, Count]") -> None:
    rows = [
        (f"{law.number}. {law.text}", str(count.n_programs), str(len(count.breaks)))
        for law in laws
        for count in [counts[law.number]]
    ]
    print("\n".join(padded_table(_HEAD, rows)))
    breaks = [item for count in counts.values() for item in count.breaks[:_MOST_SHOWN]]
    for item in breaks:
        print(f"\nLaw {item.law.number}, {item.program.name}: {item.what}\n{item.program.text()}")
    if breaks:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
