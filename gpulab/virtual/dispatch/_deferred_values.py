"""Compute the values of a call: what its kernel writes when it ends, not when it is launched.

A program that reads too early therefore reads the old values, as it does on a CUDA GPU. A kernel
that ends only notes in a log what it would write; it is computed when somebody looks.
"""

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from gpulab.core.torch_private import exclude_key_from_here, is_key_excluded, lazy_keys
from gpulab.virtual._freed_memory import return_freed_memory
from gpulab.virtual.dispatch._dispatched_call import DispatchedCall
from gpulab.virtual.dispatch._effects import NewResult
from gpulab.virtual.dispatch._plans import ExecutionPlan
from gpulab.virtual.simulator import active
from gpulab.virtual.simulator.values import ByteSpan, LogEntry, PendingValues
from gpulab.virtual.tensors import Reference, VirtualTensor, reference

_CPU = torch.device("cpu")
# A larger result is computed in its place: a new tensor of this size comes from the operating
# system page by page, and would be copied.
_COMPUTED_IN_PLACE_BYTES = 1 << 18

# A call that takes the host so long has temporary tensors of many megabytes. If they stayed with
# the C library until the end of the cell, a notebook would need hundreds of megabytes more.
_LARGE_S = 1e-3


class DeferredValues:
    """Computes the values of a call when somebody looks.

    Call it when its simulated kernel ends, with the seed for the random numbers of this launch.
    """

    __slots__ = (
        *("_args", "_changed", "_host_s", "_is_complex", "_key", "_kwargs", "_operator"),
        *("_pending", "_reads", "_targets", "_wider", "_writes"),
    )

    def __init__(
        self,
        pending: PendingValues,
        call: DispatchedCall,
        results: list[Any],
        changed: list[VirtualTensor],
        plan: ExecutionPlan,
    ) -> None:
        operator, args, kwargs = call.operator, call.args, call.kwargs
        self._pending = pending
        self._operator = operator
        self._is_complex = plan.is_complex
        is_wider = plan.is_wider or operator.model.is_widened
        self._wider = operator.model.wider_types if is_wider else None
        self._host_s = plan.host_s
        read: list[Reference] = []
        # References, because a pending kernel must not keep memory that the program has dropped.
        self._args = [_to_references(arg, read) for arg in args]
        ignores_first = operator.overwrites or operator.model.takes_shape_alone
        if ignores_first and isinstance(self._args[0], Reference):
            del read[0]
        self._kwargs = _on_the_host(kwargs, operator.out_names, read) if kwargs else {}
        self._targets = [
            reference(item) if type(by) is NewResult and item.has_values else None
            for item, by in zip(results, plan.effects.results, strict=True)
        ]
        self._changed = [reference(item) for item in changed]
        written = self._written()
        # What lies between the elements of an output stays as it is.
        read += [item for item in written if not item.layout.is_dense]
        self._reads, self._writes = _spans(read), _spans(written)
        self._key: Hashable = None
        if self._writes and not operator.is_random:
            self._key = plan, [_comparable(item) for item in call.unplanned]

    def __call__(self, seed: int) -> None:
        """Note in the log what the kernel writes."""
        entry = LogEntry(partial(self._run, seed), self._operator.func, self._key, self._host_s)
        if not self._writes or (self._reads and self._operator.may_fail):
            self._check_at_once(entry)
        self._pending.append(entry, self._reads, self._writes)

    def _check_at_once(self, entry: LogEntry) -> None:
        """Find a wrong value when the kernel ends, although nobody reads its results.

        A kernel of CUDA has assertions, and the next call that waits raises their error. Most of
        them need only a look at the index; the results themselves may wait.
        """
        entry.is_due = True
        if self._operator.model.index_ranges is not None:
            ranges = self._operator.model.index_ranges(self._args)
            indices = [item.tensor for item in ranges if isinstance(item.tensor, Reference)]
            entry.checked = _spans(indices)
            entry.check = lambda: all(item.holds() for item in ranges)

    def _written(self) -> list[Reference]:
        return [*self._changed, *(item for item in self._targets if item is not None)]

    def _run(self, seed: int) -> None:
        if self._operator.model.fills_with == 0:
            for item in self._written():
                item.set_to_zero()
            return
        if self._is_complex:
            with conjugating_lazily():
                self._compute(seed)
        else:
            self._compute(seed)
        if self._host_s >= _LARGE_S:
            return_freed_memory()

    def _compute(self, seed: int) -> None:
        target = self._targets[0] if len(self._targets) == 1 else None
        if target is not None and target.layout.span_bytes >= _COMPUTED_IN_PLACE_BYTES:
            if self._operator.model.fills_with == 1:
                target.raw().fill_(1)
                return
            if self._operator.into is not None and not self._is_complex:
                self._compute_into(target, *self._operator.into)
                return
        if self._operator.is_random:
            with seeded(seed):
                out = self._call()
        else:
            out = self._call()
        outs = out if isinstance(out, (list, tuple)) else (out,)
        for target, value in zip(self._targets, outs, strict=False):
            # Some results are empty on the CPU but not on the GPU, or the other way round.
            if target is not None and value is not None and value.numel():
                target.raw().copy_(value)

    def _compute_into(self, target: Reference, function: Any, out: str) -> None:
        args = [_to_views(arg) for arg in self._args]
        kwargs = {name: _to_views(arg) for name, arg in self._kwargs.items()}
        function(*args, **kwargs, **{out: target.raw()})

    def _call(self) -> Any:
        """Run the operator on the CPU; some half-precision operators run in float32."""
        args = [_to_views(arg) for arg in self._args]
        kwargs = self._kwargs
        if kwargs:
            kwargs = {name: _to_views(arg) for name, arg in kwargs.items()}
        if self._operator.out_names:
            return self._call_with_out(args, kwargs)
        if self._wider is None:
            return self._computed(*args, **kwargs)
        wide = [_widen(arg, self._wider) for arg in args]
        out = self._computed(*wide, **kwargs)
        for arg, widened in zip(args, wide, strict=True):
            # An in-place operator such as addmm_() has changed the float32 copy.
            if widened is out and widened is not arg:
                arg.copy_(widened)
        return out

    def _computed(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._operator.compute(*args, **kwargs)
        except (IndexError, RuntimeError) as error:  # as CUDA would find wrong values
            raise error.with_traceback(None) from None

    def _call_with_out(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        # On a GPU the statistics are float32 beside half precision. CPU kernels refuse to write
        # such statistics through out=, so the results are copied.
        if self._operator.model.updates_statistics:
            names = self._operator.out_names
            inputs = {name: arg for name, arg in kwargs.items() if name not in names}
            out = self._operator.func.overloadpacket(*args, **inputs)
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
        out = self._computed(*args, **{**kwargs, **fresh})
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


def has_complex(args: Iterable[Any]) -> bool:
    """Return whether one of an operator's arguments is a complex tensor."""
    return any(isinstance(item, torch.Tensor) and item.is_complex() for item in args)


@contextmanager
def conjugating_lazily() -> Iterator[None]:
    """Let operators inside the block apply PyTorch's lazy conjugation and negation.

    Inside a dispatch mode PyTorch assumes that both have been applied. A composite operator would
    then compute with numbers that are not conjugated.
    """
    before = [is_key_excluded(key) for key in lazy_keys]
    for key in lazy_keys:
        exclude_key_from_here(key, False)  # noqa: FBT003 # torch's signature
    try:
        yield
    finally:
        for key, is_excluded in zip(lazy_keys, before, strict=True):
            exclude_key_from_here(key, is_excluded)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the CPU's generator inside the block, and restore the program's state afterwards."""
    with torch.random.fork_rng(devices=()):
        torch.default_generator.manual_seed(seed)
        yield


def _on_the_host(
    kwargs: dict[str, Any], outputs: tuple[str, ...], read: list[Reference]
) -> dict[str, Any]:
    """Return the options of a call for its computation on the CPU, whatever device they name."""
    options = {
        name: _to_references(arg, [] if name in outputs else read)
        for name, arg in kwargs.items()
        if name != "pin_memory"
    }
    if "device" in options:
        options["device"] = _CPU
    return options


def _spans(tensors: list[Reference]) -> list[ByteSpan]:
    return [item.span() for item in tensors if item.layout.n_elements]


def _comparable(value: object) -> object:
    """Return what stands for an argument in a key: equal ones give the same result."""
    # A float by its text, because 0.0 and -0.0 are equal but give different results.
    return repr(value) if isinstance(value, (float, complex)) else object()


def _widen(arg: Any, types: dict[torch.dtype, torch.dtype]) -> Any:
    if isinstance(arg, list):
        return [_widen(item, types) for item in arg]
    return arg.to(types.get(arg.dtype, arg.dtype)) if isinstance(arg, torch.Tensor) else arg


def _to_references(arg: Any, read: list[Reference]) -> Any:
    """Return an argument with references in place of tensors, and append these to ``read``."""
    if isinstance(arg, VirtualTensor):
        item = reference(arg)
        read.append(item)
        return item
    if isinstance(arg, (list, tuple)):
        return [_to_references(item, read) for item in arg]
    if isinstance(arg, torch.Tensor):
        # The program may change a host tensor after the launch.
        return active().values.guarded(lambda: arg.detach().clone())
    return arg


def _to_views(arg: Any) -> Any:
    if isinstance(arg, Reference):
        return arg.raw()
    if isinstance(arg, list):
        return [_to_views(item) for item in arg]
    return arg
