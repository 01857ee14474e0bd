"""Call every public function with many wrong arguments, and count the outcomes.

    python -m benchmarks.wrong_arguments
    python -m benchmarks.wrong_arguments --only sweeps. --list "raised from inside"

The calls follow from signatures and annotations, see ``tests/support/wrong_arguments.py``; they
are the same in every run. Each callable has its own process on the virtual GPU, so that a call
that never ends costs ``--limit`` seconds and does not disturb the others. Needs Linux or macOS.
"""

import argparse
import contextlib
import itertools
import multiprocessing
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.connection import Connection

import gpulab
from benchmarks.common.command_line import parser_of
from tests.support import wrong_arguments
from tests.support.right_values import make_records
from tests.support.wrong_arguments import OUTCOMES, Call

Result = tuple[Call, str, str]


def results(asked: Iterable[Call], limit_s: float) -> Iterator[Result]:
    """Yield the outcome of each call."""
    for _, group in itertools.groupby(asked, key=lambda call: call.callee):
        pending = list(group)
        while pending:
            done = list(_in_child(pending, limit_s))
            yield from done
            # A call that never ended is the last one of `done`; the next process goes on after it.
            pending = pending[len(done) :]


def _in_child(asked: list[Call], limit_s: float) -> Iterator[Result]:
    """Make calls in a new process, up to the first that does not end in time."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=_make_calls, args=(asked, theirs))
    child.start()
    theirs.close()
    for call in asked:
        try:
            if not ours.poll(limit_s):
                wrong = wrong_arguments.is_wrong(call)
                kind = wrong_arguments.NONSENSE if wrong else wrong_arguments.MEANING
                yield call, kind, f"ran for {limit_s} s and was ended"
                break
            yield call, *ours.recv()
        except EOFError:
            yield call, wrong_arguments.INSIDE, "the process died"
            break
    child.kill()
    child.join()


def _make_calls(asked: list[Call], pipe: Connection) -> None:
    warnings.simplefilter("ignore")
    os.chdir(tempfile.mkdtemp())  # for the files that some of them write
    # On the level of the system: libraries in C print past sys.stdout.
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    chooses = asked[0].callee in {"use", "virtual_gpu", "cluster.local"}
    gpu = contextlib.nullcontext() if chooses else gpulab.virtual_gpu("H200", first_use=False)
    with gpu:
        for call in asked:
            pipe.send(wrong_arguments.outcome(call))


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.wrong_arguments", __doc__)
    made.add_argument("--only", default="", help="only callables whose name starts with this")
    made.add_argument("--every", type=int, default=1, help="make every N-th call")
    made.add_argument("--wrong", action="store_true", help="leave out calls that are valid")
    made.add_argument("--limit", type=float, default=10.0, help="seconds for a call")
    made.add_argument("--list", default="", help="outcomes, separated by commas, to print")
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    asked = parser().parse_args(arguments)
    chosen = [call for call in wrong_arguments.calls() if call.callee.startswith(asked.only)]
    chosen = [call for call in chosen if not asked.wrong or wrong_arguments.is_wrong(call)]
    chosen = chosen[:: asked.every]
    make_records()  # made once, before the processes are forked
    listed = [name.strip() for name in asked.list.split(",") if name.strip()]
    found: Counter[str] = Counter()
    for call, kind, message in results(chosen, asked.limit):
        found[kind] += 1
        if kind in listed:
            print(f"{kind}: {call}: {' '.join(message.split())[:160]}", flush=True)
    n_callables = len({call.callee for call in chosen})
    print(f"{len(chosen)} calls of {n_callables} callables")
    for kind in OUTCOMES:
        print(f"{found[kind]:>6}  {kind}")


if __name__ == "__main__":
    main()
