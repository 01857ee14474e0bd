"""Lazy modules move to the virtual GPU before their first call, as to a CUDA GPU."""

import copy
import io
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

import gpulab

Make = Callable[[], nn.Module]
X = torch.linspace(-1, 1, 4 * 3 * 6 * 6).reshape(4, 3, 6, 6)


def network(device: str | None = None) -> nn.Module:
    """Return a network of all kinds of lazy layers, which has no sizes yet."""
    return nn.Sequential(
        *(nn.LazyConv2d(8, 3, device=device), nn.LazyBatchNorm2d(device=device), nn.ReLU()),
        *(nn.Flatten(), nn.LazyLinear(10, device=device)),
    )


def by_default_device() -> nn.Module:
    """Return the network made with the GPU as the default device."""
    with torch.device("cuda"):
        return network()


def tensors_without_sizes(model: nn.Module) -> list[torch.Tensor]:
    """Return the parameters and buffers that the first call gives their sizes."""
    return [item for item in (*model.parameters(), *model.buffers()) if is_lazy(item)]


def loss_of_step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> float:
    """Take a training step, and return its loss."""
    optimizer.zero_grad()
    loss = model(x).square().mean()
    torch.autograd.backward(loss)
    optimizer.step()
    return loss.item()


MAKES: dict[str, Make] = {
    "to": lambda: network().to("cuda"),
    "cuda": lambda: network().cuda(),
    "device=": lambda: network("cuda"),
    "default device": by_default_device,
    "there and back": lambda: network().cuda().cpu().half().to("cuda").float(),
    "type and device": lambda: network().double().to("cuda", torch.float32),
    # PyTorch cannot copy a lazy BatchNorm anywhere.
    "deepcopy": lambda: nn.Sequential(
        *(copy.deepcopy(nn.LazyConv2d(8, 3).cuda()), nn.LazyBatchNorm2d().cuda(), nn.ReLU()),
        *(nn.Flatten(), copy.deepcopy(nn.LazyLinear(10, device="cuda"))),
    ),
}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", MAKES)
def test_the_first_call_on_the_device_gives_the_sizes_and_trains(name: str) -> None:
    """Before the first call the tensors are lazy there; then all is as on the CPU."""
    host, device = network(), MAKES[name]()
    lazy = tensors_without_sizes(device)
    assert len(lazy) == len(tensors_without_sizes(host)) == 8
    assert {(str(item.device), item.is_cuda, item.dtype) for item in lazy} == {
        ("cuda:0", True, torch.float32)
    }
    kinds = [(isinstance(item, nn.Parameter), item.requires_grad) for item in lazy]
    assert kinds == [(True, True)] * 6 + [(False, False)] * 2
    # An optimizer may know the parameters before the first call.
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (host, device)]
    assert device(X.cuda()).shape == host(X).shape == (4, 10)
    assert all(isinstance(item, nn.Parameter) for item in device.parameters())
    device.load_state_dict(host.state_dict())
    for _ in range(3):
        expected = loss_of_step(host, optimizers[0], X)
        assert loss_of_step(device, optimizers[1], X.cuda()) == pytest.approx(expected, rel=1e-4)
    found = device.state_dict()
    for key, value in host.state_dict().items():
        torch.testing.assert_close(found[key].cpu(), value, rtol=1e-3, atol=1e-5)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("half", [nn.Module.half, lambda module: module.to(torch.float16)])
def test_a_lazy_module_changes_its_type_and_goes_back(
    half: Callable[[nn.Module], nn.Module],
) -> None:
    """A module changes its type on the device, and is the same lazy module on the CPU again."""
    model = half(network().cuda())
    assert {item.dtype for item in tensors_without_sizes(model)} == {torch.float16}
    assert model(X.cuda().half()).dtype == torch.float16
    model = network().cuda().double().cpu()
    lazy = tensors_without_sizes(model)
    assert {(item.device.type, item.dtype) for item in lazy} == {("cpu", torch.float64)}
    assert {type(item) for item in lazy} == {UninitializedParameter, UninitializedBuffer}
    assert network().cuda().to("meta")[0].weight.is_meta


def test_a_lazy_module_moves_between_gpus() -> None:
    """The first call makes the parameters on the GPU to which the module moved last."""
    with gpulab.virtual_gpu("H200", count=2, first_use=False):
        model = network().cuda().to("cuda:1")
        assert model(X.to("cuda:1")).get_device() == 1


class Scaled(LazyModuleMixin, nn.Module):
    """A lazy module that also has a parameter with a size."""

    def __init__(self, scale: nn.Parameter) -> None:
        super().__init__()
        self.weight, self.scale = UninitializedParameter(), scale


@pytest.mark.usefixtures("gpu")
def test_other_parameters_of_a_lazy_module_stay_the_same_objects() -> None:
    """Tied parameters stay tied, with a size and without, and the order of all stays."""
    scale = nn.Parameter(torch.ones(2))
    module = Scaled(scale)
    weight = module.weight
    both = nn.ModuleList([module, Scaled(scale)])
    both[1].weight = weight
    both.cuda()
    assert all(each.scale is scale and each.weight is weight for each in both)
    assert (scale.is_cuda, weight.is_cuda) == (True, True)
    assert [name for name, _ in module.named_parameters()] == ["weight", "scale"]


@pytest.mark.usefixtures("gpu")
def test_a_move_that_fails_loses_no_parameter() -> None:
    """An error of a conversion that PyTorch refuses before the first call changes nothing."""
    model = nn.LazyLinear(3).cuda()
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        model.bfloat16()
    assert len(tensors_without_sizes(model)) == 2
    assert model(torch.ones(1, 2, device="cuda")).shape == (1, 3)


@pytest.mark.usefixtures("gpu")
def test_a_state_gives_a_lazy_module_its_sizes() -> None:
    """States are loaded with sizes and without, and refused as on the CPU."""
    called = network()
    called(X)
    device, lazy = network().cuda(), network().cuda()
    assert str(lazy.load_state_dict(network().state_dict())) == "<All keys matched successfully>"
    device.load_state_dict(called.state_dict())
    for key, value in called.state_dict().items():
        assert torch.equal(device.state_dict()[key].cpu(), value)
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        device.load_state_dict(lazy.state_dict())
    host = network()
    host.load_state_dict(device.state_dict())
    assert torch.equal(host[4].weight, called[4].weight)


@pytest.mark.usefixtures("gpu")
def test_a_file_and_a_text_are_those_of_pytorch() -> None:
    """A saved module is one that PyTorch can load anywhere, and the text names the kind."""
    model = network().cuda()
    lazy = model[1].weight, model[1].running_mean
    expected = ["<UninitializedParameter>", "<UninitializedBuffer>"]
    assert [str(item) for item in lazy] == [repr(item) for item in lazy] == expected
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    assert b"gpulab" not in file.getvalue()
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    kinds = [type(loaded[f"1.{name}"]) for name in ("weight", "running_mean")]
    assert kinds == [UninitializedParameter, UninitializedBuffer]
