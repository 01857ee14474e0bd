"""The calls that are asked whether they wait, and the tensors and modules that they use.

Each call is a line of Python, and its text is also its name in the answers. A line uses the names
of ``inputs.toml``, which are made anew for each call.
"""

import ast
import json
import math
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import torch

from benchmarks.common.folders import RESULTS

INPUTS: dict[str, str] = tomllib.loads(Path(__file__).with_name("inputs.toml").read_text("utf-8"))
ANSWERED = RESULTS / "waits-h100.json"


def names() -> tuple[str, ...]:
    """Return all calls, in the order in which they are asked: those that an H100 answered.

    To ask another call, add its line to the file of answers. In a write through a mask, the values
    on the right are made before, by an input.
    """
    return tuple(json.loads(ANSWERED.read_text("utf-8"))["rows"])


def call_of(name: str) -> Callable[[], None]:
    """Return a function that makes the call once more, with inputs that are made now."""
    names = _modules()
    for wanted in _inputs_of(name):
        exec(_compiled(f"{wanted} = {INPUTS[wanted]}"), names)  # noqa: S102 # our own text
    code = _compiled(name)

    def call() -> None:
        exec(code, names)  # noqa: S102 # as above

    return call


@cache
def _compiled(text: str) -> CodeType:
    return compile(text, text, "exec")


@cache
def _inputs_of(text: str) -> tuple[str, ...]:
    """Return the inputs that a line uses, and before them those that they are made of."""
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    needed: set[str] = set()
    for name in reversed(INPUTS):
        if name in used:
            needed.add(name)
            used.update(
                node.id for node in ast.walk(ast.parse(INPUTS[name])) if isinstance(node, ast.Name)
            )
    return tuple(name for name in INPUTS if name in needed)


def _modules() -> dict[str, Any]:
    import copy
    import io
    import operator
    import pickle

    import torch.utils.checkpoint
    import torch.utils.dlpack
    from torch import nn
    from torch.nn import functional

    return {
        **{module.__name__: module for module in (copy, io, math, operator, pickle, torch)},
        "nn": nn,
        "F": functional,
        "with_gradients": _with_gradients,
        "closure_of": _closure_of,
        "recorded_event": _recorded_event,
    }


def _with_gradients(parameters: list[torch.nn.Parameter]) -> list[torch.nn.Parameter]:
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    return parameters


def _closure_of(
    optimizer: torch.optim.Optimizer, parameters: list[torch.nn.Parameter]
) -> Callable[[], torch.Tensor]:
    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = torch.stack([parameter.square().sum() for parameter in parameters]).sum()
        loss.backward()
        return loss

    return closure


def _recorded_event() -> torch.cuda.Event:
    event = torch.cuda.Event()
    event.record()
    return event
