"""Time inside a CUDA graph: launches, events and cache flush are captured once, then replayed."""

from contextlib import suppress

import torch

from gpulab import device
from gpulab.core.errors import NotCapturableError
from gpulab.core.interrupts import step
from gpulab.device.work import Work, collector_paused
from gpulab.timing._event_pairs import Pair, elapsed_s, new_event
from gpulab.timing._samplers import Receiver, Sampler

__all__ = ["GraphSampler"]


_N_SAMPLES = 10  # captured in one graph; replays give more


class GraphSampler(Sampler):
    """Times inside a CUDA graph: how long the work takes if Python does not launch its kernels.

    Ten samples are captured into one graph, each between two events that are part of the graph.
    ``before`` (a flush) runs before each sample and outside its events, so a graph can be timed
    cold as well as hot. The kernels of a graph follow each other more closely than launched
    kernels do. So work of many kernels takes less time than by ``"saturated"``, which is correct.

    The work is called when the sampler is made, and not again: samples are replays. It must not
    wait for the GPU, copy from pageable memory or depend on values, because none of that can be
    captured.

    If the work does something that a graph cannot contain, this raises `NotCapturableError`;
    PyTorch works as before then. ``pairs`` are the events of the graph, one pair for each of its
    samples.
    """

    def __init__(self, work: Work, *, inner_loops: int = 1, before: Work | None = None) -> None:
        super().__init__(work, inner_loops=inner_loops, before=before)
        # CUDA turns other events of a capture into dependencies between nodes, which have no time.
        self.pairs: list[Pair] = [
            (new_event(external=True), new_event(external=True)) for _ in range(_N_SAMPLES)
        ]
        # Captured here and not at the first sample, so that work which cannot be captured is
        # refused before anything is measured.
        self._graph = _capture(self._enqueue)

    def take(self, n_samples: int, receive: Receiver) -> None:
        """Take ``n_samples`` samples, and give them to ``receive``, in seconds per call."""
        n_taken = 0
        with collector_paused():
            while n_taken < n_samples:
                self._graph.replay()
                torch.cuda.synchronize()
                # The last replay may have more samples than are wanted.
                pairs = self.pairs[: n_samples - n_taken]
                receive([elapsed_s(pair) / self._inner_loops for pair in pairs])
                n_taken += len(pairs)

    def _enqueue(self) -> None:
        stream = torch.cuda.current_stream()
        for start, end in self.pairs:
            if self._before is not None:
                self._before()
            start.record(stream)
            for _ in range(self._inner_loops):
                self._work()
            end.record(stream)


@step  # an interrupt would leave the stream capturing, and every later wait would fail
def _capture(enqueue: Work) -> torch.cuda.CUDAGraph:
    """Return the captured graph; unlike ``torch.cuda.graph``, do not empty PyTorch's caches."""
    made, pool = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's gap
    # CUDA cannot capture on the default stream, so the work runs on a stream of its own.
    stream.wait_stream(torch.cuda.current_stream())
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        # A pool of its own, so that _mend can name it if the capture fails halfway.
        made.capture_begin(pool=pool)
        try:
            enqueue()
            made.capture_end()
        except BaseException as error:
            try:
                made.capture_end()
            except Exception:  # noqa: BLE001 # it repeats what went wrong
                # Only if the capture could not end: a pool that is released twice crashes the
                # process when the graph is freed.
                _mend(pool)
            if not isinstance(error, Exception):
                raise
            reason = str(error).partition("\n")[0]  # CUDA's later lines advise on other cases
            raise NotCapturableError(
                f"the work cannot be captured into a CUDA graph: {reason}; use "
                'method="calibrated", or take waits, copies from pageable memory and '
                "decisions on values out of it"
            ) from error
    return made


def _mend(pool: tuple[int, int]) -> None:
    """Make PyTorch usable again after a failed capture.

    Otherwise its allocator still takes memory from the graph's pool, and it refuses to make
    random numbers until another capture succeeds (seen with torch 2.11). The names used here are
    private, so a later version may lack them.
    """
    # A virtual GPU ends its captures itself, and the calls below reach for a real one.
    if device.current().virtual is not None:
        return
    index = torch.cuda.current_device()
    for name in ("_cuda_endAllocateToPool", "_cuda_releasePool"):
        with suppress(AttributeError, RuntimeError):
            getattr(torch._C, name)(index, pool)  # noqa: SLF001  # PyTorch has no public name for it
    with suppress(RuntimeError):
        # A capture that succeeds puts the random number generator right.
        good = torch.cuda.CUDAGraph()
        good.capture_begin()
        torch.ones(1, device="cuda")
        good.capture_end()
