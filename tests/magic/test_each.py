"""``--each``: code before each call, not timed, with the names of setup and body."""

import pytest

from tests.support.ipython import Notebook

pytestmark = pytest.mark.slow

BACKWARD = "w = torch.randn(512, 512, device='cuda', requires_grad=True); x = torch.randn_like(w)"
NOTE = "note: backward() adds to the gradients of the call before; to time it with none, write"


def test_code_before_each_call_shares_the_names_of_setup_and_body(notebook: Notebook) -> None:
    """It restores what the body changes, before every call that is timed."""
    ran = notebook.last(
        "seen = []",
        '%%cudatime -r 6 --each "n = 5; seen.append(n)" n = 5; x = torch.ones(8, device="cuda")\n'
        "n = n + 1\nseen.append(n)\nx + x",
        "print(seen[-4:])",
    )
    assert ran.out == "[5, 6, 5, 6]\n"


def test_fresh_gradients_take_less_time(notebook: Notebook) -> None:
    """A backward pass that adds to earlier gradients has one kernel more, and a note says so."""
    cell = "(x @ w).sum().backward()"
    adding = notebook.last(f"%%cudatime -o {BACKWARD}\n{cell}")
    assert NOTE in adding.out
    fresh = notebook.last(f'%%cudatime --each "w.grad = None" {BACKWARD}\n{cell}')
    assert (fresh.error, NOTE in fresh.out) == (None, False)
    both = notebook.last(
        f"%%cudatime -q -v adding {BACKWARD}\n{cell}",
        f'%%cudatime -q -v fresh --each "w.grad = None" {BACKWARD}\n{cell}',
        "print(fresh.median_s < adding.median_s)",
    )
    assert both.out == "True\n"


@pytest.mark.parametrize(
    ("cell", "is_noted"),
    [
        ("w.grad = None\n(x @ w).sum().backward()", False),
        ("torch.optim.SGD([w]).zero_grad()\n(x @ w).sum().backward()", False),
        ("torch.autograd.grad((x @ w).sum(), w)", False),
        ("x @ w", False),
        ("(x @ w).sum().backward()\nw.grad.norm()", True),
    ],
)
def test_the_note_comes_only_if_gradients_add_up(
    notebook: Notebook, cell: str, *, is_noted: bool
) -> None:
    """Reading a gradient is no reset; a work without a backward pass needs none."""
    ran = notebook.last(f"%%cudatime -r 6 {BACKWARD}\n{cell}")
    assert ran.error is None, ran.message
    assert (NOTE in ran.out) == is_noted


def test_each_works_with_the_other_kinds_of_timing(notebook: Notebook) -> None:
    """A ladder and a comparison in turns call it, too, and --run executes it."""
    given = '--each "calls.append(1)"'
    ran = notebook.last(
        "calls = []; x = torch.ones(64, device='cuda')\nother = lambda: x * 2",
        f"%cudatime --ladder {given} x + x",
        "n_ladder = len(calls); calls.clear()",
        f"%cudatime -r 6 --vs other {given} x + x",
        "n_compare = len(calls); calls.clear()",
        f"%cudatime -r 6 -q --run {given} x + x;",
        "print(n_ladder > 12, n_compare >= 12, len(calls) >= 7)",
    )
    assert ran.out == "True True True\n"


def test_a_mistake_in_it_is_shown(notebook: Notebook) -> None:
    """Text that is no Python, and an exception, reach the user."""
    assert notebook.last('%cudatime --each "a +" 1').error == "SyntaxError"
    assert notebook.last('%cudatime --each "1 / 0" torch.ones(1, device="cuda")').error == (
        "ZeroDivisionError"
    )
