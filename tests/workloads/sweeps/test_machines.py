"""The guide's clusters of several machines, word by word, with addresses that stand for machines.

The SSH servers are real. SLURM is two commands, which run each job's script as a process.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from getpass import getuser
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.ports import PORTS

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "howto" / "sweep.md").read_text("utf-8")
NODES = {"node1": "127.0.0.1", "node2": "127.0.0.2"}
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

PROGRAM = """
import os
import torch
import gpulab

def softmax(n, dtype):
    x = torch.randn(64, n, dtype=dtype, device="cuda")
    return lambda: torch.softmax(x, 1)

{cluster}

client = executor._client
client.wait_for_workers(2)
gpulab.use("H200")
{sweep}
print(len(set(client.run(lambda: os.environ["MACHINE"]).values())))
print([point.error for point in times.points])
client.close()
cluster.close()
"""
EXPECTED = ["2", "['', '']"]
SLURM = {
    # SLURM keeps the script, which is deleted as soon as sbatch returns.
    "sbatch": 'cat "$1" > "job$$.sh"\nMACHINE=$$ setsid sh "job$$.sh" > "job$$.log" 2>&1 &\n'
    'echo "Submitted batch job $!"',
    "scancel": 'kill -- "-$1"',
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="it needs Linux's loopback addresses"),
    pytest.mark.filterwarnings("ignore"),
]


def block(pattern: str) -> str:
    """Return the one block of the guide's code in which a line has the pattern."""
    blocks = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    (text,) = [each for each in blocks if re.search(pattern, each, re.MULTILINE)]
    return str(text)


def run(program: str, folder: Path, **environment: str) -> list[str]:
    """Run a program in a process, and return the last lines that it prints."""
    (folder / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "program.py"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()[-2:]


SWEEP = block(r"^times = gpulab\.sweep")


@pytest.fixture
def ssh(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Start two SSH servers on loopback; yield an environment in which the names are theirs."""
    if SSHD is None or not find_spec("asyncssh"):
        pytest.skip("it needs the program sshd and the package asyncssh")
    home = tmp_path / ".ssh"
    home.mkdir(mode=0o700)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where sshd gives its rights up
    for name in ("id_ed25519", "host"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / name)]
        subprocess.run(command, check=True)
    shutil.copy(home / "id_ed25519.pub", home / "authorized_keys")
    servers = []
    with PORTS:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        for name, address in NODES.items():
            (home / name).write_text(
                dedent(f"""\
                ListenAddress {address}:{port}
                HostKey {home}/host
                AuthorizedKeysFile {home}/authorized_keys
                StrictModes no
                PidFile none
                SetEnv PYTHONPATH={ROOT} CUDA_VISIBLE_DEVICES= MACHINE={name}
                """)
            )
            servers.append(subprocess.Popen([SSHD, "-D", "-f", str(home / name)]))
    (home / "config").write_text(
        "".join(
            f"Host {address}\nPort {port}\nUser {getuser()}\nIdentityFile {home}/id_ed25519\n"
            for address in NODES.values()
        )
    )
    key = (home / "host.pub").read_text()
    known = [f"[{address}]:{port} {key}" for address in NODES.values()]
    (home / "known_hosts").write_text("".join(known))
    try:
        yield {"HOME": str(tmp_path)}
    finally:
        for server in servers:
            server.terminate()
            server.wait()


def test_two_machines_over_ssh(ssh: dict[str, str], tmp_path: Path) -> None:
    """Each machine has one worker, which its SSH server has started, and both points come."""
    cluster = block(r"^cluster = SSHCluster")
    for name, address in NODES.items():
        cluster = cluster.replace(name, address)
    assert run(PROGRAM.format(cluster=cluster, sweep=SWEEP), tmp_path, **ssh) == EXPECTED


def test_two_jobs_of_slurm(tmp_path: Path) -> None:
    """Each job has one worker, which the script for SLURM has started, and both points come."""
    pytest.importorskip("dask_jobqueue")
    for name, lines in SLURM.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{lines}\n")
        (tmp_path / name).chmod(0o755)
    cluster = block(r"^cluster = SLURMCluster").replace("jobs=4", "jobs=2")
    program = PROGRAM.format(cluster=cluster, sweep=SWEEP)
    path = f"{tmp_path}:{os.environ['PATH']}"
    assert run(program, tmp_path, PATH=path, DASK_JOBQUEUE__SLURM__INTERFACE="lo") == EXPECTED
    scripts = [each.read_text() for each in tmp_path.glob("job*.sh")]
    assert ["--gres=gpu:1" in script for script in scripts] == [True, True]
