"""Convolutions launch the kernels of cuDNN, and their gradients, by size, type and layout."""

import json
import re
from functools import partial

import torch
from torch.nn import functional

import gpulab
from benchmarks.common.device_records import profiled
from benchmarks.common.folders import RECORDINGS

TURNED = ["to channels last", "to channels last", "convolution", "to channels first"]


def test_most_recorded_grouped_convolutions_launch_as_many_kernels() -> None:
    """Nine of ten of an H100: depthwise by PyTorch or cuDNN, halves in some groups one by one."""
    recorded = json.loads((RECORDINGS / "h100-fitting.json").read_text("utf-8"))["calls"]
    is_grouped = re.compile(r"F\.conv2d\(x, w, \w+, \d+, \d+, 1, (?!1\))")
    right = []
    with gpulab.virtual_gpu("H100", first_use=False, max_value_elements=0):
        for line in [*filter(is_grouped.match, recorded)][::4]:
            call, *inputs = line.split(" | ")
            names = {"F": functional, "r": _input}
            for each in inputs:
                exec(each, names)
            n_kernels, (kernels, *_) = len(profiled(partial(eval, call, names))), recorded[line]
            right.append(n_kernels == len(kernels))
    assert sum(right) / len(right) > 0.9


def _input(*sizes: int, dtype: str, last: bool = False) -> torch.Tensor:
    order = torch.channels_last if last else torch.contiguous_format
    made = torch.empty(sizes, dtype=getattr(torch, dtype), device="cuda")
    return made.contiguous(memory_format=order) if last else made


def test_gradients_have_a_part_for_images_and_one_for_weights() -> None:
    """Each part has its own copies, and large sums over pixels are split."""
    with gpulab.virtual_gpu("H100", first_use=False, max_value_elements=0):
        x = _images("float16", 56).requires_grad_()
        weight = _filters("float16", 3).requires_grad_()
        out = functional.conv2d(x, weight, padding=1)
        gradient = torch.ones_like(out)
        found = [
            record.name
            for record in profiled(lambda: torch.autograd.grad(out, (x, weight), gradient))
        ]
    images = [name.replace("convolution", "convolution_backward") for name in TURNED]
    assert found == [*images, *TURNED[:2], "weights", "sum of parts", TURNED[-1]]


def _images(dtype: str, side: int) -> torch.Tensor:
    return torch.ones(4, 64, side, side, device="cuda", dtype=getattr(torch, dtype))


def _filters(dtype: str, taps: int) -> torch.Tensor:
    return torch.ones(64, 64, taps, taps, device="cuda", dtype=getattr(torch, dtype))
