"""Processes take turns at what they would disturb each other on: a GPU, or the CPU."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from filelock import FileLock

from gpulab import device
from gpulab.tasks import Task


@contextmanager
def turn(task: Task) -> Iterator[None]:
    """Wait until no other process of this user measures on the same hardware, and keep it.

    The lock ends with its process, however that dies. Programs that do not sweep know nothing
    of it. A virtual GPU belongs to one process, and nobody waits for it.
    """
    name = _hardware(task)
    if name is None:
        yield
        return
    with FileLock(place(name)):
        yield


def place(name: str) -> Path:
    """Return the file that is locked; each user has one, as he may not write another's."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"gpulab-{user}-{name}.lock"


def _hardware(task: Task) -> str | None:
    if task.on == "cpu":
        return "cpu"
    if device.current().virtual is not None:
        return None
    return str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid)
