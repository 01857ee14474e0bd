"""Time small programs on streams, to see what overlaps and how much time that saves."""

from collections.abc import Callable, Iterator
from functools import partial

import torch

from gpulab.recordings import Row
from gpulab.survey._brief_timing import waiting_times
from gpulab.survey._transfers import copying, side_by_side
from gpulab.work import Work

_MIB = 1 << 20
_COPY_BYTES = 64 * _MIB
_BATCH_BYTES = 16 * _MIB
_N_BATCHES = 8
_N_PASSES = 12  # over a batch, so that its compute takes about as long as its copy
_SIDE = 3072
_N_LAUNCHES = 16
_QUICK_SHARE = 16  # of the sizes, for a try

Program = Callable[[int], Iterator[tuple[str, Work]]]


def rows(*, quick: bool) -> Iterator[Row]:
    """Yield a row for each variant of each program; times are from idle to idle."""
    share = _QUICK_SHARE if quick else 1
    for name, program in PROGRAMS.items():
        for variant, work in program(share):
            yield {"program": name, "variant": variant, **waiting_times(work)}


def launches(_share: int) -> Iterator[tuple[str, Work]]:
    """Launch the smallest kernels: what one waits for at least, and what the host spends."""
    one = torch.ones(1, device="cuda")

    def several() -> None:
        for _ in range(_N_LAUNCHES):
            one.add_(1)

    yield "one kernel", lambda: one.add_(1)
    yield f"{_N_LAUNCHES} kernels", several


def copy_and_compute(share: int) -> Iterator[tuple[str, Work]]:
    """Run a copy in and products of matrices: alone, in one stream and in two."""
    copy = copying(_COPY_BYTES // share, "in", pinned=True)
    matrix = torch.randn(_SIDE // share, _SIDE // share, device="cuda")
    result = torch.empty_like(matrix)  # given, so that no call waits for memory
    compute = partial(torch.mm, matrix, matrix, out=result)
    yield "copy alone", copy
    yield "compute alone", compute
    yield "one stream", lambda: (copy(), compute())
    yield "two streams", side_by_side(copy, compute)
    pageable = copying(_COPY_BYTES // share, "in", pinned=False)
    # The compute is asked for first: a pageable copy keeps the host until it is nearly done.
    yield "two streams, pageable", side_by_side(compute, pageable)


def both_directions(share: int) -> Iterator[tuple[str, Work]]:
    """Run a copy in and one out: in one stream and in two."""
    into, out = (copying(_COPY_BYTES // share, way, pinned=True) for way in ("in", "out"))
    yield "one stream", lambda: (into(), out())
    yield "two streams", side_by_side(into, out)


def two_small_kernels(_share: int) -> Iterator[tuple[str, Work]]:
    """Run two kernels that leave most of the GPU empty: in one stream and in two."""
    # Eight rows: a softmax takes a block of threads a row, and an H200 has room for hundreds.
    narrow = [torch.randn(8, 1 << 18, device="cuda") for _ in range(2)]
    first, second = (partial(torch.softmax, rows, -1) for rows in narrow)
    yield "one stream", lambda: (first(), second())
    yield "two streams", side_by_side(first, second)


def asynchronous_copy(share: int) -> Iterator[tuple[str, Work]]:
    """Ask for copies without waiting; ``returns_s`` tells who waits all the same."""
    for direction in ("in", "out"):
        for memory in ("pinned", "pageable"):
            work = copying(_COPY_BYTES // share, direction, pinned=memory == "pinned")
            yield f"{direction}, {memory}", work


def batches(share: int) -> Iterator[tuple[str, Work]]:
    """Copy batches in and compute on them: one after the other, and with two buffers."""
    n_elements = _BATCH_BYTES // share // 4
    for memory in ("pinned", "pageable"):
        host = [torch.ones(n_elements, pin_memory=memory == "pinned") for _ in range(_N_BATCHES)]
        yield f"one stream, {memory}", _one_buffer(host)
        yield f"two buffers, {memory}", _two_buffers(host)


def _compute(batch: torch.Tensor) -> None:
    for _ in range(_N_PASSES):
        torch.sin(batch, out=batch)


def _one_buffer(host: list[torch.Tensor]) -> Work:
    buffer = torch.empty_like(host[0], device="cuda")

    def run() -> None:
        for batch in host:
            buffer.copy_(batch, non_blocking=True)
            _compute(buffer)

    return run


def _two_buffers(host: list[torch.Tensor]) -> Work:
    """Copy the next batch while this one is computed, with both waits that it takes."""
    buffers = [torch.empty_like(host[0], device="cuda") for _ in range(2)]
    copies = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's gap

    def run() -> None:
        main = torch.cuda.current_stream()
        copies.wait_stream(main)
        computed = [torch.cuda.Event() for _ in buffers]  # type: ignore[no-untyped-call]  # torch's gap
        for index, batch in enumerate(host):
            buffer, done = buffers[index % 2], computed[index % 2]
            with torch.cuda.stream(copies):
                copies.wait_event(done)  # the compute that read this buffer two batches ago
                buffer.copy_(batch, non_blocking=True)
            main.wait_stream(copies)  # this batch is there
            _compute(buffer)
            done.record(main)

    return run


PROGRAMS: dict[str, Program] = {
    "launches": launches,
    "copy and compute": copy_and_compute,
    "both directions": both_directions,
    "two small kernels": two_small_kernels,
    "asynchronous copy": asynchronous_copy,
    "batches": batches,
}
