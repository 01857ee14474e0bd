"""Simulate the host: its clock, the launch queue, waiting for the device, first-use costs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpulab.virtual.simulator._device import SimulatedDevice
from gpulab.virtual.simulator._host_time import fitted_costs
from gpulab.virtual.simulator._task import SimulatedStream, StreamOwner, StreamTask


@dataclass(frozen=True, slots=True)
class HostCosts:
    """Host time of what a program calls, in nanoseconds, as seen beside an H200 (16 Xeon cores).

    Attributes
    ----------
    launch_latency_ns
        From the end of a launching call until an idle device can start the work.
    wake_ns
        From the end of the awaited work until the waiting host goes on.
    synchronize_ns, wait_call_ns
        Least duration of a device-wide wait and of any other, when there is nothing to wait for.
    current_stream_ns
        Asking for the current stream, which ``Event.record()`` without a stream does too.
    queue_depth
        Launches that may be pending; a further one blocks the host.
    """

    launch_latency_ns: int = 2_800
    wake_ns: int = 3_200
    synchronize_ns: int = 4_000
    wait_call_ns: int = 450
    queue_depth: int = 1_022
    clock_read_ns: int = 50
    event_create_ns: int = 590
    event_record_ns: int = 1_280
    current_stream_ns: int = 3_020
    event_query_ns: int = 250
    stream_create_ns: int = 580
    stream_wait_ns: int = 600
    sleep_launch_ns: int = 3_060
    view_ns: int = 900
    empty_ns: int = 1_700
    copy_launch_ns: int = 4_200
    host_operation_ns: int = 1_300
    host_bytes_per_s: float = 20e9
    context_ns: int = 334_000_000


# First-use costs by the part of CUDA that is loaded, in nanoseconds: first matmul 106 ms, first
# half-precision matmul 76 ms, first convolution 251 ms, first random numbers 16 ms on an H200.
FIRST_USE_NS = {
    "gemm": 106_000_000,
    "gemm16": 76_000_000,
    "conv": 250_000_000,
    "random": 16_000_000,
    "kernel": 400_000,
    "malloc": 1_000_000,
}


class Host:
    """The thread that launches work, on a clock that only calls move.

    Plain Python takes no virtual time: only calls into PyTorch, CUDA and ``time`` do, and what
    PyTorch itself does in Python round them.

    Attributes
    ----------
    now_ns
        The host's clock.
    first_use
        Whether first-use costs are charged.
    n_backward
        How many backward passes are under way, one inside the other.
    is_free
        Whether what is called now takes no time, because a library does it in another way.
    """

    def __init__(
        self,
        devices: Sequence[SimulatedDevice],
        costs: HostCosts | None = None,
        *,
        first_use: bool = True,
    ) -> None:
        self.devices = tuple(devices)
        self.costs = costs or HostCosts()
        self.now_ns = 0
        self.first_use = first_use
        self.n_backward = 0
        self.is_free = False
        self._loaded: set[object] = set()
        self._fitted_ns = fitted_costs()
        self._operator: object = None
        self._n_recorded = 0

    def spend(self, duration_ns: int) -> None:
        """Let the host be busy for ``duration_ns``."""
        if not self.is_free:
            self.now_ns += duration_ns

    def charge(self, what: str, n: int = 1) -> None:
        """Let the host be busy with ``n`` of what a program does between its launches."""
        if not self.is_free:
            self.now_ns += self._fitted_ns[what] * n

    def skip_recorded(self, n_recorded: int) -> None:
        """Charge nothing for what autograd has recorded up to here."""
        self._n_recorded = n_recorded

    def begin_operator(
        self, operator: object, n_recorded: int, *, launches: bool, n_listed: int
    ) -> None:
        """Charge what comes on top of an operator's launch, or of a view.

        An operator that is called again and again takes its launch alone. One that follows upon
        another finds the processor's caches cold, and takes longer.

        Parameters
        ----------
        operator
            Which it is.
        n_recorded
            How many operators autograd has recorded by now.
        launches
            Whether it launches kernels.
        n_listed
            How many tensors there are in each of its lists, 0 if it takes none.
        """
        n_new = n_recorded - self._n_recorded
        if n_new:
            self._n_recorded = n_recorded
            self.charge("recording", n_new)
        if n_listed:
            self.charge("operator over lists")
            self.charge("tensor in a list", n_listed)
        elif self.n_backward and launches:
            self.charge("operator in backward")
        elif operator is not self._operator:
            recorded = "recorded operator" if n_new else "operator"
            self.charge(recorded if launches else "view")
        self._operator = operator

    def read_clock(self) -> int:
        """Return the host's time in nanoseconds; looking costs a little."""
        self.now_ns += self.costs.clock_read_ns
        return self.now_ns

    def load(self, part: str, what: object = None) -> None:
        """Charge the cost of the first use of ``part`` (of ``what`` within it)."""
        key = (part, what)
        if self.first_use and key not in self._loaded:
            self._loaded.add(key)
            self.spend(FIRST_USE_NS[part])

    def start_context(self) -> None:
        """Charge the creation of the CUDA context once."""
        if self.first_use and "context" not in self._loaded:
            self._loaded.add("context")
            self.spend(self.costs.context_ns)

    def launch(self, task: StreamTask, host_ns: int) -> StreamTask:
        """Spend ``host_ns`` on the call, waiting first if the launch queue is full."""
        self.start_context()
        if task.stream.device.n_pending >= self.costs.queue_depth:
            self._wait_for_room(task.stream.device)
        self.now_ns += host_ns
        self.submit(task)
        return task

    def submit(self, task: StreamTask) -> None:
        """Hand ``task`` to its device, at no cost of the host's."""
        if task.draw is not None:
            task.seed = task.draw()
        task.stream.device.submit(task, self.now_ns + self.costs.launch_latency_ns)

    def catch_up(self) -> None:
        """Let the device do what it has had time for."""
        self.devices[0].advance(self.now_ns)  # they share one engine

    def is_done(self, task: StreamTask | None) -> bool:
        """Tell whether ``task`` is done by now, at the cost of asking."""
        self.spend(self.costs.event_query_ns)
        self.catch_up()
        return task is None or task.is_done

    def wait(self, task: StreamTask | None) -> None:
        """Block until ``task`` is done; if it is already, only the cost of the call remains."""
        self._wait_until(self._end_of(task), self.costs.wait_call_ns)

    def wait_for_stream(self, stream: SimulatedStream) -> None:
        """Block until everything submitted to ``stream`` is done."""
        self.wait(stream.last)

    def wait_for_device(self, device: SimulatedDevice) -> None:
        """Block until everything submitted to ``device`` is done."""
        self.start_context()
        end_ns = max(self._end_of(stream.last) for stream in device.streams)
        self._wait_until(end_ns, self.costs.synchronize_ns)

    def run(self, action: Callable[[], None], *, size_bytes: int) -> None:
        """Do CPU work that touches ``size_bytes``; the device goes on meanwhile."""
        self.catch_up()
        action()
        transfer_ns = round(size_bytes / self.costs.host_bytes_per_s * 1e9)
        self.spend(self.costs.host_operation_ns + transfer_ns)

    def _end_of(self, task: StreamTask | None) -> int:
        return 0 if task is None else task.stream.device.finish(task)

    def _wait_until(self, end_ns: int, call_ns: int) -> None:
        # Waking up takes time only if the host has slept.
        is_idle = end_ns <= self.now_ns
        self.now_ns = max(self.now_ns + call_ns, 0 if is_idle else end_ns + self.costs.wake_ns)
        self.catch_up()
        self.devices[0].event_queue.raise_failure()

    def _wait_for_room(self, device: StreamOwner) -> None:
        self.catch_up()
        if device.n_pending >= self.costs.queue_depth:
            self.now_ns = max(self.now_ns, device.drain_to(self.costs.queue_depth - 1))
