"""Values are the CPU's, and what nobody reads, or what is there already, is not computed."""

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn
from torch.nn import functional

import gpulab
from gpulab.virtual.dispatch import _deferred_values as deferred


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Enter a virtual H200, and list the operators that are computed."""
    names: list[str] = []
    run = deferred.DeferredValues._run

    def noted(self: deferred.DeferredValues, seed: int) -> None:
        names.append(self._operator.name)
        run(self, seed)

    monkeypatch.setattr(deferred.DeferredValues, "_run", noted)
    with gpulab.virtual_gpu("H200", first_use=False):
        yield names


@pytest.mark.parametrize(
    "work",
    [
        lambda x, y, _out: x + y,
        lambda x, y, _out: (x @ y).sum(),
        lambda x, y, out: torch.mul(x, y, out=out),
        lambda x, _y, out: out.copy_(x),
        lambda _x, _y, out: out.zero_(),
        lambda x, y, _out: torch._foreach_add([x, y] * 100, 1.0)[0],
        lambda x, y, _out: torch.cat([x, y]),
        lambda x, _y, _out: x[1:, ::2].exp(),
        lambda x, y, _out: functional.scaled_dot_product_attention(
            *[x[None, None]] * 2, y[None, None]
        ),
        lambda x, _y, _out: functional.dropout(x),
        lambda _x, _y, out: out.normal_(),
    ],
)
def test_a_loop_computes_what_is_read(
    work: Callable[..., torch.Tensor], computed: list[str]
) -> None:
    """Each new result gets the memory of the last, and only the last one is computed."""
    x, y, out = (torch.rand(8, 8, device="cuda") for _ in range(3))
    assert x.sum() + y.sum() + out.sum() != 0
    computed.clear()
    for _ in range(20):
        last = work(x, y, out)
        torch.cuda.synchronize()
    assert computed == []
    last.tolist()
    assert len(computed) <= 3


def test_what_is_there_is_not_computed_again(computed: list[str]) -> None:
    """A loop that reads its result each time computes it once, until an input changes."""
    x = torch.ones(8, device="cuda")
    results = [(x * 2.5).relu().tolist() for _ in range(3)]
    assert computed.count("mul") == 1
    x[0] = -3.0
    results.append((x * 2.5).relu().tolist())
    assert computed.count("mul") == 2
    assert results == [[2.5] * 8] * 3 + [[0.0, *[2.5] * 7]]


@pytest.mark.parametrize(
    "work",
    [
        lambda x, _out: functional.dropout(x),
        lambda _x, out: out.normal_(),
        lambda x, out: torch.bernoulli(x, out=out),
        lambda x, _out: torch.rand_like(x),
    ],
    ids=["dropout", "normal_", "out=", "rand_like"],
)
@pytest.mark.usefixtures("computed")
def test_random_numbers_are_those_of_the_last_call(work: Callable[..., torch.Tensor]) -> None:
    """They are the same whether earlier ones are read, and depend on the inputs of their call."""
    drawn = []
    for reads_each in (False, True):
        x, out = torch.full((64,), 0.5, device="cuda"), torch.empty(64, device="cuda")
        torch.manual_seed(1)
        for _ in range(5):
            last = work(x, out)
            if reads_each:
                last.tolist()
        x.fill_(0.25)
        drawn.append((last.tolist(), work(x, out).tolist(), torch.cuda.get_rng_state().tolist()))
    assert drawn[0] == drawn[1]
    assert work(x, out).tolist() != work(x, out).tolist()


@pytest.mark.usefixtures("computed")
def test_running_statistics_are_updated_by_every_call() -> None:
    """Each batch norm updates the running statistics, and results that read them follow."""
    # The schema of batch norm does not mark the statistics as written.
    x, mean, var = torch.full((4, 2), 4.0), torch.zeros(2), torch.ones(2)
    there = [item.cuda() for item in (x, mean, var)]
    shown = []
    for _ in range(4):
        for a, m, v in ((x, mean, var), there):
            torch.nn.functional.batch_norm(a, m, v, training=True)
        shown.append((m * 2).tolist())
    assert shown[-1] == (mean * 2).tolist() != shown[0]


@pytest.mark.usefixtures("computed")
def test_zero_and_minus_zero_are_different_arguments() -> None:
    """A multiplication by -0.0 is not taken for one by 0.0, although the two are equal."""
    x, out = torch.ones(4, device="cuda"), torch.empty(4, device="cuda")
    for factor, sign in ((0.0, 1.0), (-0.0, -1.0), (0.0, 1.0)):
        torch.mul(x, factor, out=out)
        assert math.copysign(1.0, out[0].item()) == sign


@pytest.mark.parametrize(
    "work",
    [
        lambda x, n: x.roll(n),
        lambda x, n: x.sum(n),
        lambda x, n: x.zero_().fill_(n),
        lambda x, n: x.view(torch.int32) + n,
        lambda x, n: x * (0.5 + n),
        lambda x, n: x * torch.tensor(0.3 + n * 1e-6),  # both print 0.3000
        lambda x, n: x.cumsum(0) if n else x.cumprod(0),
        lambda x, n: torch.arange(n, n + 4, device=x.device),
    ],
)
@pytest.mark.usefixtures("computed")
def test_calls_that_differ_in_an_argument_are_different(
    work: Callable[[torch.Tensor, int], torch.Tensor],
) -> None:
    """Each has its own result, although both write to the same memory."""
    here = torch.arange(16.0).view(4, 4)
    there = here.cuda()
    for number in (0, 1, 0):
        assert work(there, number).tolist() == work(here, number).tolist()


@pytest.mark.usefixtures("computed")
def test_a_number_on_the_host_is_that_of_the_launch() -> None:
    """A host tensor without dimensions is an argument by value, as on CUDA."""
    x, factor = torch.ones(4, device="cuda"), torch.tensor(2.0)
    torch.cuda._sleep(1_000_000)
    twice = x * factor
    factor.fill_(3.0)
    assert twice.tolist() == [2.0] * 4
    assert (x * factor).tolist() == [3.0] * 4


def test_a_layer_of_cudnn_is_computed_when_somebody_reads(computed: list[str]) -> None:
    """A timer's loop computes no layer, although each call makes new states of zeros."""
    layer, x = nn.LSTM(4, 4).cuda(), torch.ones(3, 2, 4, device="cuda")
    for _ in range(3):
        result = layer(x)[0]
    torch.cuda.synchronize()
    assert "_recurrence" not in computed
    result.sum().item()
    assert "_recurrence" in computed


@pytest.mark.usefixtures("computed")
def test_a_write_with_gaps_leaves_what_is_between() -> None:
    """The values between its elements are computed, although the write covers their range."""
    x = torch.ones(7, device="cuda") * 2
    x[::2].fill_(7)
    assert x.tolist() == [7.0, 2.0, 7.0, 2.0, 7.0, 2.0, 7.0]
