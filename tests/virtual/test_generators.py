"""Random generators of the virtual GPU have PyTorch's seeds, states and errors."""

import copy
import pickle
from collections.abc import Callable

import pytest
import torch

import gpulab
from gpulab.virtual import _generators as generators
from gpulab.virtual._generators import VirtualGenerator

FIRST_SEED = 67280421310721


def on_cuda(seed: int) -> torch.Generator:
    """Return a generator of the virtual GPU with this seed."""
    return torch.Generator(device="cuda").manual_seed(seed)


DRAWS: dict[str, Callable[[torch.Generator], torch.Tensor]] = {
    "randn": lambda g: torch.randn(5, device="cuda", generator=g),
    "rand": lambda g: torch.rand(5, device="cuda", generator=g),
    "randint": lambda g: torch.randint(1000, (5,), device="cuda", generator=g),
    "randperm": lambda g: torch.randperm(9, device="cuda", generator=g),
    "normal_": lambda g: torch.empty(5, device="cuda").normal_(generator=g),
    "uniform_": lambda g: torch.empty(5, device="cuda").uniform_(generator=g),
    "exponential_": lambda g: torch.empty(5, device="cuda").exponential_(generator=g),
    "random_": lambda g: torch.empty(5, device="cuda").random_(generator=g),
    "bernoulli": lambda g: torch.bernoulli(torch.full((40,), 0.5, device="cuda"), generator=g),
    "bernoulli_": lambda g: torch.empty(40, device="cuda").bernoulli_(generator=g),
    "multinomial": lambda g: torch.multinomial(torch.ones(40, device="cuda"), 9, generator=g),
    "normal": lambda g: torch.normal(torch.zeros(5, device="cuda"), 1.0, generator=g),
    "poisson, without a keyword": lambda g: torch.poisson(
        torch.full((9,), 50.0, device="cuda"), generator=g
    ),
}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", DRAWS)
def test_a_generator_serves_every_random_operator(name: str) -> None:
    """Equal seeds give equal numbers in every operator, and each launch adds 4 to the offset."""
    draw, generator = DRAWS[name], on_cuda(1)
    first, second = draw(generator), draw(generator)
    assert first.is_cuda
    assert generator.get_offset() == 8
    assert torch.equal(first, draw(on_cuda(1)))
    assert torch.equal(second, draw(on_cuda(1).set_offset(4)))
    assert not torch.equal(first, second)
    assert not torch.equal(first, draw(on_cuda(2)))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    "draw",
    [
        lambda g: torch.randn(3, generator=g),
        lambda g: torch.empty(3).uniform_(generator=g),
        lambda g: torch.poisson(torch.ones(3), generator=g),
    ],
    ids=["randn", "uniform_", "poisson"],
)
def test_a_generator_of_the_gpu_is_refused_for_a_cpu_tensor(
    draw: Callable[[torch.Generator], object],
) -> None:
    """A device generator for a CPU tensor raises PyTorch's message."""
    with pytest.raises(RuntimeError) as error:
        draw(on_cuda(1))
    assert str(error.value) == "Expected a 'cpu' device type for generator but found 'cuda'"


def test_numbers_are_the_same_in_every_process() -> None:
    """A seed and an offset give the same numbers in every process."""
    generator = VirtualGenerator(torch.device("cuda")).manual_seed(7)
    assert [generators.next_seed(generator) for _ in range(3)] == [
        3098854039,
        2389331605,
        984157021,
    ]


@pytest.mark.usefixtures("gpu")
def test_launches_are_counted_whatever_their_values() -> None:
    """A launch without values advances the offset, too, so limits change no other numbers."""
    generator = on_cuda(1)
    torch.randn(1 << 21, device="cuda", generator=generator)
    assert generator.get_offset() == 4


@pytest.mark.usefixtures("gpu")
def test_a_new_generator_starts_as_pytorchs() -> None:
    """A new generator is a ``torch.Generator`` with PyTorch's first seed and offset 0."""
    generator = torch.Generator(device="cuda")
    assert isinstance(generator, torch.Generator)
    assert generator.device == torch.device("cuda")
    assert torch.Generator("cuda:0").device == torch.device("cuda:0")
    assert torch.Generator(torch.device("cuda:1")).device == torch.device("cuda:1")
    assert torch.Generator(0).device == torch.device("cuda:0")
    assert generator.initial_seed() == FIRST_SEED
    assert generator.get_offset() == 0


@pytest.mark.usefixtures("gpu")
def test_the_state_is_seed_and_offset() -> None:
    """A state is 16 bytes, seed and offset with the low byte first, and can be restored."""
    generator = on_cuda(258)
    torch.randn(3, device="cuda", generator=generator)
    state = generator.get_state()
    assert state.tolist() == [2, 1, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]
    assert (state.dtype, state.device.type) == (torch.uint8, "cpu")
    later = torch.randn(3, device="cuda", generator=generator)
    other = torch.Generator("cuda").set_state(state)
    assert (other.initial_seed(), other.get_offset()) == (258, 4)
    assert torch.equal(torch.randn(3, device="cuda", generator=other), later)


@pytest.mark.usefixtures("gpu")
def test_seeds_and_offsets_are_64_bits() -> None:
    """Negative seeds and offsets wrap at 2**64, and a new seed sets the offset to 0."""
    generator = on_cuda(-1)
    assert generator.initial_seed() == 2**64 - 1
    assert generator.set_offset(-4).get_offset() == 2**64 - 4
    assert generator.get_state().tolist() == [255] * 8 + [252] + [255] * 7
    assert generator.manual_seed(3).get_offset() == 0


WRONG: dict[str, tuple[Callable[[torch.Generator], object], type[Exception], str]] = {
    "an odd offset": (
        lambda g: g.set_offset(6),
        RuntimeError,
        "offset must be a multiple of 4",
    ),
    "a list as state": (
        lambda g: g.set_state([1]),  # type: ignore[arg-type] # the mistake
        TypeError,
        "expected a torch.ByteTensor, but got list",
    ),
    "floats as state": (
        lambda g: g.set_state(torch.zeros(16)),
        TypeError,
        "RNG state must be a torch.ByteTensor",
    ),
    "a short state": (
        lambda g: g.set_state(torch.zeros(3, dtype=torch.uint8)),
        RuntimeError,
        "RNG state is wrong size",
    ),
    "a host generator": (
        lambda _: torch.rand(3, device="cuda", generator=torch.Generator()),
        RuntimeError,
        "Expected a 'cuda' device type for generator but found 'cpu'",
    ),
    "a host generator to share with": (
        lambda g: g.graphsafe_set_state(torch.Generator()),
        RuntimeError,
        "Expected a CUDA Generator",
    ),
}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", WRONG)
def test_mistakes_raise_pytorchs_errors(name: str) -> None:
    """A mistake raises the class and message that CUDA's generators raise."""
    mistake, kind, message = WRONG[name]
    with pytest.raises(kind) as error:
        mistake(on_cuda(1))
    assert type(error.value) is kind
    assert str(error.value) == message


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_a_copied_generator_gives_the_same_next_numbers(
    copied: Callable[[torch.Generator], torch.Generator],
) -> None:
    """A copied or pickled generator has the original's device, offset and next numbers."""
    generator = torch.Generator("cuda:0").manual_seed(4).set_offset(12)
    other = copied(generator)
    assert other.device == torch.device("cuda:0")
    assert other.get_offset() == 12
    numbers = torch.randn(3, device="cuda", generator=generator)
    assert torch.equal(numbers, torch.randn(3, device="cuda", generator=other))


def test_default_generators_start_alike_and_live_on() -> None:
    """A virtual GPU starts with PyTorch's first seed and keeps its offset between contexts."""
    before = torch.cuda.default_generators
    gpu = gpulab.virtual_gpu("H200")
    with gpu:
        assert torch.cuda.initial_seed() == FIRST_SEED
        torch.rand(1, device="cuda")
    with gpulab.virtual_gpu("H200"):
        assert torch.cuda.default_generators[0].get_offset() == 0
    with gpu:
        assert torch.cuda.default_generators[0].get_offset() == 4
    assert torch.cuda.default_generators == before


def test_a_generator_that_outlived_its_context_draws_from_its_seed() -> None:
    """A generator from an ended context works on the CPU and on another virtual GPU."""
    with gpulab.virtual_gpu("H200"):
        generator = on_cuda(6)
        first = torch.rand(3, device="cuda", generator=generator).tolist()
    assert torch.equal(
        torch.rand(3, generator=generator),
        torch.rand(3, generator=torch.Generator().manual_seed(6)),
    )
    with gpulab.virtual_gpu("A100"):
        generator.set_offset(0)
        assert torch.rand(3, device="cuda", generator=generator).tolist() == first
