"""No line and no cell, however odd, shows a stack of the magic's own files."""

import random

import pytest

from tests.support.ipython import LOAD, Notebook, shows_our_frames

pytestmark = pytest.mark.slow

WORDS = """--method naive events calibrated --vs work --ladder --timeline -o -q --flops 1e9 auto
--bytes --each a.grad=None --run --save x --n-samples 3 -1 0 nan 1e400 10**400 --max-time 0.05
--cache hot cold --seed é ' " ( { -- - --nosuch None [] % ! ? ;"""
OPTIONS = WORDS.split()
BODIES = [
    *("a + 1", "a.add_(1)", "", "pass", "x = (", "return 1", "yield 3", "await missing", "work()"),
    *("raise ValueError('x')", "torch.ones(3)", "del missing", "1 / 0", "a.sum().item()"),
]
N_CELLS = 40


@pytest.mark.parametrize("seed", range(3))
def test_random_cells_show_no_stack_of_ours(notebook: Notebook, seed: int) -> None:
    """Each cell is timed or refused in the user's terms, and an ordinary one works afterwards."""
    rng = random.Random(seed)
    cells = [
        f"%%cudatime {' '.join(rng.choices(OPTIONS, k=rng.randrange(5)))}\n"
        + "\n".join(rng.choices(BODIES, k=rng.randint(1, 2)))
        for _ in range(N_CELLS)
    ]
    start = (
        f"{LOAD}\nimport torch, gpulab; gpulab.use('H200')\n"
        "a = torch.ones(64, device='cuda')\ndef work(): return a + 1"
    )
    _, *tried, last = notebook.run(start, *cells, "%cudatime -q a + 1")
    assert [
        cell for cell, ran in zip(cells, tried, strict=True) if shows_our_frames(str(ran))
    ] == []
    assert last.error is None
