"""Random calls wait, are refused by the debug mode, and fail in a capture together.

The calls are lines of Python over the inputs of ``benchmarks.waits``.
"""

import random
from collections.abc import Iterator
from contextlib import nullcontext

import pytest
import torch

import gpulab
from benchmarks.waits import ask
from benchmarks.waits.calls import call_of

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore"),  # PyTorch's own, of what is deprecated
]
NO_GPU = "no CUDA GPU: only the virtual one runs here"
N_CALLS = 200

INDICES = ("0", "-1", "1:3", "...", "None", "True", "n", "flag", "0:n", "(0, 1)", "(n, n)", "i")
INDICES += ("m", "row_mask", "h_int", "h_mask", "[0, 2]", "([0, 2], [1, 3])", "(i, i)", "(i, 0)")
INDICES += ("(row_mask, 0)", "(0, row_mask)", "(..., row_mask)", "(row_mask, i[:22])", "(m,)")
MASKS = ("i", "m", "row_mask", "h_int")
FLOATS = ("1", "2.5", "True", "one", "h_one", "-one", "one.item()")
NUMBERS = (*FLOATS, "n")
MATRICES = ("spd", "spd_batch", "x", "batch", "batch[:0]", "x[:9, :9]")
FACTORIZATIONS = ("svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals", "qr", "lu", "lu_factor")
FACTORIZATIONS += ("inv", "pinv", "cond", "matrix_rank", "matrix_norm", "det", "slogdet")
CHECKED = ("cholesky_ex", "inv_ex", "lu_factor_ex", "ldl_factor_ex")
ON_HOST = ("h", "h.T", "h[:, 0]", "h_large", "h_pinned", "h_pinned.T", "h_pinned[:, 0]", "h_one")
ON_HOST += ("h[:0]", "h_pinned.half()", "h_pinned[0]")
TARGETS = ("h_target", "h_target.T", "h_pinned_target", "h_pinned_target.T")
SORTERS = ("None", "torch.arange(64, device='cuda')")
SOURCES = ("x", "x.T", "x[0]", "x.half()", "x.double()")
# Waits of the driver, of a library and for an event, which the debug mode does not see; and copies
# of pageable memory and queries, which do not wait and yet cannot be captured.
SEEN_IN_PART = ("non_blocking=True", "dim=", "ldl_factor_ex", "synchronize", "query")


def some_call(chosen: random.Random) -> str:
    """Return a line that may wait or not, depending on its arguments."""
    pick, flag = chosen.choice, str(chosen.random() < 0.5)
    return pick(
        [
            f"x[{pick(INDICES)}] = {pick(FLOATS)}",
            f"x[{pick(INDICES)}]",
            f"whole[{pick(INDICES)}] = {pick(['1', '2.5', 'True', 'n'])}",
            f"x.index_put_(({pick(MASKS)},), {pick(['one', 'h_one'])}, accumulate={flag})",
            f"x.masked_fill({pick(['m', 'row_mask'])}, {pick(NUMBERS)})",
            f"x.index_fill({pick('01')}, i, {pick(NUMBERS)})",
            f"torch.where(m, {pick(NUMBERS)}, {pick(['x', *NUMBERS])})",
            f"torch.full((3,), {pick(NUMBERS)}, device='cuda')",
            f"x.fill_({pick(NUMBERS)})",
            f"torch.linspace({pick(NUMBERS)}, {pick(NUMBERS)}, 9, device='cuda')",
            f"torch.normal({pick(['v', '0.0'])}, {pick(['v.exp()', 'v.exp()[:1]'])})",
            f"torch.normal(v, {pick(['1.0', 'v.exp()'])})",
            f"torch.multinomial(weights, {pick('123')}, replacement={flag})",
            f"torch.linalg.{pick(FACTORIZATIONS)}({pick(MATRICES)})",
            f"torch.linalg.{pick(CHECKED)}({pick(MATRICES[:2])}, check_errors={flag})",
            f"torch.linalg.matrix_exp({pick(MATRICES)} * 1e-3)",
            f"torch.unique(i, sorted={flag}, return_counts={pick(['True', 'False'])})",
            f"torch.unique(x, dim={pick('01')})",
            f"torch.histc(v, 8, {pick(['0, 1', '0, 0', '-1, 1'])})",
            f"torch.bincount(i, minlength={pick(['0', '9'])})",
            f"torch.searchsorted(v.sort().values, x, sorter={pick(SORTERS)})",
            f"torch.isin(i, whole.view(-1)[:{pick(['3', '30', '300'])}], assume_unique={flag})",
            f"x.repeat_interleave(i, 0, output_size={pick(['None', '189'])})",
            f"torch.equal(x, {pick(['x', 'y', 'v', 'x.clone()', 'x.T'])})",
            f"{pick(ON_HOST)}.to('cuda', non_blocking={flag})",
            f"{pick(ON_HOST)}.to('cuda', torch.{pick(['half', 'float'])}, non_blocking={flag})",
            f"{pick(SOURCES)}.to('cpu', non_blocking={flag})",
            f"{pick(TARGETS)}.copy_({pick(SOURCES)}, non_blocking={flag})",
            f"x.copy_({pick(ON_HOST[:2] + ON_HOST[4:6])}, non_blocking={flag})",
            f"torch.{pick(['zeros', 'rand'])}_like(x, device='{pick(['cuda', 'cpu'])}')",
            f"nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite={flag})",
            f"{pick(['stream', 'recorded', 'event'])}.{pick(['query', 'synchronize'])}()",
        ]
    )


def agree(line: str, *, waits: bool, debug: ask.Answer, captured: bool) -> bool:
    """Return whether the three views of a call tell one story."""
    if any(part in line for part in SEEN_IN_PART):
        return not (waits and captured) and (waits or debug is False)
    return waits == debug and captured != waits


@pytest.fixture(params=["real", "virtual"])
def gpu(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test on the GPU of this machine, if there is one, and on the virtual H200."""
    if request.param == "real" and not torch.cuda.is_available():
        pytest.skip(NO_GPU)
    with nullcontext() if request.param == "real" else gpulab.virtual_gpu("H200"):
        yield request.param


def test_the_views_of_a_wait_agree(gpu: str) -> None:
    """A call waits if and only if the debug mode refuses it, and so does a capture."""
    chosen = random.Random(5)
    differing = {}
    for _ in range(N_CALLS):
        line = some_call(chosen)
        call = call_of(line)
        call()
        waits, debug = ask.waits(call), ask.debug(call)
        # A failed capture can leave a real GPU's libraries of no more use.
        captured = ask.captured(call) if gpu == "virtual" else not waits
        if not agree(line, waits=waits, debug=debug, captured=captured):
            differing[line] = (waits, debug, captured)
    assert differing == {}
