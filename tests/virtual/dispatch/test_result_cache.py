"""Values are the same whether repeated calls are computed again or recognized."""

import random
from collections.abc import Callable

import pytest
import torch

import gpulab
from gpulab.virtual.dispatch import _deferred_values as deferred
from gpulab.virtual.dispatch import _result_cache, known_results

Tensors = list[torch.Tensor]


def _clear_first(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a.zero_()
    return a + b


def _change_part(a: torch.Tensor, _b: torch.Tensor) -> torch.Tensor:
    a[:, 1:].mul_(0.9)
    return a[::2].repeat(2, 1)


def _copy_part(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a.view(-1)[3:7] = b.clone().view(-1)[1:5]
    return a.t().contiguous()


def _write_columns(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    b[:, ::2].copy_(a[:, ::2])
    return torch.cat([b[2:6] * 2, a[1:5]])


def _other_stream(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    side.wait_stream(main)
    with torch.cuda.stream(side):
        out = a * b
    main.wait_stream(side)
    return out


def _random(a: torch.Tensor, _b: torch.Tensor) -> torch.Tensor:
    return torch.rand_like(a)


HOST, CALLS = torch.arange(64.0).view(8, 8), torch.zeros(1)


def _copy_in(_a: torch.Tensor, _b: torch.Tensor) -> torch.Tensor:
    return torch.sin(HOST.cuda())


def _copy_in_changed(_a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    # In every fourth call, so that the copy is recognized before.
    CALLS.add_(1)
    HOST[0] += CALLS % 4 == 0
    return b.copy_(HOST, non_blocking=True)


def _copy_in_a_part(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    b[:, 2:6] = HOST[:, ::2]
    return torch.maximum(a, b)


OPERATIONS: list[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = [
    *(torch.add, torch.mm, torch.minimum, _random, _other_stream),
    *(_clear_first, _change_part, _copy_part, _write_columns),
    *(_copy_in, _copy_in, _copy_in_changed, _copy_in_a_part),
    lambda a, b: torch.cat([a[:4], b[4:]]),
    lambda a, b: b.add_(a, alpha=0.5),
    lambda a, b: torch.mul(a, b, out=torch.empty_like(a)),
]


def _run(seed: int) -> Tensors:
    """Return the tensors of a random loop, which reads some of them on the way."""
    generator = random.Random(seed)
    found: Tensors = []
    with gpulab.virtual_gpu("H200", first_use=False):
        torch.manual_seed(seed)
        HOST.copy_(torch.arange(64.0).view(8, 8))
        CALLS.zero_()
        xs = [(torch.arange(64.0, device="cuda") * n % 7 - 3).view(8, 8) for n in (1, 2, 3)]
        body = [
            (generator.choice(OPERATIONS), generator.randrange(3), generator.randrange(3))
            for _ in range(generator.randrange(3, 12))
        ]
        for _ in range(6):
            for operation, i, j in body:
                xs[j] = operation(xs[i], xs[j]).clamp(-9, 9)
            if generator.random() < 0.5:
                found += [x.cpu() for x in xs]
        return [*found, *(x.cpu() for x in xs)]


@pytest.mark.parametrize("keeps", [False, True], ids=["in place", "copies"])
def test_values_are_those_of_a_program_without_recognition(
    *, keeps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loops with views, changes in place, streams and random numbers; the same to the bit."""
    monkeypatch.setattr(_result_cache, "_COMPARED_BYTES", range(1 << 20))
    if keeps:
        monkeypatch.setattr(_result_cache, "_COPY_S", 0.0)
        monkeypatch.setattr(_result_cache, "_COPY_S_PER_BYTE", 0.0)
    for seed in range(25):
        monkeypatch.setattr(deferred, "_WORTH_A_LOOK_S", 1e9)
        expected = _run(seed)
        monkeypatch.setattr(deferred, "_WORTH_A_LOOK_S", 0.0)
        for found, one in zip(_run(seed), expected, strict=True):
            torch.testing.assert_close(found, one, rtol=0, atol=0, equal_nan=True)


def test_a_training_step_that_is_repeated_is_computed_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its layers use the same memory in turns, so that no result stays in its place."""
    products: list[str] = []
    run = deferred.DeferredValues._run

    def noted(self: deferred.DeferredValues, seed: int) -> None:
        if self._operator.tf32_switch == "matmul":
            products.append(self._operator.name)
        run(self, seed)

    monkeypatch.setattr(deferred.DeferredValues, "_run", noted)
    with gpulab.virtual_gpu("H200", first_use=False):
        torch.manual_seed(1)
        model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(3)]).cuda()
        x = torch.randn(256, 256, device="cuda")
        gradients, n_products = [], []
        for _ in range(5):
            model.zero_grad()
            model(x).sum().backward()
            gradients.append(model[0].weight.grad.cpu())
            n_products.append(len(products))
        assert all(torch.equal(each, gradients[0]) for each in gradients)
        assert n_products[0] == 8
        assert n_products[1] == n_products[-1]
        assert known_results.kept_bytes
    assert not known_results.kept_bytes


@pytest.mark.parametrize("pinned", [False, True])
def test_a_batch_that_comes_again_is_recognized(
    *, pinned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work on it is computed twice; after the host has changed the batch, each time."""
    computed: list[str] = []
    run = deferred.DeferredValues._run

    def noted(self: deferred.DeferredValues, seed: int) -> None:
        computed.append(self._operator.name)
        run(self, seed)

    monkeypatch.setattr(deferred.DeferredValues, "_run", noted)
    batch = torch.linspace(-1, 1, 1 << 18)
    with gpulab.virtual_gpu("H200", first_use=False):
        batch = batch.pin_memory() if pinned else batch
        found, counts = [], []
        for step in range(8):
            if step == 6:
                batch[7] = -0.0
            x = batch.to("cuda", non_blocking=True)
            found.append((torch.sin(x), torch.equal(torch.sin(x).cpu(), torch.sin(batch)))[1])
            counts.append(computed.count("sin"))
    assert found == [True] * 8
    # Two sines in each step; the name comes with the second copy, and results are kept then.
    assert counts[3] == counts[5] < counts[6] < counts[7]


def test_what_is_kept_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The results that came first stay; the oldest calls are forgotten together with copies."""
    monkeypatch.setattr(_result_cache, "_MOST_KEPT_BYTES", 100)
    monkeypatch.setattr(_result_cache, "_MOST_RESULTS", 2)
    results = _result_cache.KnownResults()
    first, second = results.add("first", 1), results.add("second", 1)
    results.keep(first, [torch.zeros(20)])
    results.keep(second, [torch.zeros(20)])
    assert (first.kept is not None, second.kept) == (True, None)
    results.add("third", 1)
    assert results.find("first") is None
    assert results.kept_bytes == 0
