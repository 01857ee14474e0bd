"""A CUDA graph as a timing method: the launches are captured once, events and flush with them."""

from contextlib import suppress

import torch

from gpulab import device
from gpulab.errors import NotCapturableError
from gpulab.interrupts import step
from gpulab.timing._event_pairs import Pair, elapsed_s, new_event
from gpulab.timing._samplers import Sampler
from gpulab.work import Work, collector_paused

__all__ = ["GraphSampler"]


_N_SAMPLES = 10  # in a graph; the rest by replaying it


class GraphSampler(Sampler):
    """Times inside a CUDA graph: what the work takes when no Python launches its kernels.

    Ten samples are captured into one graph, each between two events that are part of the graph,
    with ``before`` (a flush) in front of each and outside of its events; so a graph can be
    timed cold as well as hot. The kernels of a graph follow one another more closely than
    launched ones, so work of many kernels reads less than by ``"saturated"``; that is no error.

    The work is called when the sampler is made, and not again: samples are replays. It must not
    wait for the GPU, copy from pageable memory or depend on values, as none of that can be
    captured.

    Attributes
    ----------
    pairs
        The events of the graph, one pair for each of its samples.

    Raises
    ------
    NotCapturableError
        If the work does something that no graph can hold; nothing is left of the attempt.
    """

    def __init__(self, work: Work, *, inner_loops: int = 1, before: Work | None = None) -> None:
        super().__init__(work, inner_loops=inner_loops, before=before)
        self.pairs: list[Pair] = [
            (new_event(external=True), new_event(external=True)) for _ in range(_N_SAMPLES)
        ]
        self._graph = _capture(self._enqueue)

    def __call__(self, n_samples: int) -> list[float]:
        """Return ``n_samples`` samples, in seconds per call of the work."""
        samples_s: list[float] = []
        with collector_paused():
            while len(samples_s) < n_samples:
                self._graph.replay()
                torch.cuda.synchronize()
                samples_s += [elapsed_s(pair) / self._inner_loops for pair in self.pairs]
        return samples_s[:n_samples]

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
    """Capture without the collection and the emptied cache of ``torch.cuda.graph``."""
    made, pool = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's gap
    stream.wait_stream(torch.cuda.current_stream())
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        made.capture_begin(pool=pool)
        try:
            enqueue()
            made.capture_end()
        except BaseException as error:
            try:
                made.capture_end()
            except Exception:  # noqa: BLE001 # it repeats what went wrong
                # Only then: a pool that was given back twice ends the process with the graph.
                _mend(pool)
            if not isinstance(error, Exception):
                raise
            reason = str(error).partition("\n")[0]  # what follows is advice for another case
            raise NotCapturableError(
                f"the work cannot be captured into a CUDA graph: {reason}; use "
                'method="calibrated", or take waits, copies from pageable memory and '
                "decisions on values out of it"
            ) from error
    return made


def _mend(pool: tuple[int, int]) -> None:
    """Bring PyTorch back from a capture that failed.

    Its allocator goes on filling the graph's pool, and its random numbers are refused until
    another capture succeeds (seen with torch 2.11). The names are private, so they may be gone.
    """
    if device.current().virtual is not None:
        return
    index = torch.cuda.current_device()
    for name in ("_cuda_endAllocateToPool", "_cuda_releasePool"):
        with suppress(AttributeError, RuntimeError):
            getattr(torch._C, name)(index, pool)  # noqa: SLF001  # PyTorch has no public name for it
    with suppress(RuntimeError):
        good = torch.cuda.CUDAGraph()
        good.capture_begin()
        torch.ones(1, device="cuda")
        good.capture_end()
