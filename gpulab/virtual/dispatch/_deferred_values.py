"""Compute a kernel's values when the simulated kernel ends, not when it is launched.

A program that reads too early therefore reads the old values, as it does on a CUDA GPU.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from gpulab.torch_private import disable_dispatch, exclude_key_from_here, lazy_keys
from gpulab.virtual._freed_memory import return_freed_memory
from gpulab.virtual._generators import generator_in, without_generator
from gpulab.virtual.dispatch._lazy_random import Repetition, repetition_of
from gpulab.virtual.dispatch._operators import DispatchedCall
from gpulab.virtual.dispatch._plans import ExecutionPlan, NewResult
from gpulab.virtual.dispatch._rehearsal import wider_types
from gpulab.virtual.dispatch._result_cache import KnownCall, known_call
from gpulab.virtual.dispatch._value_references import Reference, reference
from gpulab.virtual.tensors import ComputedResult, VirtualTensor

_CPU = torch.device("cpu")
# Operators whose half-precision inputs are converted to float32 first. A CPU takes a hundred times
# as long for matmuls in half precision. And the backward passes of norms have float32 statistics
# on a GPU, which PyTorch's CPU kernels refuse beside half-precision inputs.
_WIDENED = {"mm", "bmm", "addmm", "baddbmm", "convolution", "convolution_backward"} | {
    "native_layer_norm_backward",
    "native_batch_norm_backward",
    "batch_norm_backward",
}

# Operators whose result is zeros, in a new tensor or in their first argument.
_ZEROING = {"zero", "zeros", "zeros_like", "new_zeros"}
_ONES = {"ones", "ones_like", "new_ones"}
# A larger result is computed in its place: a new tensor of this size comes from the operating
# system page by page, and would be copied.
_COMPUTED_IN_PLACE_BYTES = 1 << 18

# Writing fewer zeros, of up to a megabyte, looks itself whether there are zeros already.
_LARGE_ZEROS_S = 110e-6
# Checking whether a call was computed before takes about as long as computing a small one.
_WORTH_A_LOOK_S = 20e-6
_LAYER_S = 0.1  # at least, for a whole recurrent layer that is worth a benchmark
# A call that takes the host so long has temporary tensors of many megabytes. If they stayed with
# the C library until the end of the cell, a notebook would need hundreds of megabytes more.
_LARGE_S = 1e-3
# On a GPU the statistics are float32 beside half-precision inputs. CPU kernels refuse to write
# such statistics through out=, so these operators run without out=, and the results are copied.
_STATISTICS_WIDER = {"native_batch_norm"}

Payload = Callable[[int], None]


class DeferredValues:
    """Computes the values of a call when its simulated kernel ends.

    Call it with the seed for the random numbers of this launch.
    """

    __slots__ = (
        *("_args", "_changed", "_host_s", "_is_complex", "_is_large", "_kwargs"),
        *("_may_repeat", "_operator", "_recognized", "_targets", "_wider"),
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
            # The generator has already given the seed of this launch.
            args, kwargs = without_generator(operator.func, args, kwargs)
        self._operator = operator
        self._is_complex = plan.is_complex
        is_wider = plan.is_wider or operator.name in _WIDENED
        self._wider = wider_types(operator.name) if is_wider else None
        # References, because a pending kernel must not keep memory that the program has dropped.
        self._args = [_to_references(arg) for arg in args]
        self._kwargs = _on_the_host(kwargs) if kwargs else {}
        self._targets = [
            reference(item) if type(by) is NewResult and item.has_values else None
            for item, by in zip(results, plan.results, strict=True)
        ]
        self._changed = [reference(item) for item in changed]
        self._is_large = plan.host_s >= _LARGE_S
        # The estimate counts the bytes of a whole layer, but not its time steps.
        is_layer = operator.func.namespace == "gpulab"
        self._host_s = _LAYER_S if is_layer else plan.host_s
        is_seen = operator.name in _ZEROING and self._host_s < _LARGE_ZEROS_S
        self._may_repeat = self._host_s >= _WORTH_A_LOOK_S and not is_seen
        self._recognized: Repetition | KnownCall | None = None

    def __call__(self, seed: int) -> None:
        """Compute the values and write them to the outputs, unless they are there already."""
        # To write or compare values are operators, too, and the simulator's own take no host time.
        guard = disable_dispatch()
        try:
            self._compute_or_recognize(seed)
        finally:
            del guard

    def _compute_or_recognize(self, seed: int) -> None:
        if not self._may_repeat:
            self._run(seed)
            return
        # Made once, because a graph launches the same call many times.
        if self._recognized is None:
            written = [*self._changed, *(item for item in self._targets if item is not None)]
            recognize = repetition_of if self._operator.is_random else known_call
            self._recognized = recognize(self._operator, self._args, self._kwargs, written)
        if self._recognized is None:
            self._may_repeat = False
            self._run(seed)
        elif isinstance(self._recognized, KnownCall):
            self._recognized.run(partial(self._run, seed), self._host_s)
        else:
            result = self._recognized.result()
            # Put off until somebody uses the numbers, which in a benchmark nobody does.
            if result is None or not self._is_put_off(self._recognized, result, seed):
                self._run(seed)
                self._recognized.keep()

    def _is_put_off(self, repetition: Repetition, result: ComputedResult, seed: int) -> bool:
        # Not with complex numbers, because inside such an operator others must not be computed.
        return not self._is_complex and repetition.put_off(result, partial(self._run, seed))

    def _run(self, seed: int) -> None:
        if self._operator.name in _ZEROING:
            for item in [*self._changed, *(item for item in self._targets if item is not None)]:
                item.set_to_zero()
            return
        # Ends the computed results that use the bytes which this call changes in place.
        for item in self._changed:
            item.to_write()
        # Without this, the operators below would be launched as kernels of the program.
        guard = disable_dispatch()
        try:
            if self._is_complex:
                with conjugating_lazily():
                    self._compute(seed)
            else:
                self._compute(seed)
        except Exception as error:
            # The error appears on a later line that waits, as an assertion in a CUDA kernel does.
            # So it gets a note about the operator that caused it.
            note_origin(error, str(self._operator.func))
            raise
        finally:
            del guard
        if self._is_large:
            return_freed_memory()

    def _compute(self, seed: int) -> None:
        target = self._targets[0] if len(self._targets) == 1 else None
        if target is not None and target.layout.span_bytes >= _COMPUTED_IN_PLACE_BYTES:
            if self._operator.name in _ONES:
                target.to_write().fill_(1)
                return
            if self._operator.into is not None and not self._is_complex:
                self._compute_into(target, *self._operator.into)
                return
        if self._operator.is_random:
            with _seeded(seed):
                out = self._call()
        else:
            out = self._call()
        outs = out if isinstance(out, (list, tuple)) else (out,)
        for target, value in zip(self._targets, outs, strict=False):
            # Some results are empty on the CPU but not on the GPU, or the other way round.
            if target is not None and value is not None and value.numel():
                target.write(value)

    def _compute_into(self, target: Reference, function: Any, out: str) -> None:
        args = [_to_views(arg) for arg in self._args]
        kwargs = {name: _to_views(arg) for name, arg in self._kwargs.items()}
        function(*args, **kwargs, **{out: target.to_write()})

    def _call(self) -> Any:
        """Run the operator on the CPU; some half-precision operators run in float32."""
        args = [_to_views(arg) for arg in self._args]
        kwargs = self._kwargs
        if kwargs:
            kwargs = {name: _to_views(arg) for name, arg in kwargs.items()}
        if self._operator.out_names:
            return self._call_with_out(args, kwargs)
        if self._wider is None:
            return self._operator.compute(*args, **kwargs)
        wide = [_widen(arg, self._wider) for arg in args]
        out = self._operator.compute(*wide, **kwargs)
        for arg, widened in zip(args, wide, strict=True):
            # An in-place operator such as addmm_() has changed the float32 copy.
            if widened is out and widened is not arg:
                arg.copy_(widened)
        return out

    def _call_with_out(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if self._operator.name in _STATISTICS_WIDER:
            names = self._operator.out_names
            given = {name: arg for name, arg in kwargs.items() if name not in names}
            out = self._operator.func.overloadpacket(*args, **given)
            for name, computed in zip(names, out, strict=True):
                # CPU kernels return empty statistics in evaluation.
                if computed.numel():
                    _copy(kwargs[name], computed)
            return out
        # The outputs get new tensors: the virtual tensors of a segment share one CPU storage, and
        # some operators refuse out= because that looks like an overlap with an input.
        fresh = {name: _like(kwargs[name]) for name in self._operator.out_names}
        if self._wider is not None:
            args = [_widen(arg, self._wider) for arg in args]
            fresh = {name: _widen(item, self._wider) for name, item in fresh.items()}
        out = self._operator.compute(*args, **{**kwargs, **fresh})
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
    """Let operators inside the block apply PyTorch's lazy conjugation and negation.

    Inside a dispatch mode PyTorch assumes that both have been applied. A composite operator would
    then compute with numbers that are not conjugated.
    """
    for key in lazy_keys:
        exclude_key_from_here(key, False)  # noqa: FBT003 # torch's signature
    try:
        yield
    finally:
        for key in lazy_keys:
            exclude_key_from_here(key, True)  # noqa: FBT003 # as above


def note_origin(error: Exception, what: str) -> None:
    """Add a note to an error: it comes from ``what``, not from the line that waits."""
    error.add_note(f"The error comes from {what}, which was launched earlier.")


def without_dispatch(payload: Payload, what: str) -> Payload:
    """Return a payload whose tensor operations run on the CPU and are not launched as kernels."""

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
    """Seed the CPU's generator inside the block, and restore the program's state afterwards."""
    before = torch.get_rng_state()
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(before)


def _on_the_host(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a call for its computation on the CPU, whatever device they name."""
    options = {name: _to_references(arg) for name, arg in kwargs.items() if name != "pin_memory"}
    if "device" in options:
        options["device"] = _CPU
    return options


def _widen(arg: Any, types: dict[torch.dtype, torch.dtype]) -> Any:
    if isinstance(arg, list):
        return [_widen(item, types) for item in arg]
    return arg.to(types.get(arg.dtype, arg.dtype)) if isinstance(arg, torch.Tensor) else arg


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
