"""Layers that CUDA's libraries run as a whole, such as LSTM: one operator, one for the gradients.

PyTorch would run such a layer on virtual tensors as many operators. The two operators here compute
PyTorch's layer on the CPU, with its gradients, and cost the kernels that the library launches.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch

from gpulab.core.torch_private import (
    autograd_keys,
    exclude_key_from_here,
    is_key_excluded,
    next_sequence_number,
)
from gpulab.virtual.dispatch import seeded
from gpulab.virtual.operators import OWN_MODELS, OperatorCall, OperatorModel
from gpulab.virtual.simulator import active
from gpulab.virtual.simulator.costs import KernelWork

# They get the options of a layer, and its tensors as the last argument.
_Compute = Callable[..., list[torch.Tensor]]
_Kernels = Callable[[OperatorCall], Sequence[KernelWork]]
_RANDOM = "_random"
_NO_SECOND_GRADIENT = (
    "the kernels of CUDA's libraries have no gradients of their gradients. For a recurrent layer, "
    "run the forward pass in torch.backends.cudnn.flags(enabled=False)"
)
_HALVES = {torch.float16, torch.bfloat16}
_MANY = 1 << 32  # seeds of single launches are smaller


class LibraryLayer:
    """A layer that a library of CUDA runs as a whole.

    Parameters
    ----------
    name
        The name of its operators in ``torch.ops.gpulab``. It begins with an underscore, so that
        no dry run makes sizes smaller: the CPU's LSTM checks none, and reads outside of tensors.
    options
        Their arguments that are no tensors, in the form of PyTorch's schemas.
    compute
        Computes the layer on the CPU from its options and tensors.
    forward, backward
        Return the kernels of the two passes. A call of either operator has the options and then
        the tensors.
    is_recurrent
        Whether it is a recurrent layer, of which the CPU runs one time step after the other.
    """

    def __init__(  # noqa: PLR0913 # what a layer consists of
        self,
        name: str,
        options: str,
        compute: _Compute,
        forward: _Kernels,
        backward: _Kernels,
        *,
        is_recurrent: bool = False,
    ) -> None:
        self._name = name

        def on_host(*args: Any) -> list[torch.Tensor]:
            return compute(*args[:-1], _widened(args[-1]))

        def drawing(run: _Compute, *args: Any) -> list[torch.Tensor]:
            # As on CUDA, the backward pass draws the same numbers again from the seed.
            seed = torch.tensor(torch.initial_seed() % _MANY, device=args[-1][0].device)
            return [*run(*args), seed]

        def gradients(*args: Any) -> list[torch.Tensor]:
            *form, tensors, grads, wanted, seed = args
            with nullcontext() if seed is None else seeded(int(seed)):
                return _gradients(partial(compute, *form), _widened(tensors), grads, wanted)

        inputs = f"({options}, Tensor[] tensors"
        backward_inputs = f"{inputs}, Tensor?[] grads, int[] wanted, Tensor? seed)"
        drawn = partial(drawing, on_host), partial(drawing, compute)
        _define(name, f"{inputs})", on_host, compute)
        _define(f"{_RANDOM}{name}", f"{inputs})", *drawn)
        _define(f"{name}_backward", backward_inputs, gradients, _like_wanted)
        for operator, kernels in (
            *((name, forward), (f"{_RANDOM}{name}", forward)),
            (f"{name}_backward", backward),
        ):
            lowering = partial(_lowering, kernels)
            model = OperatorModel(lowering=lowering)
            if is_recurrent:
                model = replace(model, tf32="rnn", is_recurrent=True)
            OWN_MODELS[operator] = model

    def run(
        self,
        options: tuple[Any, ...],
        tensors: Sequence[torch.Tensor],
        *,
        n_results: int,
        is_random: bool = False,
    ) -> tuple[torch.Tensor, ...]:
        """Return the results of a call, recorded by autograd.

        The operator returns further tensors, which the library keeps for the gradients.
        """
        forward = _operator(f"{_RANDOM}{self._name}" if is_random else self._name)
        if torch.is_grad_enabled() and any(item.requires_grad for item in tensors):
            function, backward = cast("Any", WholeLayer), _operator(f"{self._name}_backward")
            results = function.apply(forward, backward, options, n_results, is_random, *tensors)
        else:
            results = forward(*options, tensors)[:n_results]
        active().host.skip_recorded(next_sequence_number())
        return tuple(results)


class WholeLayer(torch.autograd.Function):
    """A layer in autograd's graph; the profiler shows this name."""

    @staticmethod
    def forward(  # noqa: PLR0913, PLR0917 # autograd passes arguments by position
        ctx: Any,
        forward: Any,
        backward: Any,
        options: tuple[Any, ...],
        n_results: int,
        is_random: bool,  # noqa: FBT001 # as above
        *tensors: torch.Tensor,
    ) -> Any:
        results = forward(*options, tensors)
        ctx.call = backward, options, len(tensors), is_random
        ctx.save_for_backward(*tensors, *results[n_results:])
        ctx.set_materialize_grads(False)
        return tuple(results[:n_results])

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor | None) -> Any:
        backward, options, n_tensors, is_random = ctx.call
        saved = ctx.saved_tensors
        needed = ctx.needs_input_grad[-n_tensors:]
        wanted = [i for i, is_needed in enumerate(needed) if is_needed]
        seed = saved[-1] if is_random else None
        with torch.no_grad():
            gradients = backward(*options, saved[:n_tensors], grads, wanted, seed)
        if torch.is_grad_enabled():  # the program asked for create_graph=True
            function: Any = _NoSecondGradient
            gradients = function.apply(len(gradients), *gradients, *saved[:n_tensors])
        by_position = dict(zip(wanted, gradients, strict=True))
        return *5 * (None,), *(by_position.get(i) for i in range(n_tensors))


class _NoSecondGradient(torch.autograd.Function):
    """Raises an error if a program wants gradients of a layer's gradients."""

    @staticmethod
    def forward(_ctx: Any, n_gradients: int, *tensors: torch.Tensor) -> Any:
        return tuple(item.detach() for item in tensors[:n_gradients])

    @staticmethod
    def backward(_ctx: Any, *_grads: torch.Tensor) -> Any:
        raise NotImplementedError(_NO_SECOND_GRADIENT)


def _operator(name: str) -> Any:
    return getattr(torch.ops.gpulab, name)


def _gradients(
    compute: Callable[[list[torch.Tensor]], list[torch.Tensor]],
    tensors: Sequence[torch.Tensor],
    grads: Sequence[torch.Tensor | None],
    wanted: Sequence[int],
) -> list[torch.Tensor]:
    """Return the gradients of the tensors at the positions ``wanted``."""
    with _recording():
        leaves = [item.detach() for item in tensors]
        for i in wanted:
            leaves[i].requires_grad_()
        pairs = zip(compute(leaves), grads, strict=False)
        outputs = [(out, grad) for out, grad in pairs if grad is not None]
        gradients = torch.autograd.grad(
            [out for out, _ in outputs],
            [leaves[i] for i in wanted],
            [grad.to(out.dtype) for out, grad in outputs],
            allow_unused=True,
            materialize_grads=True,
        )
    return list(gradients)


def _widened(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return float32 copies of half-precision tensors, with which a CPU is far faster."""
    return [item.float() if item.dtype in _HALVES else item for item in tensors]


def _like_wanted(*args: Any) -> list[torch.Tensor]:
    *_, tensors, _, wanted, _ = args
    return [torch.empty_like(tensors[i]) for i in wanted]


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


def _lowering(kernels: _Kernels, call: OperatorCall) -> KernelWork:
    # Without accesses: the times of the library's kernels do not depend on the cache.
    works = [replace(work, before=(), reads=False, writes=False) for work in kernels(call)]
    return replace(works[-1], before=tuple(works[:-1]))


def _define(name: str, schema: str, on_host: Any, on_meta: Any) -> None:
    # If gpulab is imported again, the operator of the first import stays.
    if hasattr(torch.ops.gpulab, name):
        return
    # Not as a custom_op: its first call imports PyTorch's compiler, which takes seconds and keeps
    # the frames of the call, and so its tensors, until the garbage collector runs.
    library: Any = torch.library
    tags = (torch.Tag.nondeterministic_seeded,) if name.startswith(_RANDOM) else ()
    library.define(f"gpulab::{name}", f"{schema} -> Tensor[]", tags=tags)
    library.impl(f"gpulab::{name}", "cpu", on_host)
    library.register_fake(f"gpulab::{name}", on_meta)
