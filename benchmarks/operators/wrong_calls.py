"""Wrong calls of PyTorch functions that people write, beside those of PyTorch's own database.

Each is one line of code. Its names are those of ``names_on``. Some are right on a CUDA GPU: the
lines, and what the hardware said, are in ``benchmarks/recordings/errors-h100.json``.
"""

import json
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.common.folders import RECORDINGS

OUTCOMES = ("raises", "accepted", "late", "died")
WRITTEN = "written|"  # how the keys of these calls begin


def names_on(device: str) -> dict[str, Any]:
    """Return the names that the calls use, with tensors on a device.

    Examples
    --------
    >>> eval("F.gelu(i)", names_on("cpu"))
    Traceback (most recent call last):
    ...
    NotImplementedError: "GeluKernelImpl" not implemented for 'Long'
    """
    v = torch.tensor([0.5, 0.25, 0.125, 0.125], device=device)
    i = torch.tensor([0, 1, 2, 3], device=device)
    return {
        "torch": torch,
        "nn": nn,
        "F": functional,
        "d": device,
        "v": v,  # a vector, also of probabilities
        "h": v.half(),
        "bf": v.bfloat16(),
        "f64": v.double(),
        "c": v.to(torch.complex64),
        "i": i,
        "i32": i.int(),
        "u8": i.byte(),
        "b": torch.tensor([True, False, True, False], device=device),
        "m": torch.eye(4, device=device)[:3],  # 3 x 4
        "s": torch.eye(4, device=device),  # 4 x 4
        "si": torch.eye(4, device=device, dtype=torch.int64),
        "x": torch.ones(2, 3, 8, 8, device=device),  # images
        "w": torch.ones(4, 3, 3, 3, device=device),
        "seq": torch.ones(2, 5, 4, device=device),
        "scores": torch.ones(5, 2, 4, device=device),  # of 4 letters, in 5 steps of 2 words
        "words": torch.ones(2, 3, device=device, dtype=torch.int64),
        "e": torch.empty(4, device=device),
    }


def wrong_calls() -> list[str]:
    """Return the lines that a GPU was asked; to ask another, add it to one of the lists there."""
    recording = json.loads((RECORDINGS / "errors-h100.json").read_text("utf-8"))
    keys = [key for outcome in OUTCOMES for key in recording.get(outcome, ())]
    return [key.removeprefix(WRITTEN) for key in keys if key.startswith(WRITTEN)]
