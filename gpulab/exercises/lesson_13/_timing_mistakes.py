"""Six programs of the clinic that give a wrong number: works, right programs and diagnoses."""

import time
from functools import partial
from typing import TYPE_CHECKING

from gpulab.core.torch_private import spin
from gpulab.core.units import format_time
from gpulab.device.work import Work
from gpulab.exercises._exercise import Exercise
from gpulab.exercises._gpu_work import device_s, stopwatch_s
from gpulab.exercises.answers import (
    Diagnosis,
    HiddenWork,
    Mended,
    MendedTrial,
    copies_less,
    reads,
)
from gpulab.exercises.lesson_13._works import kernel, layers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpulab.happens_before.activity import ActivityRecord

_WAKE_UP_S = 30e-6  # a stopwatch reads the launch and the wake-up as well
# About 5 ms, longer than the works: with the backlog in it, a time is more than doubled.
_BACKLOG_CYCLES = 10_000_000


_SHORT = Diagnosis(
    "launch",
    "It returns the time of the launch. The clock stops before the GPU has done the work: wait, "
    "then read the clock.",
)


def _kernel_work(length_ms: float) -> tuple[Work]:
    return (kernel(length_ms),)


_PAUSE = (
    lambda mended: mended.is_right and mended.may_start_busy,
    Diagnosis(
        "pause",
        "The time is right by luck: nothing waits for the GPU before the clock starts, and a "
        "pause may be too short. Let the host wait: torch.cuda.synchronize().",
    ),
)


_KERNELS = tuple(
    HiddenWork(f"a kernel of {length:g} ms", partial(_kernel_work, length))
    for length in (1.5, 6.0)
)

UNWAITED = Exercise(
    "13.unwaited",
    "Mend the clock that does not wait.",
    Mended(
        signature="mended(work)",
        returns="seconds that work() takes",
        why="For two kernels that you had not seen, it returns the time of the kernel.",
        works=_KERNELS,
        right=stopwatch_s,
        mistakes=((reads(0, 0.5), _SHORT),),
        show=format_time,
        floor=_WAKE_UP_S,
    ),
    hints=("What has happened when work() returns?", "Wait: torch.cuda.synchronize()."),
)


def _busy_kernel(length_ms: float) -> tuple[Work]:
    spin(_BACKLOG_CYCLES)
    return (kernel(length_ms),)


BACKLOG = Exercise(
    "13.backlog",
    "Mend the clock that starts too early.",
    Mended(
        signature="mended(work)",
        returns="seconds that work() takes, also when the GPU is still busy with other work",
        why="The time is that of work() alone, although the GPU was busy before.",
        works=tuple(
            HiddenWork(f"a kernel of {length:g} ms on a busy GPU", partial(_busy_kernel, length))
            for length in (1.5, 4.0)
        ),
        right=stopwatch_s,
        mistakes=(
            (reads(0, 0.5), _SHORT),
            (
                reads(1.2, 100),
                Diagnosis(
                    "backlog",
                    "It still counts the work that was in the queue before. Wait for that first, "
                    "then start the clock.",
                ),
            ),
        ),
        hidden_mistakes=(_PAUSE,),
        show=format_time,
        floor=_WAKE_UP_S,
    ),
    hints=("What is in the queue when the clock starts?", "Wait before the start as well."),
)


EVENTS = Exercise(
    "13.too-early",
    "Mend the program that reads its events too early.",
    Mended(
        signature="mended(work)",
        returns="seconds that work() takes, by two events",
        why="You ask for the time between the events when both are completed.",
        works=_KERNELS,
        right=stopwatch_s,
        mistakes=(
            (
                reads(0, 0.5),
                Diagnosis(
                    "too-short",
                    "That is less than the work takes. Record one event before work() and one "
                    "after it, and let the host wait for the second one.",
                ),
            ),
        ),
        hidden_mistakes=(
            (
                lambda mended: mended.is_right and not mended.uses_events,
                Diagnosis(
                    "no-events",
                    "The time is right, but it isn't the time between two events. Repair the "
                    "program with its events.",
                ),
            ),
        ),
        show=format_time,
        floor=_WAKE_UP_S,
        errors=(
            (
                "completed",
                Diagnosis(
                    "not-completed",
                    "The GPU has not passed the second event yet. Let the host wait for it "
                    "before you ask for the time: end.synchronize().",
                ),
            ),
            (
                "enable_timing",
                Diagnosis("no-timing", "Create both events with enable_timing=True."),
            ),
        ),
    ),
    hints=("elapsed_time does not wait. What does?", "end.synchronize() before elapsed_time."),
)


def _new_matmul(n: int) -> tuple[Work]:
    import torch

    a = torch.randn(n, n, device="cuda")
    # As a library does that tries its kernels first. So a clock that starts before these have
    # ended reads far more.
    trials = iter([lambda: spin(20_000_000)])

    def work() -> object:
        product = a @ a
        next(trials, int)()
        return product

    return (work,)


WARM_UP = Exercise(
    "13.first-call",
    "Mend the program that times a first call.",
    Mended(
        signature="mended(work)",
        returns="seconds of a usual call of work()",
        why="For two matmuls that you had not seen, it is the time of a usual call.",
        works=tuple(
            HiddenWork(f"a matmul of {n:,} x {n:,}", partial(_new_matmul, n)) for n in (1024, 2048)
        ),
        right=partial(device_s, n_calls=1),
        mistakes=(
            (reads(0, 0.5), _SHORT),
            (
                reads(1.8, 2.3),
                Diagnosis("two-calls", "It times two calls: wait after the first one."),
            ),
            (
                # A first call takes a hundred times as long and more.
                lambda mended: mended.may_start_busy and reads(1.3, 10)(mended),
                Diagnosis(
                    "pause",
                    "A pause in place of a wait makes the host cold, and its next launch takes "
                    "longer (lesson 01). Let the host wait: torch.cuda.synchronize().",
                ),
            ),
            (
                reads(1.3, 1e6),
                Diagnosis(
                    "first-use",
                    "A first call, which loads a library, is still in the time. Call work() once, "
                    "and wait, before you start the clock.",
                ),
            ),
        ),
        hidden_mistakes=(_PAUSE,),
        show=format_time,
        floor=_WAKE_UP_S,
        first_use=True,
    ),
    hints=("Call it twice. How long does each call take?", "One call and one wait as warm-up."),
)


def _pass_s(all_layers: "Sequence[Work]") -> float:
    def one_pass() -> None:
        for layer in all_layers:
            layer()

    return device_s(one_pass, n_calls=1)


_N_LAYERS = (20, 50)
_FEW_WAITS = 4  # before the first pass and after it, and the same for a second pass


def _is_one_layer(mended: MendedTrial) -> bool:
    pairs = zip(mended.values, mended.expected, _N_LAYERS, strict=True)
    return all(mended.mended.agree(value, whole / n) for value, whole, n in pairs)  # type: ignore[operator]  # seconds


LAYERS = Exercise(
    "13.each-layer",
    "Mend the program that waits after each layer.",
    Mended(
        signature="mended(layers)",
        returns="seconds of one pass through all layers",
        why="The time is that of a pass in which the GPU goes from layer to layer without a pause "
        "for the host.",
        works=(
            HiddenWork("20 short layers", lambda: (layers(_N_LAYERS[0]),)),
            HiddenWork("50 shorter layers", lambda: (layers(_N_LAYERS[1], 0.02),)),
        ),
        right=_pass_s,
        mistakes=(
            (
                _is_one_layer,
                Diagnosis(
                    "one-layer", "That is the time of one layer. Return that of the whole pass."
                ),
            ),
            (reads(0, 0.5), _SHORT),
            (
                lambda mended: (
                    reads(1.05, 10)(mended)
                    and all(len(trial.waits or ()) > _FEW_WAITS for trial in mended.trials)
                ),
                Diagnosis(
                    "waits-each-layer",
                    "The host still waits between the layers, and the GPU is idle until the next "
                    "launch. Wait once, after the last layer.",
                ),
            ),
        ),
        show=format_time,
        tolerance=0.05,
        floor=_WAKE_UP_S,
    ),
    hints=("Look at the gaps in the timeline.", "Only the last wait is needed."),
)


def _overlapped_s(n_bytes: int, work: Work) -> float:
    import torch

    host = torch.empty(n_bytes, dtype=torch.uint8, pin_memory=True)
    on_gpu = torch.empty_like(host, device="cuda")
    copying = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's gap
    torch.cuda.synchronize()
    start = time.perf_counter()
    with torch.cuda.stream(copying):
        on_gpu.copy_(host, non_blocking=True)
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def _overlap(records: "Sequence[ActivityRecord]") -> bool:
    """Return whether a kernel ran during a copy, for at least half of the kernel."""
    copies = [record for record in records if record.kind == "memcpy"]
    return any(
        2 * (min(kernel.end_ns, copy.end_ns) - max(kernel.start_ns, copy.start_ns))
        > kernel.duration_ns
        for kernel in records
        if kernel.kind == "kernel"
        for copy in copies
    )


def _is_short(value: object) -> bool:
    """Return whether a time is nearly that of the shorter kernel, beside which the copy ends."""
    return isinstance(value, float) and value < 0.3e-3  # noqa: PLR2004  # 0.2 ms, and overhead


PAGEABLE = Exercise(
    "13.pageable",
    "Mend the copy that does not overlap.",
    Mended(
        signature="mended(n_bytes, work)",
        returns="seconds for a copy of n_bytes to the GPU and work(), at the same time",
        why="All bytes were copied, and your time for copy and kernel together is that of the "
        "longer of the two.",
        works=(
            HiddenWork("16 MiB and a kernel of 0.4 ms", lambda: (2**24, kernel(0.4))),
            HiddenWork("24 MiB and a kernel of 0.2 ms", lambda: (3 * 2**23, kernel(0.2))),
        ),
        right=_overlapped_s,
        mistakes=(
            (
                lambda mended: (
                    [mended.n_right, *map(_is_short, mended.values)] == [1, False, True]
                ),
                Diagnosis(
                    "copy-not-timed",
                    "The clock stops when the kernel is done, and the copy may take longer. Wait "
                    "for both streams.",
                ),
            ),
            (reads(0, 0.5), _SHORT),
            (
                lambda mended: reads(1.2, 10)(mended) and all(map(_overlap, mended.records)),
                Diagnosis(
                    "pageable",
                    "The kernel runs beside the copy, but the copy itself takes too long: from "
                    "ordinary memory it is slower than from pinned memory.",
                ),
            ),
            (
                reads(1.2, 10),
                Diagnosis(
                    "no-overlap",
                    "The copy and the kernel still run one after the other. Use pinned memory, "
                    "non_blocking=True and a stream of its own.",
                ),
            ),
        ),
        hidden_mistakes=(
            (copies_less("copy in", 1, 1), Diagnosis("no-copy", "Nothing is copied to the GPU.")),
            (
                copies_less("copy in", 2**24, 3 * 2**23),
                Diagnosis("part-copied", "It copies fewer bytes to the GPU than it was asked to."),
            ),
        ),
        show=format_time,
        tolerance=0.15,
    ),
    hints=("Which memory can a copy engine read alone?", "torch.empty(..., pin_memory=True)."),
)

TIMING_MISTAKES = (UNWAITED, BACKLOG, EVENTS, WARM_UP, LAYERS, PAGEABLE)
