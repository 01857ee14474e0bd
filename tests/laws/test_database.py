"""Each operator of PyTorch's own database gives on the virtual GPU what it gives on the CPU."""

import json
import subprocess
from importlib.util import find_spec

import pytest

from benchmarks.common.folders import ROOT

N_PARTS = 8
# All operators are called in float32, and these in other types, too.
NAMES = (
    *("add", "addmm", "baddbmm", "matmul", "linalg.pinv", "linalg.qr", "linalg.matrix_rank"),
    *("kron", "cumsum", "index_put", "index_fill", "scatter_add", "sort", "topk", "where"),
    *("nn.functional.conv2d", "nn.functional.linear", "nn.functional.layer_norm", "softmax"),
    *("nn.functional.cross_entropy", "nn.functional.interpolate", "zeros", "linspace", "var"),
)
# In these a wrong or extreme value could invent another one.
EXTREME = (
    *("nn.functional.one_hot", "prod", "cumprod", "gather", "take", "index_select", "scatter"),
    *("nn.functional.embedding", "nn.functional.nll_loss", "nn.functional.cross_entropy"),
    *("linalg.eigh", "linalg.eig", "linalg.svd", "index_add", "logcumsumexp", "amax", "pow"),
)
PART = "sorted({{info.name for info in operators()}})[{part}::{n_parts}]"
# Names, types, number of samples, whether the values are extreme, and the fewest outcomes.
CASES = {
    "some, in other types": (repr(NAMES), ["float16", "complex64", "bool"], 2, False, 60),
    "extreme values": (repr(EXTREME), ["float32", "int64", "complex64"], 2, True, 30),
    **{
        # One sample is the first and the last one of the database.
        f"part {part}": (PART.format(part=part, n_parts=N_PARTS), ["float32"], 1, False, 100)
        for part in range(N_PARTS)
    },
}
PROGRAM = """
import json
from dataclasses import asdict
from benchmarks.operators.database import operators
from benchmarks.operators.sweep import run

outcomes = run({names}, {dtypes}, n_samples={n_samples}, is_extreme={is_extreme})
print(json.dumps([asdict(outcome) for outcome in outcomes]))
"""
# "jiterator" compiles CUDA source; the CPU refuses the others in this form, too.
REFUSED = ("refused", "both refuse")
MOST_REFUSED = 8  # of about 200 in each part


@pytest.mark.slow
@pytest.mark.skipif(find_spec("expecttest") is None, reason="the database needs expecttest")
@pytest.mark.parametrize("case", CASES)
def test_an_operator_computes_as_the_cpu_does(case: str, warm_database: list[str]) -> None:
    """As a function, in place, with ``out=`` and backward: values, types and shapes.

    Of extreme and wrong values the results are the CPU's, nan, or an error.
    """
    names, dtypes, n_samples, is_extreme, n_least = CASES[case]
    code = PROGRAM.format(names=names, dtypes=dtypes, n_samples=n_samples, is_extreme=is_extreme)
    command = [*warm_database, "-c", code]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    outcomes = json.loads(done.stdout)
    assert len(outcomes) > n_least
    assert [each for each in outcomes if each["kind"] in {"differs", "crashes"}] == []
    n_refused = sum(each["kind"] in REFUSED for each in outcomes)
    assert is_extreme or n_refused <= MOST_REFUSED
