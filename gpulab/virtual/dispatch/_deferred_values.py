"""Compute a kernel's values when the simulated kernel ends, not when it is launched.

So a program that reads too early reads the old values, as it does on hardware.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from gpulab.torch_private import disable_dispatch, exclude_key_from_here, lazy_keys
from gpulab.virtual._generators import generator_in, without_generator
from gpulab.virtual.dispatch._operators import DispatchedCall
from gpulab.virtual.dispatch._plans import ExecutionPlan, NewResult
from gpulab.virtual.dispatch._references import Reference, reference
from gpulab.virtual.dispatch._repetitions import Repetition, repetition_of
from gpulab.virtual.tensors import VirtualTensor

_CPU = torch.device("cpu")
_HALVES = (torch.float16, torch.bfloat16)
# Products of halves take CPUs a hundred times longer than those of float32; and backward passes of
# norms have statistics in float32 on a GPU, which CPUs refuse to mix with halves.
_WIDENED = {"mm", "bmm", "addmm", "baddbmm", "convolution", "convolution_backward"} | {
    "native_layer_norm_backward",
    "native_batch_norm_backward",
    "batch_norm_backward",
}

# To know of a repeated call takes as long as to compute a small one.
_WORTH_A_LOOK_S = 20e-6
# With out= CPUs refuse statistics in float32 beside halves, which a GPU wants so.
_STATISTICS_WIDER = {"native_batch_norm"}

Payload = Callable[[int], None]


class DeferredValues:
    """The values of a call, computed when its kernel ends, from the seed of the launch."""

    __slots__ = (
        *("_args", "_changed", "_is_complex", "_kwargs", "_may_repeat"),
        *("_operator", "_repetition", "_targets"),
    )

    def __init__(
        self,
        call: DispatchedCall,
        results: list[Any],
        changed: list[VirtualTensor],
        plan: ExecutionPlan,
    ) -> None:
        operator, args, kwargs = call.operator, call.args, call.kwargs
        if operator.is_random and generator_in(operator.func, args, kwargs) is not None:
            args, kwargs = without_generator(operator.func, args, kwargs)  # it gave the seed
        self._operator = operator
        self._is_complex = has_complex(args)
        self._args = [_to_references(arg) for arg in args]
        self._kwargs = {name: _to_references(arg) for name, arg in kwargs.items()}
        self._kwargs.pop("pin_memory", None)
        if "device" in self._kwargs:
            self._kwargs["device"] = _CPU
        self._targets = [
            reference(item) if type(by) is NewResult and item.has_values else None
            for item, by in zip(results, plan.results, strict=True)
        ]
        self._changed = [reference(item) for item in changed]
        self._may_repeat = plan.host_s >= _WORTH_A_LOOK_S and not operator.is_random
        self._repetition: Repetition | None = None

    def __call__(self, seed: int) -> None:
        """Compute them, and put them where they belong, unless they are there already."""
        if not self._may_repeat:
            self._run(seed)
            return
        if self._repetition is None:  # kept for the next launch of a graph
            written = [*self._changed, *(item for item in self._targets if item is not None)]
            self._repetition = repetition_of(self._operator, self._args, self._kwargs, written)
        if self._repetition is None:
            self._may_repeat = False
            self._run(seed)
        elif not self._repetition.is_there():
            self._run(seed)
            self._repetition.keep()

    def _run(self, seed: int) -> None:
        for item in self._changed:
            item.to_write()
        guard = disable_dispatch()  # these operations are no one's work
        try:
            with conjugating_lazily() if self._is_complex else nullcontext():
                self._compute(seed)
        except Exception as error:
            # As with an assertion in a real kernel, the line that waits is rarely at fault.
            note_origin(error, str(self._operator.func))
            raise
        finally:
            del guard

    def _compute(self, seed: int) -> None:
        if self._operator.is_random:
            with _seeded(seed):
                out = self._call()
        else:
            out = self._call()
        outs = out if isinstance(out, (list, tuple)) else (out,)
        for target, value in zip(self._targets, outs, strict=False):
            # Some results are empty on the CPU and not on the GPU, or the other way round.
            if target is not None and value is not None and value.numel():
                target.to_write().copy_(value)

    def _call(self) -> Any:
        """Call it; some operators of half precision in float32."""
        args = [_to_views(arg) for arg in self._args]
        kwargs = {name: _to_views(arg) for name, arg in self._kwargs.items()}
        if self._operator.out_names:
            return self._call_with_out(args, kwargs)
        if self._operator.name not in _WIDENED:
            return self._operator.func(*args, **kwargs)
        wide = [_widen(arg) for arg in args]
        out = self._operator.func(*wide, **kwargs)
        for arg, widened in zip(args, wide, strict=True):
            if widened is out and widened is not arg:  # in place, as addmm_() works
                arg.copy_(widened)
        return out

    def _call_with_out(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if self._operator.name in _STATISTICS_WIDER:
            names = self._operator.out_names
            given = {name: arg for name, arg in kwargs.items() if name not in names}
            out = self._operator.func.overloadpacket(*args, **given)
            for name, computed in zip(names, out, strict=True):
                if computed.numel():  # without training, CPUs return no statistics
                    _copy(kwargs[name], computed)
            return out
        # Here two tensors are parts of one storage, which PyTorch takes for a sign of overlap.
        fresh = {name: _like(kwargs[name]) for name in self._operator.out_names}
        if self._operator.name in _WIDENED:
            args = [_widen(arg) for arg in args]
            fresh = {name: _widen(item) for name, item in fresh.items()}
        out = self._operator.func(*args, **{**kwargs, **fresh})
        for name, written in fresh.items():
            _copy(kwargs[name], written)
        return out


def _like(out: Any) -> Any:
    return [_like(item) for item in out] if isinstance(out, list) else torch.empty_like(out)


def _copy(out: Any, written: Any) -> None:
    if isinstance(out, list):
        for item, source in zip(out, written, strict=True):
            item.copy_(source)
    else:
        out.copy_(written)


@contextmanager
def conjugating_lazily() -> Iterator[None]:
    """Have operators understand complex tensors that PyTorch conjugates or negates lazily.

    Inside a dispatch mode it takes that as done, and operators that are made of others would
    compute with other numbers.
    """
    for key in lazy_keys:
        exclude_key_from_here(key, False)  # noqa: FBT003 # torch's signature
    try:
        yield
    finally:
        for key in lazy_keys:
            exclude_key_from_here(key, True)  # noqa: FBT003 # as above


def has_complex(args: Iterable[Any]) -> bool:
    """Tell whether there is a complex tensor among an operator's arguments."""
    return any(isinstance(item, torch.Tensor) and item.is_complex() for item in args)


def note_origin(error: Exception, what: str) -> None:
    """Say on an error that it is of ``what``, and not of the line that waits for it."""
    error.add_note(f"This is of {what}, which was launched earlier.")


def without_dispatch(payload: Payload, what: str) -> Payload:
    """Keep a payload's own tensor operations from the dispatcher: they are no one's work."""

    def run(seed: int) -> None:
        guard = disable_dispatch()
        try:
            payload(seed)
        except Exception as error:
            note_origin(error, what)
            raise
        finally:
            del guard

    return run


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Draw from the device's random numbers and leave the host's as they are."""
    before = torch.get_rng_state()
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(before)


def _widen(arg: Any) -> Any:
    return arg.float() if isinstance(arg, torch.Tensor) and arg.dtype in _HALVES else arg


def _to_references(arg: Any) -> Any:
    if isinstance(arg, VirtualTensor):
        return reference(arg)
    if isinstance(arg, (list, tuple)):
        return [_to_references(item) for item in arg]
    return arg


def _to_views(arg: Any) -> Any:
    if isinstance(arg, Reference):
        return arg.view()
    if isinstance(arg, list):
        return [_to_views(item) for item in arg]
    return arg
