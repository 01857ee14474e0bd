"""Charge LSTM, GRU and plain RNN layers as the kernels that cuDNN runs for a whole layer.

For virtual tensors PyTorch decomposes these layers into about twenty operators for each time step.
Those operators compute the values and gradients, but they are not what a CUDA GPU would run. The
same holds for the cells of LSTM and GRU, which take two matmuls and one kernel of PyTorch.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import ceil
from typing import Any, NamedTuple

import torch

from gpulab.core.torch_private import allows_tf32, variable_functions
from gpulab.virtual._whole_layers import WholeLayers
from gpulab.virtual.patches._whole_recurrence import recurrent_call
from gpulab.virtual.simulator import fitted_costs, is_owner
from gpulab.virtual.simulator.costs import KernelWork, MatmulShape
from gpulab.virtual.tensors import VirtualTensor

# Gates of a cell: the number of rows of the weights for each hidden unit.
_N_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
# Host time of a call, of its backward pass, of each layer and direction, and of each kernel. They
# are fitted so that two programs with LSTMs take as long as on the host of an H200.
_CALL_NS, _BACKWARD_NS, _LAYER_NS, _STEP_NS = 200_000, 750_000, 130_000, 10_500
# With at most this many hidden units, one kernel of cuDNN computes all time steps.
_MOST_PERSISTENT = 128
# Gates of the cells for which PyTorch has a kernel of its own, and the host time of a launch.
_CELLS = {"lstm_cell": 4, "gru_cell": 3}
_LAUNCH_NS = 5_000


class _Sizes(NamedTuple):
    """The sizes of one layer in one direction, over a whole sequence."""

    n_steps: int
    batch: int
    n_in: int
    n_hidden: int
    n_gates: int
    arithmetic: str


def replacements(layers: WholeLayers) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacements for PyTorch's recurrent layers."""
    layer_functions = {name: _replacement(name, layers) for name in _N_GATES}
    layer_functions |= {name: _cell_replacement(name, layers) for name in _CELLS}
    return [(variable_functions, layer_functions), (torch, layer_functions)]


def _replacement(name: str, layers: WholeLayers) -> Callable[..., Any]:
    plain = getattr(torch, name)

    def recurrent(*args: Any, **kwargs: Any) -> Any:
        # Without cuDNN, PyTorch decomposes the layer on a CUDA GPU, too.
        is_virtual = bool(args) and isinstance(args[0], VirtualTensor)
        if kwargs or not (is_virtual and is_owner() and torch.backends.cudnn.enabled):
            return plain(*args, **kwargs)
        forward, backward = _kernels(_N_GATES[name], args)
        layer = recurrent_call(name, args)
        call = layer.run if layer.is_whole else lambda: plain(*args)
        return layers.run(call, forward, backward)

    return recurrent


def _cell_replacement(name: str, layers: WholeLayers) -> Callable[..., Any]:
    plain = getattr(torch, name)

    def cell(*args: Any, **kwargs: Any) -> Any:
        is_virtual = bool(args) and isinstance(args[0], VirtualTensor)
        if kwargs or not (is_virtual and is_owner()):
            return plain(*args, **kwargs)
        x, weight = args[0], args[2]
        n_gates, batch = _CELLS[name], x.shape[0] if x.dim() > 1 else 1
        n_rows, n_in = weight.shape
        sizes = _Sizes(1, batch, n_in, n_rows // n_gates, n_gates, _arithmetic(x.dtype))
        return layers.run(lambda: plain(*args), _cell_forward(sizes), _cell_backward(sizes))

    return cell


def _cell_forward(sizes: _Sizes) -> list[KernelWork]:
    n_rows, costs = sizes.n_gates * sizes.n_hidden, fitted_costs()
    is_recorded = torch.is_grad_enabled()
    # Two views and two matmuls with them, and the cell's kernel.
    host_ns = _LAUNCH_NS + costs["recorded operator" if is_recorded else "operator"]
    host_ns += costs["view"] + is_recorded * 2 * costs["recording"]
    works = [
        _matmul(sizes, sizes.batch, n_rows, sizes.n_in),
        _matmul(sizes, sizes.batch, n_rows, sizes.n_hidden),
        _recurrence(sizes, "recurrent cell"),
    ]
    return [replace(work, host_ns=host_ns) for work in works]


def _cell_backward(sizes: _Sizes) -> list[KernelWork]:
    n_rows, costs = sizes.n_gates * sizes.n_hidden, fitted_costs()
    # A node for the cell, its kernel and a sum for the biases; then a node and two matmuls for
    # the inputs, and the same for the hidden state.
    host_ns = _LAUNCH_NS + costs["operator in backward"] + costs["backward node"] // 2
    works = [
        *[_recurrence(sizes, "recurrent cell")] * 2,
        *[_matmul(sizes, sizes.batch, sizes.n_in, n_rows)],
        *[_matmul(sizes, n_rows, sizes.n_in, sizes.batch)],
        *[_matmul(sizes, sizes.batch, sizes.n_hidden, n_rows)],
        *[_matmul(sizes, n_rows, sizes.n_hidden, sizes.batch)],
    ]
    return [replace(work, host_ns=host_ns) for work in works]


def _kernels(n_gates: int, args: Sequence[Any]) -> tuple[list[KernelWork], list[KernelWork]]:
    """Return the kernels of the forward and of the backward pass, layer by layer."""
    forward: list[KernelWork] = []
    backward: list[KernelWork] = []
    for sizes in _layers_of(n_gates, args):
        forward += _forward(sizes)
        backward += _backward(sizes)
    # The first kernel of each pass carries the host time of the whole call.
    first = replace(forward[0], host_ns=_CALL_NS)
    back = replace(backward[0], host_ns=_BACKWARD_NS)
    return [first, *forward[1:]], [back, *backward[1:]]


def _layers_of(n_gates: int, args: Sequence[Any]) -> Iterator[_Sizes]:
    x = args[0]
    # The overload for packed sequences has its weights where the other one has a bool. The
    # positions below are those of the arguments in the two schemas.
    is_packed = not isinstance(args[3], bool)
    if is_packed:
        n_steps, weights, has_biases, both_ways = len(args[1]), args[3], args[4], args[8]
        batch = ceil(x.shape[0] / max(1, n_steps))
    else:
        weights, has_biases, both_ways, batch_first = args[2], args[3], args[7], args[8]
        n_steps, batch = (x.shape[1], x.shape[0]) if batch_first else (x.shape[0], x.shape[1])
    n_each = 4 if has_biases else 2
    is_projected = len(weights) % (n_each * (1 + both_ways) * args[5 if is_packed else 4]) != 0
    # An LSTM with proj_size has one more weight in each layer.
    n_each += is_projected
    arithmetic = _arithmetic(x.dtype)
    for i in range(0, len(weights), n_each):
        n_in, n_hidden = weights[i].shape[1], weights[i].shape[0] // n_gates
        yield _Sizes(max(1, n_steps), max(1, batch), n_in, n_hidden, n_gates, arithmetic)


def _arithmetic(dtype: torch.dtype) -> str:
    if dtype in {torch.float16, torch.bfloat16}:
        return "float16"
    if dtype is torch.float64:
        return "float64"
    return "tf32" if allows_tf32("rnn") else "float32"


def _matmul(sizes: _Sizes, m: int, n: int, k: int) -> KernelWork:
    shape = MatmulShape(1, m, n, k)
    return KernelWork(
        *("gemm", sizes.arithmetic),
        flops=shape.flops,
        n_elements=m * n,
        matmul=shape,
        host_ns=_STEP_NS,
        name="recurrent gemm",
    )


def _recurrence(sizes: _Sizes, family: str, **details: Any) -> KernelWork:
    n = sizes.batch * sizes.n_hidden
    return KernelWork(
        *(family, sizes.arithmetic),
        n_elements=n,
        scratch_bytes=4 * n * (sizes.n_gates + 3),
        host_ns=_STEP_NS,
        name=family,
        **details,
    )


def _forward(sizes: _Sizes) -> list[KernelWork]:
    """Return the kernels of the forward pass of one layer.

    One matmul multiplies the inputs of all time steps. The recurrence follows, in one kernel if
    the layer is small enough, otherwise in two kernels for each step.
    """
    n_rows = sizes.n_gates * sizes.n_hidden
    inputs = _matmul(sizes, sizes.n_steps * sizes.batch, n_rows, sizes.n_in)
    inputs = replace(inputs, host_ns=_LAYER_NS)
    if sizes.n_hidden <= _MOST_PERSISTENT:
        return [inputs, _recurrence(sizes, "recurrence", n_steps=sizes.n_steps)]
    shape = MatmulShape(1, sizes.batch, n_rows, sizes.n_hidden)
    matmul = _recurrence(sizes, "recurrent gemm", flops=shape.flops)
    return [inputs, *[matmul, _recurrence(sizes, "recurrent cell")] * sizes.n_steps]


def _backward(sizes: _Sizes) -> list[KernelWork]:
    """Return the kernels of the backward pass of one layer.

    The recurrence comes first, then the gradients of inputs and weights, for all steps at once.
    """
    n_rows, n_all = sizes.n_gates * sizes.n_hidden, sizes.n_steps * sizes.batch
    back = [_recurrence(sizes, "recurrence back", n_steps=sizes.n_steps)]
    if sizes.n_hidden > _MOST_PERSISTENT:
        flops = 2 * sizes.batch * n_rows * sizes.n_hidden
        matmul = _recurrence(sizes, "recurrent gemm back", flops=flops)
        back = [_recurrence(sizes, "recurrent cell"), matmul] * sizes.n_steps
    return [
        *back,
        replace(_matmul(sizes, n_all, sizes.n_in, n_rows), host_ns=_LAYER_NS),
        _matmul(sizes, n_rows, sizes.n_in, n_all),
        _matmul(sizes, n_rows, sizes.n_hidden, n_all),
        _recurrence(sizes, "recurrent cell"),
    ]
