"""Record a CUDA GPU, and compare the virtual GPU with the recording.

    python -m benchmarks.fidelity record --out h200.json
    python -m benchmarks.fidelity compare --recording h200.json --write docs/fidelity.md
    python -m benchmarks.fidelity fit
    python -m benchmarks.fidelity structure --out h100-structure.json

record   times the workloads of the recordings and 19 programs on the GPU in use, in about four
         minutes; it changes no setting of the GPU. --role unseen times the workloads of one role
         only.
compare  runs the same on the virtual GPU and prints both side by side; --write makes a page.
fit      fits the surfaces of efficiencies to recordings and writes them where gpulab reads them,
         in about ten minutes; --nested chooses the scales of the coordinates in each fold again,
         and takes forty.
structure  writes what does not depend on speed: the profiler's rows and events of small programs,
         and which programs a CUDA graph can capture; about three minutes.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import RECORDINGS
from benchmarks.fidelity.workload import EARLIER, FIT, HELD_OUT, UNSEEN

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

# Without the last two draws: a model that was fitted to them could not be examined with them.
_FITTED_TO = (
    *("h200-dense", "h200-focused", "h200-wide"),
    *("h200", "h200-earlier", "h200-earlier-2"),
)
# Without the three with thousands of random calls, which would bury the page.
_COMPARED = ("h200", "h200-unseen", "h200-earlier", "h200-earlier-2", "h200-earlier-3")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    options = parser().parse_args(arguments)
    options.command(options)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.fidelity", __doc__)
    commands = made.add_subparsers(required=True)
    _add_record(commands)
    _add_compare(commands)
    _add_fit(commands)
    _add_structure(commands)
    return made


def _add_record(commands: "Commands") -> None:
    record = commands.add_parser("record", help="time the GPU in use")
    record.add_argument("--out", type=Path, default=Path("recording.json"))
    record.add_argument("--quick", action="store_true", help="two repetitions of everything")
    record.add_argument("--virtual", metavar="GPU", help="a virtual GPU instead, e.g. H200")
    record.add_argument("--max-time", type=float, default=225.0, help="start nothing after (s)")
    _add_choice(record)
    record.set_defaults(command=_record)


def _add_compare(commands: "Commands") -> None:
    compare = commands.add_parser("compare", help="compare the virtual GPU with recordings")
    compare.add_argument("--recording", type=Path, nargs="+", default=_recordings(_COMPARED))
    compare.add_argument("--gpu", default="H200", help="the virtual GPU, by its short name")
    compare.add_argument("--write", type=Path, help="make a page in Markdown")
    _add_choice(compare)
    compare.set_defaults(command=_compare)


def _add_choice(command: argparse.ArgumentParser) -> None:
    roles = (FIT, HELD_OUT, UNSEEN, EARLIER)
    command.add_argument("--only", default="", help="only names that contain this")
    command.add_argument("--role", default="", choices=roles, help="only workloads of this role")


def _add_fit(commands: "Commands") -> None:
    fit = commands.add_parser("fit", help="fit the model to recordings")
    fit.add_argument("--recording", type=Path, nargs="+", default=_recordings(_FITTED_TO))
    fit.add_argument("--out", type=Path, default=None, help="default: where gpulab reads it")
    fit.add_argument("--nested", action="store_true", help="choose the scales in each fold")
    fit.set_defaults(command=_fit)


def _add_structure(commands: "Commands") -> None:
    structure = commands.add_parser("structure", help="profiler tables, and what can be captured")
    structure.add_argument("--out", type=Path, default=Path("structure.json"))
    structure.add_argument("--virtual", default="", metavar="GPU", help="a virtual GPU instead")
    structure.add_argument("--only", default="", help="only tables whose names contain this")
    structure.set_defaults(command=_structure)


def _recordings(names: Sequence[str]) -> list[Path]:
    return [RECORDINGS / f"{name}.json" for name in names]


def _record(options: argparse.Namespace) -> None:
    import torch

    from benchmarks.fidelity.recorded import calls
    from benchmarks.fidelity.recording import Recorder, real, virtual

    if not options.virtual and not torch.cuda.is_available():
        raise SystemExit("there is no CUDA GPU here; --virtual H200 reads a virtual one instead")
    Recorder(
        [workload for path in _recordings(_COMPARED) for workload, _, _ in calls(path)],
        virtual(options.virtual) if options.virtual else real(quick=options.quick),
        "virtual" if options.virtual else "measured",
        options.only,
        options.role,
        out=options.out,
        deadline_s=time.perf_counter() + options.max_time,
    ).record()


def _compare(options: argparse.Namespace) -> None:
    from benchmarks.fidelity.page import page
    from benchmarks.fidelity.recorded import calls
    from benchmarks.fidelity.recording import Recorder, chosen_of, read, virtual
    from benchmarks.fidelity.table import table

    recorded = chosen_of(read(options.recording), options.only, options.role)
    workloads = [workload for path in options.recording for workload, _, _ in calls(path)]
    quick = virtual(options.gpu, max_value_elements=0)
    computed = Recorder(
        workloads, virtual(options.gpu), "virtual", options.only, options.role, quick_bench=quick
    ).record()
    print(table(recorded, computed))
    if options.write:
        options.write.write_text(page(recorded, computed), "utf-8")


def _fit(options: argparse.Namespace) -> None:
    from benchmarks.fidelity.fit import run

    run(options.recording, options.out, is_nested=options.nested)


def _structure(options: argparse.Namespace) -> None:
    from benchmarks.fidelity.structure import write

    write(options.out, options.virtual, options.only)


if __name__ == "__main__":
    main()
