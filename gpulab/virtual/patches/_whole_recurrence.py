"""Compute a recurrent layer by one operator, and its gradients by another.

PyTorch would decompose the layer into about twenty operators for each time step, and simulating
each of them takes tens of microseconds. The two operators here run PyTorch's own layer on the CPU.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from gpulab.core.torch_private import (
    autograd_keys,
    exclude_key_from_here,
    is_key_excluded,
    next_sequence_number,
)
from gpulab.core.torch_private import variable_functions as layers_of_torch
from gpulab.virtual.patches._autocast import cast_for_recurrence
from gpulab.virtual.simulator import active
from gpulab.virtual.tensors import VirtualTensor

_FORM = "str kind, int n_states, int[] lengths, bool has_biases, int n_layers, bool both_ways"
_FORM += ", bool batch_first"
_HALVES = {torch.float16, torch.bfloat16}
_NO_SECOND_GRADIENT = (
    "the derivative for '_cudnn_rnn_backward' is not implemented. Double backwards is not "
    "supported for CuDNN RNNs due to limitations in the CuDNN API. To run double backwards, "
    "please disable the CuDNN backend temporarily while running the forward pass of your RNN. "
    "For example: \nwith torch.backends.cudnn.flags(enabled=False):\n    output = model(inputs)"
)
# The position of the states among the arguments of a layer; those of a packed one come one later.
_STATES = 1


@dataclass(frozen=True, slots=True)
class RecurrentCall:
    """A call of one of PyTorch's recurrent layers.

    Attributes
    ----------
    form
        The arguments that are not tensors, in the order of the operators' schema.
    tensors
        The input, the states and the weights.
    is_random
        Whether dropout between the layers draws random numbers.
    """

    form: tuple[Any, ...]
    tensors: tuple[torch.Tensor, ...]
    is_random: bool

    @property
    def is_whole(self) -> bool:
        """Whether one operator can compute it."""
        # The gradients of dropout need the numbers of the forward pass. Inside vmap() or grad()
        # some tensors are wrapped, and only PyTorch's operators know how to unwrap them.
        return not self.is_random and all(isinstance(item, VirtualTensor) for item in self.tensors)

    def run(self) -> tuple[torch.Tensor, ...]:
        """Return what the layer returns, recorded by autograd."""
        tensors = cast_for_recurrence(self.tensors)
        if torch.is_grad_enabled() and any(item.requires_grad for item in tensors):
            return _apply(_Recurrence, self.form, *tensors)
        return tuple(torch.ops.gpulab.recurrence(*self.form, tensors))


def recurrent_call(kind: str, args: Sequence[Any]) -> RecurrentCall:
    """Return the call of ``torch.lstm`` or another recurrent layer with these arguments."""
    # The overload for packed sequences has its weights where the other one has a bool.
    is_packed = not isinstance(args[3], bool)
    lengths = args[1].tolist() if is_packed else []
    states, weights, has_biases, n_layers, dropout, is_training, both_ways = args[
        _STATES + is_packed : _STATES + is_packed + 7
    ]
    states = [states] if isinstance(states, torch.Tensor) else states
    batch_first = not is_packed and args[8]
    form = (kind, len(states), lengths, has_biases, n_layers, both_ways, batch_first)
    is_random = dropout > 0 and is_training and n_layers > 1
    return RecurrentCall(form, (args[0], *states, *weights), is_random)


def _apply(function: Any, *args: Any) -> tuple[torch.Tensor, ...]:
    out: tuple[torch.Tensor, ...] = function.apply(*args)
    return out


class _Recurrence(torch.autograd.Function):
    """A layer in autograd's graph."""

    @staticmethod
    def forward(ctx: Any, form: tuple[Any, ...], *tensors: torch.Tensor) -> Any:
        ctx.form = form
        ctx.save_for_backward(*tensors)
        ctx.set_materialize_grads(False)
        return tuple(torch.ops.gpulab.recurrence(*form, tensors))

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor | None) -> Any:
        tensors = ctx.saved_tensors
        needed = ctx.needs_input_grad[1:]
        wanted = [i for i, is_needed in enumerate(needed) if is_needed]
        with torch.no_grad():
            gradients = torch.ops.gpulab.recurrence_backward(*ctx.form, tensors, grads, wanted)
        if torch.is_grad_enabled():  # the program asked for create_graph=True
            gradients = _apply(_NoSecondGradient, len(gradients), *gradients, *tensors)
        by_position = dict(zip(wanted, gradients, strict=True))
        return None, *(by_position.get(i) for i in range(len(tensors)))


class _NoSecondGradient(torch.autograd.Function):
    """Raises PyTorch's error if a program wants gradients of a layer's gradients."""

    @staticmethod
    def forward(_ctx: Any, n_gradients: int, *tensors: torch.Tensor) -> Any:
        return tuple(item.detach() for item in tensors[:n_gradients])

    @staticmethod
    def backward(_ctx: Any, *_grads: torch.Tensor) -> Any:
        raise NotImplementedError(_NO_SECOND_GRADIENT)


def _forward(*args: Any) -> list[torch.Tensor]:
    kind, n_states, lengths, has_biases, n_layers, both_ways, batch_first, tensors = args
    x, *others = tensors
    states: Any = others[:n_states] if kind == "lstm" else others[0]
    options = (has_biases, n_layers, 0.0, False, both_ways)
    plain = getattr(layers_of_torch, kind)
    if lengths:
        on_host = torch.tensor(lengths, device="cpu")
        return list(plain(x, on_host, states, others[n_states:], *options))
    return list(plain(x, states, others[n_states:], *options, batch_first))


def _forward_on_host(*args: Any) -> list[torch.Tensor]:
    *form, tensors = args
    return [item.to(tensors[0].dtype) for item in _forward(*form, _widened(tensors))]


def _backward_on_host(*args: Any) -> list[torch.Tensor]:
    *form, tensors, grads, wanted = args
    with _recording():
        leaves = [item.detach().clone() for item in _widened(tensors)]
        for i in wanted:
            leaves[i].requires_grad_()
        outputs = [(out, grad) for out, grad in zip(_forward(*form, leaves), grads, strict=True)
                 if grad is not None]  # fmt: skip
        gradients = torch.autograd.grad(
            [out for out, _ in outputs],
            [leaves[i] for i in wanted],
            [grad.to(out.dtype) for out, grad in outputs],
            allow_unused=True,
            materialize_grads=True,
        )
    return [item.to(tensors[i].dtype) for i, item in zip(wanted, gradients, strict=True)]


def _backward_on_meta(*args: Any) -> list[torch.Tensor]:
    *_, tensors, _, wanted = args
    return [torch.empty_like(tensors[i]) for i in wanted]


def _widened(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return float32 copies of half-precision tensors, with which a CPU is far faster."""
    return [item.float() if item.dtype in _HALVES else item for item in tensors]


@contextmanager
def _recording() -> Iterator[None]:
    """Record autograd's graph inside the block, although an operator's kernel runs below it."""
    excluded = [key for key in autograd_keys if is_key_excluded(key)]
    for key in excluded:
        exclude_key_from_here(key, False)  # noqa: FBT003 # torch's signature
    first = next_sequence_number()
    try:
        with torch.inference_mode(mode=False), torch.enable_grad():
            yield
    finally:
        # PyTorch counts these nodes among those of the program, which take the host's time.
        active().host.forget_recorded(next_sequence_number() - first)
        for key in excluded:
            exclude_key_from_here(key, True)  # noqa: FBT003 # as above


def _define(name: str, inputs: str, on_host: Any, on_meta: Any) -> None:
    # If gpulab is imported again, the operator of the first import stays.
    if hasattr(torch.ops.gpulab, name):
        return
    # Not as a custom_op: its first call imports PyTorch's compiler, which takes seconds and keeps
    # the frames of the call, and so its tensors, until the garbage collector runs.
    library: Any = torch.library
    library.define(f"gpulab::{name}", f"({_FORM}, {inputs}) -> Tensor[]")
    library.impl(f"gpulab::{name}", "cpu", on_host)
    library.register_fake(f"gpulab::{name}", on_meta)


_define("recurrence", "Tensor[] tensors", _forward_on_host, _forward)
_BACKWARD_INPUTS = "Tensor[] tensors, Tensor?[] grads, int[] wanted"
_define("recurrence_backward", _BACKWARD_INPUTS, _backward_on_host, _backward_on_meta)
