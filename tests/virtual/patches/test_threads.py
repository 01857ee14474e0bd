"""Only the thread that entered may use the device; other threads and forks do host work."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import gpulab
from gpulab.core.errors import NotModelledError

SECOND_THREAD = (
    "the virtual GPU has no model of device work from a second thread; do it on the thread that "
    "entered the virtual GPU, or use a CUDA GPU"
)
FORKED = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must "
    "use the 'spawn' start method"
)
# Since 3.12 Python warns of forks in a process with threads, and torch has threads of its own.
forks = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"),
]


def on_a_thread(work: Callable[[], object]) -> object:
    """Run ``work`` on a new thread, and return its result or its error."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        return future.exception() or future.result()


DEVICE_WORK: dict[str, Callable[[torch.Tensor], object]] = {
    "operation": lambda x: x + 1,
    "new tensor": lambda _x: torch.ones(1, device="cuda"),
    "tensor of numbers": lambda _x: torch.tensor([1.0], device="cuda"),
    "copy to the device": lambda _x: torch.ones(1).cuda(),
    "copy to the host": lambda x: x.cpu(),
    "value": lambda x: x.sum().item(),
    "event": lambda _x: torch.cuda.Event(enable_timing=True),
    "storage": lambda x: x.untyped_storage(),
}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", DEVICE_WORK)
def test_device_work_on_a_second_thread_is_refused(name: str) -> None:
    """Any device work on a second thread raises the same error; the first thread continues."""
    x = torch.ones(3, device="cuda")
    error = on_a_thread(lambda: DEVICE_WORK[name](x))
    assert isinstance(error, NotModelledError)
    assert str(error) == SECOND_THREAD
    assert (x + 1).tolist() == [2.0] * 3


@pytest.mark.usefixtures("gpu")
def test_a_thread_starts_once() -> None:
    """Starting a thread twice raises Python's own error and does not change the thread."""
    ran: list[int] = []
    thread = threading.Thread(target=lambda: ran.append(1))
    thread.start()
    with pytest.raises(RuntimeError, match="threads can only be started once"):
        thread.start()
    thread.join()
    assert (ran, "run" in vars(thread)) == ([1], False)


def in_a_fork(work: Callable[[], object]) -> str:
    """Return the repr of what ``work`` returns in a forked process, or its error."""
    read, write = os.pipe()
    if (process := os.fork()) == 0:
        try:
            answer = repr(work())
        except Exception as error:  # noqa: BLE001 # the parent reads its text
            answer = f"{type(error).__name__}: {error}"
        os.write(write, answer.encode())
        os._exit(0)
    os.waitpid(process, 0)
    os.close(write)
    with os.fdopen(read) as answers:
        return answers.read()


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", [*DEVICE_WORK, "name"])
def test_device_work_in_a_fork_is_refused_in_pytorchs_words(name: str) -> None:
    """Any device work in a forked process raises PyTorch's error for CUDA after a fork."""
    x = torch.ones(3, device="cuda")
    work = DEVICE_WORK.get(name, lambda _x: torch.cuda.get_device_name())
    assert in_a_fork(lambda: work(x)) == f"RuntimeError: {FORKED}"
    assert (x + 1).tolist() == [2.0] * 3


test_device_work_in_a_fork_is_refused_in_pytorchs_words.pytestmark += forks  # type: ignore[attr-defined] # pytest's


@pytest.mark.usefixtures("gpu")
def test_host_work_in_a_fork_runs() -> None:
    """A forked process has the real clock, and CUDA's state is that of any fork."""
    assert in_a_fork(lambda: torch.ones(3).sum().item()) == "3.0"
    assert in_a_fork(lambda: time.perf_counter() < 1_000_000) == "True"
    state = in_a_fork(
        lambda: (
            torch.cuda.is_available(),
            torch.cuda.is_initialized(),
            torch.cuda._is_in_bad_fork(),
            torch.manual_seed(1).initial_seed(),
        )
    )
    assert state == "(True, False, True, 1)"


test_host_work_in_a_fork_runs.pytestmark += forks  # type: ignore[attr-defined] # pytest's


def test_a_thread_may_outlive_the_context() -> None:
    """A thread that outlives the context uses PyTorch as usual."""
    go_on = threading.Event()
    results: list[torch.Tensor] = []
    thread = threading.Thread(target=lambda: (go_on.wait(), results.append(torch.ones(2) + 1)))
    with gpulab.virtual_gpu("H200"):
        thread.start()
    go_on.set()
    thread.join()
    assert results[0].tolist() == [2.0, 2.0]
