"""The calls that are asked whether they wait, and the tensors and modules that they use.

Each call is a line of Python, and its text is also its name in the answers. A line uses the names
of :data:`INPUTS`, which are made anew for each call.
"""

import ast
import json
import math
from collections.abc import Callable
from functools import cache
from types import CodeType
from typing import Any

import torch

from benchmarks.common.folders import RESULTS

# In this order: an expression may use the names above it.
INPUTS = {
    "x": "torch.randn(64, 64, device='cuda')",
    "y": "torch.randn(64, 64, device='cuda')",
    "v": "torch.randn(64, device='cuda')",
    "m": "torch.randn(64, 64, device='cuda') > 0",
    "row_mask": "torch.arange(64, device='cuda') % 3 == 0",
    "row_values": "torch.randn(22, 64, device='cuda')",
    "mask_values": "torch.randn(int(m.sum()), device='cuda')",
    "i": "torch.arange(64, device='cuda') % 7",
    "indices": "i.expand(64, 64).contiguous()",
    "one": "torch.ones((), device='cuda')",
    "n": "torch.tensor(3, device='cuda')",
    "flag": "torch.tensor(True, device='cuda')",
    "big": "torch.randn(1024, 1024, device='cuda')",
    "z": "torch.randn(64, 64, device='cuda', dtype=torch.complex64)",
    "half": "x.half()",
    "whole": "torch.arange(4096, device='cuda').view(64, 64)",
    "batch": "torch.randn(8, 16, 16, device='cuda')",
    "rows": "torch.randn(8, 16, device='cuda')",
    "spd": "x @ x.T + 64 * torch.eye(64, device='cuda')",
    "spd_batch": "batch @ batch.mT + 16 * torch.eye(16, device='cuda')",
    "weights": "x.softmax(1)",
    "image": "torch.randn(2, 4, 16, 16, device='cuda')",
    "volume": "torch.randn(2, 4, 8, 8, 8, device='cuda')",
    "signal": "torch.randn(2, 4, 32, device='cuda')",
    "kernel": "torch.randn(4, 4, 3, 3, device='cuda')",
    "q": "torch.randn(2, 4, 16, 32, device='cuda')",
    "sequence": "torch.randn(5, 2, 64, device='cuda')",
    "padding": "torch.arange(5, device='cuda') > torch.tensor([[4], [2]], device='cuda')",
    "log_p": "torch.randn(20, 2, 9, device='cuda').log_softmax(2)",
    "labels": "torch.randint(1, 9, (2, 5), device='cuda')",
    "lengths": "torch.tensor([20, 20], device='cuda')",
    "label_lengths": "torch.tensor([5, 5], device='cuda')",
    "window": "torch.ones(16, device='cuda')",
    "causal": "nn.Transformer.generate_square_subsequent_mask(5, device='cuda')",
    "leaf": "torch.randn(64, 64, device='cuda', requires_grad=True)",
    # On the host
    "h": "torch.randn(64, 64)",
    "h_int": "torch.arange(64) % 7",
    "h_mask": "torch.randn(64, 64) > 0",
    "h_one": "torch.ones(())",
    "h_pinned": "torch.randn(64, 64).pin_memory()",
    "h_target": "torch.empty(64, 64)",
    "h_pinned_target": "torch.empty(64, 64).pin_memory()",
    "h_large": "torch.randn(1024, 1024)",
    # Layers, optimizers and the like
    "linear": "torch.nn.Linear(64, 64).cuda()",
    "model": "nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).cuda()",
    "batch_norm": "nn.BatchNorm2d(4).cuda()",
    "embedding": "nn.Embedding(100, 8).cuda()",
    "bag": "nn.EmbeddingBag(100, 8).cuda()",
    "lstm": "nn.LSTM(64, 32).cuda()",
    "gru": "nn.GRU(64, 32, num_layers=2, dropout=0.1).cuda()",
    "attention": "nn.MultiheadAttention(64, 4).cuda()",
    "encoder_layer": "nn.TransformerEncoderLayer(64, 4, 128).cuda()",
    "encoder": "nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2)"
    ".cuda()",
    "decoder_layer": "nn.TransformerDecoderLayer(64, 4, 128).cuda()",
    "adaptive": "nn.AdaptiveLogSoftmaxWithLoss(64, 20, [5, 10]).cuda()",
    "spectral": "nn.utils.parametrizations.spectral_norm(nn.Linear(64, 64)).cuda()",
    "parameters": "with_gradients([nn.Parameter(torch.randn(32, 32, device='cuda')) "
    "for _ in range(4)])",
    "sgd": "torch.optim.SGD(parameters, 0.1)",
    "momentum": "torch.optim.SGD(parameters, 0.1, momentum=0.9, nesterov=True)",
    "sgd_fused": "torch.optim.SGD(parameters, 0.1, momentum=0.9, fused=True)",
    "sgd_loop": "torch.optim.SGD(parameters, 0.1, foreach=False)",
    "sgd_lr": "torch.optim.SGD(parameters, torch.tensor(0.1, device='cuda'))",
    "adam": "torch.optim.Adam(parameters)",
    "adam_fused": "torch.optim.Adam(parameters, fused=True)",
    "adam_loop": "torch.optim.Adam(parameters, foreach=False)",
    "adam_capturable": "torch.optim.Adam(parameters, capturable=True)",
    "adam_amsgrad": "torch.optim.Adam(parameters, amsgrad=True, weight_decay=0.1)",
    "adamw": "torch.optim.AdamW(parameters)",
    "adamw_loop": "torch.optim.AdamW(parameters, foreach=False)",
    "adamw_capturable_loop": "torch.optim.AdamW(parameters, capturable=True, foreach=False)",
    "adagrad": "torch.optim.Adagrad(parameters)",
    "adadelta": "torch.optim.Adadelta(parameters)",
    "adamax": "torch.optim.Adamax(parameters)",
    "asgd": "torch.optim.ASGD(parameters)",
    "nadam": "torch.optim.NAdam(parameters)",
    "radam": "torch.optim.RAdam(parameters)",
    "rmsprop": "torch.optim.RMSprop(parameters)",
    "rprop": "torch.optim.Rprop(parameters)",
    "adafactor": "torch.optim.Adafactor(parameters)",
    "muon": "torch.optim.Muon(parameters)",
    "lbfgs": "torch.optim.LBFGS(parameters, max_iter=2)",
    "closure": "closure_of(lbfgs, parameters)",
    "scaler": "torch.amp.GradScaler('cuda')",
    "scheduler": "torch.optim.lr_scheduler.StepLR(sgd, 10)",
    "swa": "torch.optim.swa_utils.AveragedModel(linear)",
    "normal": "torch.distributions.Normal(v, v.exp())",
    # Only for the calls that use it, as PyTorch runs without it
    "np": "__import__('numpy')",
    # Streams and events
    "stream": "torch.cuda.current_stream()",
    "side": "torch.cuda.Stream()",
    "event": "torch.cuda.Event(enable_timing=True)",
    "recorded": "recorded_event()",
    "generator": "torch.Generator('cuda')",
}

ANSWERED = RESULTS / "waits-h100.json"


def names() -> tuple[str, ...]:
    """Return all calls, in the order in which they are asked: those that an H100 answered.

    To ask another call, add its line to the file of answers. In a write through a mask, the values
    on the right are made before, by an input.
    """
    return tuple(json.loads(ANSWERED.read_text("utf-8"))["rows"])


def call_of(name: str) -> Callable[[], None]:
    """Return a function that makes the call once more, with inputs that are made now."""
    given = _modules()
    for wanted in _inputs_of(name):
        exec(_compiled(f"{wanted} = {INPUTS[wanted]}"), given)  # noqa: S102 # our own text
    code = _compiled(name)

    def call() -> None:
        exec(code, given)  # noqa: S102 # as above

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
