"""Six programs of the clinic that give a wrong value, or never end."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gpulab.core.errors import CutOffError
from gpulab.core.torch_private import spin
from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Diagnosis, HiddenWork, Mended, MendedTrial
from gpulab.exercises.lesson_13._cut_off import few_polls
from gpulab.exercises.lesson_13._works import batches, filler, kernel, numbers, slow_double

if TYPE_CHECKING:
    from torch import Tensor

Double = Callable[["Tensor"], "Tensor"]
_BUSY_CYCLES = 4_000_000


# For programs in which a wrong value has only one likely cause.
def _any_value(_trial: MendedTrial) -> bool:
    return True


def _is_number(trial: MendedTrial) -> bool:
    return all(isinstance(value, float | int) for value in trial.values)


def _sum_of_double(x: "Tensor", double: Double) -> float:
    return float(double(x).sum())


def _busy_numbers(n: int) -> "tuple[Tensor]":
    # This keeps the copy in the queue, so that a host that does not wait reads too early.
    x = numbers(n)
    spin(_BUSY_CYCLES)
    return (x.add_(1),)


READ_TOO_EARLY = Exercise(
    "13.read-too-early",
    "Mend the program that reads a copy before it has arrived.",
    Mended(
        signature="mended(x)",
        returns="the sum of the host's copy of x, as a number",
        why="The host waits for the copy before it reads the memory.",
        works=(
            HiddenWork("1,000 numbers", lambda: _busy_numbers(1000)),
            HiddenWork("500 numbers", lambda: _busy_numbers(500)),
        ),
        right=lambda x: float(x.cpu().sum()),
        mistakes=(
            (
                _is_number,
                Diagnosis(
                    "not-arrived",
                    "The host reads its memory while the copy is still in the queue: "
                    "non_blocking=True does not wait. Wait for the GPU before you read.",
                ),
            ),
        ),
        show=repr,
        tolerance=1e-6,
    ),
    hints=("When does a copy with non_blocking=True return?", "synchronize() before the sum."),
)

_NO_ORDER = (
    (
        _is_number,
        Diagnosis(
            "no-order",
            "The sum still runs before the other stream has written the numbers. Let the current "
            "stream wait for the other one, after the work there was launched.",
        ),
    ),
)
_DOUBLE_WORKS = (
    HiddenWork("1,000 numbers", lambda: (numbers(), slow_double)),
    HiddenWork("300 numbers", lambda: (numbers(300), slow_double)),
)

TWO_STREAMS = Exercise(
    "13.two-streams",
    "Mend the program whose two streams are in no order.",
    Mended(
        signature="mended(x, double)",
        returns="the sum of double(x), which runs in a stream of its own, as a number",
        why="The current stream waits for the other one, so the sum reads what was written.",
        works=_DOUBLE_WORKS,
        right=_sum_of_double,
        mistakes=_NO_ORDER,
        show=repr,
        tolerance=1e-6,
    ),
    hints=(
        "What orders the sum after the kernel in the other stream?",
        "torch.cuda.current_stream().wait_stream(side), after the block.",
    ),
)

WAIT_BEFORE_RECORD = Exercise(
    "13.wait-before-record",
    "Mend the program that waits for an event too soon.",
    Mended(
        signature="mended(x, double)",
        returns="the sum of double(x), which runs in a stream of its own, as a number",
        why="The event is recorded first, so the wait has something to wait for.",
        works=_DOUBLE_WORKS,
        right=_sum_of_double,
        mistakes=_NO_ORDER,
        show=repr,
        tolerance=1e-6,
    ),
    hints=(
        "What does waiting for an event do that nobody has recorded yet?",
        "Move the wait to a place after done.record(side).",
    ),
)


def _freed_works() -> tuple[HiddenWork, ...]:
    return tuple(
        HiddenWork(f"{n:,} numbers", lambda n=n: (numbers(n), slow_double))  # type: ignore[misc]  # n is bound here
        for n in (1000, 2000)
    )


FREED = Exercise(
    "13.freed",
    "Mend the program whose memory is given away too early.",
    Mended(
        signature="mended(x, double)",
        returns="double(x + 1), computed in a stream of its own, as a tensor",
        why="The memory stays in use until the other stream has read it.",
        works=_freed_works(),
        right=lambda x, double: double(x + 1),
        mistakes=(
            (
                _any_value,
                Diagnosis(
                    "memory-reused",
                    "The other stream still reads the numbers of somebody else: the memory of "
                    "temporary went to the next tensor. Say that the stream uses it, with "
                    "temporary.record_stream(side), or keep it until the streams have met.",
                ),
            ),
        ),
        show=lambda value: f"a tensor that begins with {value[:3].tolist()}",
    ),
    hints=(
        "Who gets the memory of temporary after del?",
        "temporary.record_stream(side) before the del.",
    ),
)


def _busy_batches(n_batches: int) -> "tuple[list[Tensor]]":
    spin(_BUSY_CYCLES)
    # The copies wait behind the kernel, so that a buffer that is refilled too early shows.
    return (batches(n_batches),)


def _uploaded(given: "Sequence[Tensor]") -> "Tensor":
    import torch

    return torch.stack([batch.to("cuda") for batch in given])


REFILLED = Exercise(
    "13.refilled",
    "Mend the program that refills a buffer too early.",
    Mended(
        signature="mended(batches)",
        returns="all batches on the GPU, stacked into one tensor",
        why="The host writes into the pinned buffer when its last copy is done.",
        works=(
            HiddenWork("5 batches", lambda: _busy_batches(5)),
            HiddenWork("3 batches", lambda: _busy_batches(3)),
        ),
        right=_uploaded,
        mistakes=(
            (
                _any_value,
                Diagnosis(
                    "refilled",
                    "The host still writes the next batch into the pinned buffer while the copy "
                    "of the last one waits in the queue. Wait for that copy first.",
                ),
            ),
        ),
        show=lambda value: f"the first numbers {value[:, 0].tolist()}",
    ),
    hints=(
        "The GPU is busy. When do the copies run, and what is in the buffer then?",
        "torch.cuda.synchronize() before you write, or an event for each copy.",
    ),
)


def _fillers(first: Callable[[], object], fill: Callable[[], object]) -> int:
    import torch

    n_fillers = 0
    first()
    done = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch's gap
    done.record()
    while not done.query():  # type: ignore[no-untyped-call]  # torch's gap
        fill()
        n_fillers += 1
    return n_fillers


ENDLESS = Exercise(
    "13.endless",
    "Mend the program that never ends.",
    Mended(
        signature="mended(first, fill)",
        returns="how many times fill() was launched while first() was not done",
        why="The event marks the end of first(), and nothing moves it.",
        works=(
            HiddenWork("a first kernel of 2 ms", lambda: (kernel(2.0), filler)),
            HiddenWork("a first kernel of 4 ms", lambda: (kernel(4.0), filler)),
        ),
        right=_fillers,
        mistakes=(
            (
                lambda trial: all(value == 0 for value in trial.values),
                Diagnosis(
                    "never-recorded",
                    "It never launched fill(): query() of an event that was not recorded is True.",
                ),
            ),
        ),
        show=repr,
        # How often it is launched depends on how fast the host asks.
        tolerance=0.3,
        errors=(
            (
                CutOffError,
                Diagnosis(
                    "endless",
                    "It was cut off: each time the event is recorded again, after more work. "
                    "Record it once, right after first().",
                ),
            ),
        ),
        around=few_polls,
    ),
    hints=("After which work does the event stand in each round?", "Record it before the loop."),
)

ORDER_MISTAKES = (READ_TOO_EARLY, TWO_STREAMS, WAIT_BEFORE_RECORD, FREED, REFILLED, ENDLESS)
