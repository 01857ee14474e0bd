"""Activity records of a real GPU: from CUPTI, through the profiler that is part of PyTorch."""

import re
import time
from typing import Any, Self

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]  # torch's gap

from gpulab.activity import ActivityRecord, HostCall
from gpulab.errors import ProfilerBusyError, ProfilerUnavailableError
from gpulab.interrupts import hold, let_go, step
from gpulab.profiling._cupti import collect_complaints, detach, leave_teardown_to_us
from gpulab.torch_private import spin

# Each session loses time, and in some versions of CUPTI records, over its first launches.
_N_THROWN_AWAY = 8
# Windows of the host's clock are cut this far from any call, as that clock and CUPTI's are read
# at different moments; on an H200's host they agreed within 2 µs.
_GUARD_NS = 5_000
_LAUNCHES = re.compile(r"cu(?:da)?(?:Launch(?!HostFunc)|GraphLaunch|Memcpy|Memset)")
_CALL = re.compile(r"cu(?:da)?[A-Z]")
_INSTEAD = 'or measure without records: method="calibrated"'


class KinetoSession:
    """One session of the profiler, from entering to leaving; it records the device alone.

    Raises
    ------
    ProfilerBusyError
        If another session of ``torch.profiler`` is open, or another tool holds CUPTI.
    ProfilerUnavailableError
        If this build of PyTorch has no CUPTI, or the driver gives it nothing.
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
        # Not torch.profiler.profile, which imports the compiler: 4.7 s against 0.02 s.
        self._profile = torch.autograd.profiler.profile(
            use_cpu=False, use_device="cuda", use_kineto=True
        )
        with collect_complaints(_complaints), leave_teardown_to_us():
            try:
                self._profile.__enter__()
            except RuntimeError as error:
                raise ProfilerBusyError(
                    f"torch.profiler begins no session ({str(error).partition(chr(10))[0]}); "
                    "where a schedule has one in its warm-up, leave its `with` block, "
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
        # Its own wait for the device raises after a CUDA error, and would leave it running.
        self._profile.use_device = None
        with collect_complaints(_complaints), leave_teardown_to_us():
            self._profile.__exit__(None, None, None)
        if not isinstance(error, RuntimeError):  # nothing more is asked of a broken context
            detach()

    def now_ns(self) -> int:
        """Return a time of the host that is well apart from the calls before and after."""
        start_ns = time.time_ns()
        while time.time_ns() < start_ns + 2 * _GUARD_NS:
            pass
        return start_ns + _GUARD_NS

    def read(self) -> tuple[list[ActivityRecord], list[HostCall]]:
        """Return what the device did and what the host called in this session.

        Raises
        ------
        ProfilerBusyError, ProfilerUnavailableError
            If there is no record at all, not even of the launches that are thrown away.
        """
        # The profiler's own parsed events take a hundred times longer to make.
        on_device, on_host = [], []
        for event in self._profile.kineto_results.events():
            kind = event.device_type()  # comparing its name takes ten times as long
            if kind == DeviceType.CUDA:
                on_device.append(event)
            elif kind == DeviceType.CPU and _CALL.match(event.name()):
                on_host.append(event)
        if not on_device:
            raise _no_records()
        calls = sorted(map(_call, on_host), key=lambda call: call.start_ns)
        by_number = {call.correlation: call for call in calls}
        shown = [event for event in on_device if not _is_annotation(event)]
        return [_record(event, by_number) for event in shown], calls


def is_prepared() -> bool:
    """Tell whether a program's own session may be in the warm-up of its schedule.

    A second one would spoil it, and nothing tells but that its steps are counted: from when it is
    made until its ``with`` block is left.
    """
    autograd: Any = torch.autograd  # the table of counts is private
    return "ProfilerStep" in autograd.profiler.KinetoStepTracker._step_dict  # noqa: SLF001  # PyTorch has no public name for it


def obstacle() -> str | None:
    """Return why there can be no records here, before anything is tried, or None."""
    profiler: Any = torch.profiler
    if profiler.ProfilerActivity.CUDA in profiler.supported_activities():
        return None
    return f"torch {torch.__version__} was built without CUPTI, which keeps the records"


# What the profiler's C++ layer said on stderr, where it says why CUPTI failed, and only once.
_complaints: list[str] = []


def _require_idle() -> None:
    # A second session would end the first one without a word, and its end may crash.
    autograd: Any = torch.autograd  # what tells of a session is private
    if autograd.profiler._is_profiler_enabled or autograd._profiler_enabled():  # noqa: SLF001  # PyTorch has no public name for it
        raise ProfilerBusyError(
            "a session of torch.profiler is open, and there can be only one; "
            f"leave its `with` block, or call its stop(), {_INSTEAD}"
        )


def _no_records() -> ProfilerBusyError | ProfilerUnavailableError:
    said = next((line for line in _complaints if "CUPTI_ERROR" in line), "")
    (code,) = re.findall(r"CUPTI_ERROR_\w+", said)[:1] or [""]
    if "MULTIPLE_SUBSCRIBERS" in code:
        return ProfilerBusyError(
            f"another tool holds CUPTI, which serves one at a time ({code}); restart Python "
            "without Nsight Systems, Nsight Compute or what else profiles this process, "
            f"{_INSTEAD}"
        )
    if "PRIVILEGES" in code:
        return ProfilerUnavailableError(
            f"the driver gives records to administrators only ({code}); have it loaded with "
            "NVreg_RestrictProfilingToAdminUsers=0, start a container with "
            f"--cap-add=SYS_ADMIN, {_INSTEAD}"
        )
    return ProfilerUnavailableError(
        f"the driver gave no record of any kernel ({code or 'CUPTI does not say why'}); in a "
        f"container, start it with --cap-add=SYS_ADMIN, {_INSTEAD}"
    )


def _is_annotation(event: Any) -> bool:  # noqa: ANN401 # the profiler's class is private
    """Optimizers name their step, and the profiler then shows that name on the device too."""
    names = ("Optimizer.", "ProfilerStep")
    return bool(event.is_user_annotation() or event.name().startswith(names))


def _call(event: Any) -> HostCall:  # noqa: ANN401 # the profiler's class is private
    name, start_ns = event.name(), event.start_ns()
    end_ns = start_ns + event.duration_ns()
    # Of a call, what is the stream of a kernel is the thread.
    thread, number = event.device_resource_id(), event.correlation_id()
    return HostCall(kind_of_call(name), name, start_ns, end_ns, thread, number)


def kind_of_call(name: str) -> str:
    """Return which kind of :class:`gpulab.activity.HostCall` a function of CUDA is.

    Examples
    --------
    >>> kind_of_call("cudaLaunchKernel"), kind_of_call("cudaStreamSynchronize")
    ('launch', 'wait')
    """
    if _LAUNCHES.match(name):
        return "launch"
    return "wait" if "Synchronize" in name else "other"


def _record(event: Any, calls: dict[int, HostCall]) -> ActivityRecord:  # noqa: ANN401 # the profiler's class is private
    name, start_ns, number = event.name(), event.start_ns(), event.correlation_id()
    call = calls.get(number)
    return ActivityRecord(
        kind={"Memcpy": "memcpy", "Memset": "memset"}.get(name[:6], "kernel"),
        name=name,
        start_ns=start_ns,
        end_ns=start_ns + event.duration_ns(),
        stream=event.device_resource_id(),
        device=event.device_index(),
        launch_start_ns=None if call is None else call.start_ns,
        launch_end_ns=None if call is None else call.end_ns,
        size_bytes=event.nbytes() or None,
        correlation=number,
    )
