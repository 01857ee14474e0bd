"""Charge layers such as LSTM as the few kernels that cuDNN runs, not as PyTorch's many operators.

For virtual tensors PyTorch runs such a layer as single operators. These compute the values,
forward and backward, and take no virtual time. The library's kernels take the time instead:
forward after the last operator, and backward when autograd leaves the layer. Autograd's sequence
numbers show which layer an operator belongs to.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gpulab.core.torch_private import autograd_node, next_sequence_number, sequence_number
from gpulab.virtual.simulator import Machine, Unrolled
from gpulab.virtual.simulator.costs import KernelWork

# At this number of layers the older half is dropped, so that a long program does not grow. The
# backward pass of a dropped layer is charged operator by operator.
_N_KEPT = 1_000
# About how long it takes to simulate a call of a layer, and each of its kernels.
_CALL_S, _KERNEL_S = 1e-3, 25e-6


@dataclass(slots=True, eq=False)
class _Layer:
    """One call of a layer, whose operators have the sequence numbers before ``end``.

    ``kernels`` are those of the library's backward pass, and ``is_launched`` says whether the
    present backward pass has launched them.
    """

    first: int
    end: int
    kernels: Sequence[KernelWork]
    is_launched: bool = False


class WholeLayers:
    """The layers that were called on one machine, and the one that backward is in."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._layers: list[_Layer] = []
        self._current: _Layer | None = None
        self._touched: list[_Layer] = []

    def run(
        self,
        call: Callable[[], Any],
        forward: Sequence[KernelWork],
        backward: Sequence[KernelWork],
    ) -> Any:
        """Run a layer: compute its values by operators, and launch the library's kernels.

        ``call`` runs PyTorch's operators of the layer and returns the result; ``forward`` and
        ``backward`` are the library's kernels of the two passes.
        """
        first = next_sequence_number()
        machine = self._machine
        # The outer one comes back later: a layer may run inside another, e.g. in a checkpoint.
        outer, machine.unrolled = machine.unrolled, Unrolled()
        # A checkpoint may run a layer forward inside a backward pass; its operators are not that
        # pass's own.
        follow, machine.follow_backward = machine.follow_backward, None
        try:
            out = call()
            self._launch(forward)
        finally:
            machine.unrolled, machine.follow_backward = outer, follow
        end = next_sequence_number()
        machine.host.skip_recorded(end)
        # Without gradients autograd records nothing, and there will be no backward pass.
        if end > first:
            if len(self._layers) >= _N_KEPT:
                del self._layers[: _N_KEPT // 2]
            self._layers.append(_Layer(first, end, backward))
            machine.follow_backward = self.follow
        return out

    def count(self, nodes: Iterable[Any]) -> int:
        """Return the number of autograd's nodes, with all nodes of a layer counted as one."""
        if not self._layers:
            return len(list(nodes))
        units = [self._layer_of(sequence_number(node)) or node for node in nodes]
        return len(set(units))

    def follow(self) -> None:
        """Note which layer autograd is in; called before each operator of a backward pass."""
        node = autograd_node()
        number = -1 if node is None else sequence_number(node)
        layer = self._current
        if layer is not None:
            if layer.first <= number < layer.end:
                return
            self._leave()
        layer = self._layer_of(number)
        if layer is not None:
            self._current = layer
            self._machine.unrolled = Unrolled()
            if layer not in self._touched:
                self._touched.append(layer)
                layer.is_launched = False

    def end_pass(self) -> None:
        """End a backward pass: launch what is left, and forget which layers it visited."""
        if self._current is not None:
            self._leave()
        self._touched.clear()

    def _leave(self) -> None:
        layer, self._current = self._current, None
        if layer is not None:
            # Autograd may leave a layer and come back, because it adds up gradients in between.
            # The second time only the last kernel is launched, to get the values of the rest.
            self._launch(layer.kernels[-1:] if layer.is_launched else layer.kernels)
            layer.is_launched = True
        self._machine.unrolled = None

    def _launch(self, works: Sequence[KernelWork]) -> None:
        machine = self._machine
        unrolled, machine.unrolled = machine.unrolled, None
        if unrolled is not None:
            machine.host.estimated_real_s += _CALL_S + len(works) * _KERNEL_S
            tasks = unrolled.kernels(works, machine.gpu.stream)
            for task, work in zip(tasks, works, strict=True):
                is_last = task is tasks[-1]
                machine.launch(task, work.launch_ns, unrolled.accesses if is_last else ())

    def _layer_of(self, number: int) -> _Layer | None:
        # Layers are in the order of their numbers, and their ranges never overlap.
        index = bisect_right(self._layers, number, key=lambda layer: layer.first) - 1
        layer = self._layers[index] if index >= 0 else None
        return layer if layer is not None and number < layer.end else None
