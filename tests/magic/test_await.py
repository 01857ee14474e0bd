"""A timed cell may await, as any cell of a notebook may."""

import asyncio

import pytest

from gpulab.magic._await import loop_of_its_own
from tests.support.ipython import Notebook, shows_our_frames

pytestmark = pytest.mark.slow  # most tests start a shell

ADD = """async def add(x):
    await asyncio.sleep(0)
    return x + x
"""
TWICE = """async def twice():
    for n in (1, 2):
        yield torch.ones(n, device="cuda")
"""
START = f"import asyncio\n{ADD}"


@pytest.mark.parametrize(
    "cell",
    [
        "%cudatime -o -q -r 3 await add(torch.ones(64, device='cuda'))",
        "%%cudatime -o -q -r 3 x = torch.ones(64, device='cuda')\nawait add(x)",
        "%%cudatime -o -q -r 3 x = await add(torch.ones(64, device='cuda'))\nx + x",
        "%%cudatime -o -q -r 3 --each 'await add(x)' x = torch.ones(64, device='cuda')\nx + x",
        "%%cudatime -o -q -r 3 x = torch.ones(64, device='cuda')\nawait asyncio.gather(add(x))",
        "%%cudatime -o -q -r 3 lock = asyncio.Lock()\nasync with lock:\n    torch.ones(64)",
        f"%%cudatime -o -q -r 3\n{TWICE}async for x in twice():\n    x + x",
        "%%cudatime -o -q -r 3\n[await add(torch.ones(n, device='cuda')) for n in (1, 2)]",
    ],
)
def test_a_cell_that_awaits_is_timed(notebook: Notebook, cell: str) -> None:
    """Body, setup and --each may await, also tasks, locks and loops of asyncio."""
    ran = notebook.last(START, cell)
    assert (ran.message, ran.result) == (None, "Measurement")


def test_an_awaited_kernel_takes_as_long_as_a_plain_one(notebook: Notebook) -> None:
    """The time on the GPU is that of the kernel, with and without the loop."""
    ran = notebook.last(
        START,
        "x = torch.ones(2**24, device='cuda')",
        "%cudatime -q -r 5 -v plain x + x",
        "%cudatime -q -r 5 -v awaited await add(x)",
        "print(abs(awaited.median_s / plain.median_s - 1) < 0.02)",
    )
    assert ran.out.strip() == "True"


def test_names_that_an_awaiting_cell_keeps(notebook: Notebook) -> None:
    """With --run the cell awaits once more, its names stay, and its last value is shown."""
    ran = notebook.last(
        START, "%%cudatime -q --run -r 3\ny = await add(torch.ones(2))\nawait add(y)"
    )
    assert (ran.message, ran.result) == (None, "Tensor")


def test_an_error_below_await_is_at_the_users_line(notebook: Notebook) -> None:
    """The traceback has the cell and what it awaits, and nothing of gpulab."""
    ran = notebook.last(
        "async def fails():\n    raise OSError('gone')", "%%cudatime\n\nawait fails()"
    )
    assert (ran.error, ran.message) == ("OSError", "gone")
    assert "await fails()" in ran.out
    assert not shows_our_frames(ran.out)


def test_the_running_loop_goes_on() -> None:
    """As in a notebook's kernel, the loop and the task outside are the same before and after."""

    async def outer() -> tuple[bool, int]:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        with loop_of_its_own() as own:
            inner = own.run_until_complete(asyncio.sleep(0, 7))
        after = asyncio.get_running_loop(), asyncio.current_task()
        await asyncio.sleep(0)
        return after == (loop, task), inner

    assert asyncio.run(outer()) == (True, 7)
