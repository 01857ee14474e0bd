"""Measure the CPU time that the virtual GPU takes: for an operation, a context, a training step.

    python -m benchmarks.virtual_speed

The figures are microseconds and milliseconds of the processor that runs it, not virtual time. They
count only this process, so that other programs on the machine change them less.
"""

from collections.abc import Callable, Sequence

import torch
from torch import nn

import gpulab
from benchmarks.common import real_clocks
from benchmarks.common.command_line import parser_of
from benchmarks.fidelity.programs import Residual
from gpulab.device.work import Work

# Many short rounds, of which the fastest counts: on a shared machine longer ones are interrupted.
N_CALLS, N_ROUNDS = 500, 60


def real_us(work: Work) -> float:
    """Return the least CPU time of a call in microseconds, with its share of the final wait."""
    readings = []
    for _ in range(N_ROUNDS):
        start_ns = real_clocks.process_time_ns()
        for _ in range(N_CALLS):
            work()
        torch.cuda.synchronize()
        readings.append((real_clocks.process_time_ns() - start_ns) / N_CALLS / 1_000)
    return min(readings)


def small_operation(*, values: bool, hazards: bool = False) -> float:
    """Return the CPU time of adding two small tensors, with or without values and hazards."""
    # A limit of zero elements switches values off.
    limit = 1 << 20 if values else 0
    with gpulab.virtual_gpu("H200", first_use=False, max_value_elements=limit):
        a, b = (torch.ones(64, device="cuda") for _ in range(2))
        if not hazards:
            return real_us(lambda: a + b)
        with gpulab.hazards():
            return real_us(lambda: a + b)


def entering_ms() -> float:
    """Return the least CPU time of entering and leaving, after the first time."""
    gpu = gpulab.virtual_gpu("H200")
    readings = []
    for _ in range(101):
        start_ns = real_clocks.process_time_ns()
        with gpu:
            pass
        readings.append((real_clocks.process_time_ns() - start_ns) / 1e6)
    return min(readings[1:])


def training_step_ms() -> float:
    """Return the CPU time of a training step of a 160 M transformer, without values."""
    with gpulab.virtual_gpu("H200", first_use=False, max_value_elements=0):
        step = _training_step()
        readings = []
        for _ in range(12):
            start_ns = real_clocks.process_time_ns()
            step()
            torch.cuda.synchronize()
            readings.append((real_clocks.process_time_ns() - start_ns) / 1e6)
    # The first steps make the plans of all operators, which later ones reuse.
    return min(readings[2:])


def _training_step() -> Callable[[], None]:
    # The shape of the smallest GPT-2, with a head of its own: about 160 million parameters.
    width, n_words = 768, 50_257
    half = {"device": "cuda", "dtype": torch.bfloat16}
    model = nn.Sequential(
        nn.Embedding(n_words, width),
        *(Residual(width, 12) for _ in range(12)),
        nn.LayerNorm(width),
        nn.Linear(width, n_words, bias=False),
    ).to(**half)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    words = torch.randint(0, n_words, (8, 1024), device="cuda")

    def step() -> None:
        loss = nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures beside their goals."""
    parser_of("benchmarks.virtual_speed", __doc__).parse_args(arguments)
    rows = [
        ("small operation, no values", small_operation(values=False), "us", 20),
        ("small operation, values", small_operation(values=True), "us", 32),
        (
            "small operation, values and hazards",
            small_operation(values=True, hazards=True),
            "us",
            44,
        ),
        ("entering and leaving", entering_ms(), "ms", 1),
        ("training step, 160 M parameters, no values", training_step_ms(), "ms", 100),
    ]
    for name, figure, unit, goal in rows:
        print(f"{name:45} {figure:8.2f} {unit:4} (goal: at most {goal})")


if __name__ == "__main__":
    main()
