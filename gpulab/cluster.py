"""Run a sweep on all GPUs of this machine: a Dask cluster with one worker process per GPU.

Threads of this process start the workers with Dask's command, and again if they die. Dask's own
``Nanny`` sets environment variables after the worker has imported the user's script: by then a
library may have started the CUDA driver. It is also a second process that imports Dask, and the
worker starts only after it.

Dask runs any code that reaches one of its ports. All ports are on the loopback address, which
other machines cannot reach. Other users of this machine can, so that the ports are protected by
TLS with a key that exists as long as the cluster.
"""

import json
import logging
import os
import sys
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from subprocess import PIPE, Popen
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
# What a worker imports for its tasks comes first, while this process starts the scheduler, whose
# address and keys it then gets. The keys are not among the arguments, which every user can read.
_WORKER = """
import json, os, sys
import gpulab.workloads.sweeps
settings, address = json.loads(sys.stdin.readline())
os.environ |= settings
from distributed.cli.dask_worker import main
main([address, *sys.argv[1:]])
"""
_ARGUMENTS = (
    *("--no-nanny", "--no-dashboard"),
    *("--nthreads", "1"),  # one task at a time, which has the GPU to itself
    *("--memory-limit", "0"),  # Dask would kill a worker for the pinned memory of a task
    *("--host", _HERE, "--dashboard-address", _ANY_PORT),
)


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
    if not find_spec("distributed"):
        raise MissingPackageError(
            "a cluster needs distributed, which is not installed; pip install 'gpulab[cluster]'"
        )
    gpus = _gpus_for(n_workers)
    with ExitStack() as stack:
        with outside():  # Dask and its threads need the real clocks, not the virtual ones
            client = _start_cluster(gpus, dashboard_port, stack)
        try:
            # Dask returns the old result of a pure function, and a measurement must run each time.
            yield client.get_executor(pure=False)
        finally:
            with outside():
                stack.close()


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


def _start_cluster(gpus: list[str | None], dashboard_port: int | None, stack: ExitStack) -> Any:  # noqa: ANN401  # Dask has no types
    """Return a client with all workers ready; closing ``stack`` stops everything."""
    log = stack.enter_context(TemporaryFile("w+"))  # noqa: SIM115 # the stack closes it
    ended, told = Event(), Future[str]()
    keepers = [Thread(target=_keep_running, args=(gpu, log, told, ended)) for gpu in gpus]
    for keeper in keepers:  # first of all, because they import torch, which takes longest
        keeper.start()
        stack.callback(keeper.join)
    stack.callback(told.cancel)
    stack.callback(ended.set)

    import distributed

    keys = _temporary_keys(distributed)
    scheduler = _start_scheduler(distributed, keys, dashboard_port)
    # Closed in reverse order: first the client, then the scheduler, and last the workers.
    stack.callback(scheduler.close)
    told.set_result(json.dumps([_settings_of(keys), scheduler.scheduler_address]))
    client = distributed.Client(scheduler)
    stack.callback(client.close)
    try:
        client.wait_for_workers(len(gpus), timeout=_START_S)
    except TimeoutError as error:
        log.seek(0)
        # The last line of a traceback is the error; the rest would bury it.
        last_line = (log.read().strip().splitlines() or ["it said nothing"])[-1]
        raise NoGpuError(
            f"not all of {len(gpus)} workers came within {_START_S} s, and the last line of what "
            f"they said is: {last_line}; sweep without executor= to see what fails"
        ) from error
    return client


def _temporary_keys(distributed: Any) -> Any:  # noqa: ANN401  # as above
    """Return TLS keys for this cluster alone, or None without the package ``cryptography``."""
    return distributed.Security.temporary() if find_spec("cryptography") else None


def _settings_of(keys: Any) -> dict[str, str]:  # noqa: ANN401  # as above
    """Return environment variables that give a worker the keys, and take its pages away."""
    no_pages = {"DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]"}
    if keys is None:
        return no_pages
    tls = keys.get_tls_config_for_role("worker")
    tls_settings = {
        "CA_FILE": tls["ca_file"],
        "WORKER__CERT": tls["cert"],
        "WORKER__KEY": tls["key"],
    }
    settings = {
        f"DASK_DISTRIBUTED__COMM__TLS__{name}": text for name, text in tls_settings.items()
    }
    return no_pages | settings | {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True"}


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


def _keep_running(gpu: str | None, log: IO[str], told: Future[str], ended: Event) -> None:
    """Start a worker, start it again whenever it dies, and kill it when the cluster has ended."""
    # Set before the process starts: a library that the worker imports may start the CUDA driver,
    # after which the variable has no effect.
    variables = {} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu}
    while not ended.is_set():
        # The pipe breaks if the worker dies before it has read the address.
        with (
            suppress(CancelledError, BrokenPipeError),
            Popen(  # noqa: S603  # it is this Python
                [sys.executable, "-c", _WORKER, *_ARGUMENTS],
                env=os.environ | variables,
                stdin=PIPE,
                stdout=log,
                stderr=log,
                text=True,
            ) as worker,
        ):
            try:
                print(told.result(), file=worker.stdin, flush=True)
                while worker.poll() is None and not ended.wait(_LOOK_S):
                    pass
            finally:
                # Nothing is lost: the sweep has waited for its tasks, or has given them up.
                worker.kill()
