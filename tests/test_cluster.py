"""A real cluster of two worker processes on the virtual GPU, and what it refuses."""

import os
import signal
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
import torch

import gpulab
from gpulab import cluster
from gpulab.core.errors import InvalidOptionError, MissingPackageError, NoGpuError
from gpulab.device import _probe
from gpulab.workloads.sweeps import sweep, tasks_of
from tests.support.listening import ports_of
from tests.support.ports import PORTS

pytestmark = pytest.mark.slow

GPU = "7"  # which the second worker is bound to
TASKS = tasks_of(["add", "exp", "copy"], [2**12, 2**20], caches=["hot"])


@pytest.fixture(scope="module", autouse=True)
def _patience() -> Iterator[None]:
    """Wait for workers as long as they need, because the machine may be busy."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as settings:
        patch.setattr(cluster, "_START_S", 3600)
        for name in ("CONNECT", "TCP"):  # for the workers, which start later
            patch.setenv(f"DASK_DISTRIBUTED__COMM__TIMEOUTS__{name}", "1 hour")
        if find_spec("distributed"):
            import dask
            import distributed  # noqa: F401 # its import sets the defaults

            waits = {"connect": "1 hour", "tcp": "1 hour"}
            settings.enter_context(dask.config.set({"distributed.comm.timeouts": waits}))
        yield


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    """Start two workers, each with a virtual A100 of its own; the second is bound to a GPU."""
    pytest.importorskip("distributed")
    gpus_for = cluster._gpus_for
    with pytest.MonkeyPatch.context() as patch, gpulab.virtual_gpu("A100") as a100:
        # Bound as on a machine with GPUs. The tasks use the virtual GPU all the same.
        patch.setattr(cluster, "_gpus_for", lambda n_workers: [*gpus_for(n_workers)[1:], GPU])
        with cluster.local() as started:
            patch.undo()
            a100.__exit__(None, None, None)  # each test enters one of its own
            try:
                yield started
            finally:
                a100.__enter__()


def on_workers(executor: Executor, function: Any) -> list[Any]:  # noqa: ANN401  # runs anywhere
    """Call a function on each worker, and return the results."""
    client: Any = executor._client  # type: ignore[attr-defined]  # Dask's
    return list(client.run(function).values())


def test_two_workers_find_what_is_found_here(executor: Executor) -> None:
    """Two workers return every point in order, with the times that this process finds."""
    with gpulab.virtual_gpu("A100"):
        here = sweep(TASKS, progress=False)
        there = sweep(TASKS, executor=executor, progress=False)
    assert [point.task for point in there.points] == list(TASKS)
    assert there.failures() == ()
    assert {point.device_name for point in there.points} == {"NVIDIA A100-SXM4-80GB"}
    assert [point.median_s for point in there.points] == pytest.approx(
        [point.median_s for point in here.points],
        rel=0.05,  # the floor is known to a tick of the clock
    )


def test_workers_get_a_function_that_no_module_has(executor: Executor) -> None:
    """Dask sends a function by value, so one of a notebook can be swept, with several works."""

    def both(n: int) -> dict[str, Any]:
        x = torch.ones(n, device="cuda")
        return {"sum": lambda: x + x, "product": lambda: x * 2}

    with gpulab.virtual_gpu("A100"):
        here = sweep(both, n=[2**12, 2**20], progress=False).to_frame()
        there = sweep(both, n=[2**12, 2**20], executor=executor, progress=False).to_frame()
    assert there["error"].tolist() == [""] * 4
    assert there[["n", "work"]].to_numpy().tolist() == here[["n", "work"]].to_numpy().tolist()
    assert there["median_s"].tolist() == pytest.approx(here["median_s"].tolist(), rel=0.05)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="it needs Linux's /proc")
def test_a_worker_sees_its_gpu_from_the_first_instruction(executor: Executor) -> None:
    """A worker starts with CUDA_VISIBLE_DEVICES, so even an import cannot use another GPU."""
    environments = on_workers(executor, lambda: Path("/proc/self/environ").read_bytes())
    bound = [f"CUDA_VISIBLE_DEVICES={GPU}".encode() in each.split(b"\0") for each in environments]
    assert sorted(bound) == [False, True]


def test_a_killed_worker_loses_nothing(executor: Executor) -> None:
    """The task of a worker that dies is given to the other one, and another worker comes."""
    victim = on_workers(executor, os.getpid)[0]

    os.kill(victim, signal.SIGKILL)
    with gpulab.virtual_gpu("A100"):
        found = sweep(TASKS, executor=executor, progress=False)
    assert len(found.points) == len(TASKS)
    assert (found.failures(), found.missing, found.stopped_by) == ((), (), "")
    executor._client.wait_for_workers(2, timeout=3600)  # type: ignore[attr-defined]  # Dask's
    assert victim not in on_workers(executor, os.getpid)


def test_the_cluster_listens_on_loopback_only(executor: Executor) -> None:
    """The scheduler and the workers listen on loopback only."""
    del executor
    ports = ports_of(psutil.Process())
    # Two ports for the scheduler and two for each worker.
    assert len(ports) >= 2 + 2 + 2
    assert [port for port in ports if not port.is_on_loopback] == []


def scheduler_of(executor: Executor) -> Any:  # noqa: ANN401  # Dask has no types
    """Return the scheduler, which runs in this process."""
    return executor._client.cluster.scheduler  # type: ignore[attr-defined]  # Dask's


def test_the_cluster_shows_no_pages(executor: Executor) -> None:
    """Dask's web server is open, but answers every page about the workers with 404."""
    port = scheduler_of(executor).http_server.port
    for page in ("", "status", "health", "metrics", "info/main/workers.html"):
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}")
        error.value.close()
        assert error.value.code == 404


@pytest.mark.skipif(not find_spec("cryptography"), reason="without it there are no keys")
def test_a_stranger_is_refused(executor: Executor) -> None:
    """Another account on this machine, without the cluster's key, gets no answer."""
    address = urlsplit(scheduler_of(executor).address)
    assert address.scheme == "tls"
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname = False
    anybody.verify_mode = ssl.CERT_NONE
    with (
        pytest.raises(ssl.SSLError, match=r"certificate required|handshake failure"),
        socket.create_connection((str(address.hostname), address.port or 0)) as plain,
        anybody.wrap_socket(plain) as wrapped,
    ):
        wrapped.recv(1)


def test_pages_come_where_they_are_asked_for() -> None:
    """With a port for the dashboard, Dask serves its pages there, on loopback."""
    distributed = pytest.importorskip("distributed")
    with PORTS, closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
        free.close()
        with closing(cluster._start_scheduler(distributed, None, port)) as scheduler:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as answer:
                assert answer.read() == b"ok"
            assert all(port.is_on_loopback for port in ports_of(psutil.Process()))
            assert scheduler.scheduler.http_server.port == port


def no_gpu() -> _probe.Obstacle:
    """Say that there is no GPU."""
    return _probe.Obstacle("torch 2.13.0 is a CPU build", "install another")


def test_a_cluster_without_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a CUDA GPU, a cluster needs a virtual GPU that was chosen by name."""
    monkeypatch.setattr(_probe, "cuda_obstacle", no_gpu)
    monkeypatch.setattr(cluster, "cuda_obstacle", no_gpu)
    gpulab.use("auto")
    with pytest.raises(NoGpuError) as error, cluster.local():
        pass
    assert str(error.value) == (
        "there is no GPU for a worker: torch 2.13.0 is a CPU build; start it where there is one, "
        "or choose a virtual one by its name, and each worker computes its own: "
        "gpulab.use('H200')"
    )


def on_two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that there are two GPUs."""
    monkeypatch.setattr(_probe, "cuda_obstacle", lambda: None)
    monkeypatch.setattr(_probe, "cuda_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(cluster, "cuda_obstacle", lambda: None)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.mark.parametrize(
    ("visible", "n_workers", "expected"),
    [
        (None, None, ["0", "1"]),
        (None, 1, ["0"]),
        ("3, 1", None, ["3", "1"]),
        ("GPU-abc,GPU-def", 2, ["GPU-abc", "GPU-def"]),
        ("MIG-abc,MIG-def", None, ["MIG-abc", "MIG-def"]),
    ],
)
def test_each_worker_gets_a_gpu_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
    visible: str | None,
    n_workers: int | None,
    expected: list[str],
) -> None:
    """Workers are bound to the GPUs that this process sees, by the names it was given."""
    on_two_gpus(monkeypatch)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert cluster._gpus_for(n_workers) == expected


def test_a_virtual_gpu_binds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a virtual GPU no worker is bound to a device, and each needs a core of the CPU."""
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    with gpulab.virtual_gpu("H200"):
        assert cluster._gpus_for(None) == [None, None]
        assert cluster._gpus_for(4) == [None] * 4
        with pytest.raises(InvalidOptionError) as error:
            cluster._gpus_for(5)
    assert str(error.value) == (
        "n_workers=5 on virtual GPUs, each of which takes a core of the CPU; take at most 4"
    )


def test_missing_dask_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Dask, the error names the extra that installs it."""
    monkeypatch.setattr(cluster, "find_spec", lambda _name: None)
    with pytest.raises(MissingPackageError) as error, cluster.local():
        pass
    assert str(error.value) == (
        "a cluster needs distributed, which is not installed; pip install 'gpulab[cluster]'"
    )


def test_workers_that_do_not_come_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """If workers do not start in time, the error says how many and how long it waited."""
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "_START_S", 0.2)
    with (
        gpulab.virtual_gpu("A100"),
        pytest.raises(NoGpuError, match=r"not all of 1 workers came within 0\.2 s"),
        cluster.local(1),
    ):
        pass
