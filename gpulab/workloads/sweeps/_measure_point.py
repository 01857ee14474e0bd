"""Measure one point of a sweep: the time of a task, or one line that says why there is none.

While a point is measured, a lock makes other sweeps wait for the same GPU or CPU.
"""

import contextlib
import math
import socket
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import torch
from filelock import FileLock, Timeout

from gpulab import device, stats, timing
from gpulab.core.disk import state_folder
from gpulab.core.errors import DoesNotFitError, FlushMemoryError
from gpulab.core.foreign_text import first_line
from gpulab.core.interrupts import ExitStack, contextmanager, step
from gpulab.core.requirements import instance_of
from gpulab.core.units import format_bytes
from gpulab.device import outside
from gpulab.device.measurement import Measurement
from gpulab.timing import MeasurementOptions, examine_samples, measure
from gpulab.virtual import ValueLimits
from gpulab.workloads import Workload, workload
from gpulab.workloads._problem import Whole
from gpulab.workloads.sweeps import _host
from gpulab.workloads.sweeps._tasks import WALL, Point, Task
from gpulab.workloads.sweeps._transfers import host_bytes, with_copies

TASK = instance_of(Task, "a Task, such as tasks_of() makes")
_INDEX_BYTES = 8
_LOCK_POLL_S = 0.02  # Ctrl-C is delivered between two tries
_SEED = 0  # all points of a workload get the same random numbers


def check(task: Task) -> None:
    """Refuse an object that is not a task, and a task of an unknown workload or method."""
    TASK.check(task=task)
    workload(task.workload)
    if task.method != WALL:
        MeasurementOptions(method=task.method)  # it refuses an unknown one


def measure_point(task: Task, effort: MeasurementOptions) -> Point:
    """Return the point of a task, measured now on the GPU in use or on the CPU.

    ``effort`` says when the samples end, by ``precision`` and ``max_time_s``; the task has the
    other options.
    """
    check(task)
    work = workload(task.workload)
    # The device first: the lock is for the GPU that is then in use, or for the CPU.
    with outside() if task.on == "cpu" else device.active(), device_lock(task.on):
        try:
            if task.dtype not in work.dtypes:
                return failed(task, f"{task.workload} has no kernel for {task.dtype} here")
            return _on_cpu(task, work, effort) if task.on == "cpu" else _on_gpu(task, work, effort)
        except Exception as error:  # noqa: BLE001  # one point's failure must not end a sweep
            reason = _explain(error, task, work)
        # Outside the handler, because the frames of the error still refer to the tensors that
        # filled the memory.
        if task.on == "gpu":
            clean_up()
        return failed(task, reason)


def failed(task: Task, reason: str) -> Point:
    """Return a point with an error instead of a time."""
    source, device_name = _device_of(task)
    return task.failed(reason, source=source, device_name=device_name, taken_at=_host.utc_now())


def _device_of(task: Task) -> tuple[str, str]:
    """Return the source of a task's time, and the name of its device."""
    if task.on == "cpu":
        return "measured", _host.cpu_name()
    gpu = device.current()
    return gpu.source, gpu.name


def _on_gpu(task: Task, work: Workload, effort: MeasurementOptions) -> Point:
    with without_values(device.current()):
        return _timed_on_gpu(task, work, effort)


@contextmanager
def without_values(gpu: device.Device) -> Iterator[None]:
    """Let the virtual GPU compute times but no values, which is faster; times stay the same."""
    if gpu.virtual is None:
        yield
        return
    machine = gpu.virtual.machine
    before = machine.limits
    try:
        machine.limits = ValueLimits(0, 0.0, 0)
        yield
    finally:
        machine.limits = before


def _timed_on_gpu(task: Task, work: Workload, effort: MeasurementOptions) -> Point:
    problem = work.problem(task.size)
    _require(least_bytes(work, task), _host.free_gpu_bytes(), "the GPU")
    inputs = work.setup(task.size, task.dtype, generator=_generator("cuda"))
    # Before any pinned memory is allocated: the system cannot swap it out to save itself.
    _require(host_bytes(inputs, task.transfers), _host.free_host_bytes(), "the host")
    measured = measure(
        with_copies(problem.work(inputs), inputs, task.transfers),
        method=task.method,
        cache=task.cache,
        precision=effort.precision,
        max_time_s=effort.max_time_s,
        flops=problem.n_flops,
        size_bytes=work.bytes(task.size, task.dtype),
        progress=False,
    )
    if measured.stopped_by == "interrupt":  # not precise, so a resumed sweep must measure it again
        raise KeyboardInterrupt
    return _point(task, measured)


def _point(task: Task, measured: Measurement) -> Point:
    low_s, high_s = measured.interval_s
    return Point(
        task,
        median_s=measured.median_s,
        low_s=low_s,
        high_s=high_s,
        n_samples=measured.n_samples,
        source=measured.source,
        device_name=measured.conditions.device_name,
        floor_s=measured.floor_s,
        clock_mhz=measured.conditions.clock_after_mhz,
        findings=tuple(finding.code for finding in measured.findings),
        taken_at=measured.conditions.taken_at,
    )


def _on_cpu(task: Task, work: Workload, effort: MeasurementOptions) -> Point:
    # A GPU raises an error when memory runs out, but an operating system may kill the process.
    # So on the host the memory of the result is counted too.
    needed = max(least_bytes(work, task), work.bytes(task.size, task.dtype))
    _require(needed, _host.free_host_bytes(), "the host")
    with timing.cpu_threads(task.n_threads):
        _pay_for_first_use(task, work)
        inputs = work.setup(task.size, task.dtype, "cpu", generator=_generator("cpu"))
        samples_s = timing.take_cpu_samples(
            work.problem(task.size).work(inputs),
            precision=effort.precision,
            max_time_s=effort.max_time_s,
        )
    source, device_name = _device_of(task)
    low_s, high_s = stats.median_interval(samples_s)
    return Point(
        task,
        median_s=median(samples_s),
        low_s=low_s,
        high_s=high_s,
        n_samples=len(samples_s),
        source=source,
        device_name=device_name,
        findings=tuple(finding.code for finding in examine_samples(samples_s)),
        taken_at=_host.utc_now(),
    )


def _pay_for_first_use(task: Task, work: Workload) -> None:
    """Call the smallest size once, because a first call may load a library for a second.

    Otherwise that second would be the time of a size that is called only once.
    """
    size = min(task.size, *work.sizes)
    inputs = work.setup(size, task.dtype, "cpu", generator=_generator("cpu"))
    work.problem(size).work(inputs)()


def least_bytes(work: Workload, task: Task) -> int:
    """Return the bytes of the inputs, without results and scratch memory."""
    itemsize = getattr(torch, task.dtype).itemsize
    return sum(
        math.prod(tensor.shape) * (_INDEX_BYTES if isinstance(tensor, Whole) else itemsize)
        for tensor in work.problem(task.size).inputs
    )


def _require(needed: int, free: int, where: str) -> None:
    if needed > free:
        raise DoesNotFitError(
            f"does not fit: needs at least {format_bytes(needed)}, and {where} has "
            f"{format_bytes(free)} free"
        )


def _generator(kind: str) -> torch.Generator:
    # Not PyTorch's default generator: its next numbers belong to the caller.
    return torch.Generator(kind).manual_seed(_SEED)


def clean_up() -> None:
    """Return cached memory to the driver, after a point that failed."""
    try:
        torch.cuda.empty_cache()
    except RuntimeError:  # after an error of CUDA every call raises it again
        return


def _explain(error: Exception, task: Task, work: Workload) -> str:
    line = first_line(error)
    if isinstance(error, DoesNotFitError):
        return line
    # PyTorch raises a plain RuntimeError for two of these; only the text distinguishes them.
    if isinstance(error, torch.OutOfMemoryError | FlushMemoryError | MemoryError) or (
        "DefaultCPUAllocator" in line
    ):
        return f"out of memory: needs more than {format_bytes(least_bytes(work, task))}"
    if "not implemented for" in line:
        return f"{task.workload} has no kernel for {task.dtype} on the {task.on.upper()}: {line}"
    return f"{type(error).__name__}: {line}"


# Not gpulab.core.interrupts.contextmanager, which delays Ctrl-C: this may wait for another
# process, and Ctrl-C must end that wait.
@contextlib.contextmanager
def device_lock(on: str) -> Iterator[None]:
    """Lock the GPU or the CPU inside the block, after other sweeps of this user released it.

    The operating system releases the lock when the process ends, in any way. Programs other than
    sweeps do not use it. A virtual GPU belongs to one process, so it is not locked.
    """
    name = _hardware_id(on)
    if name is None:
        yield
        return
    with ExitStack() as stack:
        try:
            lock = FileLock(lock_file(name))
            stack.enter_context(_released_at_end(lock))
            # FileLock's own wait would be part of the step that enters it, which delays Ctrl-C.
            while not _is_taken(lock):
                time.sleep(_LOCK_POLL_S)
        except (OSError, NotImplementedError) as error:  # a network file system without locks
            warnings.warn(
                f"{name} cannot be locked ({error}); run only one sweep at a time on this machine",
                stacklevel=2,
            )
        yield


@contextmanager
def _released_at_end(lock: FileLock) -> Iterator[None]:
    try:
        yield
    finally:
        lock.release()  # does nothing if the lock was never taken


@step
def _is_taken(lock: FileLock) -> bool:
    """Take the lock if it is free, without waiting; return whether it was free."""
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    return True


def lock_file(name: str) -> Path:
    """Return the lock file for a GPU or the CPU of this machine."""
    return state_folder() / f"{socket.gethostname()}-{name}.lock"


def _hardware_id(on: str) -> str | None:
    if on == "cpu":
        return "cpu"
    if device.current().virtual is not None:
        return None
    return str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid)
