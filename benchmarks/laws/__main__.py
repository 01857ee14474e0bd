"""Check the laws of the virtual GPU over random programs, and print the smallest that break one.

    python -m benchmarks.laws --programs 5000 --seed 1
    python -m benchmarks.laws --programs 200 --seed 7 --law 1 2
    python -m benchmarks.laws --programs 50 --seed 1 --device cuda

A law that takes long is tried on a part of the programs. Each program that breaks a law is shrunk
and printed as Python. Ctrl-C ends the benchmark; it prints what it has found so far. The exit code
is 1 if a law is broken.
"""

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
    from benchmarks.laws.campaign import Count, try_laws
    from benchmarks.laws.laws import LAWS
    from benchmarks.laws.readings import CUDA, VIRTUAL
    from gpulab.core.progress import Bar

    parser = parser_of("benchmarks.laws", __doc__)
    parser.add_argument("--programs", type=int, default=200, help="how many (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first one (default: 1)")
    parser.add_argument(
        "--law", type=int, nargs="+", choices=LAWS, default=[*LAWS], help="numbers"
    )
    parser.add_argument("--device", choices=("virtual", "cuda"), default="virtual")
    options = parser.parse_args(arguments)
    is_virtual = options.device == "virtual"
    laws = [
        law
        for number, law in LAWS.items()
        if number in options.law and (is_virtual or law.is_hardware_s)
    ]
    counts: dict[int, Count] = {}
    gpu = VIRTUAL if is_virtual else CUDA
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
