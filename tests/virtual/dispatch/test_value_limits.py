"""Limits decide which tensors have values; a tensor without values says why it has none."""

import math
import warnings
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

import gpulab
from gpulab.core.errors import NoValuesError
from gpulab.virtual import MissingValuesWarning

F = nn.functional


@pytest.fixture
def little_gpu() -> Iterator[None]:
    """Enter a virtual H200 that computes the values of small tensors and short operators only."""
    options = {"max_value_elements": 1 << 20, "value_budget_s": 2e-4}
    with gpulab.virtual_gpu("H200", first_use=False, **options):
        yield


def no_values(work: Callable[[], torch.Tensor]) -> str:
    """Return the message that is raised when an integer without a value is read."""
    with pytest.raises(NoValuesError) as error:
        work().argmax().item()
    return str(error.value)


@pytest.mark.usefixtures("little_gpu")
def test_large_tensors_have_no_values_and_say_so() -> None:
    """A tensor above ``max_value_elements`` has no values, and its repr and error say so."""
    big = torch.empty(2048, 1024, device="cuda")
    assert not torch.ones(2, device="cuda").resize_(2048, 1024).has_values
    assert repr(big) == (
        "tensor(<no values>, device='cuda:0', size=(2048, 1024), dtype=torch.float32)"
    )
    assert no_values(lambda: big) == (
        "this torch.int64 tensor of shape () has no values: it is, or was computed from, a tensor "
        "of more elements than max_value_elements=1048576; choose smaller sizes, or raise "
        "max_value_elements= of gpulab.virtual_gpu(...)"
    )


@pytest.mark.usefixtures("little_gpu")
def test_expensive_results_have_no_values_and_name_the_operator() -> None:
    """A result above the budget has no values, and the error names operator and estimate."""
    a = torch.empty(512, 512, device="cuda")
    assert no_values(lambda: a @ a) == (
        "this torch.int64 tensor of shape () has no values: the host would take about 0.00054 s "
        "for aten.mm.default, more than value_budget_s=0.0002; choose smaller sizes, or raise "
        "value_budget_s= of gpulab.virtual_gpu(...)"
    )
    assert "about 0.00031 s for aten.add.Tensor" in no_values(lambda: a + a)
    assert "for aten.rand.default" in no_values(lambda: torch.rand(512, 512, device="cuda"))


def test_memory_for_values_is_limited_and_small_tensors_still_fit() -> None:
    """Tensors beyond ``max_value_bytes`` have no values until others are freed."""
    options = {"first_use": False, "max_value_bytes": 20 << 20}
    with gpulab.virtual_gpu("H200", **options) as virtual:
        held = [torch.empty(1 << 21, device="cuda") for _ in range(4)]
        assert [tensor.has_values for tensor in held] == [True, True, False, False]
        assert no_values(lambda: held[2]) == (
            "this torch.int64 tensor of shape () has no values: all tensors with values together "
            "would take more bytes than max_value_bytes=20971520; choose smaller sizes, or raise "
            "max_value_bytes= of gpulab.use(...) or gpulab.virtual_gpu(...)"
        )
        assert torch.ones(1 << 20, device="cuda").sum().item() == 1 << 20  # 4 MiB
        del held[0]
        held[1].zero_()  # a write to the whole tensor gives it values, now that there is room
        held[0].zero_()  # its bytes are counted already
        assert [tensor.has_values for tensor in held] == [True, True, False]
        assert virtual.machine.value_bytes == 16 << 20
        held.clear()
        assert virtual.machine.value_bytes == 0


@pytest.mark.usefixtures("little_gpu")
@pytest.mark.filterwarnings("ignore::gpulab.virtual.MissingValuesWarning")
def test_an_expensive_result_makes_its_target_unknown() -> None:
    """A tensor loses its values when a result that was not computed is written to it."""
    a, c = (torch.empty(512, 512, device="cuda") for _ in range(2))
    torch.mm(a, a, out=c)
    assert math.isnan(c[0, 0].item())
    assert torch.zeros_like(c).has_values  # it needs the shape alone
    c[:256].fill_(3.0)
    assert math.isnan(c[0, 0].item())
    c.fill_(3.0)  # overwrites every element, so no missing value is left
    assert c[0, 0].item() == 3.0


@pytest.mark.usefixtures("little_gpu")
@pytest.mark.filterwarnings("ignore::gpulab.virtual.MissingValuesWarning")
def test_running_statistics_of_what_is_missing_are_missing() -> None:
    """Training on missing values makes running statistics missing; evaluation leaves them."""
    big = torch.empty(2, 4, 512, 512, device="cuda")
    norm = nn.BatchNorm2d(4, device="cuda")
    norm.eval()(big)
    assert norm.running_mean is not None
    assert norm.running_mean.tolist() == [0.0] * 4
    norm.train()(big)
    assert not norm.running_mean.has_values


@pytest.mark.usefixtures("little_gpu")
def test_nan_is_explained_once() -> None:
    """The first read of a nan that stands for a missing value warns, at the reader's line."""
    big = torch.empty(2048, 1024, device="cuda")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert math.isnan(big.sum().item())
        assert math.isnan(big.cpu()[0, 0])
    assert [warning.category for warning in warned] == [MissingValuesWarning]
    assert warned[0].filename == __file__
    assert str(warned[0].message) == (
        "nan stands for what was not computed: this torch.float32 tensor of shape () has no "
        "values: it is, or was computed from, a tensor of more elements than "
        "max_value_elements=1048576; choose smaller sizes, or raise max_value_elements= of "
        "gpulab.virtual_gpu(...)"
    )


def test_nan_needs_no_explanation_where_values_are_switched_off() -> None:
    """There is no warning if values are switched off, or if the program itself wrote the nan."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with gpulab.virtual_gpu("H200", max_value_elements=0):
            assert math.isnan(torch.ones(3, device="cuda").sum().item())
        with gpulab.virtual_gpu("H200"):
            assert math.isnan(torch.full((3,), math.nan, device="cuda").sum().item())


@pytest.mark.usefixtures("little_gpu")
@pytest.mark.parametrize("fused", [False, True])
def test_a_scaled_step_is_taken_when_gradients_have_no_values(*, fused: bool) -> None:
    """A scaler takes its step on gradients without values, and the weights then have none."""
    layer = nn.Linear(1024, 1024, bias=False, device="cuda")
    optimizer = torch.optim.Adam(layer.parameters(), fused=fused)
    scaler = torch.amp.GradScaler("cuda", init_scale=8.0, growth_interval=1)
    scaler.scale(layer(torch.empty(512, 1024, device="cuda")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert optimizer.state[layer.weight]["step"].item() == 1
    assert scaler.get_scale() == 16.0
    assert not layer.weight.has_values


def test_a_scaled_step_is_taken_where_values_are_switched_off() -> None:
    """Without any values a scaler takes its step, too, so that the step takes its time."""
    with gpulab.virtual_gpu("H200", max_value_elements=0):
        layer = nn.Linear(4, 4, device="cuda")
        optimizer = torch.optim.SGD(layer.parameters(), 0.1, momentum=0.9)
        scaler = torch.amp.GradScaler("cuda")
        scaler.scale(layer(torch.ones(2, 4, device="cuda")).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert "momentum_buffer" in optimizer.state[layer.weight]


def _mnist() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Dropout(0.25), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5)),
        *(nn.Linear(128, 10), nn.LogSoftmax(1)),
    )


def _vae() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 400), nn.ReLU(), nn.Linear(400, 20), nn.Linear(20, 784))


def _largest_of_resnet18() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        *(nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)),
        *(nn.Conv2d(64, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)),
    )


def _smallest_nanogpt() -> nn.Module:
    layer = nn.TransformerEncoderLayer(128, 4, 512, 0.0, "gelu", batch_first=True, norm_first=True)
    return nn.Sequential(nn.Embedding(65, 128), layer, nn.Linear(128, 65))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "sizes", "is_trained"),
    [
        (_mnist, (64, 1, 28, 28), True),
        (_mnist, (1000, 1, 28, 28), False),
        (_vae, (128, 784), True),
        (_largest_of_resnet18, (32, 3, 224, 224), True),
        (_smallest_nanogpt, (12, 64), True),
    ],
)
def test_programs_of_beginners_have_values(
    make: Callable[[], nn.Module], sizes: tuple[int, ...], *, is_trained: bool
) -> None:
    """Usual first programs have values for loss and gradients under the default limits."""
    has_words = make is _smallest_nanogpt
    with gpulab.virtual_gpu("H200", first_use=False) as virtual:
        model = make().to("cuda").train(is_trained)
        x = torch.zeros(sizes, device="cuda", dtype=torch.long if has_words else torch.float)
        # Nothing after this line waits, so values are planned but hardly any are computed.
        virtual.machine.host.wait_for_device(virtual.machine.gpu.device)
        with torch.set_grad_enabled(is_trained):
            loss = model(x).square().mean()
        assert loss.has_values
        if is_trained:
            loss.backward()
            assert all(p.grad is not None and p.grad.has_values for p in model.parameters())
