"""Each operator of PyTorch's own database gives on the virtual GPU what it gives on the CPU."""

import json
import subprocess
from importlib.util import find_spec

import pytest

from benchmarks.common.folders import ROOT

N_PARTS = 8
PROGRAM = """
import json
from dataclasses import asdict
from benchmarks.operators.database import operators
from benchmarks.operators.sweep import run

names = sorted({{info.name for info in operators()}})[{part}::{n_parts}]
# One sample is the first and the last one of the database.
outcomes = run(names, ["float32"], n_samples=1, n_workers=0, out=None, is_shown=False)
print(json.dumps([asdict(outcome) for outcome in outcomes]))
"""
# "jiterator" compiles CUDA source; the CPU refuses the others in this form, too.
REFUSED = ("refused", "both refuse")
MOST_REFUSED = 8  # of about 200 in each part


@pytest.mark.slow
@pytest.mark.skipif(find_spec("expecttest") is None, reason="the database needs expecttest")
@pytest.mark.parametrize("part", range(N_PARTS))
def test_an_operator_computes_as_the_cpu_does(part: int, warm_database: list[str]) -> None:
    """As a function, in place, with ``out=`` and backward: values, types and shapes."""
    code = PROGRAM.format(part=part, n_parts=N_PARTS)
    command = [*warm_database, "-c", code]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    outcomes = json.loads(done.stdout)
    assert len(outcomes) > 100
    wrong = [each for each in outcomes if each["kind"] in {"differs", "crashes", "died"}]
    assert wrong == []
    assert sum(each["kind"] in REFUSED for each in outcomes) <= MOST_REFUSED
