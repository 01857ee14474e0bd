"""Each operator has one model, in one table."""

from collections import Counter

import torch

from gpulab.virtual.operators import MODELS, operator_of
from gpulab.virtual.operators._models import FAMILIES

aten = torch.ops.aten
# Names that only some versions of torch have.
OF_SOME_VERSIONS = {
    *("_linear_cross_entropy_batch_chunked", "_linear_cross_entropy_batch_chunked_no_reduction"),
    *("cholesky", "linalg_matrix_sqrth"),
}


def test_an_operator_stands_in_one_entry() -> None:
    """No two entries name the same operator, in one family or in two."""
    names = Counter(
        name for family in FAMILIES for names in family.MODELS for name in names.split()
    )
    assert [name for name, n in names.items() if n > 1] == []


def test_a_model_is_that_of_an_operator() -> None:
    """Each name is that of an operator of PyTorch, without overload and trailing underscore."""
    # Some have only an in-place form, such as bernoulli_.
    missing = {name for name in MODELS if not (hasattr(aten, name) or hasattr(aten, f"{name}_"))}
    assert missing <= OF_SOME_VERSIONS


def test_all_overloads_of_an_operator_have_its_model() -> None:
    """An overload, an in-place form and one with ``out=`` share the model of the operator."""
    overloads = (aten.fill.Scalar, aten.fill_.Tensor, aten.fill.Tensor_out)
    assert all(operator_of(func).model is MODELS["fill"] for func in overloads)
