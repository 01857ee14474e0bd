"""Six programs of the clinic that give a wrong value, or never end."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gpulab.core.errors import CutOffError
from gpulab.core.torch_private import spin
from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import (
    ANY_RACE,
    Diagnosis,
    HiddenWork,
    Mended,
    MendedTrial,
    copies_less,
)
from gpulab.exercises.lesson_13._cut_off import MOST_CALLS
from gpulab.exercises.lesson_13._works import batches, filler, kernel, numbers, slow_double
from gpulab.tracing.trials import Trial, WatchedWork, WorkCall

if TYPE_CHECKING:
    from torch import Tensor

Double = Callable[["Tensor"], "Tensor"]
_BUSY_CYCLES = 4_000_000
_LONG_NS = 1_000_000  # longer than a filler, shorter than first()

_NOT_ARRIVED, _REFILLED = "host read before the copy is done", "host write into a buffer in flight"
_NOT_WRITTEN = "read before the write is done"
_FREED = ("read after free", "write after free")
_WRITES_NEW = ("full", "fill", "ones", "zero", "rand", "Memcpy DtoD")  # kernels, how they begin
_NUMBER_BYTES = 4  # the programs compute in float32
_BATCH_BYTES = 1000 * _NUMBER_BYTES


def _is_input_early(trial: MendedTrial) -> bool:
    """Return whether a side stream reads what the default stream writes without a wait."""
    return any(
        race.kind == _NOT_WRITTEN and race.first.stream == "the default stream"
        for race in trial.races
    )


def _doubles_in_default_stream(trial: MendedTrial) -> bool:
    # slow_double launches a kernel that sleeps; see _works.
    return any(
        record.name == "sleep" and not record.stream
        for records in trial.records
        for record in records
    )


def _drops_other(trial: MendedTrial) -> bool:
    """Return whether a program gives nobody else a tensor in the default stream."""
    return not any(
        record.name.startswith(_WRITES_NEW) and not record.stream for record in trial.records[0]
    )


def _slow_triple(x: "Tensor") -> "Tensor":
    return slow_double(x) + x


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
        why="The sum is right, and gpulab.hazards() finds no race: the host reads its memory when "
        "the copy is done.",
        works=(
            HiddenWork("1,000 numbers", lambda: _busy_numbers(1000)),
            HiddenWork("500 numbers", lambda: _busy_numbers(500)),
        ),
        right=lambda x: float(x.cpu().sum()),
        mistakes=(),
        hidden_mistakes=(
            (
                lambda trial: trial.has_race(_NOT_ARRIVED),
                Diagnosis(
                    "not-arrived",
                    "Nothing makes the host wait for the copy before it reads the memory: "
                    "non_blocking=True does not wait. Wait for the GPU before you read. (A pause, "
                    "such as time.sleep, is no wait.)",
                ),
            ),
            ANY_RACE,
            (
                copies_less("copy out", 1000 * _NUMBER_BYTES, 500 * _NUMBER_BYTES),
                Diagnosis(
                    "not-on-host",
                    "The numbers themselves were not copied to the host. Copy x, and compute the "
                    "sum of the host's copy.",
                ),
            ),
        ),
        show=repr,
        tolerance=1e-6,
    ),
    hints=("When does a copy with non_blocking=True return?", "synchronize() before the sum."),
)

_ONE_STREAM = (
    _doubles_in_default_stream,
    Diagnosis(
        "one-stream",
        "double(...) ran in the default stream. Let it run in a stream of its own.",
    ),
)
_INPUT_EARLY = (
    _is_input_early,
    Diagnosis(
        "input-not-ordered",
        "The other stream reads numbers that the current stream writes, and nothing makes it wait "
        "for them. Let it wait before the work there is launched: side.wait_stream(...).",
    ),
)
_NO_ORDER = (
    _ONE_STREAM,
    _INPUT_EARLY,
    (
        lambda trial: trial.has_race(_NOT_WRITTEN),
        Diagnosis(
            "no-order",
            "Nothing makes the sum wait until the other stream has written the numbers; a pause "
            "is no wait. Let the current stream wait for the other one, after the work there was "
            "launched.",
        ),
    ),
    ANY_RACE,
)
_SUM_IN_TWO_STREAMS = Mended(
    signature="mended(x, double)",
    returns="the sum of double(x), which runs in a stream of its own, as a number",
    why="The sum is right, and gpulab.hazards() finds no race: whoever reads the numbers waits "
    "until they are written.",
    works=(
        HiddenWork("1,000 numbers", lambda: (numbers(), slow_double)),
        # Another function, so that nobody computes the result without it.
        HiddenWork("300 numbers and a double that triples", lambda: (numbers(300), _slow_triple)),
    ),
    right=_sum_of_double,
    mistakes=(),
    hidden_mistakes=_NO_ORDER,
    show=repr,
    tolerance=1e-6,
)

TWO_STREAMS = Exercise(
    "13.two-streams",
    "Mend the program whose two streams are in no order.",
    _SUM_IN_TWO_STREAMS,
    hints=(
        "What orders the sum after the kernel in the other stream?",
        "torch.cuda.current_stream().wait_stream(side), after the block.",
    ),
)

WAIT_BEFORE_RECORD = Exercise(
    "13.wait-before-record",
    "Mend the program that waits for an event too soon.",
    _SUM_IN_TWO_STREAMS,
    hints=(
        "What does waiting for an event do that nobody has recorded yet?",
        "Move the wait to a place after done.record(side).",
    ),
)


FREED = Exercise(
    "13.freed",
    "Mend the program whose memory is given away too early.",
    Mended(
        signature="mended(x, double)",
        returns="double(x + 1), computed in a stream of its own, as a tensor; keep other in the "
        "default stream, which is somebody else's",
        why="The numbers are right, other is still there, and gpulab.hazards() finds no race: "
        "nobody gets the memory before the other stream has read it.",
        works=(
            HiddenWork("1,000 numbers", lambda: (numbers(1000), slow_double)),
            HiddenWork("2,000 numbers", lambda: (numbers(2000), _slow_triple)),
        ),
        right=lambda x, double: double(x + 1),
        mistakes=(),
        hidden_mistakes=(
            _ONE_STREAM,
            (
                lambda trial: trial.has_race(*_FREED),
                Diagnosis(
                    "memory-reused",
                    "The memory of temporary can go to the next tensor while the other stream "
                    "still reads it. Say that the stream uses it, with "
                    "temporary.record_stream(side), or keep it until the streams have met. (A "
                    "pause, such as time.sleep, is no wait.)",
                ),
            ),
            _INPUT_EARLY,
            (
                lambda trial: trial.has_race(_NOT_WRITTEN),
                Diagnosis(
                    "no-order",
                    "Nothing makes the current stream wait for the result, which the other stream "
                    "writes. Let it wait before the result is used or returned.",
                ),
            ),
            ANY_RACE,
            (
                _drops_other,
                Diagnosis(
                    "other-gone",
                    "No new tensor is filled in the default stream any more. In a real program "
                    "other is somebody else's, and it will come: keep it, and see to the memory "
                    "of temporary.",
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


def _uploaded(batches: "Sequence[Tensor]") -> "Tensor":
    import torch

    return torch.stack([batch.to("cuda") for batch in batches])


REFILLED = Exercise(
    "13.refilled",
    "Mend the program that refills a buffer too early.",
    Mended(
        signature="mended(batches)",
        returns="all batches on the GPU, stacked into one tensor",
        why="All batches arrived, and gpulab.hazards() finds no race: the host writes to no "
        "memory from which a copy still reads.",
        works=(
            HiddenWork("5 batches", lambda: _busy_batches(5)),
            HiddenWork("3 batches", lambda: _busy_batches(3)),
        ),
        right=_uploaded,
        mistakes=(),
        hidden_mistakes=(
            (
                lambda trial: trial.has_race(_REFILLED),
                Diagnosis(
                    "refilled",
                    "Nothing makes the host wait for the last copy before it writes the next "
                    "batch into the pinned buffer. Wait for that copy first. (A pause, such as "
                    "time.sleep, is no wait.)",
                ),
            ),
            ANY_RACE,
            (
                copies_less("copy in", 5 * _BATCH_BYTES, 3 * _BATCH_BYTES),
                Diagnosis(
                    "on-host",
                    "Not all batches were copied to the GPU. Return a tensor that is there.",
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


def _watched_works(length_ms: float) -> tuple[WatchedWork, WatchedWork]:
    return WatchedWork(kernel(length_ms), MOST_CALLS), WatchedWork(filler, MOST_CALLS)


def _first_end_ns(trial: Trial) -> int:
    """Return when the kernel of first() ended; 0 if it never ran. It is longer than all others."""
    records = trial.records.records if trial.records else ()
    return max((record.end_ns for record in records if record.duration_ns > _LONG_NS), default=0)


def _fillings(trial: Trial) -> list[WorkCall]:
    """Return the calls of fill(), which follow that of first()."""
    return [call for call in trial.calls if call.work is not trial.calls[0].work]


def _n_in_time(trial: Trial) -> int:
    """Return how many times fill() was launched while first() was not done."""
    end_ns = _first_end_ns(trial)
    return sum(call.start_ns < end_ns for call in _fillings(trial))


def _never_fills(mended: MendedTrial) -> bool:
    return not any(map(_fillings, mended.trials))


def _stops_early(trial: Trial) -> bool:
    """Return whether no fill() came in the last quarter of the time that first() took."""
    began_ns, end_ns = trial.calls[0].start_ns, _first_end_ns(trial)
    return _fillings(trial)[-1].start_ns < began_ns + 0.75 * (end_ns - began_ns)


def _fills_too_long(mended: MendedTrial) -> bool:
    return all(
        trial.number == len(_fillings(trial)) > _n_in_time(trial) for trial in mended.trials
    )


ENDLESS = Exercise(
    "13.endless",
    "Mend the program that never ends.",
    Mended(
        signature="mended(first, fill)",
        returns="how many times fill() was launched while first() was not done",
        why="It stopped when first() was done, and its count is right.",
        works=(
            HiddenWork("a first kernel of 2 ms", lambda: _watched_works(2.0)),
            HiddenWork("a first kernel of 4 ms", lambda: _watched_works(4.0)),
        ),
        right=_n_in_time,
        depends_on_course=True,  # how often fill() is launched depends on how fast it asks
        mistakes=(
            (
                _fills_too_long,
                Diagnosis(
                    "too-long",
                    "It still launched fill() when first() was done. Ask for the end of first() "
                    "alone, not for that of the fillers as well.",
                ),
            ),
        ),
        hidden_mistakes=(
            (
                lambda mended: not all(map(_first_end_ns, mended.trials)),
                Diagnosis("no-first", "It never launched first()."),
            ),
            (
                lambda mended: _never_fills(mended) and any(t.waits for t in mended.trials),
                Diagnosis(
                    "waits",
                    "It waits until first() is done, and launches no fill() meanwhile. Ask with "
                    "query(), which does not wait.",
                ),
            ),
            (
                lambda mended: (
                    _never_fills(mended) and any(t.asked["Event.query"] for t in mended.trials)
                ),
                Diagnosis(
                    "never-recorded",
                    "It never launched fill(): query() of an event that was not recorded is True.",
                ),
            ),
            (_never_fills, Diagnosis("never-fills", "It never launched fill().")),
            (
                lambda mended: any(map(_stops_early, mended.trials)),
                Diagnosis(
                    "stops-early",
                    "It stopped launching fill() long before first() was done. Go on until an "
                    "event after first() is completed.",
                ),
            ),
        ),
        show=repr,
        tolerance=0.1,
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
    ),
    hints=("After which work does the event stand in each round?", "Record it before the loop."),
)

ORDER_MISTAKES = (READ_TOO_EARLY, TWO_STREAMS, WAIT_BEFORE_RECORD, FREED, REFILLED, ENDLESS)
