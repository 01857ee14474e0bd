"""LSTM, GRU and plain RNN layers, which cuDNN runs as a whole, and the cells of LSTM and GRU.

A cell takes two matmuls and one kernel of PyTorch.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import ceil
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_leaves

from gpulab.core.torch_private import variable_functions
from gpulab.core.tracebacks import drop_this_frame
from gpulab.virtual.operators import OperatorCall
from gpulab.virtual.patches._autocast import cast_for_layer
from gpulab.virtual.patches._library_layers import LibraryLayer
from gpulab.virtual.simulator import Machine, fitted_costs, is_owner
from gpulab.virtual.simulator.costs import KernelWork, MatmulShape
from gpulab.virtual.tensors import VirtualTensor

# Gates of a cell: the number of rows of the weights for each hidden unit.
_N_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1, "lstm_cell": 4, "gru_cell": 3}
_LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
# The numbers of each hidden unit that PyTorch's kernel of a cell keeps for the gradients.
_N_KEPT = {"lstm_cell": 4, "gru_cell": 5}
# Host time of a call, of its backward pass, of each layer and direction, and of each kernel. They
# are fitted so that two programs with LSTMs take as long as on the host of an H200.
_CALL_NS, _BACKWARD_NS, _LAYER_NS, _STEP_NS = 200_000, 750_000, 130_000, 10_500
# With at most this many hidden units, one kernel of cuDNN computes all time steps.
_MOST_PERSISTENT = 128
# The host time of a launch of a cell, without the operator's own.
_LAUNCH_NS = 5_000


class _Sizes(NamedTuple):
    """The sizes of one layer in one direction, over a whole sequence."""

    n_steps: int
    batch: int
    n_in: int
    n_hidden: int
    n_gates: int
    arithmetic: str


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacements for PyTorch's recurrent layers and cells."""
    functions = {name: _layer(name) for name in _LAYERS}
    functions |= {name: _cell(name, machine) for name in _N_KEPT}
    return [(variable_functions, functions), (torch, functions)]


def _layer(name: str) -> Callable[..., Any]:
    plain = getattr(torch, name)

    def recurrent(*args: Any, **kwargs: Any) -> Any:
        # Without cuDNN, PyTorch decomposes the layer on a CUDA GPU, too.
        is_whole = not kwargs and torch.backends.cudnn.enabled and _is_virtual(args)
        try:
            return _run_layer(name, args) if is_whole else plain(*args, **kwargs)
        except Exception as error:
            drop_this_frame(error)
            raise

    return recurrent


def _run_layer(name: str, args: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
    # The overload for packed sequences has its weights where the other one has a bool.
    is_packed = not isinstance(args[3], bool)
    lengths = args[1].tolist() if is_packed else []
    states, weights, has_biases, n_layers, dropout, is_training, both_ways = args[
        1 + is_packed : 8 + is_packed
    ]
    states = [states] if isinstance(states, torch.Tensor) else states
    is_random = dropout > 0 and is_training and n_layers > 1
    options = (
        *(name, len(states), lengths, has_biases, n_layers, dropout if is_random else 0.0),
        *(both_ways, not is_packed and args[8]),
    )
    tensors = cast_for_layer((args[0], *states, *weights), torch.float16)
    return _RECURRENCE.run(options, tensors, n_results=1 + len(states), is_random=is_random)


def _cell(name: str, machine: Machine) -> Callable[..., Any]:
    plain = getattr(torch, name)

    def cell(*args: Any, **kwargs: Any) -> Any:
        if kwargs or not _is_virtual(args):
            return plain(*args, **kwargs)
        x, states, *weights = args
        states = [states] if isinstance(states, torch.Tensor) else states
        weights = [item for item in weights if item is not None]
        # For each of the three kernels, with the views of the weights.
        costs, is_recorded = fitted_costs(), torch.is_grad_enabled()
        host_ns = costs["recorded operator" if is_recorded else "operator"]
        host_ns += costs["view"] + is_recorded * 2 * costs["recording"]
        machine.host.spend(int(3 * host_ns))
        tensors = cast_for_layer((x, *states, *weights))
        results = _CELL.run((name, len(states)), tensors, n_results=len(states))
        return results if len(states) > 1 else results[0]

    return cell


def _is_virtual(args: Any) -> bool:
    """Return whether all tensors of a call are on the virtual GPU.

    Inside ``torch.func`` some are wrapped, and only PyTorch's operators can unwrap them. The
    lengths of packed sequences are on the host.
    """
    tensors = [item for item in tree_leaves(args) if isinstance(item, torch.Tensor)]
    floating = [item for item in tensors if item.is_floating_point()]
    return is_owner() and all(isinstance(item, VirtualTensor) for item in floating)


def _compute(  # noqa: PLR0913, PLR0917 # those of the operator
    kind: str,
    n_states: int,
    lengths: list[int],
    has_biases: bool,  # noqa: FBT001 # as above
    n_layers: int,
    dropout: float,
    both_ways: bool,  # noqa: FBT001 # as above
    batch_first: bool,  # noqa: FBT001 # as above
    tensors: list[torch.Tensor],
) -> list[torch.Tensor]:
    x, *others = tensors
    states: Any = others[:n_states] if kind == "lstm" else others[0]
    options = (has_biases, n_layers, dropout, dropout > 0, both_ways)
    plain = getattr(variable_functions, kind)
    if lengths:
        on_host = torch.tensor(lengths, device="cpu")
        return list(plain(x, on_host, states, others[n_states:], *options))
    return list(plain(x, states, others[n_states:], *options, batch_first))


def _compute_cell(kind: str, n_states: int, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    x, *others = tensors
    states: Any = others[:n_states] if kind == "lstm_cell" else others[0]
    results = getattr(variable_functions, kind)(x, states, *others[n_states:])
    results = [results] if isinstance(results, torch.Tensor) else results
    return [*results, results[0].new_empty((results[0].numel() * _N_KEPT[kind],))]


def _layers_of(call: OperatorCall) -> Iterator[_Sizes]:
    kind, n_states, lengths, _, n_layers, _, both_ways, batch_first, tensors = call.args[:9]
    x, weights = tensors[0], tensors[1 + n_states :]
    if lengths:
        n_steps, batch = len(lengths), ceil(x.shape[0] / len(lengths))
    else:
        n_steps, batch = (x.shape[1], x.shape[0]) if batch_first else (x.shape[0], x.shape[1])
    n_each = len(weights) // ((1 + both_ways) * n_layers)
    for i in range(0, len(weights), n_each):
        yield _sizes(call, kind, max(1, n_steps), max(1, batch), weights[i])


def _sizes(
    call: OperatorCall, kind: str, n_steps: int, batch: int, weight: torch.Tensor
) -> _Sizes:
    n_gates = _N_GATES[kind]
    arithmetic = "float16" if call.arithmetic == "bfloat16" else call.arithmetic
    return _Sizes(n_steps, batch, weight.shape[1], weight.shape[0] // n_gates, n_gates, arithmetic)


def _size_of_cell(call: OperatorCall) -> _Sizes:
    kind, n_states, tensors = call.args[:3]
    batch = tensors[0].shape[0] if tensors[0].dim() > 1 else 1
    return _sizes(call, kind, 1, batch, tensors[1 + n_states])


def _forward_of_cell(call: OperatorCall) -> list[KernelWork]:
    sizes = _size_of_cell(call)
    n_rows = sizes.n_gates * sizes.n_hidden
    works = [
        _matmul(sizes, sizes.batch, n_rows, sizes.n_in),
        _matmul(sizes, sizes.batch, n_rows, sizes.n_hidden),
        _recurrence(sizes, "recurrent cell"),
    ]
    return [replace(work, host_ns=_LAUNCH_NS) for work in works]


def _backward_of_cell(call: OperatorCall) -> list[KernelWork]:
    sizes, costs = _size_of_cell(call), fitted_costs()
    n_rows = sizes.n_gates * sizes.n_hidden
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


def _forward_of_layers(call: OperatorCall) -> list[KernelWork]:
    first, *others = [work for sizes in _layers_of(call) for work in _forward(sizes)]
    # The first kernel of each pass carries the host time of the whole call.
    return [replace(first, host_ns=_CALL_NS), *others]


def _backward_of_layers(call: OperatorCall) -> list[KernelWork]:
    first, *others = [work for sizes in _layers_of(call) for work in _backward(sizes)]
    return [replace(first, host_ns=_BACKWARD_NS), *others]


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


_RECURRENCE = LibraryLayer(
    "_recurrence",
    "str kind, int n_states, int[] lengths, bool has_biases, int n_layers, float dropout, "
    "bool both_ways, bool batch_first",
    _compute,
    _forward_of_layers,
    _backward_of_layers,
    is_recurrent=True,
)
_CELL = LibraryLayer(
    "_recurrent_cell",
    "str kind, int n_states",
    _compute_cell,
    _forward_of_cell,
    _backward_of_cell,
    is_recurrent=True,
)
