"""Recurrent layers are a few kernels of cuDNN, with the CPU's values and gradients."""

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import gpulab
from benchmarks.common.device_records import profiled
from gpulab.virtual.simulator.costs._kernel_families import KERNEL_FAMILIES


def results(module: nn.RNNBase, x: torch.Tensor, *, packed: bool) -> list[torch.Tensor]:
    """Return outputs and accumulated gradients of two passes."""
    x = x.clone().requires_grad_()
    actual: list[torch.Tensor] = []
    for _ in range(2):
        out = module(pack_padded_sequence(x, [4, 3, 2]) if packed else x)[0]
        data = out.data if packed else out
        torch.autograd.backward((data * data).sum())
        actual.append(data.detach())
    gradients = [item.grad for item in (*module.parameters(), x)]
    return [*actual, *(item for item in gradients if item is not None)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}])
def test_values_and_gradients_are_the_cpus(
    kind: type[nn.RNNBase], options: dict[str, Any], *, packed: bool
) -> None:
    """A recurrent layer has the CPU's values and gradients, and no hazards."""
    torch.manual_seed(0)
    here, x = kind(6, 5, **options), torch.randn(4, 3, 6)
    there = copy.deepcopy(here)
    wanted = results(here, x, packed=packed)
    with gpulab.virtual_gpu("H200", first_use=False), gpulab.hazards() as hazards:
        layer: Any = there.cuda()
        actual = [item.cpu() for item in results(layer, x.cuda(), packed=packed)]
    assert len(actual) == len(wanted)
    for actual_item, expected_item in zip(actual, wanted, strict=True):
        torch.testing.assert_close(actual_item, expected_item, rtol=1e-4, atol=1e-5)
    assert not hazards


def test_a_program_with_two_streams_has_gradients() -> None:
    """The simulator's own backward pass over the values changes no stream of the program."""
    torch.manual_seed(0)
    here, x = nn.LSTM(6, 5), torch.randn(4, 3, 6)
    there = copy.deepcopy(here)
    wanted = results(here, x, packed=False)
    with gpulab.virtual_gpu("H200", first_use=False):
        layer: Any = there.cuda()
        with torch.cuda.stream(torch.cuda.Stream()):
            x = x.cuda()
            torch.relu(torch.ones(2, device="cuda", requires_grad=True))
        torch.cuda.synchronize()
        for actual_item, expected_item in zip(
            results(layer, x, packed=False), wanted, strict=True
        ):
            torch.testing.assert_close(actual_item.cpu(), expected_item, rtol=1e-4, atol=1e-5)


def test_a_gradient_takes_as_long_without_values() -> None:
    """Neither its plan nor its values take the host's time, the first and the second time."""
    ends_ns = []
    for limit in (1 << 26, 1 << 26, 0):
        with gpulab.virtual_gpu("H200", max_value_elements=limit) as gpu:
            layer, x = nn.GRU(7, 3).cuda(), torch.randn(5, 2, 7, device="cuda")
            for _ in range(2):
                layer(x)[0].sum().backward()
                repr(layer.weight_hh_l0.grad)  # computes it
                ends_ns.append(gpu.machine.host.now_ns)
    assert ends_ns[:2] == ends_ns[2:4] == ends_ns[4:]


def test_gradients_of_gradients_are_refused_as_with_cudnn() -> None:
    """A layer of cuDNN has no gradients of its gradients; without cuDNN they are the CPU's."""
    here = nn.LSTM(3, 2)
    there: Any = copy.deepcopy(here)
    x = torch.ones(3, 1, 3, requires_grad=True)

    def second(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        (first,) = torch.autograd.grad(layer(x)[0].sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), x)[0]

    with gpulab.virtual_gpu("H200", first_use=False):
        on_device = x.detach().cuda().requires_grad_()
        with pytest.raises(NotImplementedError, match="no gradients of their gradients"):
            second(there.cuda(), on_device)
        with torch.backends.cudnn.flags(enabled=False):
            actual = second(there, on_device).cpu()
    torch.testing.assert_close(actual, second(here, x))


def host_us(n_steps: int, n_hidden: int) -> float:
    """Return the host time of a forward and backward pass of an LSTM in microseconds."""
    with gpulab.virtual_gpu("H200", first_use=False, max_value_elements=0) as gpu:
        layer, x = nn.LSTM(6, n_hidden).cuda(), torch.randn(n_steps, 3, 6, device="cuda")
        for _ in range(2):
            layer.zero_grad()
            torch.cuda.synchronize()
            before_ns = gpu.machine.host.now_ns
            torch.autograd.backward(layer(x)[0].sum())
            taken_ns = gpu.machine.host.now_ns - before_ns
    return taken_ns / 1e3


@pytest.mark.slow
def test_a_time_step_costs_four_launches_or_none() -> None:
    """A time step of a large layer costs four launches; a small layer's steps are one kernel."""
    launch_us = KERNEL_FAMILIES["recurrent cell"].launch_ns / 1e3
    assert host_us(9, 200) - host_us(4, 200) == pytest.approx(5 * 4 * launch_us)
    assert host_us(9, 128) == pytest.approx(host_us(4, 128))
    with torch.backends.cudnn.flags(enabled=False):
        assert host_us(9, 5) - host_us(4, 5) > 5 * 100


def test_dropout_between_layers_is_drawn_anew_each_time() -> None:
    """Each pass draws new numbers, a seed repeats them, and backward drops what forward did."""
    with gpulab.virtual_gpu("H200", first_use=False):
        layer: Any = nn.RNN(4, 4, 2, dropout=0.5, nonlinearity="relu").cuda()
        for weight in layer.parameters():
            weight.data.abs_()  # so that nothing is cut off, and the layer is linear in its input
        x = torch.ones(3, 2, 4, device="cuda", requires_grad=True)
        layer.bias_ih_l1.data.zero_(), layer.bias_hh_l1.data.zero_()
        layer.bias_ih_l0.data.zero_(), layer.bias_hh_l0.data.zero_()

        def run() -> tuple[float, float]:
            total = layer(x)[0].sum()
            (gradient,) = torch.autograd.grad(total, x)
            return total.item(), (gradient * x).sum().item()

        torch.manual_seed(1)
        first, second = run(), run()
        torch.manual_seed(1)
        assert run() == first != second
        for total, from_gradient in (first, second):
            assert from_gradient == pytest.approx(total)


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_large_layer_with_projections_is_computed(dtype: torch.dtype) -> None:
    """Its sizes are not made smaller to look for wrong arguments, as the CPU checks none."""
    here = nn.LSTM(32, 64, proj_size=16)
    there: Any = copy.deepcopy(here)
    x = torch.randn(50, 16, 32)
    with gpulab.virtual_gpu("H200", first_use=False):
        out = there.cuda().to(dtype)(x.cuda().to(dtype))[0]
        out.float().square().mean().backward()
        assert there.weight_hr_l0.grad.isfinite().all()
        torch.testing.assert_close(out.float().cpu(), here(x)[0], rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRUCell])
def test_wrong_arguments_raise_at_their_line(kind: type[nn.Module]) -> None:
    """Sizes and types that do not fit raise before anybody reads the result."""
    with gpulab.virtual_gpu("H200", first_use=False):
        layer: Any = kind(3, 4).cuda()
        shape = (2, 3) if kind is nn.GRUCell else (5, 2, 3)
        with pytest.raises((RuntimeError, ValueError), match="type"):
            layer(torch.ones(shape, dtype=torch.float64, device="cuda"))
        with pytest.raises(RuntimeError, match="input"):
            layer(torch.ones(*shape[:-1], 7, device="cuda"))


def test_a_layer_that_fails_takes_time_again_afterwards() -> None:
    """After an error inside a layer, operators take host time again."""
    with gpulab.virtual_gpu("H200", first_use=False) as gpu:
        layer = nn.LSTM(4, 4).cuda()
        with pytest.raises(RuntimeError):
            torch.lstm(
                torch.ones(2, 2, 5, device="cuda"),
                (torch.ones(1, 2, 4, device="cuda"),) * 2,
                list(layer.parameters()),
                *(True, 1, 0.0, False, False, False),
            )
        before_ns = gpu.machine.host.now_ns
        torch.ones(2, device="cuda").add(1)
        assert gpu.machine.host.now_ns - before_ns > 5_000


@pytest.mark.parametrize(("kind", "n_states"), [(nn.LSTMCell, 2), (nn.GRUCell, 1)])
def test_a_cell_is_three_kernels_with_the_cpus_gradients(
    kind: type[nn.RNNCellBase], n_states: int
) -> None:
    """A cell runs two matmuls and a kernel forward, and has the CPU's values and gradients."""
    torch.manual_seed(0)
    here: Any = kind(6, 5)  # type: ignore[call-arg] # its classes take no number of chunks
    there, x = copy.deepcopy(here), torch.randn(4, 6)

    def run(cell: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
        state = None
        for _ in range(3):
            state = cell(x, state)
        total = sum(item.sum() for item in (state if n_states > 1 else [state]))
        torch.autograd.backward(total)
        return [item.grad.cpu() for item in cell.parameters() if item.grad is not None]

    wanted = run(here, x)
    with gpulab.virtual_gpu("H200", first_use=False):
        actual = run(there.cuda(), x.cuda())
        state, x = there(x.cuda()), x.cuda()
        records = profiled(lambda: there(x, state))
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(actual, wanted, strict=True))
    assert [item.name for item in records] == [
        "recurrent gemm",
        "recurrent gemm",
        "recurrent cell",
    ]
