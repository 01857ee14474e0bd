"""Probes of the device's random numbers: seeds, states, generators, distributions.

The numbers are not those of a CUDA GPU. The probes check that equal seeds and states repeat them.
"""

from collections.abc import Callable

import torch
from torch.nn import functional

from tests.probes.table import Gives, Probe, Same, normal


def _draw(n: int = 4) -> list[float]:
    return torch.rand(n, device="cuda").tolist()


def _repeats(rewind: Callable[[], Callable[[], object]]) -> Callable[[], list[bool]]:
    """Return a program that draws twice, resets the generator, and compares what it draws."""

    def run() -> list[bool]:
        back = rewind()
        first, second = _draw(), _draw()
        back()
        return [_draw() == first, _draw() == second, first != second]

    return run


def _by_seed(seed: Callable[[int], object]) -> Callable[[], Callable[[], object]]:
    def rewind() -> Callable[[], object]:
        seed(5)
        return lambda: seed(5)

    return rewind


def _by_state() -> Callable[[], object]:
    state = torch.cuda.get_rng_state()
    return lambda: torch.cuda.set_rng_state(state)


def _by_all_states() -> Callable[[], object]:
    states = torch.cuda.get_rng_state_all()
    return lambda: torch.cuda.set_rng_state_all(states)


def _by_generator_state() -> Callable[[], object]:
    generator = torch.cuda.default_generators[0]
    state = generator.get_state()
    return lambda: generator.set_state(state)


def _generators() -> list[object]:
    one = torch.Generator(device="cuda").manual_seed(3)
    other = torch.Generator("cuda")
    other.manual_seed(3)
    a = torch.rand(3, device="cuda", generator=one)
    b = torch.rand(3, device="cuda", generator=other)
    c = torch.rand(3, device="cuda", generator=one)
    return [bool((a == b).all()), bool((a == c).any()), str(one.device), one.initial_seed()]


def _cloned() -> bool:
    generator = torch.Generator(device="cuda").manual_seed(3)
    other = generator.clone_state()
    a = torch.rand(3, device="cuda", generator=generator)
    return bool((a == torch.rand(3, device="cuda", generator=other)).all())


def _forked() -> list[bool]:
    torch.manual_seed(1)
    with torch.random.fork_rng(devices=[0]):
        inside = _draw()
    return [inside == _draw(), True]


def _host_is_untouched() -> bool:
    torch.manual_seed(1)
    first = torch.rand(3)
    torch.manual_seed(1)
    torch.rand(100, device="cuda")
    torch.nn.functional.dropout(torch.ones(5, device="cuda"))
    return bool((torch.rand(3) == first).all())


def _state_travels() -> list[object]:
    state = torch.cuda.get_rng_state()
    return [state.dtype, state.shape, state.device.type]


def _seeds() -> list[object]:
    torch.cuda.manual_seed(77)
    seeds = [torch.cuda.initial_seed(), torch.cuda.default_generators[0].initial_seed()]
    torch.cuda.seed()
    random = torch.cuda.initial_seed()
    torch.cuda.seed_all()
    return [*seeds, random != 77, len(torch.cuda.default_generators)]


def _moments() -> list[bool]:
    n = 20_000
    uniform, bell = torch.rand(n, device="cuda"), torch.randn(n, device="cuda")
    whole = torch.randint(0, 10, (n,), device="cuda")
    coins = torch.bernoulli(torch.full((n,), 0.3, device="cuda"))
    waits = torch.empty(n, device="cuda").exponential_(2.0)
    return [
        bool((uniform >= 0).all() and (uniform < 1).all()),
        abs(uniform.mean().item() - 0.5) < 0.02,
        abs(bell.mean().item()) < 0.04,
        abs(bell.std().item() - 1) < 0.03,
        bool(whole.min() == 0 and whole.max() == 9),
        abs(coins.mean().item() - 0.3) < 0.02,
        abs(waits.mean().item() - 0.5) < 0.03,
    ]


def _shapes(d: str) -> list[object]:
    x = torch.empty(3, 4, device=d)
    drawn = [
        *(torch.rand(2, 3, device=d), torch.randn(4, dtype=torch.float64, device=d)),
        *(torch.randint(5, (2, 2), device=d), torch.randperm(6, device=d).sort().values),
        *(torch.rand_like(x), torch.randn_like(x), torch.randint_like(x, 9)),
        *(torch.normal(0.0, 1.0, (2,), device=d), torch.normal(x.zero_(), 1.0)),
        *(x.uniform_(), x.normal_(), x.random_(9), x.bernoulli_(0.5), x.cauchy_()),
        *(x.log_normal_(), x.geometric_(0.5), torch.poisson(x.fill_(3.0))),
        torch.multinomial(torch.ones(3, 5, device=d), 2),
        torch.distributions.Normal(torch.zeros(2, device=d), 1.0).sample((3,)),
        torch.distributions.Categorical(torch.ones(4, device=d)).sample((2,)),
        torch.distributions.Gamma(torch.ones(2, device=d), 1.0).rsample(),
    ]
    return [(tuple(t.shape), t.dtype, t.device.type == d) for t in drawn]


def _multinomial() -> list[object]:
    weights = torch.tensor([0.0, 1.0, 3.0], device="cuda")
    drawn = torch.multinomial(weights, 8000, replacement=True)
    counts = torch.bincount(drawn, minlength=3).tolist()
    alone = torch.multinomial(weights, 2).sort().values.tolist()
    return [counts[0], abs(counts[2] / 8000 - 0.75) < 0.03, alone]


def _dropout_repeats() -> bool:
    x = torch.ones(64, device="cuda")
    torch.manual_seed(2)
    first = functional.dropout(x)
    torch.manual_seed(2)
    return bool((functional.dropout(x) == first).all())


def _offset() -> list[object]:
    generator = torch.Generator(device="cuda").manual_seed(1)
    generator.set_offset(8)
    before = generator.get_offset()
    torch.rand(4, device="cuda", generator=generator)
    return [before, generator.get_offset() > before]


def _refused_generator() -> str:
    try:
        torch.rand(2, device="cuda", generator=torch.Generator())
    except RuntimeError as error:
        return str(error)
    return "accepted"


FAMILIES: dict[str, list[Probe]] = {
    "random": [
        Gives("torch.manual_seed", _repeats(_by_seed(torch.manual_seed)), [True] * 3),
        Gives(
            "torch.cuda.manual_seed",
            _repeats(_by_seed(lambda n: torch.cuda.manual_seed(seed=n))),
            [True] * 3,
        ),
        Gives(
            "torch.cuda.manual_seed_all",
            _repeats(_by_seed(lambda n: torch.cuda.manual_seed_all(seed=n))),
            [True] * 3,
        ),
        Gives("get_rng_state and set_rng_state", _repeats(_by_state), [True] * 3),
        Gives("get_rng_state_all and set_rng_state_all", _repeats(_by_all_states), [True] * 3),
        Gives("state of the default generator", _repeats(_by_generator_state), [True] * 3),
        Gives("generators of the program", _generators, [True, False, "cuda", 3]),
        Gives("a cloned generator", _cloned),
        Gives("offset of a generator", _offset, [8, True]),
        Gives("fork_rng", _forked, [True, True]),
        Gives("the host's numbers are untouched", _host_is_untouched),
        Gives("form of the state", _state_travels, [torch.uint8, torch.Size([16]), "cpu"]),
        Gives("reported seeds", _seeds, [77, 77, True, 1]),
        Gives("distributions", _moments, [True] * 7),
        Gives("multinomial", _multinomial, [0, True, [1, 2]]),
        Gives("dropout repeats", _dropout_repeats),
        Same("shapes and types", _shapes),
        Gives(
            "a generator for the host is refused",
            _refused_generator,
            "Expected a 'cuda' device type for generator but found 'cpu'",
        ),
        Same(
            "a permutation has each number once",
            lambda d: torch.randperm(9, device=d).sort().values,
        ),
        Same("shuffled rows", lambda d: normal(d, 5, 2)[torch.randperm(5, device=d)].sum(0)),
    ],
}
