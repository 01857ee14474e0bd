"""A call waits on the virtual GPU if and only if it waits on an H100, seen in three ways."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import gpulab
from benchmarks.waits import ask
from benchmarks.waits.calls import call_of, names
from gpulab.virtual.dispatch import dispatch, observing
from gpulab.virtual.operators import MODELS, operator_of

RECORDED = Path(__file__).parents[2] / "benchmarks" / "results" / "waits-h100.json"
# Python code of PyTorch that became another one after the version on the H100: it now draws
# again what is out of bounds, and looks whether anything is.
CHANGED_SINCE = {"nn.init.trunc_normal_(x)"} if torch.__version__ >= "2.13" else set()
if torch.__version__ >= "2.15":
    CHANGED_SINCE.add("torch.combinations(v[:8])")  # it knows the number of its results
N_PARTS = 16

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # PyTorch's own, of what is deprecated or in beta
]


def recorded() -> dict[str, dict[str, Any]]:
    """Return what an H100 answered."""
    rows: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text())["rows"]
    return rows


def answers(name: str) -> dict[str, ask.Answer]:
    """Return how a call appears on the virtual GPU."""
    call = call_of(name)
    call()
    return {"waits": ask.waits(call), "debug": ask.debug(call), "captured": ask.captured(call)}


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, N_PARTS))]
)
def test_calls_wait_as_on_hardware(part: int) -> None:
    """Each call waits, is refused by the debug mode, and may be captured as on an H100."""
    rows = recorded()
    differing = {}
    with gpulab.virtual_gpu("H200"):
        for name in names()[part::N_PARTS]:
            if name in CHANGED_SINCE or "dlpack" in name:  # DLPack is not modelled
                continue
            here, there = answers(name), rows[name]
            # On the H100 only calls that do not wait were captured.
            expected = {"captured": False, **{key: there[key] for key in here if key in there}}
            if here != expected:
                differing[name] = (here, expected)
    assert differing == {}


def test_each_call_was_asked_on_hardware() -> None:
    """The recording has each call of the list, and no other."""
    assert sorted(recorded()) == sorted(names())


@pytest.mark.slow
def test_each_row_of_the_table_is_asked() -> None:
    """Some call of the list runs each operator that the table names."""
    ran: set[str] = set()

    def note(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 # as torch
        ran.add(operator_of(func).name)
        return dispatch(func, args, kwargs)

    with gpulab.virtual_gpu("H200"), observing(note):
        for name in names():
            if "dlpack" not in name:
                call_of(name)()
    # The first is called by the derivative of index_fill in some versions of PyTorch, the second
    # waits only with out=, which was not recorded, and the third is new in torch 2.14.
    reading = {name for name, model in MODELS.items() if model.host_reads}
    assert reading - ran <= {"_unique", "linalg_eigvals", "linalg_matrix_sqrth"}


@pytest.mark.parametrize(
    "name",
    ["svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals", "pinv", "matrix_rank", "cond"],
)
@pytest.mark.parametrize("shape", [(4, 4), (3, 40, 40)])
def test_a_factorization_raises_at_its_line(name: str, shape: tuple[int, ...]) -> None:
    """A matrix of nan raises PyTorch's error where the factorization is called."""
    kind = RuntimeError if name.startswith("eig") and "h" not in name else torch.linalg.LinAlgError
    with gpulab.virtual_gpu("H200"):
        matrix = torch.full(shape, torch.nan, device="cuda")
        with pytest.raises(kind, match=r"failed to converge|should not contain infs or NaNs"):
            getattr(torch.linalg, name)(matrix)
        torch.cuda.synchronize()


def test_eigenvalues_with_out_wait_and_raise_at_their_line() -> None:
    """PyTorch has a kernel of its own for them, which ends the process for nan on a CPU."""
    with gpulab.virtual_gpu("H200"):
        matrix = torch.eye(5, device="cuda")
        out = torch.empty(5, dtype=torch.complex64, device="cuda")
        assert ask.waits(lambda: torch.linalg.eigvals(matrix, out=out))
        matrix[0, 0] = torch.nan
        with pytest.raises(RuntimeError, match="should not contain infs or NaNs"):
            torch.linalg.eigvals(matrix, out=out)


def test_a_negative_deviation_raises_at_its_line() -> None:
    """``torch.normal`` reads whether a deviation is negative, and raises PyTorch's error."""
    with gpulab.virtual_gpu("H200"):
        deviation = torch.tensor([1.0, -1.0], device="cuda")
        with pytest.raises(RuntimeError, match=r"^normal expects all elements of std >= 0\.0"):
            torch.normal(0.0, deviation)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.float16])
def test_a_number_that_does_not_fit_raises_at_its_line(dtype: torch.dtype) -> None:
    """The host reads the number to write, and PyTorch checks it."""
    with gpulab.virtual_gpu("H200"):
        x, mask = torch.ones(2, dtype=dtype, device="cuda"), torch.ones(2, device="cuda") > 0
        number = torch.tensor(1j if dtype is torch.int64 else 1e6, device="cuda")
        x.masked_fill_(mask, torch.tensor(2, device="cuda"))
        with pytest.raises(RuntimeError, match="cannot be converted to type"):
            x.masked_fill_(mask, number)
        with pytest.raises(RuntimeError, match=r"cannot be converted to type|Converting complex"):
            x.index_fill_(0, torch.tensor([0], device="cuda"), number)
        assert x.tolist() == [2, 2]


def test_least_squares_of_nan_are_nan(capfd: pytest.CaptureFixture[str]) -> None:
    """CUDA solves by a QR decomposition, which passes nan on; LAPACK would complain."""
    with gpulab.virtual_gpu("H200"):
        matrix = torch.full((4, 3), torch.nan, device="cuda")
        solved = torch.linalg.lstsq(matrix, matrix)
        assert solved.solution.isnan().all()
    assert capfd.readouterr() == ("", "")


def test_a_write_by_a_mask_takes_as_long_without_values() -> None:
    """The elements are found, and the host waits, also where values are switched off."""
    ends_ns = []
    for n_values in (1 << 26, 0):
        with gpulab.virtual_gpu("H200", max_value_elements=n_values) as gpu:
            x = torch.zeros(1000, device="cuda")
            mask, one = x > 0, torch.ones((), device="cuda")
            x[mask] = one
            x[mask] = 1.0
            x[0] = 1.0
            ends_ns.append(gpu.machine.host.now_ns)
            torch.cuda.synchronize()
            ends_ns.append(gpu.machine.host.now_ns)
    assert ends_ns[:2] == ends_ns[2:]


@pytest.mark.parametrize(
    "index", [0, (0, 1), slice(1, 3), ..., None, [0, 2], (slice(None), 1), True]
)
@pytest.mark.parametrize("value", [2, 2.5, True, 1e9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool])
def test_a_number_is_written_as_on_the_cpu(
    index: Any,  # noqa: ANN401 # any index
    value: float,
    dtype: torch.dtype,
) -> None:
    """A Python number is converted to the tensor's type, whatever the index."""
    expected = torch.zeros(3, 3, dtype=dtype)
    try:
        expected[index] = value
    except RuntimeError as error:
        pytest.skip(f"this torch refuses the number on the CPU: {error}")
    with gpulab.virtual_gpu("H200"):
        x = torch.zeros(3, 3, dtype=dtype, device="cuda")
        x[index] = value
        torch.testing.assert_close(x.cpu(), expected)


def test_a_mask_of_the_host_selects_as_on_the_cpu() -> None:
    """The host finds the elements; a mask of another shape raises PyTorch's error."""
    mask = torch.tensor([[True, False], [False, True]])
    with gpulab.virtual_gpu("H200"):
        x = torch.arange(8, device="cuda").view(2, 2, 2)
        assert x[mask].tolist() == [[0, 1], [6, 7]]
        assert x[:, mask].tolist() == [[0, 3], [4, 7]]
        x[mask] = torch.tensor([8, 9], device="cuda")
        assert x.view(-1).tolist() == [8, 9, 2, 3, 4, 5, 8, 9]
        with pytest.raises(IndexError, match="The shape of the mask"):
            x[torch.tensor([True, False, True])]


def test_a_graph_draws_only_from_generators_that_are_registered() -> None:
    """A generator that was not registered for the graph raises PyTorch's error."""
    with gpulab.virtual_gpu("H200"):
        generator, graph = torch.Generator("cuda"), torch.cuda.CUDAGraph()
        x = torch.zeros(3, device="cuda")
        other = torch.cuda.CUDAGraph()
        other.register_generator_state(generator)
        with torch.cuda.graph(other):
            x.normal_(generator=generator)
        with (
            pytest.raises(RuntimeError, match="Attempt to increase offset for a CUDA generator"),
            torch.cuda.graph(graph),
        ):
            x.normal_(generator=generator)
        other.replay()
        assert x.count_nonzero() == 3


@pytest.mark.parametrize(
    "line",
    [
        "repr(v)",
        "one.item()",
        "x[m] = one",
        "x[m] = 1.0",
        "x[0, 0] = 1.0",
        "x.masked_fill(m, one)",
        "torch.linalg.svd(x)",
        "torch.linalg.inv(spd)",
        "torch.normal(v, v.exp())",
        "leaf.prod().backward()",
        "leaf.cumprod(1).sum().backward()",
    ],
)
def test_a_call_waits_without_values_too(line: str) -> None:
    """Where values are switched off, each view of a wait is as with them."""
    with gpulab.virtual_gpu("H200", max_value_elements=0):
        call = call_of(line)
        call()
        answer = (ask.waits(call), ask.debug(call), ask.captured(call))
    row = recorded().get(line) or {"waits": True, "debug": True}
    assert answer == (row["waits"], row["debug"], not row["waits"])


@pytest.mark.parametrize(
    ("work", "sizes"),
    [
        (torch.unique, [(0,)]),
        (lambda empty: torch.unique_consecutive(empty, return_counts=True), [(0,), (0,)]),
        (lambda empty: torch.bincount(empty, minlength=5), [(5,)]),
        (torch.repeat_interleave, [(0,)]),
        (lambda empty: torch.linalg.svdvals(empty.view(0, 2, 2).float()), [(0, 2)]),
        (lambda empty: torch.matrix_exp(empty.view(0, 2, 2).float()), [(0, 2, 2)]),
        (lambda empty: torch.searchsorted(empty, empty, sorter=empty), [(0,)]),
        (torch.Tensor.cpu, [(0,)]),
    ],
)
def test_nothing_is_read_of_a_tensor_without_elements(
    work: Callable[[torch.Tensor], Any], sizes: list[tuple[int, ...]]
) -> None:
    """PyTorch returns before it reads, so the host does not wait."""
    with gpulab.virtual_gpu("H200"):
        empty = torch.zeros(0, dtype=torch.long, device="cuda")
        results = work(empty)
        answer = results if isinstance(results, tuple) else (results,)
        assert [tuple(item.shape) for item in answer] == sizes
        assert not ask.waits(lambda: work(empty))
