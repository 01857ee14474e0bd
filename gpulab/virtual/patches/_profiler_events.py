"""The results of a profiler session as PyTorch's Python code expects them: events and a trace."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch.autograd import DeviceType  # type: ignore[attr-defined] # torch's gap

from gpulab.core.disk import write_whole

_DEVICE_WORK = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
_ON_DEVICE = _DEVICE_WORK | {"gpu_user_annotation"}
_HOST = "host"
_THREAD = 1
MEMORY = "[memory]"  # PyTorch's name for an event that changes the memory in use


class ProfilerEvent:
    """One event with the interface of PyTorch's ``_KinetoEvent``, where each value is a method."""

    # Values that the virtual GPU does not know, as they are for a CPU operator without arguments.
    _ABSENT: Mapping[str, Any] = {
        "concrete_inputs": [],
        "cuda_elapsed_us": -1,
        "device_index": 0,
        "dtypes": [],
        "external_id": 0,
        "extra_meta": {},
        "flops": 0,
        "flow_id": 0,
        "flow_start": False,
        "flow_type": 0,
        "fwd_thread_id": 0,
        "is_async": False,
        "is_hidden_event": False,
        "is_python_function": False,
        "is_user_annotation": False,
        "kwinputs": {},
        "linked_correlation_id": 0,
        "metadata_json": "",
        "typed_metadata": {},  # from torch 2.14 on
        "nbytes": 0,
        "overload_name": "",
        "privateuse1_elapsed_us": -1,
        "python_id": -1,
        "python_module_id": -1,
        "python_parent_id": -1,
        "scope": 0,
        "sequence_nr": -1,
        "shapes": [],
        "stack": [],
        "start_thread_id": _THREAD,
        "end_thread_id": _THREAD,
        "structured_input_shapes": [],
        "structured_input_strides": [],
    }

    def __init__(self, name: str, start_ns: int, end_ns: int, kind: str, **values: Any) -> None:
        self._values = {
            **self._ABSENT,
            "name": name,
            "start_ns": start_ns,
            "end_ns": end_ns,
            "duration_ns": end_ns - start_ns,
            "activity_type": kind,
            "device_type": DeviceType.CUDA if kind in _ON_DEVICE else DeviceType.CPU,
            "device_resource_id": values.pop("stream", _THREAD),
            **values,
        }

    def __getattr__(self, name: str) -> Callable[[], Any]:
        try:
            value = self._values[name]
        except KeyError:
            # hasattr() must work for names that only another version of PyTorch has.
            raise AttributeError(f"an event of the profiler has no {name!r}") from None
        return lambda: value

    def in_trace(self) -> dict[str, Any]:
        """Return the event in Chrome's trace format, with the names that Kineto uses."""
        value = self._values
        on_device = value["activity_type"] in _ON_DEVICE
        args: dict[str, Any] = {}
        if value["activity_type"] == "cpu_op":
            args = {"External id": value["correlation_id"]}
            if value["shapes"]:
                args["Input Dims"] = value["shapes"]
        else:
            args = {"correlation": value["correlation_id"]}
            args["External id"] = value["linked_correlation_id"]
        if on_device:
            args |= {"device": value["device_index"], "stream": value["device_resource_id"]}
        return {
            "ph": "X",
            "cat": value["activity_type"],
            "name": value["name"],
            "pid": value["device_index"] if on_device else _HOST,
            "tid": value["device_resource_id"],
            "ts": value["start_ns"] / 1e3,
            "dur": (value["end_ns"] - value["start_ns"]) / 1e3,
            "args": args,
        }


class ProfilerResult:
    """The result of a session, with the interface of PyTorch's ``_ProfilerResult``."""

    def __init__(self, device_name: str, start_ns: int, events: list[ProfilerEvent]) -> None:
        self._device = device_name
        self._start_ns = start_ns
        self._events = events

    def events(self) -> list[ProfilerEvent]:
        """Return the events, sorted by start."""
        return self._events

    def trace_start_ns(self) -> int:
        """Return the start of the session in ns of the virtual clock."""
        return self._start_ns

    def trace_activities(self) -> list[Any]:
        """Return an empty list: all activities are in the events."""
        return []

    def save(self, path: str) -> None:
        """Write a trace file for Perfetto and TensorBoard, with virtual times."""
        trace = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": self._device}],
            "displayTimeUnit": "ms",
            "otherData": {"device": self._device, "source": "virtual"},
            "traceEvents": [
                *self._names(),
                *(event.in_trace() for event in self._shown()),
                *self._arrows(),
            ],
            "traceName": str(path),
        }
        write_whole(path, json.dumps(trace).encode())

    def _shown(self) -> list[ProfilerEvent]:
        return [event for event in self._events if event.name() != MEMORY]

    def _names(self) -> Iterator[dict[str, Any]]:
        processes = {_HOST: "host (virtual)"}
        for event in self._shown():
            if event.activity_type() in _ON_DEVICE:
                index = event.device_index()
                processes[index] = f"cuda:{index} ({self._device}, virtual)"
        for process, name in processes.items():
            args = {"name": name}
            yield {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": args}

    def _arrows(self) -> Iterator[dict[str, Any]]:
        """Yield an arrow from each launch to the kernel or copy that it started."""
        calls = {
            event.correlation_id(): event
            for event in self._events
            if event.activity_type() == "cuda_runtime"
        }
        for event in self._shown():
            call = calls.get(event.correlation_id())
            if event.activity_type() in _DEVICE_WORK and call is not None:
                for phase, end in (("s", call), ("f", event)):
                    entry = end.in_trace()
                    yield {
                        "ph": phase,
                        "id": event.correlation_id(),
                        # Kineto's name for arrows from an asynchronous call to the GPU.
                        "cat": "ac2g",
                        "name": "ac2g",
                        "bp": "e",
                        **{key: entry[key] for key in ("pid", "tid", "ts")},
                    }
