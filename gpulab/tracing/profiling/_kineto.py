"""Record the activity of a CUDA GPU: from CUPTI, through the profiler that is part of PyTorch."""

import re
import time
from typing import Any, Self

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]  # torch's gap

from gpulab.core.errors import ProfilerBusyError, ProfilerUnavailableError
from gpulab.core.interrupts import hold, let_go, step
from gpulab.core.torch_private import has_profiler_schedule, is_profiler_open, spin
from gpulab.happens_before.activity import ActivityRecord, HostCall
from gpulab.tracing._cuda_names import kind_of_call
from gpulab.tracing.profiling._cupti import collect_complaints, detach, leave_teardown_to_us

# The first launches of a session take longer, and some versions of CUPTI lose their records, so
# each session starts with launches whose records nobody uses.
_N_THROWN_AWAY = 8
# The least distance between a call and the border of a window. The window comes from the host's
# clock and the call's time from CUPTI's; on an H200's host the two agreed within 2 µs.
_GUARD_NS = 5_000
_CALL = re.compile(r"cu(?:da)?[A-Z]")
_INSTEAD = 'or measure without records: method="calibrated"'


class KinetoSession:
    """One session of PyTorch's profiler as a context; it records kernels and calls of CUDA only.

    Raises `ProfilerBusyError` if another session of ``torch.profiler`` is open, or another tool
    uses CUPTI, and `ProfilerUnavailableError` if this build of PyTorch has no CUPTI, or the driver
    gives it no records.
    """

    source = "measured"

    def __init__(self) -> None:
        self._profile: Any = None

    @step
    def __enter__(self) -> Self:
        try:
            hold(self)
            self._begin()
        except BaseException:
            let_go(self)
            raise
        return self

    @step
    def __exit__(
        self, _kind: object = None, error: BaseException | None = None, _trace: object = None
    ) -> None:
        try:
            self._end(error)
        finally:
            let_go(self)

    def _begin(self) -> None:
        _require_idle()
        reason = obstacle()
        if reason is not None:
            raise ProfilerUnavailableError(f"{reason}; {_INSTEAD[3:]}")
        # torch.profiler.profile would import torch's compiler: it takes 4.7 s, and this 0.02 s.
        # use_cpu would record the operators, too, and slow the host down further.
        self._profile = torch.autograd.profiler.profile(
            use_cpu=False, use_device="cuda", use_kineto=True
        )
        with collect_complaints(_complaints), leave_teardown_to_us():
            try:
                self._profile.__enter__()
            except RuntimeError as error:
                raise ProfilerBusyError(
                    f"torch.profiler cannot begin a session ({str(error).partition(chr(10))[0]}); "
                    "if a profiler with a schedule is in its warm-up, leave its `with` block, "
                    f"{_INSTEAD}"
                ) from error
        try:
            for _ in range(_N_THROWN_AWAY):
                spin(1)
            torch.cuda.synchronize()
        except BaseException:
            self._end(None)
            raise

    def _end(self, error: BaseException | None) -> None:
        # With a device set, __exit__ synchronizes first. After a CUDA error that raises, and the
        # session would stay open for the rest of the process.
        self._profile.use_device = None
        with collect_complaints(_complaints), leave_teardown_to_us():
            self._profile.__exit__(None, None, None)
        # After a CUDA error the context is broken, and cuptiFinalize must not touch it.
        if not isinstance(error, RuntimeError):
            detach()

    def now_ns(self) -> int:
        """Return a time in ns that is at least 5 µs away from the calls before and after it."""
        start_ns = time.time_ns()
        # Waits on both sides of the returned time, and by spinning, because a sleep would let the
        # GPU catch up with the host.
        while time.time_ns() < start_ns + 2 * _GUARD_NS:
            pass
        return start_ns + _GUARD_NS

    def read(self) -> tuple[list[ActivityRecord], list[HostCall]]:
        """Return what the device did and what the host called in this session.

        Raises an error if there is no record at all, not even of the launches at its start.
        """
        # profile.events() would parse them into trees, which takes a hundred times as long.
        on_device, on_host = [], []
        for event in self._profile.kineto_results.events():
            kind = event.device_type()  # comparing enum values: their names take ten times as long
            if kind == DeviceType.CUDA:
                on_device.append(event)
            elif kind == DeviceType.CPU and _CALL.match(event.name()):
                on_host.append(event)
        if not on_device:
            raise _no_records()
        calls = sorted(map(_call, on_host), key=lambda call: call.start_ns)
        by_number = {call.correlation: call for call in calls}
        works = [event for event in on_device if not _is_annotation(event)]
        return [_record(event, by_number) for event in works], calls


def is_prepared() -> bool:
    """Return whether the program may have a profiler that is in the warm-up of its schedule.

    Another session would end that one. The result is True from the moment when a
    ``torch.profiler.profile`` is made until its ``with`` block is left.
    """
    return has_profiler_schedule()  # during a warm-up no session is open


def obstacle() -> str | None:
    """Return why this build of PyTorch cannot record a GPU, or None if it can."""
    profiler: Any = torch.profiler
    if profiler.ProfilerActivity.CUDA in profiler.supported_activities():
        return None
    return f"torch {torch.__version__} was built without CUPTI, which collects the records"


# Lines that the profiler's C++ layer wrote to stderr in any session of this process: it says why
# CUPTI failed only once, so a later session finds the reason here.
_complaints: list[str] = []


def _require_idle() -> None:
    # PyTorch does not refuse a second session: it silently ends the first one, which may then
    # crash when it is left.
    if is_profiler_open():
        raise ProfilerBusyError(
            "a session of torch.profiler is open, and there can be only one; "
            f"leave its `with` block, or call its stop(), {_INSTEAD}"
        )


def _no_records() -> ProfilerBusyError | ProfilerUnavailableError:
    complaint = next((line for line in _complaints if "CUPTI_ERROR" in line), "")
    (code,) = re.findall(r"CUPTI_ERROR_\w+", complaint)[:1] or [""]
    if "MULTIPLE_SUBSCRIBERS" in code:
        return ProfilerBusyError(
            f"another tool uses CUPTI, which serves one at a time ({code}); restart Python "
            "without Nsight Systems, Nsight Compute or any other profiler of this process, "
            f"{_INSTEAD}"
        )
    if "PRIVILEGES" in code:
        return ProfilerUnavailableError(
            f"the driver gives records to administrators only ({code}); load it with "
            "NVreg_RestrictProfilingToAdminUsers=0, start the container with "
            f"--cap-add=SYS_ADMIN, {_INSTEAD}"
        )
    return ProfilerUnavailableError(
        f"the driver gave no record of any kernel ({code or 'CUPTI does not say why'}); in a "
        f"container, start it with --cap-add=SYS_ADMIN, {_INSTEAD}"
    )


def _is_annotation(event: Any) -> bool:  # noqa: ANN401 # the profiler's class is private
    """Return whether an event is the copy of a ``record_function`` range on the device's row."""
    # Optimizers and schedules mark their steps with such ranges, which are not kernels.
    names = ("Optimizer.", "ProfilerStep")
    return bool(event.is_user_annotation() or event.name().startswith(names))


def _call(event: Any) -> HostCall:  # noqa: ANN401 # the profiler's class is private
    name, start_ns = event.name(), event.start_ns()
    end_ns = start_ns + event.duration_ns()
    # The field that contains the stream of a kernel contains the thread of a call.
    thread, number = event.device_resource_id(), event.correlation_id()
    return HostCall(kind_of_call(name), name, start_ns, end_ns, thread, number)


def _record(event: Any, calls: dict[int, HostCall]) -> ActivityRecord:  # noqa: ANN401 # the profiler's class is private
    name, start_ns, number = event.name(), event.start_ns(), event.correlation_id()
    call = calls.get(number)
    return ActivityRecord(
        # Kineto's events do not say their kind; CUPTI names copies and fills in this way.
        kind={"Memcpy": "memcpy", "Memset": "memset"}.get(name[:6], "kernel"),
        name=name,
        start_ns=start_ns,
        end_ns=start_ns + event.duration_ns(),
        stream=event.device_resource_id(),
        device=event.device_index(),
        launch_start_ns=None if call is None else call.start_ns,
        launch_end_ns=None if call is None else call.end_ns,
        # Kineto returns 0 where it does not know the number.
        size_bytes=event.nbytes() or None,
        correlation=number,
    )
