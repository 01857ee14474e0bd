"""Layers that a library runs in a few kernels, while PyTorch takes them apart for virtual tensors.

Their operators and the derivatives of these give the values, and take no time. The library's
kernels take it instead: after the last operator on the way forward, and as far as the engine of
autograd has come on the way back, which is known by the numbers that it gave the operators.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gpulab.torch_private import autograd_node, next_sequence_number, sequence_number
from gpulab.virtual.simulator import Machine, Unrolled
from gpulab.virtual.simulator.costs import KernelWork

# Beyond it the older half is forgotten, and goes back operator by operator.
_N_KEPT = 1_000


@dataclass(slots=True, eq=False)
class _Layer:
    """One call of a layer: its operators' numbers, and the kernels of the way back.

    Attributes
    ----------
    is_launched
        Whether the pass that is under way has launched the kernels.
    """

    first: int
    end: int
    kernels: Sequence[KernelWork]
    is_launched: bool = False


class WholeLayers:
    """The layers that were called on one machine, and where a backward pass is among them."""

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
        """Call what takes a layer apart, and launch the library's kernels in its place."""
        first = next_sequence_number()
        machine = self._machine
        outer, machine.unrolled = machine.unrolled, Unrolled()
        follow, machine.follow_backward = machine.follow_backward, None
        try:
            out = call()
            self._launch(forward)
        finally:
            machine.unrolled, machine.follow_backward = outer, follow
        end = next_sequence_number()
        machine.host.skip_recorded(end)
        if end > first:
            if len(self._layers) >= _N_KEPT:
                del self._layers[: _N_KEPT // 2]
            self._layers.append(_Layer(first, end, backward))
            machine.follow_backward = self.follow
        return out

    def count(self, nodes: Iterable[Any]) -> int:
        """Return how many nodes of autograd there are, each layer counted as one."""
        if not self._layers:
            return len(list(nodes))
        found = [self._layer_of(sequence_number(node)) or node for node in nodes]
        return len(set(found))

    def follow(self) -> None:
        """Note which layer the engine is in, before an operator of the way back is launched."""
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
        """Leave the layers that a backward pass went through."""
        if self._current is not None:
            self._leave()
        self._touched.clear()

    def _leave(self) -> None:
        layer, self._current = self._current, None
        if layer is not None:
            # It may come back to where gradients were added to older ones in between.
            self._launch(layer.kernels[-1:] if layer.is_launched else layer.kernels)
            layer.is_launched = True
        self._machine.unrolled = None

    def _launch(self, works: Sequence[KernelWork]) -> None:
        machine = self._machine
        unrolled, machine.unrolled = machine.unrolled, None
        if unrolled is not None:
            tasks = unrolled.kernels(works, machine.gpu.stream)
            for task, work in zip(tasks, works, strict=True):
                is_last = task is tasks[-1]
                machine.launch(task, work.launch_ns, unrolled.accesses if is_last else ())

    def _layer_of(self, number: int) -> _Layer | None:
        place = bisect_right(self._layers, number, key=lambda layer: layer.first) - 1
        layer = self._layers[place] if place >= 0 else None
        return layer if layer is not None and number < layer.end else None
