"""A wrong index or another wrong value raises at the next wait, although nobody reads."""

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

import gpulab
from gpulab.virtual.operators import MODELS

Call = Callable[[torch.Tensor], Any]

_WRONG = 1_000  # an index, or a target class
aten = torch.ops.aten


def _on_device(*values: float) -> torch.Tensor:
    return torch.tensor(values).cuda()


def _pivots(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32).cuda()


def _scores() -> torch.Tensor:
    return torch.zeros(2, 3, device="cuda")


def _image_scores() -> torch.Tensor:
    return torch.zeros(1, 3, 2, 1, device="cuda")


# Calls on a tensor of 4 x 4 ones, each with a wrong value somewhere. By the operator's name.
WRONG: dict[str, Call] = {
    "gather": lambda x: x.gather(1, _on_device(_WRONG)[None]),
    "index_select": lambda x: x.index_select(0, _on_device(_WRONG)),
    "index_add": lambda x: x.index_add_(0, _on_device(_WRONG), x[:1].clone()),
    "index_copy": lambda x: x.index_copy_(0, _on_device(_WRONG), x[:1].clone()),
    "index_fill": lambda x: x.index_fill_(1, _on_device(-5), 2.0),
    "index_reduce": lambda x: x.index_reduce_(0, _on_device(_WRONG), x[:1].clone(), "amax"),
    "scatter": lambda x: x.scatter(0, _on_device(_WRONG)[None], 1.0),
    "scatter_add": lambda x: x.scatter_add_(1, _on_device(_WRONG)[None], x.clone()),
    "scatter_reduce": lambda x: x.scatter_reduce(1, _on_device(_WRONG)[None], x, "sum"),
    "index": lambda x: x[:, _on_device(1, _WRONG)],
    "index of the host": lambda x: x[torch.tensor([_WRONG])],
    "index_put": lambda x: x.index_put_((_on_device(0), _on_device(-5)), x[:1, 0].clone()),
    "_unsafe_index": lambda x: aten._unsafe_index(x, [_on_device(_WRONG)]),
    "_unsafe_index_put": lambda x: aten._unsafe_index_put(x, [_on_device(_WRONG)], x[:1].clone()),
    "_index_put_impl": lambda x: aten._index_put_impl_(x, [_on_device(_WRONG)], x[:1].clone()),
    "take": lambda x: x.take(_on_device(16)),
    "put": lambda x: x.put_(_on_device(-17), x[0, :1].clone()),
    "max_unpool2d": lambda x: functional.max_unpool2d(
        x[None], torch.full((1, 4, 4), _WRONG).cuda(), 2
    ),
    "max_unpool3d": lambda x: functional.max_unpool3d(
        x[None, None], torch.full((1, 1, 4, 4), _WRONG).cuda(), 2
    ),
    "embedding": lambda x: functional.embedding(_on_device(4), x),
    "nll_loss_forward": lambda _: functional.nll_loss(_scores(), _on_device(-100, 3)),
    "nll_loss_backward": lambda _: aten.nll_loss_backward(
        _on_device(1.0)[0], _scores(), _on_device(0, 3), None, 1, -100, _on_device(2.0)[0]
    ),
    "nll_loss2d_forward": lambda _: functional.nll_loss(
        _image_scores(), torch.full((1, 2, 1), 3).cuda()
    ),
    "nll_loss2d_backward": lambda _: aten.nll_loss2d_backward(
        _on_device(1.0)[0],
        *(_image_scores(), torch.full((1, 2, 1), 3).cuda(), None, 1, -100, _on_device(2.0)[0]),
    ),
    "bernoulli": lambda x: torch.bernoulli(x * 2),
    "bernoulli in place": lambda x: x.clone().bernoulli_(x * 2),
    "poisson": lambda x: torch.poisson(-x),
    "binary_cross_entropy": lambda x: functional.binary_cross_entropy(x * 2, x),
    "multi_margin_loss": lambda x: functional.multi_margin_loss(x[:1].clone(), _on_device(_WRONG)),
    "multi_margin_loss_backward": lambda x: aten.multi_margin_loss_backward(
        _on_device(1.0)[0], x[:1].clone(), _on_device(_WRONG), 1, 1.0
    ),
    "multilabel_margin_loss_forward": lambda x: functional.multilabel_margin_loss(
        x[0], _on_device(0, 1, 2, _WRONG)
    ),
    "multilabel_margin_loss_backward": lambda x: aten.multilabel_margin_loss_backward(
        _on_device(1.0)[0], x[0], _on_device(0, 1, 2, _WRONG), 1, x[0]
    ),
    "fractional_max_pool2d_backward": lambda x: aten.fractional_max_pool2d_backward(
        x[None, :2, :2], x[None], [2, 2], [2, 2], torch.full((1, 2, 2), _WRONG).cuda()
    ),
    "fractional_max_pool3d_backward": lambda x: aten.fractional_max_pool3d_backward(
        x[None, None, :2, :2],
        *(x[None, None], [1, 2, 2], [1, 2, 2], torch.full((1, 1, 2, 2), _WRONG).cuda()),
    ),
    "masked_scatter": lambda x: x.masked_scatter(x > 0, x[0]),
    "embedding_dense_backward": lambda x: aten.embedding_dense_backward(
        x[:1],
        _on_device(_WRONG),
        4,
        -1,
        True,  # noqa: FBT003 # torch's signature
    ),
    "embedding_renorm": lambda x: aten.embedding_renorm_(x, _on_device(_WRONG), 1.0, 2.0),
    "multinomial": lambda x: torch.multinomial(-x, 2, replacement=True),
    "_assert_async": lambda x: torch._assert_async(x[0, 0] > 1),
    "lu_unpack": lambda x: torch.lu_unpack(x, torch.full((4,), _WRONG).int().cuda()),
    "linalg_ldl_solve": lambda x: torch.linalg.ldl_solve(x, _pivots(_WRONG, 2, 3, 4), x),
    "linalg_ldl_solve of row 0": lambda x: torch.linalg.ldl_solve(x, _pivots(0, 2, 3, 4), x),
    "linalg_ldl_solve of half a block": lambda x: torch.linalg.ldl_solve(
        x, _pivots(1, 2, 3, -4), x
    ),
}
# Its model says so only because the CPU's operator fails on wrong pivots.
_FACTORIZATIONS = {"linalg_lu_solve"}
# A wrong value in one of these ends a process that computes it on the CPU.
_UNCHECKED = {"_embedding_bag", "_embedding_bag_forward_only", "_ctc_loss", "segment_reduce"}
# PyTorch defines these in Python, from torch 2.13 on, and only in part as operators.
_IN_PYTHON = {
    *("_linear_cross_entropy_batch_chunked", "_linear_cross_entropy_batch_chunked_no_reduction")
}


@pytest.mark.filterwarnings("ignore:index_reduce")  # PyTorch calls it a beta
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_raises_at_the_next_wait(name: str) -> None:
    """The call itself raises nothing, the next wait does, and later work is done."""
    with gpulab.virtual_gpu("H200", first_use=False):
        x = torch.ones(4, 4, device="cuda")
        result = WRONG[name](x)
        with pytest.raises((IndexError, RuntimeError)) as raised:
            torch.cuda.synchronize()
        assert any("which was launched earlier" in note for note in raised.value.__notes__)
        del result
        assert (torch.ones(3, device="cuda") * 2).tolist() == [2.0] * 3


def _checked() -> set[str]:
    """Return the operators whose models say that they check values."""
    return {
        name
        for name, model in MODELS.items()
        if model.may_find_wrong_values or model.index_ranges is not None
    }


def test_every_operator_of_the_tables_is_tried() -> None:
    """The calls above name all operators whose values are checked."""
    named = {name.partition(" ")[0] for name in WRONG} - {"_assert_async"}
    assert named == _checked() - _FACTORIZATIONS - _UNCHECKED - _IN_PYTHON


@pytest.mark.slow
def test_the_tables_name_every_operator_of_the_database_that_fails_on_an_index(
    warm_database: list[str],
) -> None:
    """PyTorch's database of operators: what the CPU refuses is in a table, or the host waits."""
    command = [*warm_database, "-m", "tests.support.failing_indices"]
    failing = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert len(failing) > 15
    assert {*failing} - _checked() == set()


@pytest.mark.parametrize(
    "backward",
    [
        lambda x, wrong: aten.nll_loss_backward(
            *(x[:, 0], x, wrong, None, 0, -100, _on_device(2.0)[0])
        ),
        lambda x, wrong: aten.nll_loss2d_backward(
            *(x[:, :1, None], x[..., None, None], wrong[:, None, None], None, 0, -100),
            _on_device(2.0)[0],
        ),
        lambda x, wrong: aten.embedding_dense_backward(x, wrong, 4, -1, True),  # noqa: FBT003 # torch's signature
    ],
    ids=["nll_loss", "nll_loss2d", "embedding"],
)
def test_no_gradient_is_written_outside_of_its_tensor(
    backward: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> None:
    """A wrong index fails in a backward pass, too, where PyTorch's CPU kernel checks nothing."""
    with gpulab.virtual_gpu("H200", first_use=False):
        gradient = backward(torch.ones(3, 5, device="cuda"), _on_device(1, 70, 2))
        with pytest.raises(IndexError, match=r"an index of \w+ is out of range"):
            torch.cuda.synchronize()
        del gradient
