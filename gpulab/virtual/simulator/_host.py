"""Simulate the host: its clock, the launch queue, waits for the device, and first-use costs."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from gpulab.core.errors import VirtualGpuError
from gpulab.virtual.simulator._device import SimulatedDevice
from gpulab.virtual.simulator._recorded_host import (
    MODEL_HOST,
    RecordedHost,
    cold_host,
    fitted_costs,
)
from gpulab.virtual.simulator._task import SimulatedStream, StreamTask


@dataclass(frozen=True, slots=True)
class HostCosts:
    """Host times of the calls of a program, in nanoseconds.

    They were measured on the host of an H200, with 16 cores of a Xeon.

    Attributes
    ----------
    launch_latency_ns
        From the end of a launching call until an idle device can start the work.
    wake_ns
        From the end of the awaited work until the waiting host goes on.
    synchronize_ns, wait_call_ns
        The duration of ``torch.cuda.synchronize()`` and of any other wait when there is nothing
        to wait for.
    current_stream_ns
        A request for the current stream; ``Event.record()`` without a stream makes one, too.
    queue_depth
        The most launches that may be pending; the next one blocks the host.
    host_bytes_per_s
        How fast the host copies its own memory, with all cores: 16.8 MB in 0.16 ms.

    Examples
    --------
    >>> HostCosts(queue_depth=4).queue_depth
    4
    """

    launch_latency_ns: int = 2_800
    wake_ns: int = 3_200
    synchronize_ns: int = 4_000
    wait_call_ns: int = 450
    # After a long kernel 1,021 launches returned at once on an H200 (docs/fidelity.md); with that
    # kernel these are 1,022.
    queue_depth: int = 1_022
    # More than 0, so that a loop that waits for a time to pass comes to its end.
    clock_read_ns: int = 50
    event_create_ns: int = 590
    event_record_ns: int = 1_280
    current_stream_ns: int = 3_020
    # More than 0 for the same reason: a program may ask an event until it is done.
    event_query_ns: int = 250
    stream_create_ns: int = 580
    stream_wait_ns: int = 600
    sleep_launch_ns: int = 3_060
    view_ns: int = 900
    empty_ns: int = 1_700
    copy_launch_ns: int = 4_200
    host_operation_ns: int = 1_300
    host_bytes_per_s: float = 100e9
    context_ns: int = 334_000_000


# First-use costs in nanoseconds, for each part of CUDA that is loaded. On an H200 the first matmul
# took 106 ms, the first one in half precision 76 ms, the first convolution 251 ms, and the first
# random numbers 16 ms.
FIRST_USE_NS = {
    "gemm": 106_000_000,
    "gemm16": 76_000_000,
    "conv": 250_000_000,
    "random": 16_000_000,
    "kernel": 400_000,
    "malloc": 1_000_000,
}

# An operator that ran at most so many others ago is as quick as in a loop of its own: a copy in,
# an addition and a copy out took 29 us on an H200, as much as their launches alone. From the
# second number on it is as slow as it gets, and between them in proportion: so the programs of an
# H100 and an H200 that are left out of the fit are predicted best.
_WARM_UNTIL, _COLD_FROM = 3, 12

# After so few other operators a backward pass or a step of an optimizer finds the caches of the
# one before, and its Python takes about a tenth of the time: SGD with three tensors took 29 us in
# a loop on an H200's host, and a loss with its gradients 100, where the costs of training programs
# add up to 135 and 275.
_N_BETWEEN, _REPEATED_SHARE = 4, 0.1

# A launch that takes less than one percent longer has nothing left of a cold host.
_LEAST_SHARE = 0.01


class Host:
    """The simulated thread that launches work; only its calls advance its clock.

    Plain Python takes no virtual time. Calls into PyTorch, CUDA and ``time`` do, and so does
    PyTorch's own Python code around them.

    Attributes
    ----------
    devices
        The devices of the machine.
    costs
        The host's time for each kind of call.
    now_ns
        The host's clock.
    slept_ns
        How much of it the program has slept: no processor time.
    first_use
        Whether first-use costs are charged.
    n_backward
        How many backward passes are running, one inside the other.
    n_launched
        Number of launches so far.
    estimated_real_s
        About how long the simulation has taken in real time, without reading a clock.
    is_free
        Whether calls take no time now, because the simulator makes them. While it computes
        values they never take time.
    recorded
        The recorded host whose pace it has.
    is_updating
        Whether an optimizer's step is running: a loop of few operators that autograd does not
        record.

    Examples
    --------
    >>> import gpulab
    >>> host = gpulab.virtual_gpu("H200").machine.host
    >>> host.spend(1_500)
    >>> host.now_ns
    1500
    """

    def __init__(
        self,
        devices: Sequence[SimulatedDevice],
        costs: HostCosts | None = None,
        *,
        first_use: bool = True,
        recorded: RecordedHost = MODEL_HOST,
    ) -> None:
        self.devices = tuple(devices)
        # The devices of a machine share it.
        first, *_ = self.devices
        self._event_queue = first.event_queue
        self.costs = costs or HostCosts()
        self.recorded = recorded
        self._cold = cold_host()
        self._cold_after_ns = self._cold.starts_ns
        self._launched_ns = 0
        self._cold_share = 0.0
        self._has_slept = False
        self.now_ns = 0
        self.slept_ns = 0
        self.first_use = first_use
        self.n_backward = 0
        self.is_free = False
        self.is_updating = False
        self.n_launched = 0
        self.estimated_real_s = 0.0
        self._loaded: set[object] = set()
        self._fitted_ns = fitted_costs()
        self._n_operators = 0
        self._last_calls: dict[object, int] = {}
        self._n_cold = 0
        self._n_cold_after: dict[str, int] = {}
        self._is_repeating = False
        self._n_recorded = 0

    @contextmanager
    def uncharged(self) -> Iterator[None]:
        """Let calls take no time inside the block, because the simulator makes them itself."""
        was_free, self.is_free = self.is_free, True
        try:
            yield
        finally:
            self.is_free = was_free

    def _refuse_in_action(self) -> None:
        """Raise an error, because the simulator itself makes this call, to compute values.

        Values cost no time. The code that computes them must switch off the dispatcher, so that
        its operators do not come here as operators of the program.
        """
        raise VirtualGpuError(
            "the virtual GPU has taken its own work on values for an operator of the program; "
            "this is a fault of gpulab, please report it"
        )

    def spend(self, duration_ns: int) -> None:
        """Advance the host's clock by ``duration_ns``."""
        if not (self.is_free or self._event_queue.is_in_action):
            self.now_ns += self._paced(duration_ns)

    def skip_launches(self, duration_ns: int) -> None:
        """Advance the clock by the time of launches that are left out; the host stays warm."""
        if not (self.is_free or self._event_queue.is_in_action):
            self.now_ns += duration_ns
            self._launched_ns = self.now_ns

    def _paced(self, duration_ns: int) -> int:
        factor = self.recorded.factor
        return duration_ns if factor == 1 else round(duration_ns * factor)

    def sleep(self, duration_ns: int) -> None:
        """Advance the host's clock by ``duration_ns``, in which its processor does nothing."""
        if not (self.is_free or self._event_queue.is_in_action):
            self.now_ns += duration_ns
        self.slept_ns += duration_ns
        self._has_slept = True

    def charge(self, what: str, n: float = 1) -> None:
        """Advance the host's clock by ``n`` times a cost of :func:`fitted_costs`."""
        if not (self.is_free or self._event_queue.is_in_action):
            duration_ns = self._fitted_ns[what] * n
            if self._is_repeating:
                duration_ns *= _REPEATED_SHARE
            self.now_ns += self._paced(int(duration_ns))

    def begin_backward(self) -> None:
        """Charge the start of a backward pass, which may run inside another one."""
        was_repeating = self._is_repeating
        self._is_repeating = self._is_repeated("backward")
        self.charge("backward")
        self._is_repeating = was_repeating
        self.n_backward += 1

    def end_backward(self) -> None:
        """Note the end of a backward pass."""
        self.n_backward -= 1
        self._n_cold_after["backward"] = self._n_cold

    def begin_step(self) -> tuple[bool, bool]:
        """Note the start of an optimizer's step; return what :meth:`end_step` restores."""
        before = self.is_updating, self._is_repeating
        self.is_updating, self._is_repeating = True, self._is_repeated("step")
        return before

    def end_step(self, before: tuple[bool, bool]) -> None:
        """Note the end of a step, which may have run inside another one."""
        self.is_updating, self._is_repeating = before
        self._n_cold_after["step"] = self._n_cold

    def _is_repeated(self, part: str) -> bool:
        """Return whether hardly another operator has run since the same part of a program."""
        n_cold = self._n_cold_after.get(part)
        return n_cold is not None and self._n_cold - n_cold <= _N_BETWEEN

    def skip_recorded(self, n_recorded: int) -> None:
        """Charge nothing for the operators that autograd has recorded until now."""
        self._n_recorded = n_recorded

    def forget_recorded(self, n_nodes: int) -> None:
        """Charge nothing for nodes of autograd that the simulator has made to compute values."""
        self._n_recorded += n_nodes

    def begin_operator(
        self, operator: object, n_recorded: int, *, launch_ns: int, takes_lists: bool
    ) -> None:
        """Charge the host's time for an operator or a view, except for its launches.

        An operator in a loop of its own costs its launch alone, because the launch costs were
        measured in such loops. The more others ran since, the longer it takes: the processor's
        caches are cold.

        Parameters
        ----------
        operator
            Identifies the operator.
        n_recorded
            How many operators autograd has recorded until now.
        launch_ns
            The host time of its launches in a loop; 0 if it launches nothing.
        takes_lists
            Whether it takes lists of tensors.
        """
        if self._event_queue.is_in_action:
            self._refuse_in_action()
        # Autograd numbers its nodes, so this counts the new ones without a look at the graph.
        n_new = n_recorded - self._n_recorded
        # For each node that autograd has made since the last operator.
        if n_new:
            self._n_recorded = n_recorded
            self.charge("recording", n_new)
        share = self._cold_share_of(operator)
        if takes_lists:
            # Its launch costs contain those of each tensor.
            if share:
                self.charge("operator over lists", share)
        elif not launch_ns:
            # One of these alone: they were fitted as kinds of operators, not as parts.
            if share:
                self.charge("view", share)
        elif share or self.n_backward:
            if self.n_backward:
                # The engine's thread runs another node between two operators.
                kind, share = "operator in backward", 1.0
            elif n_new:
                kind = "recorded operator"
            else:
                kind = "operator of an optimizer" if self.is_updating else "operator"
            self.charge(kind, share)
            # What takes long in a loop takes much longer with cold caches.
            self.charge("cold microsecond", share * (launch_ns // 1_000))

    def _cold_share_of(self, operator: object) -> float:
        """Return how cold the host is for an operator that runs now: from 0 to 1."""
        n_before = self._n_operators
        n_others = n_before - self._last_calls.get(operator, -_COLD_FROM)
        self._n_operators = self._last_calls[operator] = n_before + 1
        if n_others <= _WARM_UNTIL:
            return 0.0
        self._n_cold += 1
        if n_others >= _COLD_FROM:
            return 1.0
        return (n_others - _WARM_UNTIL) / (_COLD_FROM - _WARM_UNTIL)

    def read_clock(self) -> int:
        """Return the host's time in nanoseconds; the call itself takes a little of it."""
        self.now_ns += self.costs.clock_read_ns
        return self.now_ns

    def load(self, part: str, what: object = None) -> None:
        """Charge the first-use cost of a part of CUDA, once for each ``what`` within it."""
        key = (part, what)
        # Noted even when calls are free: the part is loaded from then on.
        if self.first_use and key not in self._loaded:
            self._loaded.add(key)
            self.skip_launches(self._paced(FIRST_USE_NS[part]))

    def start_context(self) -> None:
        """Charge the creation of the CUDA context, the first time only."""
        if self.first_use and "context" not in self._loaded:
            self._loaded.add("context")
            self.skip_launches(self._paced(self.costs.context_ns))

    def launch(self, task: StreamTask, host_ns: int) -> StreamTask:
        """Launch ``task`` with a call of ``host_ns``; if the launch queue is full, wait first."""
        if self._event_queue.is_in_action:
            self._refuse_in_action()
        self.start_context()
        # A wait for room in the queue is part of the call, and no wait before it.
        launch_ns = self._launch_ns(host_ns)
        # The launch queue belongs to a device: a full one does not delay launches on another.
        device = task.stream.device
        if device.n_pending >= self.costs.queue_depth:
            self.now_ns = max(self.now_ns, device.drain_to(self.costs.queue_depth - 1))
        self.n_launched += 1
        self.now_ns += launch_ns
        # Without a time of its own it is the simulator's, and warms nothing.
        if host_ns:
            self._launched_ns = self.now_ns
        self.submit(task)
        return task

    def _launch_ns(self, host_ns: int) -> int:
        """Return the time of a launch, which is longer after the host has launched nothing."""
        if not host_ns:
            return 0
        idle_ns = self.now_ns - self._launched_ns
        # Nearly every launch follows one that has just returned.
        if idle_ns > self._cold_after_ns or self._cold_share or self._has_slept:
            host_ns = round(host_ns * (1 + self._cold_now(idle_ns)))
        return self._paced(host_ns)

    def _cold_now(self, idle_ns: int) -> float:
        """Return the share of its time that the next launch takes longer on a cold host."""
        cold = self._cold
        slowdown = cold.slowdown(idle_ns)
        if self._has_slept:
            slowdown = max(slowdown, cold.after_sleep)
        self._has_slept = False
        # The launches before this one have warmed the host, but not all of it.
        share = max(slowdown - 1, self._cold_share)
        left = share * cold.next_share
        self._cold_share = left if left > _LEAST_SHARE else 0.0
        return share

    def submit(self, task: StreamTask) -> None:
        """Give ``task`` to its device; this takes no host time."""
        # Random numbers are drawn in the order of the launches, whenever the kernels run.
        if task.draw is not None:
            task.seed = task.draw()
        task.stream.device.submit(task, self.now_ns + self.costs.launch_latency_ns)

    def catch_up(self) -> None:
        """Simulate all devices up to the host's time."""
        self._event_queue.advance(self.now_ns)

    def is_done(self, task: StreamTask | None) -> bool:
        """Return whether ``task`` is done; the question takes host time."""
        self.spend(self.costs.event_query_ns)
        self.catch_up()
        return task is None or task.is_done

    def wait(self, task: StreamTask | None) -> None:
        """Wait until ``task`` is done; if it is done already, this costs the call alone."""
        self._wait_until(self._end_of(task), self.costs.wait_call_ns)

    def wait_for_stream(self, stream: SimulatedStream) -> None:
        """Wait until everything submitted to ``stream`` is done."""
        self.wait(stream.last)

    def wait_for_launch(self, stream: SimulatedStream) -> None:
        """Wait until everything submitted to ``stream`` is done, inside a call that launches."""
        # The call's own time is charged already, by the launch.
        self._wait_until(self._end_of(stream.last), 0)

    def wait_for_device(self, device: SimulatedDevice) -> None:
        """Wait until everything submitted to ``device`` is done."""
        self.start_context()
        # A stream runs its tasks in order, so the last one is also the last to end.
        end_ns = max(self._end_of(stream.last) for stream in device.streams)
        self._wait_until(end_ns, self.costs.synchronize_ns)

    def run(self, action: Callable[[], None], *, size_bytes: int) -> None:
        """Run CPU work on ``size_bytes`` of host memory; the device goes on during its time."""
        if self._event_queue.is_in_action:
            self._refuse_in_action()
        # First the device up to now, so that the action reads the values of this moment.
        self.catch_up()
        action()
        transfer_ns = round(size_bytes / self.costs.host_bytes_per_s * 1e9)
        self.spend(self.costs.host_operation_ns + transfer_ns)

    def _end_of(self, task: StreamTask | None) -> int:
        return self.now_ns if task is None else task.stream.device.finish(task)

    def _wait_until(self, end_ns: int, call_ns: int) -> None:
        # The host wakes up only if it has slept, so a wait for finished work has no wake time.
        has_slept = end_ns > self.now_ns
        self.now_ns += self._paced(call_ns)
        if has_slept:
            # The call's own time passes while the device works, so only the longer of both counts.
            self.now_ns = max(self.now_ns, end_ns + self._paced(self.costs.wake_ns))
        self.catch_up()
        # Last, so that after the error the host's clock and the devices agree.
        self._event_queue.raise_failure()
