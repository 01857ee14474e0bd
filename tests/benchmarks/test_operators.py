"""A few dozen operators of PyTorch's own database, in every form: the quick part of the sweep."""

from importlib.util import find_spec

import pytest
import torch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("expecttest") is None, reason="the database needs expecttest"),
]

NAMES = (
    *("add", "addmm", "baddbmm", "matmul", "linalg.pinv", "linalg.qr", "linalg.matrix_rank"),
    *("kron", "cumsum", "index_put", "index_fill", "scatter_add", "sort", "topk", "where"),
    *("nn.functional.conv2d", "nn.functional.linear", "nn.functional.layer_norm", "softmax"),
    *("nn.functional.cross_entropy", "nn.functional.interpolate", "zeros", "linspace", "var"),
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex64, torch.bool])
def test_operators_compute_as_the_cpu_does(dtype: torch.dtype) -> None:
    """As functions, in place, with out= and backward; nothing differs and nothing crashes."""
    from torch.testing._internal.common_methods_invocations import op_db

    from benchmarks.operators.trial import try_operator

    outcomes = [
        outcome
        for info in op_db
        if info.name in NAMES
        for outcome in try_operator(info, dtype, n_samples=3)
    ]
    assert len(outcomes) > 10
    bad = {"differs", "crashes", "refused"}
    assert [outcome for outcome in outcomes if outcome.kind in bad] == []
