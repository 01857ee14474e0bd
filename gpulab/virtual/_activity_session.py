"""Record what a virtual GPU does and which host calls launched it, as CUPTI does on CUDA."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from gpulab.core.interrupts import hold, let_go, step
from gpulab.happens_before.activity import ActivityRecord, HostCall
from gpulab.virtual._replaced import put_back

if TYPE_CHECKING:
    from gpulab.virtual.simulator import Machine, StreamTask, TaskRecord


# For each kind of task: CUPTI's name of it, and the CUDA call that launches it. A mark is missing
# here, because CUPTI has no record of an event.
_KINDS = {
    "kernel": ("kernel", "cudaLaunchKernel"),
    "copy in": ("memcpy", "cudaMemcpyAsync"),
    "copy out": ("memcpy", "cudaMemcpyAsync"),
    "copy between GPUs": ("memcpy", "cudaMemcpyPeerAsync"),
}
# CUDA's names of the methods of ``Host`` and ``Machine`` that stand for its calls.
_WAITS = {
    "wait_for_device": "cudaDeviceSynchronize",
    "wait_for_stream": "cudaStreamSynchronize",
    "wait": "cudaEventSynchronize",
}
_ALLOCATIONS = {
    "device_malloc": "cudaMalloc",
    "device_free": "cudaFree",
    "host_alloc": "cudaHostAlloc",
    "host_free": "cudaFreeHost",
}
BUFFER_REQUEST = "Activity Buffer Request"  # CUPTI's name
_HOST_METHODS = (*_WAITS, "launch")
# The driver's own copies and fills on the device, by the first letters of their names.
_DRIVERS_OWN = {"Memcpy": ("memcpy", "cudaMemcpyAsync"), "Memset": ("memset", "cudaMemsetAsync")}


class SimulatorSession:
    """Records the tasks of a virtual GPU and the calls of its host, inside a ``with`` block.

    While it records, each launch takes ``launch_ns`` longer, and the first launch or wait
    ``buffer_ns``, for the recorder's first buffer.
    """

    source = "virtual"

    def __init__(self, machine: "Machine", *, launch_ns: int = 0, buffer_ns: int = 0) -> None:
        self._machine = machine
        self._launch_ns = launch_ns
        self._buffer_ns = buffer_ns
        self._originals: list[tuple[Any, str, Any]] = []
        self._calls: list[HostCall] = []
        # The numbers of the calls that copy from or to pageable memory.
        self.pageable: set[int] = set()
        self._is_inside = False
        self._recorded: list[tuple[int, Callable[[], list[TaskRecord]]]] = []
        self._keeping = ExitStack()

    @step
    def __enter__(self) -> Self:
        # The methods are replaced on these two objects alone, so launches cost nothing more while
        # nobody records.
        methods = [
            *((self._machine.host, name) for name in _HOST_METHODS),
            *((self._machine, name) for name in _ALLOCATIONS),
        ]
        watched = [self._watch(name, getattr(owner, name)) for owner, name in methods]
        self._originals = [(owner, name, vars(owner).get(name)) for owner, name in methods]
        try:
            hold(self)
            for (owner, name), function in zip(methods, watched, strict=True):
                vars(owner)[name] = function
            self._recorded = [
                (gpu.index, self._keeping.enter_context(gpu.device.keeping_records()))
                for gpu in self._machine.gpus
            ]
        except BaseException:
            self.__exit__()
            raise
        return self

    @step
    def __exit__(self, *_error: object) -> None:
        self._keeping.close()
        # If two sessions are open on one machine, this may be the other one's replacement.
        for owner, name, original in self._originals:
            put_back(owner, name, original)
        let_go(self)

    def now_ns(self) -> int:
        """Return the host's time; unlike a read of the clock this costs no virtual time."""
        return self._machine.host.now_ns

    def read(self) -> tuple[list[ActivityRecord], list[HostCall]]:
        """Return the records of the devices and the calls of the host since the block began."""
        latency_ns = self._machine.host.costs.launch_latency_ns
        # This links a task to its launch: the device sees a task a fixed time after the call has
        # ended, and no two calls end at the same time.
        launches = {
            call.end_ns + latency_ns: call for call in self._calls if call.kind == "launch"
        }
        records = [
            ActivityRecord(
                kind=_kinds(task.kind.value, task.name)[0],
                name=task.name,
                start_ns=task.start_ns,
                end_ns=task.end_ns,
                stream=task.stream,
                device=index,
                launch_start_ns=call.start_ns,
                launch_end_ns=call.end_ns,
                size_bytes=task.size_bytes,
                correlation=call.correlation,
            )
            for index, records_of in self._recorded
            for task in records_of()
            if task.kind.value in _KINDS and (call := launches.get(task.visible_ns))
        ]
        return records, self._calls

    def _watch(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        host = self._machine.host

        def watched(*args: Any) -> Any:  # the signatures are the host's
            # One such method may call another; CUPTI shows only the call of the program.
            if self._is_inside:
                return function(*args)
            self._is_inside = True
            is_launch = name == "launch" and _launch(args[0])[0] == "launch"
            if is_launch:
                self._request_buffer()
            # Before the call, so that CUPTI's own time counts as part of the launch.
            start_ns = host.now_ns
            if is_launch:
                host.spend(self._launch_ns)
            try:
                return function(*args)
            finally:
                self._note(*_named(name, args), start_ns)
                if is_launch and not getattr(args[0].demand, "is_pinned", True):
                    self.pageable.add(len(self._calls))
                if name == "wait_for_device":
                    self._request_buffer()
                self._is_inside = False

        return watched

    def _request_buffer(self) -> None:
        if self._buffer_ns:
            start_ns = self._machine.host.now_ns
            self._machine.host.spend(self._buffer_ns)
            self._buffer_ns = 0
            self._note("other", BUFFER_REQUEST, start_ns)

    def _note(self, kind: str, name: str, start_ns: int) -> None:
        number, end_ns = len(self._calls) + 1, self._machine.host.now_ns
        self._calls.append(HostCall(kind, name, start_ns, end_ns, correlation=number))


def _named(name: str, args: tuple[Any, ...]) -> tuple[str, str]:
    """Return the kind of a call and CUDA's name for it."""
    if name == "wait" and args[0] is not None and args[0].kind.value in _KINDS:
        return "wait", "cudaStreamSynchronize"  # as PyTorch waits for a copy
    if name in _WAITS:
        return "wait", _WAITS[name]
    if name in _ALLOCATIONS:
        return "other", _ALLOCATIONS[name]
    return _launch(args[0])


def _launch(task: "StreamTask") -> tuple[str, str]:
    """Return the kind and CUDA's name of the call that launches ``task``."""
    if task.kind.value in _KINDS:
        return "launch", _kinds(task.kind.value, task.name)[1]
    if task.name == "graph":
        return "launch", "cudaGraphLaunch"
    return "other", "cudaStreamWaitEvent" if task.waits_for else "cudaEventRecordWithFlags"


def _kinds(kind: str, name: str) -> tuple[str, str]:
    """Return CUPTI's name for the kind of a task, and CUDA's for the call that launches it."""
    return _DRIVERS_OWN.get(name[:6], _KINDS[kind])
