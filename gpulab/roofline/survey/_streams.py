"""Time small programs on streams, which show what overlaps and how much time that saves."""

from collections.abc import Callable, Iterator
from functools import partial

import torch

from gpulab.device.work import Work
from gpulab.roofline.survey._brief_timing import waiting_times
from gpulab.roofline.survey._transfers import copying, side_by_side
from gpulab.workloads.recordings import Row

_MIB = 1 << 20
_COPY_BYTES = 64 * _MIB
_BATCH_BYTES = 16 * _MIB
_N_BATCHES = 8
_N_PASSES = 12  # passes over a batch, so that computing takes about as long as copying
_SIDE = 3072
_N_LAUNCHES = 16
_QUICK_SHARE = 16  # a quick survey divides the sizes by this

Program = Callable[[int], Iterator[tuple[str, Work]]]


def rows(*, quick: bool) -> Iterator[Row]:
    """Yield a row for each variant of each program, timed from an idle GPU to an idle GPU."""
    share = _QUICK_SHARE if quick else 1
    for name, program in PROGRAMS.items():
        for variant, work in program(share):
            yield {"program": name, "variant": variant, **waiting_times(work)}


def launches(_share: int) -> Iterator[tuple[str, Work]]:
    """Yield launches of the smallest kernels: the least wait, and the host's time per launch."""
    one = torch.ones(1, device="cuda")

    def several() -> None:
        for _ in range(_N_LAUNCHES):
            one.add_(1)

    yield "one kernel", lambda: one.add_(1)
    yield f"{_N_LAUNCHES} kernels", several


def copy_and_compute(share: int) -> Iterator[tuple[str, Work]]:
    """Yield a copy to the GPU and a matmul: each alone, both in one stream and in two."""
    copy = copying(_COPY_BYTES // share, "in", pinned=True)
    matrix = torch.randn(_SIDE // share, _SIDE // share, device="cuda")
    result = torch.empty_like(matrix)  # allocated here, so that no call waits for memory
    compute = partial(torch.mm, matrix, matrix, out=result)
    yield "copy alone", copy
    yield "compute alone", compute
    yield "one stream", lambda: (copy(), compute())
    yield "two streams", side_by_side(copy, compute)
    pageable = copying(_COPY_BYTES // share, "in", pinned=False)
    # The matmul is launched first: a pageable copy blocks the host until it is nearly done.
    yield "two streams, pageable", side_by_side(compute, pageable)


def both_directions(share: int) -> Iterator[tuple[str, Work]]:
    """Yield a copy to the GPU and one from it: in one stream and in two."""
    into, out = (copying(_COPY_BYTES // share, way, pinned=True) for way in ("in", "out"))
    yield "one stream", lambda: (into(), out())
    yield "two streams", side_by_side(into, out)


def two_small_kernels(_share: int) -> Iterator[tuple[str, Work]]:
    """Yield two kernels that leave most of the GPU empty: in one stream and in two."""
    # Eight rows: a softmax uses one block of threads per row, and an H200 can run hundreds.
    narrow = [torch.randn(8, 1 << 18, device="cuda") for _ in range(2)]
    first, second = (partial(torch.softmax, rows, -1) for rows in narrow)
    yield "one stream", lambda: (first(), second())
    yield "two streams", side_by_side(first, second)


def asynchronous_copy(share: int) -> Iterator[tuple[str, Work]]:
    """Yield copies with ``non_blocking=True``; ``returns_s`` shows which of them block anyway."""
    for direction in ("in", "out"):
        for memory in ("pinned", "pageable"):
            work = copying(_COPY_BYTES // share, direction, pinned=memory == "pinned")
            yield f"{direction}, {memory}", work


def batches(share: int) -> Iterator[tuple[str, Work]]:
    """Yield programs that copy batches and compute on them: with one buffer and with two."""
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
    """Return a program that copies the next batch during the computation on this one.

    It needs two waits: for the copy of a batch, and for the last use of a buffer.
    """
    buffers = [torch.empty_like(host[0], device="cuda") for _ in range(2)]
    copies = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's gap

    def run() -> None:
        main = torch.cuda.current_stream()
        # Orders the first copies after the work of the call before, which still reads the buffers.
        copies.wait_stream(main)
        computed = [torch.cuda.Event() for _ in buffers]  # type: ignore[no-untyped-call]  # torch's gap
        for index, batch in enumerate(host):
            buffer, done = buffers[index % 2], computed[index % 2]
            with torch.cuda.stream(copies):
                copies.wait_event(done)  # the compute that read this buffer two batches ago
                buffer.copy_(batch, non_blocking=True)
            main.wait_stream(copies)  # this batch has arrived
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
