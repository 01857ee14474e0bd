"""Wrong calls raise on a CUDA GPU as they raise on the virtual one: at their line.

Run it alone by ``python -m pytest -n0 -q -m gpu tests/gpu/test_argument_errors.py``.
"""

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from benchmarks.common.command_line import python_command
from benchmarks.common.folders import ROOT
from benchmarks.operators.recorded_errors import differences, load
from benchmarks.operators.wrong_inputs import Tried

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]


@pytest.mark.parametrize("kind", ["written", "database", "modules"])
def test_wrong_calls_raise_as_recorded(kind: str, tmp_path: Path) -> None:
    """Each call raises at its line, or is accepted, as on the recorded H100.

    The virtual GPU is held to the same recording by ``tests/benchmarks/test_wrong_inputs.py``.
    """
    if kind != "written" and find_spec("expecttest") is None:
        pytest.skip("the database needs expecttest")
    out = tmp_path / "errors.json"
    arguments = ["errors", "--device", "cuda", "--kinds", kind, "--out", str(out)]
    command = python_command("benchmarks.operators", *arguments)
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    tried = [Tried(**each) for each in json.loads(out.read_text("utf-8"))["tried"]]
    assert len(tried) > 50
    # Another version of PyTorch may have mended or moved a few checks.
    assert len(differences(tried, load(), are_explained=True)) <= len(tried) / 100
