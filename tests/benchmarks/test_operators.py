"""A few dozen operators of PyTorch's own database, in every form: the quick part of the sweep."""

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.common.folders import ROOT

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
DTYPES = ("float16", "complex64", "bool")  # all are called in float32 by a law


def test_operators_compute_as_the_cpu_does(tmp_path: Path, warm_database: list[str]) -> None:
    """As functions, in place, with out= and backward, the results equal those of the CPU."""
    out = tmp_path / "outcomes.json"
    arguments = ["--names", *NAMES, "--dtypes", *DTYPES, "--samples", "2", "--out", str(out)]
    command = [*warm_database, "-m", "benchmarks.operators", "run", *arguments, "--workers", "0"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    outcomes = json.loads(out.read_text("utf-8"))
    assert len(outcomes) > 60
    assert [each for each in outcomes if each["kind"] not in {"same", "random"}] == []
