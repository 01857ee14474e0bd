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
PART = "sorted({{info.name for info in operators()}})[{part}::{n_parts}]"
CASES = {
    "some, in other types": (repr(NAMES), ["float16", "complex64", "bool"], 60),
    **{
        f"part {part}": (PART.format(part=part, n_parts=N_PARTS), ["float32"], 100)
        for part in range(N_PARTS)
    },
}
PROGRAM = """
import json
from dataclasses import asdict
from benchmarks.operators.database import operators
from benchmarks.operators.sweep import run

# One sample is the first and the last one of the database.
outcomes = run({names}, {dtypes}, n_samples=1)
print(json.dumps([asdict(outcome) for outcome in outcomes]))
"""
# "jiterator" compiles CUDA source; the CPU refuses the others in this form, too.
REFUSED = ("refused", "both refuse")
MOST_REFUSED = 8  # of about 200 in each part


@pytest.mark.slow
@pytest.mark.skipif(find_spec("expecttest") is None, reason="the database needs expecttest")
@pytest.mark.parametrize("case", CASES)
def test_an_operator_computes_as_the_cpu_does(case: str, warm_database: list[str]) -> None:
    """As a function, in place, with ``out=`` and backward: values, types and shapes."""
    names, dtypes, n_least = CASES[case]
    code = PROGRAM.format(names=names, dtypes=dtypes)
    command = [*warm_database, "-c", code]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    outcomes = json.loads(done.stdout)
    assert len(outcomes) > n_least
    assert [each for each in outcomes if each["kind"] in {"differs", "crashes"}] == []
    assert sum(each["kind"] in REFUSED for each in outcomes) <= MOST_REFUSED
