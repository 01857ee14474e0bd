"""Activity records of a virtual GPU, with the calls of its host that launched them."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from gpulab.activity import ActivityRecord, HostCall
from gpulab.interrupts import ending, hold, let_go, step
from gpulab.virtual._replaced import put_back

if TYPE_CHECKING:
    from gpulab.virtual.simulator import Machine, StreamTask, TaskRecord


# By the name that the model gives a kind of task: what CUPTI calls it, and CUDA its launch.
_KINDS = {
    "kernel": ("kernel", "cudaLaunchKernel"),
    "copy in": ("memcpy", "cudaMemcpyAsync"),
    "copy out": ("memcpy", "cudaMemcpyAsync"),
    "copy between GPUs": ("memcpy", "cudaMemcpyPeerAsync"),
}
_WAITS = {
    "wait_for_device": "cudaDeviceSynchronize",
    "wait_for_stream": "cudaStreamSynchronize",
    "wait": "cudaEventSynchronize",
}
_ALLOCATIONS = {
    "device_malloc": "cudaMalloc",
    "device_free": "cudaFree",
    "pin_anew": "cudaHostAlloc",
}
_OF_HOST = (*_WAITS, "launch")


class SimulatorSession:
    """Records what a virtual GPU does and its host calls, from entering to leaving.

    Each launch takes ``launch_ns`` longer, if it is given. Methods of the host and the machine are
    replaced on these two objects, so that launches cost nothing more while nobody watches.
    """

    source = "virtual"

    def __init__(self, machine: "Machine", *, launch_ns: int = 0) -> None:
        self._machine = machine
        self._launch_ns = launch_ns
        self._own: list[tuple[Any, str, Any]] = []
        self._calls: list[HostCall] = []
        self._is_inside = False
        self._kept: list[tuple[int, Callable[[], list[TaskRecord]]]] = []
        self._keeping = ExitStack()

    @step
    def __enter__(self) -> Self:
        places = [
            *((self._machine.host, name) for name in _OF_HOST),
            *((self._machine, name) for name in _ALLOCATIONS),
        ]
        watched = [self._watch(name, getattr(owner, name)) for owner, name in places]
        self._own = [(owner, name, vars(owner).get(name)) for owner, name in places]
        try:
            hold(self)
            for (owner, name), function in zip(places, watched, strict=True):
                vars(owner)[name] = function
            self._kept = [
                (gpu.index, self._keeping.enter_context(gpu.device.keeping_records()))
                for gpu in self._machine.gpus
            ]
        except BaseException:
            self.__exit__()
            raise
        return self

    @ending
    def __exit__(self, *_error: object) -> None:
        self._keeping.close()
        for owner, name, own in self._own:
            put_back(owner, name, own)
        let_go(self)

    def now_ns(self) -> int:
        """Return the host's time, at no cost."""
        return self._machine.host.now_ns

    def read(self) -> tuple[list[ActivityRecord], list[HostCall]]:
        """Return what the devices did and what the host called while it was watched."""
        latency_ns = self._machine.host.costs.launch_latency_ns
        # A task is visible to the device a fixed time after the end of the call that launched
        # it, and no two calls end at the same time.
        launches = {call.end_ns + latency_ns: call for call in self._calls if _launches(call)}
        records = [
            ActivityRecord(
                kind=_KINDS[task.kind.value][0],
                name=task.name,
                start_ns=task.start_ns,
                end_ns=task.end_ns,
                stream=task.stream,
                device=index,
                launch_start_ns=call.start_ns,
                launch_end_ns=call.end_ns,
                correlation=call.correlation,
            )
            for index, records_of in self._kept
            for task in records_of()
            if task.kind.value in _KINDS and (call := launches.get(task.visible_ns))
        ]
        return records, self._calls

    def _watch(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        host = self._machine.host

        def watched(*args: Any) -> Any:  # the signatures are the host's
            if self._is_inside:  # one call of the host's may be made of others
                return function(*args)
            start_ns, self._is_inside = host.now_ns, True
            if name == "launch" and _launch(args[0])[0] == "launch":
                host.spend(self._launch_ns)
            try:
                return function(*args)
            finally:
                self._is_inside = False
                kind, shown = _named(name, args)
                number = len(self._calls) + 1
                self._calls.append(
                    HostCall(kind, shown, start_ns, host.now_ns, correlation=number)
                )

        return watched


def _named(name: str, args: tuple[Any, ...]) -> tuple[str, str]:
    """Return the kind of a call and CUDA's name for it."""
    if name in _WAITS:
        return "wait", _WAITS[name]
    if name in _ALLOCATIONS:
        return "other", _ALLOCATIONS[name]
    return _launch(args[0])


def _launch(task: "StreamTask") -> tuple[str, str]:
    """Return kind and name of the call that launches ``task``."""
    if task.kind.value in _KINDS:
        return "launch", _KINDS[task.kind.value][1]
    if task.name == "graph":
        return "launch", "cudaGraphLaunch"
    return "other", "cudaStreamWaitEvent" if task.waits_for else "cudaEventRecord"


def _launches(call: HostCall) -> bool:
    return call.kind == "launch"
