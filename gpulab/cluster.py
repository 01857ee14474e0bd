"""Run a sweep on all GPUs of this machine: a Dask cluster with one worker process per GPU.

Threads of this process start the workers with Dask's command, and again if they die. Dask's own
``Nanny`` sets environment variables after the worker has imported the user's script: by then a
library may have started the CUDA driver. It is also a second process that imports Dask, and the
worker starts only after it.

Dask runs any code that reaches one of its ports. All ports are on the loopback address, which
other machines cannot reach. Other users of this machine can, so that the ports are protected by
TLS with a key that exists as long as the cluster.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from subprocess import Popen
from tempfile import TemporaryFile
from threading import Event, Thread
from typing import IO, Any

import torch

from gpulab import device
from gpulab.core.errors import InvalidOptionError, MissingPackageError, NoGpuError, shown
from gpulab.core.requirements import COUNT
from gpulab.device import cuda_obstacle, outside

__all__ = ["local"]


_N_VIRTUAL = 2  # workers by default if the GPU is virtual
_HERE = "127.0.0.1"
_LAST_PORT = 65535
_ANY_PORT = f"{_HERE}:0"  # port 0: any port that is free
# Dask opens a port for web pages in each process, even without a dashboard; this removes its
# pages.
_NO_PAGES: dict[str, object] = {"distributed.scheduler.http.routes": []}
# Workers import torch before they answer; on a busy machine that takes long.
_START_S = 90
_LOOK_S = 0.1  # how often to look whether a worker still runs
_WORKER_SETTINGS = {"DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]"}


@contextmanager
def local(
    n_workers: int | None = None, *, dashboard_port: int | None = None
) -> Iterator[Executor]:
    """Return an executor with one process for each GPU of this machine, for a ``with`` block.

    Each worker sees one GPU only and runs one task at a time. The processes end with the block. If
    you have chosen a virtual GPU by its name, each worker has a virtual GPU of its own. For a
    cluster of several machines, start Dask as its documentation says, with one worker of one
    thread per GPU, and pass ``client.get_executor()`` to :func:`gpulab.workloads.sweeps.sweep`.

    Other machines cannot reach the cluster. If the package ``cryptography`` is installed, its
    processes talk over TLS, and other users of this machine cannot reach it either. Without that
    package everybody with an account on this machine can run code as you while the cluster runs.

    Parameters
    ----------
    n_workers
        None: one for each GPU, or two if the GPU is virtual.
    dashboard_port
        Port for Dask's pages on what the workers do, e.g. 8787 for
        ``http://127.0.0.1:8787/status``. All users of this machine can see them. If the port is
        in use, Dask takes another one and names it in a warning. None: no pages.

    Raises
    ------
    MissingPackageError
        If Dask is not installed.
    NoGpuError
        If there is no CUDA GPU and you have not chosen a virtual one by name, or if the workers
        do not start.
    InvalidOptionError
        If ``n_workers`` is below 1 or above the number of GPUs (of cores, if the GPU is virtual),
        or if ``dashboard_port`` is not a port.

    Examples
    --------
    A sweep over two virtual GPUs::

        gpulab.use("H200")
        with gpulab.cluster.local(2) as executor:
            found = gpulab.sweep(tasks, executor=executor, out="sweep.jsonl")

    Arguments are checked when the block begins:

    >>> with local(dashboard_port=0):
    ...     pass
    Traceback (most recent call last):
        ...
    gpulab.core.errors.InvalidOptionError: dashboard_port=0; it must be from 1 to 65535, e.g. 8787
    """
    COUNT.or_none.check(n_workers=n_workers)
    if dashboard_port is not None and (
        not COUNT.accepts(dashboard_port) or dashboard_port > _LAST_PORT
    ):
        raise InvalidOptionError(
            f"dashboard_port={shown(dashboard_port)}; it must be from 1 to {_LAST_PORT}, e.g. 8787"
        )
    distributed = _import_dask()
    gpus = _gpus_for(n_workers)
    with ExitStack() as stack:
        with outside():  # Dask and its threads need the real clocks, not the virtual ones
            client = _start_cluster(distributed, gpus, dashboard_port, stack)
        try:
            # Dask returns the old result of a pure function, and a measurement must run each time.
            yield client.get_executor(pure=False)
        finally:
            with outside():
                stack.close()


def _import_dask() -> Any:  # noqa: ANN401  # Dask has no types
    try:
        import distributed
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"a cluster needs {error.name}, which is not installed; pip install 'gpulab[cluster]'"
        ) from error
    return distributed


def _gpus_for(n_workers: int | None) -> list[str | None]:
    """Return for each worker the one GPU that it sees; None if the GPUs are virtual."""
    gpu = device.current()
    if gpu.virtual is not None and not gpu.stands_in:
        return [None] * _n_virtual(n_workers)
    with outside():
        obstacle = cuda_obstacle()
        visible = [] if obstacle else _visible(torch.cuda.device_count())
    if obstacle is not None:
        raise NoGpuError(
            f"there is no GPU for a worker: {obstacle.reason}; start it where there is one, or "
            "choose a virtual one by its name, and each worker computes its own: "
            "gpulab.use('H200')"
        )
    if n_workers is not None and n_workers > len(visible):
        raise InvalidOptionError(
            f"n_workers={n_workers}, and there are {len(visible)} GPUs; workers that share one "
            f"would disturb each other: take at most {len(visible)}"
        )
    return [*visible[:n_workers]]


def _n_virtual(n_workers: int | None) -> int:
    most = max(_N_VIRTUAL, os.cpu_count() or 1)
    if n_workers is not None and n_workers > most:
        raise InvalidOptionError(
            f"n_workers={n_workers} on virtual GPUs, each of which takes a core of the CPU; take "
            f"at most {most}"
        )
    return _N_VIRTUAL if n_workers is None else n_workers


def _visible(n_gpus: int) -> list[str]:
    """Return the names that CUDA_VISIBLE_DEVICES has for the GPUs that this process sees."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    # Kept as they are: a name may be the UUID of a GPU or of a part of one (MIG).
    names = [name.strip() for name in listed.split(",") if name.strip()]
    return names[:n_gpus] if names else [str(index) for index in range(n_gpus)]


def _start_cluster(
    distributed: Any,  # noqa: ANN401  # as above
    gpus: list[str | None],
    dashboard_port: int | None,
    stack: ExitStack,
) -> Any:  # noqa: ANN401  # as above
    """Return a client with all workers ready; closing ``stack`` stops everything."""
    keys = _temporary_keys(distributed)
    scheduler = _start_scheduler(distributed, keys, dashboard_port)
    # Closed in reverse order: first the client, then the workers, and last the scheduler.
    stack.callback(scheduler.close)
    log = stack.enter_context(TemporaryFile("w+"))  # noqa: SIM115 # the stack closes it
    start = partial(_start_worker, scheduler.scheduler_address, _settings_of(keys), log)
    ended = Event()
    keepers = [Thread(target=_keep_running, args=(partial(start, gpu), ended)) for gpu in gpus]
    for keeper in keepers:
        keeper.start()
        stack.callback(keeper.join)
    stack.callback(ended.set)
    client = distributed.Client(scheduler)
    stack.callback(client.close)
    try:
        client.wait_for_workers(len(gpus), timeout=_START_S)
    except TimeoutError as error:
        log.seek(0)
        # The last line of a traceback is the error; the rest would bury it.
        said = (log.read().strip().splitlines() or ["it said nothing"])[-1]
        raise NoGpuError(
            f"not all of {len(gpus)} workers came within {_START_S} s, and the last line of what "
            f"they said is: {said}; sweep without executor= to see what fails"
        ) from error
    return client


def _temporary_keys(distributed: Any) -> Any:  # noqa: ANN401  # as above
    """Return TLS keys for this cluster alone, or None without the package ``cryptography``."""
    return distributed.Security.temporary() if find_spec("cryptography") else None


def _settings_of(keys: Any) -> dict[str, str]:  # noqa: ANN401  # as above
    """Return environment variables that give a worker the keys; only its user can read them."""
    if keys is None:
        return {}
    tls = keys.get_tls_config_for_role("worker")
    given = {"CA_FILE": tls["ca_file"], "WORKER__CERT": tls["cert"], "WORKER__KEY": tls["key"]}
    settings = {f"DASK_DISTRIBUTED__COMM__TLS__{name}": text for name, text in given.items()}
    return settings | {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True"}


def _start_scheduler(distributed: Any, keys: Any, dashboard_port: int | None) -> Any:  # noqa: ANN401  # as above
    import dask

    with dask.config.set(_NO_PAGES if dashboard_port is None else {}):
        return distributed.LocalCluster(
            n_workers=0,
            host=_HERE,
            security=keys,
            dashboard_address=f"{_HERE}:{dashboard_port or 0}",
            scheduler_kwargs={"dashboard": dashboard_port is not None},
            silence_logs=logging.CRITICAL,
        )


def _start_worker(
    address: str, settings: dict[str, str], log: IO[str], gpu: str | None
) -> "Popen[str]":
    """Start a worker that sees one GPU."""
    # Set before the process starts: a library that the worker imports may start the CUDA driver,
    # after which the variable has no effect.
    seen = {} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu}
    options = {
        "--nthreads": "1",  # one task at a time, which has the GPU to itself
        "--memory-limit": "0",  # Dask would kill a worker for the pinned memory of a task
        "--host": _HERE,
        "--dashboard-address": _ANY_PORT,
        # Before the first task: in a short sweep a worker that still imports would get none.
        "--preload": "gpulab.workloads.sweeps",
    }
    arguments = [
        "--no-nanny",
        "--no-dashboard",
        *(word for pair in options.items() for word in pair),
    ]
    return Popen(  # noqa: S603  # it is this Python
        [sys.executable, "-m", "distributed.cli.dask_worker", address, *arguments],
        env=os.environ | _WORKER_SETTINGS | settings | seen,
        stdout=log,
        stderr=log,
        text=True,
    )


def _keep_running(start: Callable[[], "Popen[str]"], ended: Event) -> None:
    """Start a worker, start it again whenever it dies, and kill it when the cluster has ended."""
    while not ended.is_set():
        worker = start()
        while worker.poll() is None and not ended.wait(_LOOK_S):
            pass
        # Nothing is lost: the sweep has waited for its tasks, or has given them up.
        worker.kill()
        worker.wait()
