"""Nothing that gpulab starts listens where another machine could connect."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil
import pytest

from tests.support.jupyterlab import jupyter
from tests.support.listening import ports_of

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow

KERNEL_PORTS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")
# Python imports this module at its start, so it also sees processes that end after a moment.
WATCH = """
import os, sys
def heard(event, arguments):
    if event == "socket.bind":
        with open(os.environ["BOUND"], "a") as file:
            print(arguments[1], file=file)
sys.addaudithook(heard)
"""
EVERYTHING = """
import concurrent.futures, multiprocessing, subprocess, sys
import gpulab, psutil, torch
from IPython.core.interactiveshell import InteractiveShell
from types import SimpleNamespace
from gpulab.device.clocks import _lock
from gpulab.workloads.sweeps import sweep, tasks_of
from tests.support.listening import ports_of

def ports():
    found = ports_of(psutil.Process())
    assert not found, found

if __name__ == "__main__":
    gpulab.use("H200")
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "gpulab")
    shell.user_ns["torch"] = torch
    shell.run_cell("%%cudatime\\ntorch.ones(8, device='cuda')").raise_error()
    gpulab.ladder(lambda: torch.ones(8, device="cuda"))
    gpulab.timeline(lambda: torch.ones(8, device="cuda"))
    ports()
    with concurrent.futures.ProcessPoolExecutor(1) as executor:
        sweep(tasks_of(["add"], [64]), executor=executor, progress=False)
        ports()
    watchdog = _lock._start_watchdog(SimpleNamespace(gpu=SimpleNamespace(index=0), sm_mhz=1))
    ports()
    watchdog.communicate(_lock.watchdog.DONE)
    print("all done")
"""


def test_jupyterlab_and_its_kernels_listen_on_loopback(tmp_path: Path) -> None:
    """The port of JupyterLab and the five ports of a kernel are all on loopback."""
    with jupyter(tmp_path, JUPYTER_RUNTIME_DIR=str(tmp_path / "runtime")) as address:
        parts = urlsplit(address)
        request = urllib.request.Request(
            f"{parts.scheme}://{parts.netloc}/api/kernels",
            data=b"{}",
            headers={"Authorization": f"token {parse_qs(parts.query)['token'][0]}"},
        )
        with urllib.request.urlopen(request) as answer:
            kernel = json.load(answer)["id"]
        described = json.loads((tmp_path / "runtime" / f"kernel-{kernel}.json").read_text())
        awaited = {parts.port, *(described[name] for name in KERNEL_PORTS)}
        found = ports_of(psutil.Process())
        while not awaited <= {port.number for port in found}:  # the kernel starts
            found = ports_of(psutil.Process())
    assert [port for port in found if not port.is_on_loopback] == []


def test_nothing_else_listens(tmp_path: Path) -> None:
    """The magic, the ladder, a timeline and the workers of a sweep open no port."""
    (tmp_path / "sitecustomize.py").write_text(WATCH)
    (tmp_path / "everything.py").write_text(EVERYTHING)
    bound = tmp_path / "bound"
    done = subprocess.run(
        [sys.executable, str(tmp_path / "everything.py")],
        cwd=tmp_path,
        env=os.environ
        | {
            "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
            "BOUND": str(bound),
            "CUDA_VISIBLE_DEVICES": "",
            "IPYTHONDIR": str(tmp_path / "ipython"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1:] == ["all done"], done.stderr
    assert not bound.exists(), bound.read_text()
