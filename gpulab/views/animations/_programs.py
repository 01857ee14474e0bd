"""The programs of the films: each runs on a virtual H200, and its records become the film."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from gpulab.core.units import format_bytes, format_time
from gpulab.figures import Lanes, Level, Strip
from gpulab.timing import flusher
from gpulab.tracing import Span, Timeline, timeline
from gpulab.views.animations._film import Film, Note
from gpulab.virtual import VirtualGpu, virtual_gpu

# Five matmuls, each long enough that the host launches all others before it ends.
_N_MATMULS, _SIDE = 5, 1280
_N_STEPS, _BATCH_SIDE = 5, 2048
_FEATURES = 4096


def _gpu() -> VirtualGpu:
    return virtual_gpu("H200", max_value_elements=0)  # nobody reads a value


def queue() -> Film:
    """Return the film of a host that launches matmuls faster than the GPU computes them."""
    import torch

    with _gpu():
        x = torch.randn(_SIDE, _SIDE, device="cuda")
        record = timeline(lambda: [x @ x for _ in range(_N_MATMULS)], n_warmup=3)
    launches, kernels = _of(record, "launch"), _of(record, "kernel")
    (wait,) = _of(record, "wait")
    # One row for the host, one for each place of the queue, and one for the GPU.
    strips = [_strip(0, span, "launch", "") for span in launches]
    strips.append(_strip(0, wait, "wait", "the host waits"))
    for number, (launch, kernel) in enumerate(zip(launches, kernels, strict=True), start=1):
        strips.append(_strip(_N_MATMULS, kernel, "kernel", f"matmul {number}"))
        if number > 1:  # the first one starts at once
            waiting = f"matmul {number} waits"
            strips.append(Strip(number - 1, "launch", waiting, launch.end_s, kernel.start_s))
    call_s, all_s = launches[0].end_s - launches[0].start_s, launches[-1].end_s
    places = (f"queue, place {number}" for number in range(1, _N_MATMULS))
    return Film(
        "queue",
        f"Five matmuls and the queue ({record.place})",
        Lanes.in_rows(("host", *places, "GPU"), strips, wait.end_s),
        (
            Note(0.0, "The host calls x @ x. The call puts a matmul into the queue and returns."),
            Note(
                launches[0].end_s,
                f"After {format_time(call_s)} the call has returned; the GPU has just begun. "
                "A stopwatch around the call reads this.",
            ),
            Note(
                all_s,
                f"After {format_time(all_s)} all five calls have returned, and four matmuls wait "
                "in the queue. Now the host waits, too: torch.cuda.synchronize().",
            ),
            Note(
                kernels[1].start_s,
                "The GPU takes one matmul after the other, in the order of the calls.",
            ),
            Note(
                kernels[-1].end_s,
                f"The last matmul is done after {format_time(kernels[-1].end_s)}. Only now the "
                "host goes on: the work was in the other lane all the time.",
            ),
        ),
        20.0,
    )


def dirty_lines() -> Film:
    """Return the film of a layer that waits for dirty lines, which a flush left in the L2."""
    import torch

    with _gpu() as gpu:
        cache = gpu.machine.gpus[0].device.cache
        layer = torch.nn.Linear(_FEATURES, _FEATURES, device="cuda", dtype=torch.float16)
        x = torch.randn(1, _FEATURES, device="cuda", dtype=torch.float16)
        works: tuple[Callable[[], object], ...] = (
            flusher("read"),
            lambda: layer(x),
            flusher("write"),
            lambda: layer(x),
        )
        dirty: list[int] = []

        def program() -> None:
            for work in works:
                work()
                torch.cuda.synchronize()
                dirty.append(cache.dirty_bytes)

        with torch.no_grad():
            record = timeline(program, n_warmup=2)
    # A library may launch several kernels for a layer; after each work the host waits.
    waits = _of(record, "wait")
    begins_s = (0.0, *(wait.end_s for wait in waits))
    groups = [
        [each for each in _of(record, "kernel") if begin_s <= each.start_s < wait.end_s]
        for begin_s, wait in zip(begins_s, waits, strict=False)
    ]
    kernels = [replace(group[0], end_s=group[-1].end_s) for group in groups if group]
    # The program ran several times for the warm-up; only the last run is on the timeline.
    names = ("read flush", "layer", "write flush", "layer")
    after = dirty[-len(works) :]
    most = max(after)
    points, before = [(0.0, after[-1] / most)], after[-1]
    strips = []
    for kernel, name, dirty_bytes in zip(kernels, names, after, strict=True):
        strips.append(_strip(0, kernel, "kernel", name))
        points += [(kernel.start_s, before / most), (kernel.end_s, dirty_bytes / most)]
        if dirty_bytes < before:
            label = f"{format_bytes(before - dirty_bytes)} written back"
            strips.append(_strip(2, kernel, "copy", label))
        before = dirty_bytes
    end_s = max(span.end_s for span in record.spans)
    clean, written = kernels[1], kernels[3]
    clean_s, written_s = (each.end_s - each.start_s for each in (clean, written))
    return Film(
        "dirty_lines",
        f"A layer after two flushes ({record.place})",
        Lanes.in_rows(
            ("GPU", f"dirty, ≤ {format_bytes(most)}", "to memory"),
            strips,
            end_s,
            [Level(1, (*points, (end_s, before / most)))],
        ),
        (
            Note(0.0, "A flush that reads fills the L2 with lines that nobody has changed."),
            Note(
                clean.start_s,
                "The layer runs in this clean cache. Its weights come from memory, and the lines "
                f"that make room can simply be dropped. It takes {format_time(clean_s)}.",
            ),
            Note(
                kernels[2].start_s,
                f"A flush that writes leaves {format_bytes(after[2])} in the cache that memory "
                "does not have yet: these lines are dirty.",
            ),
            Note(
                written.start_s,
                f"The same layer needs room. {format_bytes(after[2] - after[3])} of dirty lines "
                "go to memory first, while the layer waits.",
            ),
            Note(
                written.end_s,
                f"It takes {format_time(written_s)}, {written_s / clean_s:.2f} times as long, for "
                "data that are not its own.",
            ),
        ),
        24.0,
    )


def double_buffer() -> Film:
    """Return the film of a double buffer whose copies overtake the work that reads the buffers."""
    import torch

    with _gpu():
        weight = torch.randn(_BATCH_SIDE, _BATCH_SIDE, device="cuda")
        batches = [torch.zeros(_BATCH_SIDE, _BATCH_SIDE).pin_memory() for _ in range(_N_STEPS)]
        buffers = [torch.empty(_BATCH_SIDE, _BATCH_SIDE, device="cuda") for _ in range(2)]
        copying = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's gap

        def program() -> None:
            for number, batch in enumerate(batches):
                copied = torch.cuda.Event()  # type: ignore[no-untyped-call]  # as above
                with torch.cuda.stream(copying):
                    buffers[number % 2].copy_(batch, non_blocking=True)
                    copied.record()
                torch.cuda.current_stream().wait_event(copied)
                weight @ buffers[number % 2]  # the work; nobody needs its result

        record = timeline(program)
    copies, kernels = _of(record, "copy"), _of(record, "kernel")
    strips, races = [], []
    for number, (copy, kernel) in enumerate(zip(copies, kernels, strict=True)):
        strips.append(_strip(0, copy, "copy", f"batch {number}"))
        strips.append(_strip(1, kernel, "kernel", f"batch {number}"))
        buffer_row = 2 + number % 2
        strips.append(_strip(buffer_row, copy, "copy", f"written: {number}"))
        strips.append(_strip(buffer_row, kernel, "kernel", f"read: {number}"))
        # Copies take the buffers in turn: every second later copy writes into this one.
        for later in copies[number + 2 :: 2]:
            start_s, end_s = max(later.start_s, kernel.start_s), min(later.end_s, kernel.end_s)
            if start_s < end_s:
                races.append(
                    Strip(buffer_row, "ink", "both at once", start_s, end_s, is_wrong=True)
                )
    first = min(races, key=lambda race: race.start_s)
    end_s = max(span.end_s for span in record.spans)
    return Film(
        "double_buffer",
        f"A double buffer that races ({record.place})",
        Lanes.in_rows(("copies", "kernels", "buffer A", "buffer B"), [*strips, *races], end_s),
        (
            Note(0.0, "Batch 0 is copied into buffer A. The kernel waits for this copy: right."),
            Note(
                kernels[0].start_s,
                "The kernel reads buffer A while batch 1 is copied into buffer B: this overlap is "
                "what two buffers are for.",
            ),
            Note(
                first.start_s,
                "Nothing tells the copies to wait. The next batch is written into a buffer that "
                f"a kernel still reads: a race, here after {format_time(first.start_s)}.",
            ),
            Note(
                # Not at the end: a note of no length would not be shown before the film begins
                # again.
                end_s * 0.9,
                f"{len(races)} of {_N_STEPS - 2} copies that reuse a buffer race. One line "
                "mends this race: before a copy, its stream waits for the event of the kernel "
                "that read the buffer last. (The host's own buffers are not in the film.)",
            ),
        ),
        24.0,
    )


FILMS: Mapping[str, Callable[[], Film]] = MappingProxyType(
    {"queue": queue, "dirty_lines": dirty_lines, "double_buffer": double_buffer}
)


def _of(record: Timeline, kind: str) -> list[Span]:
    spans = [span for span in record.spans if span.kind == kind and span.end_s > span.start_s]
    # Waits of a stream for an event are spans, too; the film shows those of the host alone.
    host = [span for span in spans if kind != "wait" or span.lane == "host"]
    return sorted(host, key=lambda span: span.start_s)


def _strip(row: int, span: Span, role: str, label: str) -> Strip:
    return Strip(row, role, label, span.start_s, span.end_s)
