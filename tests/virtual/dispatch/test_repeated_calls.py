"""A repeated call reuses its earlier values, and they are correct whenever they are read."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch.nn import functional

import gpulab
from gpulab.virtual.dispatch import _deferred_values as deferred
from gpulab.virtual.tensors import _results_in_memory

N_TENSORS = 4
N = 24

World = list[torch.Tensor]
Action = tuple[str, tuple[int, int, int]]


@pytest.fixture
def n_computed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Enter a virtual H200 that recognises small repeated calls too; count computed values."""
    computed_by_now = [0]
    run = deferred.DeferredValues._run

    def counted(self: deferred.DeferredValues, seed: int) -> None:
        computed_by_now[0] += 1
        run(self, seed)

    monkeypatch.setattr(deferred.DeferredValues, "_run", counted)
    monkeypatch.setattr(deferred, "_WORTH_A_LOOK_S", 0.0)
    monkeypatch.setattr(deferred, "_LARGE_ZEROS_S", 0.0)
    with gpulab.virtual_gpu("H200", first_use=False):
        yield computed_by_now


def settle(work: Callable[[], object], n_calls: int = 20) -> None:
    """Call ``work`` again and again, and let the device finish each time."""
    for _ in range(n_calls):
        work()
        torch.cuda.synchronize()


@pytest.mark.parametrize(
    "work",
    [
        lambda x, y, _out: x + y,
        lambda x, y, _out: (x @ y).sum(),
        lambda x, y, out: torch.mul(x, y, out=out),
        lambda x, _y, out: out.copy_(x),
        lambda _x, _y, out: out.zero_(),
        lambda x, y, _out: torch._foreach_add([x, y], [y, x]),
        lambda x, y, _out: torch.cat([x, y]),
        lambda x, _y, _out: x[1:, ::2].exp(),
        lambda x, y, _out: functional.scaled_dot_product_attention(
            *[x[None, None]] * 2, y[None, None]
        ),
    ],
)
def test_a_loop_computes_its_values_once(
    work: Callable[..., object], n_computed: list[int]
) -> None:
    """A loop computes its values once, because each new result gets the memory of the last."""
    x, y, out = (torch.rand(8, 8, device="cuda") for _ in range(3))
    settle(lambda: work(x, y, out), 3)
    before = n_computed[0]
    settle(lambda: work(x, y, out))
    assert n_computed[0] == before


def test_replays_of_a_graph_compute_their_values_once(n_computed: list[int]) -> None:
    """Replays compute values once until an input changes; then they use the new input."""
    x = torch.ones(8, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(50):
            y = x.relu()
    settle(graph.replay, 2)
    before = n_computed[0]
    settle(graph.replay)
    assert n_computed[0] == before
    x.fill_(-3.0)
    graph.replay()
    assert y.tolist() == [0.0] * 8
    x.copy_(torch.full((8,), 5.0))
    graph.replay()
    assert y.tolist() == [5.0] * 8


@pytest.mark.parametrize(
    "work",
    [
        lambda x: x.add_(1),
        lambda x: torch.add(x, 1, out=x),
        lambda x: torch.add(x[:4], 1, out=x[4:]).add_(1),
    ],
    ids=["in place", "out is the input", "a part changes"],
)
def test_a_call_whose_result_changes_is_computed_each_time(
    work: Callable[[torch.Tensor], object], n_computed: list[int]
) -> None:
    """A call that changes its own input is computed every time."""
    x = torch.ones(8, device="cuda")
    settle(lambda: work(x), 3)
    before = n_computed[0]
    settle(lambda: work(x))
    assert n_computed[0] - before >= 20


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
def test_random_numbers_that_nobody_reads_are_not_drawn(
    work: Callable[..., torch.Tensor], n_computed: list[int]
) -> None:
    """A loop draws nothing, and a read gives the numbers of the last call."""
    read = {}
    for worth_s in (math.inf, 0.0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(deferred, "_WORTH_A_LOOK_S", worth_s)
            x, out = torch.full((64,), 0.5, device="cuda"), torch.empty(64, device="cuda")
            torch.manual_seed(1)
            settle(lambda x=x, out=out: work(x, out), 3)
            before = n_computed[0]
            settle(lambda x=x, out=out: work(x, out))
            assert n_computed[0] - before == (20 if worth_s else 0)
            last = work(x, out)
            x.fill_(0.25)  # the numbers of the last call depend on the old values
            read[worth_s] = [last.tolist(), work(x, out).tolist(), torch.cuda.get_rng_state()]
    assert read[0.0][:2] == read[math.inf][:2]
    assert read[0.0][2].equal(read[math.inf][2])


@pytest.mark.parametrize(("value", "is_new"), [(1.0, False), (-0.0, True), (math.nan, False)])
def test_results_hold_while_an_input_is_computed_with_the_same_bytes(
    value: float, n_computed: list[int], *, is_new: bool
) -> None:
    """Results end when the bytes of an input change, also from 0.0 to -0.0, and only then."""
    x, out = torch.ones(8, device="cuda"), torch.empty(8, device="cuda")

    def work(value: float) -> float:
        factor = x[:1] * torch.tensor(value)  # computed each time, because of the host tensor
        torch.mul(x, factor, out=out)
        return math.copysign(1.0, out[0].item())

    work(0.0 if is_new else value)
    before = n_computed[0]
    assert work(value) == math.copysign(1.0, value)
    assert n_computed[0] - before == 1 + is_new


@pytest.mark.parametrize(("before", "n_products"), [(0.0, 1), (-0.0, 2), (1.0, 2)])
def test_zeros_over_zeros_end_no_result(
    before: float, n_products: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeros that are written over zeros change nothing, so results that use them hold."""
    products: list[str] = []
    run = deferred.DeferredValues._run

    def noted(self: deferred.DeferredValues, seed: int) -> None:
        products.append(self._operator.name)
        run(self, seed)

    monkeypatch.setattr(deferred.DeferredValues, "_run", noted)
    with gpulab.virtual_gpu("H200", first_use=False):
        x, out = torch.full((1 << 18,), before, device="cuda"), torch.empty(1 << 18, device="cuda")
        torch.mul(x, -1.0, out=out)
        x.zero_()  # too cheap to be recognised as a repeated call
        torch.mul(x, -1.0, out=out)
        assert math.copysign(1.0, out[0].item()) == -1.0
    assert products.count("mul") == n_products


def test_a_call_with_hundreds_of_tensors_is_computed_once(n_computed: list[int]) -> None:
    """A call on many tensors is recognized although a buffer remembers fewer results."""
    many = [torch.ones(8, device="cuda") for _ in range(3 * _results_in_memory._MOST_KEPT)]
    settle(lambda: torch._foreach_add(many, 1.0), 3)
    before = n_computed[0]
    settle(lambda: torch._foreach_add(many, 1.0), 3)
    assert n_computed[0] == before


def test_running_statistics_are_updated_by_every_call(
    n_computed: list[int],
) -> None:
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
    assert n_computed[0] >= 8


def test_zero_and_minus_zero_are_different_arguments(n_computed: list[int]) -> None:
    """A multiplication by -0.0 is not taken for one by 0.0, although the two are equal."""
    x, out = torch.ones(4, device="cuda"), torch.empty(4, device="cuda")
    for factor, sign in ((0.0, 1.0), (-0.0, -1.0), (0.0, 1.0)):
        torch.mul(x, factor, out=out)
        assert math.copysign(1.0, out[0].item()) == sign
    assert n_computed[0] >= 3


def test_host_tensors_are_read_each_time(n_computed: list[int]) -> None:
    """A host tensor is read at every call, because a program may change it at any time."""
    x, factor = torch.ones(4, device="cuda"), torch.tensor(2.0)
    assert (x * factor).tolist() == [2.0] * 4
    factor.fill_(3.0)
    assert (x * factor).tolist() == [3.0] * 4
    assert n_computed[0] >= 2


@pytest.mark.usefixtures("n_computed")
def test_few_results_are_kept() -> None:
    """A buffer remembers a limited number of results, and all their values stay correct."""
    # Every write to the buffer goes through all of its results.
    x = torch.ones(4, device="cuda")
    kept = [x + number for number in range(3 * _results_in_memory._MOST_KEPT)]
    torch.cuda.synchronize()
    assert len(x.storage_block.values._buffer.results) <= _results_in_memory._MOST_KEPT
    assert [item[0].item() for item in kept] == [1.0 + n for n in range(len(kept))]


def _assign(act: Callable[[World, int, int], torch.Tensor]) -> Callable[..., None]:
    def run(world: World, at: int, i: int, j: int) -> None:
        world[at] = act(world, i, j)

    return run


def _capture(world: World, at: int, i: int, j: int) -> None:
    """Replay a graph that changes its own input on the device; on the host run it as a loop."""
    x, y, total = world[i].clone(), world[j].clone(), torch.zeros_like(world[i])

    def work() -> None:
        torch.add(x, y, out=total)
        total.mul_(0.5)
        x.copy_(total)

    if not total.is_cuda:
        for _ in range(4):
            work()
    else:
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        for _ in range(4):
            graph.replay()
        torch.cuda.synchronize()
    world[at] = total


def _from_host(world: World, _at: int, i: int, j: int) -> None:
    source = torch.full((N,), float(i + j))
    if world[i].is_cuda and j % 2:
        pinned = source.pin_memory()
        world[i].copy_(pinned, non_blocking=True)
        torch.cuda.synchronize()
        pinned.zero_()
    else:
        world[i].copy_(source)


ACTIONS: dict[str, Callable[[World, int, int, int], Any]] = {
    "add": _assign(lambda w, i, j: w[i] + w[j]),
    "mul": _assign(lambda w, i, j: w[i] * w[j]),
    "half": _assign(lambda w, i, _: w[i] * 0.5),
    "relu": _assign(lambda w, i, _: w[i].relu()),
    "flip": _assign(lambda w, i, _: w[i].flip(0)),
    "alias": _assign(lambda w, i, _: w[i].view(4, 6).t().t().reshape(N)),
    "clone": _assign(lambda w, i, _: w[i].clone()),
    "add_": lambda w, _at, i, j: w[i].add_(w[j]),
    "relu_": lambda w, _at, i, _j: w[i].relu_(),
    "fill_": lambda w, _at, i, j: w[i].fill_(float(j)),
    "zero_": lambda w, _at, i, _j: w[i].zero_(),
    "sqrt out": lambda w, at, i, _j: torch.abs(w[i], out=w[at]),
    "sub out": lambda w, at, i, j: torch.sub(w[i], w[j], out=w[at]),
    "copy_": lambda w, _at, i, j: w[i].copy_(w[j]),
    "part": lambda w, _at, i, j: w[i][j : j + 12].copy_(w[j][:12] + 1),
    "every other": lambda w, _at, i, j: torch.add(w[j][1::2], 1, out=w[i][::2]),
    "overlap": lambda w, _at, i, _j: w[i][6:18].mul_(0.25),
    "from host": _from_host,
    "graph": _capture,
}
RANDOM: dict[str, Callable[[World, int, int, int], Any]] = {
    "dropout": _assign(lambda w, i, _: functional.dropout(w[i])),
    "rand_like": _assign(lambda w, i, _: torch.rand_like(w[i])),
    "normal_": lambda w, _at, i, _j: w[i].normal_(),
    "a part": lambda w, _at, i, j: w[i][j : j + 9].uniform_(),
    "every third": lambda w, at, i, _j: torch.bernoulli(w[i][::3].sigmoid(), out=w[at][1::3]),
}
programs = st.lists(
    st.tuples(
        st.sampled_from(sorted(ACTIONS)),
        st.tuples(*(st.integers(0, N_TENSORS - 1) for _ in range(3))),
        st.integers(1, 4),
        st.booleans(),
    ),
    min_size=2,
    max_size=14,
)


def _world(device: str) -> World:
    return [torch.linspace(-1, i + 1.0, N).to(device) for i in range(N_TENSORS)]


def _run(device: str, program: list[Any]) -> list[list[float]]:
    """Return the values that the program reads on the way, and all tensors at the end."""
    world, read = _world(device), []
    for name, (at, i, j), n_times, looks in program:
        for _ in range(n_times):
            ACTIONS[name](world, at, i, j)
        if looks:
            read.append(world[at].tolist())
    return [*read, *(tensor.tolist() for tensor in world)]


@pytest.mark.slow
@settings(max_examples=150)
@given(program=programs)
def test_values_are_the_cpus_in_every_order_of_reads_writes_and_repeats(
    program: list[Any],
) -> None:
    """Any program of views, aliases, ``out=``, copies and graphs has the CPU's exact values."""
    expected = _run("cpu", program)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deferred, "_WORTH_A_LOOK_S", 0.0)
        with gpulab.virtual_gpu("H200", first_use=False):
            assert _run("cuda", program) == expected


def _race(program: list[Any]) -> list[list[float]]:
    """Run a program on two streams that do not wait for each other; return what is read."""
    read = []
    with gpulab.virtual_gpu("H200", first_use=False):
        world = [item.repeat(400) for item in _world("cuda")]  # long enough for kernels to overlap
        torch.cuda.synchronize()
        streams = [torch.cuda.current_stream(), torch.cuda.Stream()]
        for name, (at, i, j), n_times, is_aside in program:
            with torch.cuda.stream(streams[is_aside]):
                for _ in range(n_times):
                    if name != "graph":
                        (ACTIONS | RANDOM)[name](world, at, i, j)
                if at == j:
                    read.append(world[i].tolist())
        torch.cuda.synchronize()
        read += [tensor.tolist() for tensor in world]
    return read


racing = st.lists(
    st.tuples(
        st.sampled_from(sorted(set(ACTIONS | RANDOM) - {"graph", "alias", "from host", "part"})),
        st.tuples(*(st.integers(0, N_TENSORS - 1) for _ in range(3))),
        st.integers(1, 4),
        st.booleans(),
    ),
    min_size=2,
    max_size=10,
)


@pytest.mark.slow
@settings(max_examples=20, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(program=racing)
def test_a_race_reads_the_same_bytes_when_repetitions_are_recognised(program: list[Any]) -> None:
    """A missing wait gives the same wrong numbers with and without recognised repetitions."""
    found = []
    for worth_s in (0.0, math.inf):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(deferred, "_WORTH_A_LOOK_S", worth_s)
            found.append(_race(program))
    assert repr(found[0]) == repr(found[1])
