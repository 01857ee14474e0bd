"""Time with the driver's own records, by which the other methods are judged."""

from collections.abc import Callable
from itertools import compress

from gpulab import device
from gpulab.device.work import Work
from gpulab.timing._samplers import Receiver, Sampler
from gpulab.timing._saturated import SaturatedSampler
from gpulab.tracing.profiling import Records, open_source, split_by_window

__all__ = ["ProfilerSampler", "per_call", "read_calls"]


def per_call(work: Work, *, n_samples: int, before: Work | None = None) -> list[Records]:
    """Return the records of each of ``n_samples`` calls; see :func:`read_calls`."""
    return [call for call, _ in read_calls(work, n_samples=n_samples, before=before)]


def read_calls(
    work: Work, *, n_samples: int, before: Work | None = None
) -> list[tuple[Records, float]]:
    """Return the records of each of ``n_samples`` calls, and what a pair of events read.

    All calls are in one session of the profiler. They are enqueued as `SaturatedSampler` enqueues
    its samples. So the span of several kernels does not include their launches, and records and
    events can be compared: after a sleep of 0.3 ms instead of 5 µs a matmul took up to 5 % longer
    on an H200. Work on another stream that does
    not wait for the current one starts at once; then its span includes that sleep.

    What the work launches while it runs, on any thread, is counted; what ``before`` launches is
    not. In a session events read 0.1 or 0.2 µs more than without one. The profiler may lose
    records without a message; those calls have ``dropped`` set. Raises `ProfilerBusyError` if
    another session of ``torch.profiler`` is open, or another tool uses CUPTI, and
    `ProfilerUnavailableError` if the driver gives no records.
    """
    calls: list[tuple[Records, float]] = []
    take_calls(work, calls.extend, n_samples=n_samples, before=before)
    return calls


def take_calls(
    work: Work,
    receive: Callable[[list[tuple[Records, float]]], object],
    *,
    n_samples: int,
    before: Work | None = None,
) -> None:
    """Give what :func:`read_calls` returns to ``receive``, after an interrupt as far as it got."""
    windows: list[tuple[int, int]] = []
    readings_s: list[float] = []
    interrupt = None
    with device.active() as in_use:
        with open_source(in_use) as source:
            # A record does not say to which sample it belongs. The host's times around each call
            # do, through the launch that started the kernel.
            def timed_window() -> None:
                start_ns = source.now_ns()
                work()
                windows.append((start_ns, source.now_ns()))

            sampler = SaturatedSampler(timed_window, before=before)
            try:
                sampler.take(n_samples, readings_s.extend)
            except KeyboardInterrupt as error:
                interrupt = error
        # The sampler repeats samples for which the host was too slow, and those have windows, too.
        counted = list(compress(windows, sampler.counted))[: len(readings_s)]
        calls = split_by_window(source, in_use.name, counted)
        receive(list(zip(calls, readings_s, strict=True)))
    if interrupt is not None:
        raise interrupt


class ProfilerSampler(Sampler):
    """Reads from the driver's records how long the device was busy with each call.

    Kernels, copies and fills on all streams count. Time in which several of them run counts once;
    pauses do not count. CUPTI writes the records through ``torch.profiler``; a virtual GPU has
    records of its own. For a single kernel this is the most accurate method. It does not show how
    long a program waits, because it leaves out launches and pauses.

    With ``span`` it times from the start of the first kernel, copy or fill of a call to the end of
    the last, pauses included. Events around the work read the same plus their floor. If another
    profiler runs, or the driver gives no records, taking samples raises an error.
    """

    def __init__(
        self,
        work: Work,
        *,
        inner_loops: int = 1,
        before: Work | None = None,
        span: bool = False,
    ) -> None:
        super().__init__(work, inner_loops=inner_loops, before=before)
        self._span = span

    def take(self, n_samples: int, receive: Receiver) -> None:
        """Take ``n_samples`` samples, and give them to ``receive``, in seconds per call."""

        def read(calls: list[tuple[Records, float]]) -> None:
            self.n_dropped += sum(call.dropped for call, _ in calls)
            read_s = [call.span_s if self._span else call.busy_s for call, _ in calls]
            receive([sample_s / self._inner_loops for sample_s in read_s])

        take_calls(self._all_loops, read, n_samples=n_samples, before=self._before)

    def _all_loops(self) -> None:
        for _ in range(self._inner_loops):
            self._work()
