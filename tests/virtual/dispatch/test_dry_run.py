"""Errors of arguments come at the line of the call, with values and without, and only they do."""

import gc
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

import gpulab
from benchmarks.operators.recorded_errors import differences, load
from benchmarks.operators.wrong_calls import wrong_calls
from benchmarks.operators.wrong_inputs import try_all, virtual

N_LINES = 150
MODES = pytest.mark.parametrize("with_values", [True, False])

Call = Callable[[], Any]


@MODES
@pytest.mark.parametrize("seed", [0, 1])
def test_wrong_calls_raise_where_a_gpu_raises(seed: int, *, with_values: bool) -> None:
    """Lines that people write wrong: each raises, or is accepted, as recorded on an H100."""
    chosen = random.Random(seed).sample(wrong_calls(), N_LINES)
    with virtual(with_values=with_values):
        tried = try_all(["written"], chosen)
    assert len(tried) == N_LINES
    differing = differences(tried, load())
    # Without values a call that needs them, such as an index by a mask, says that there are none.
    assert [line for line in differing if with_values or "has no values" not in line] == []


@MODES
def test_large_tensors_are_checked_too(*, with_values: bool) -> None:
    """Calls that are too large to run as they are raise at their line."""
    with virtual(with_values=with_values):
        large = torch.empty(256, 4096, device="cuda")
        whole = torch.empty(256, 4096, dtype=torch.int64, device="cuda")
        images = torch.empty(8, 6, 224, 224, device="cuda")
        weight = torch.empty(4, 6, 3, 3, device="cuda")
        for call in (
            lambda: functional.gelu(large, approximate="tahn"),
            lambda: functional.gelu(whole),
            lambda: functional.log_softmax(whole, 1),
            lambda: functional.mse_loss(whole, whole),
            lambda: functional.conv2d(images, weight, dilation=0),
            lambda: functional.conv2d(images, weight, padding=-1),
            lambda: functional.max_pool2d(images.bool(), 2),
            lambda: functional.rms_norm(large, (256,)),
            lambda: torch.multinomial(large, 5000),
            lambda: torch.bucketize(large, large),
            lambda: large.view(-1)[1:].add_(large.view(-1)[:-1]),
            lambda: whole @ whole.T,
            lambda: large.uniform_(3, -1),
            lambda: torch.index_add(large, 0, whole[0, :256], large.double()),
        ):
            _raises(call)
        torch.cuda.synchronize()


def test_a_wrong_number_raises_after_a_right_one() -> None:
    """A plan that was made for a right number is not used for a wrong one."""
    with gpulab.virtual_gpu("H200"):
        x = torch.ones(4, device="cuda")
        half = x.half()
        for right, wrong in (
            (lambda: x.uniform_(-1.0, 3.0), lambda: x.uniform_(3.0, -1.0)),
            (lambda: x.bernoulli_(0.5), lambda: x.bernoulli_(1.5)),
            (lambda: x.bernoulli_(1.0), lambda: x.bernoulli_(-0.5)),
            (lambda: functional.softshrink(x, 0.5), lambda: functional.softshrink(x, -1.0)),
            (lambda: functional.huber_loss(x, x), lambda: functional.huber_loss(x, x, delta=0.0)),
            (lambda: functional.celu(x, 0.5), lambda: functional.celu(x, 0.0)),
            (lambda: half.masked_fill(half > 0, -6e4), lambda: half.masked_fill(half > 0, -1e9)),
            (lambda: half.fill_(1.0), lambda: half.fill_(1e6)),
        ):
            right()
            _raises(wrong)
            right()
        torch.cuda.synchronize()


def test_memory_that_is_read_and_written_raises_only_where_it_overlaps() -> None:
    """The same views of other memory, or of neighbouring memory, are accepted."""
    with gpulab.virtual_gpu("H200"):
        x, y = torch.ones(8, device="cuda"), torch.ones(8, device="cuda")
        for right, wrong in (
            (lambda: x[1:].add_(y[:-1]), lambda: x[1:].add_(x[:-1])),
            (lambda: x[:4].add_(x[4:]), lambda: x[:4].add_(x[2:6])),
            (lambda: torch.mul(x[1:], 2, out=y[:7]), lambda: torch.mul(x[1:], 2, out=x[:7])),
            (lambda: x.add_(x), lambda: x[:6].add_(x[2:])),
            (lambda: x[::2].add_(x[1::2]), lambda: torch.cat([x[:4], y[:4]], out=x)),
        ):
            right()
            _raises(wrong)
            right()
        torch.cuda.synchronize()


OVERLAPPING: dict[str, Call] = {
    "expanded": lambda: torch.ones(4, 1).expand(4, 5),
    "large and expanded": lambda: torch.ones(400, 1).expand(400, 500),
    "windows": lambda: torch.arange(9.0).unfold(0, 5, 1),
    "large windows": lambda: torch.arange(900.0).unfold(0, 400, 1),
}
WRITES: list[Callable[[torch.Tensor], object]] = [
    lambda x: x.add_(1),
    lambda x: x.fill_(1),
    lambda x: x.zero_(),
    lambda x: x.masked_fill_(x > 0, 2.0),
    lambda x: x.index_fill_(0, torch.zeros(1, dtype=torch.long, device=x.device), 2.0),
    lambda x: x.index_put_((torch.zeros(1, dtype=torch.long, device=x.device),), x[1].clone()),
    lambda x: x.copy_(torch.ones_like(x)),
    lambda x: torch.mul(x, 2, out=x),
    lambda x: torch._foreach_add_([x], 1.0),
    lambda x: x.normal_(),
]


def refusal(write: Callable[[torch.Tensor], object], x: torch.Tensor) -> str:
    """Return the message with which a write is refused, or an empty text."""
    try:
        write(x)
    except RuntimeError as error:
        return str(error)
    return ""


@pytest.mark.filterwarnings("ignore:Use of .* on expanded tensors is deprecated")
@pytest.mark.parametrize("view", OVERLAPPING)
def test_elements_at_one_address_are_written_where_pytorch_writes_them(view: str) -> None:
    """What the CPU refuses is refused in the same words, and all else is computed."""
    host = OVERLAPPING[view]()
    n_elements = host.untyped_storage().nbytes() // host.itemsize
    expected = [refusal(write, host) for write in WRITES]
    with gpulab.virtual_gpu("H200", first_use=False):
        device = torch.ones(n_elements, device="cuda").as_strided(host.shape, host.stride())
        assert [refusal(write, device) for write in WRITES] == expected
        torch.cuda.synchronize()


def test_a_view_beyond_its_storage_is_refused() -> None:
    """``as_strided`` accepts and refuses what it does on the CPU, counting from the storage."""
    chosen = random.Random(0)
    n_refused = 0
    with gpulab.virtual_gpu("H200", first_use=False):
        host, device = (torch.arange(12.0, device=name)[2:8] for name in ("cpu", "cuda"))
        for _ in range(60):
            sizes, strides = (chosen.choices(range(5), k=2) for _ in range(2))
            form = sizes, strides, chosen.choice([None, 0, 1, 4, 11, 12])
            refused = refusal(lambda x, form=form: x.as_strided(*form), host)
            assert refusal(lambda x, form=form: x.as_strided(*form), device) == refused
            n_refused += bool(refused)
            assert refused or host.as_strided(*form).equal(device.as_strided(*form).cpu())
    assert 15 < n_refused < 45


def test_no_call_is_refused_for_values_that_it_does_not_have() -> None:
    """The values of a dry run may be refused where those of the program are right."""
    with gpulab.virtual_gpu("H200"):
        square = torch.tensor([[2.0, 1.0], [1.0, 3.0]], device="cuda")
        ones = torch.ones(3, dtype=torch.int64, device="cuda")
        factors, pivots = torch.linalg.lu_factor(square)
        torch.lu_unpack(factors, pivots)
        torch.linalg.lu_solve(factors, pivots, square)
        torch.linalg.cholesky(square)
        assert torch.equal(ones // ones, ones)
        assert torch.equal(ones % ones, ones - 1)
        mask = torch.tensor([True, False, True], device="cuda")
        ones.index_put_((mask,), ones[:2].clone())
        ones.masked_scatter_(mask, ones[:2].clone())
        torch._assert_async(ones[0])
        functional.ctc_loss(
            torch.zeros(5, 1, 4, device="cuda").log_softmax(2),
            ones[:2].view(1, 2),
            torch.tensor([5], device="cuda"),
            torch.tensor([2], device="cuda"),
        )
        torch.cuda.synchronize()


def test_a_dry_run_draws_no_random_numbers() -> None:
    """The generators of CPU and GPU go on where they were, and a seed gives the same numbers."""
    with gpulab.virtual_gpu("H200"):
        drawn = []
        for n in (1, 2):
            torch.manual_seed(3)
            torch.empty(n, device="cuda").exponential_()  # another shape, so that it is tried
            drawn.append(torch.rand(2))
        assert torch.equal(*drawn)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_types_that_only_cuda_has_are_computed_with_wider_ones() -> None:
    """Kernels that the CPU lacks for half precision and booleans raise no error here."""
    with gpulab.virtual_gpu("H200"):
        volume = torch.arange(64.0, device="cuda").view(1, 1, 4, 4, 4)
        pooled = functional.avg_pool3d(volume.half(), 2)
        assert (pooled.dtype, pooled[0, 0, 0, 0, 0].item()) == (torch.float16, 10.5)
        assert torch.tensor([True, False], device="cuda").abs().tolist() == [True, False]
        assert torch.fft.rfft(torch.ones(4, device="cuda").half()).real[0].item() == 4


def test_a_dry_run_names_a_kernel_of_cuda() -> None:
    """The message does not tell the user of a GPU about the CPU."""
    with gpulab.virtual_gpu("H200"), pytest.raises(NotImplementedError) as raised:
        torch.ones(2, dtype=torch.int64, device="cuda").frac()
    assert str(raised.value) == "\"frac_cuda\" not implemented for 'Long'"
    assert "_error_of" not in [entry.name for entry in raised.traceback]


def test_smaller_sizes_refuse_nothing_that_fits() -> None:
    """Large calls whose sizes are products or bounds of each other are accepted."""
    with gpulab.virtual_gpu("H200", max_value_elements=0):
        x = torch.ones(64, 1024, device="cuda")
        index = torch.zeros(1 << 16, dtype=torch.int64, device="cuda")
        images = torch.ones(8, 64, 32, 32, device="cuda")
        x.topk(300)
        x.kthvalue(1000)
        x.put_(index, x)
        x.take(index)
        torch.multinomial(x, 700)
        x.unfold(1, 600, 300).sum()
        torch.renorm(x, 2, 1, 1.0)
        torch.randint(0, 70_000, (300, 300), device="cuda")
        torch.fft.irfft(x)
        functional.group_norm(images, 16)
        functional.pixel_shuffle(images, 8)
        functional.avg_pool2d(images, 8, padding=4)
        functional.max_pool2d(images, 30)
        functional.unfold(images, 30)
        functional.conv2d(images, torch.ones(128, 2, 7, 7, device="cuda"), padding=3, groups=32)
        functional.embedding(index, x, padding_idx=63)
        functional.interpolate(images, size=(100, 500), mode="bilinear")
        functional.pad(images, (31, 31, 31, 31), mode="reflect")
        functional.nll_loss(x.repeat(1024, 1).log_softmax(1), index)
        torch.cuda.synchronize()


def _raises(call: Call) -> None:
    with pytest.raises((RuntimeError, IndexError, ValueError)):
        call()


def test_a_dry_run_that_fails_keeps_no_graph_of_autograd() -> None:
    """A loss of the default stream that the program has dropped does not stop a capture."""
    with gpulab.virtual_gpu("H200", first_use=False):
        side = torch.cuda.Stream()
        leaf = torch.randn(8, 8, device="cuda", requires_grad=True)

        def step() -> None:
            # The CPU refuses the made-up values of the backward pass.
            torch.linalg.slogdet(leaf)[1].backward()

        gc.disable()
        try:
            step()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                step()
            torch.cuda.synchronize()
            with torch.cuda.graph(torch.cuda.CUDAGraph(), stream=side):
                step()
        finally:
            gc.enable()
