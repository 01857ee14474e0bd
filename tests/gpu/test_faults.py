"""A device-side assert raises an error that says that the process's CUDA context is lost.

The faults do not harm the hardware. Each runs in its own process, which it ends.
Run it alone by ``python -m pytest -n0 -q -m gpu tests/gpu/test_faults.py``.
"""

import json
import subprocess
import sys

import pytest
import torch

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

OUT_OF_RANGE = """
import json, torch, gpulab
table = torch.zeros(8, device="cuda")
index = torch.zeros(1, dtype=torch.int64, device="cuda")
calls = [0]
def work():
    calls[0] += 1
    if calls[0] == {at}:
        index.fill_(1 << 40)
    return table.gather(0, index)
try:
    gpulab.{call}
except Exception as error:
    print("FOUND", json.dumps([
        type(error).__name__,
        str(error).partition(chr(10))[0],
        getattr(error, "__notes__", []),
        getattr(getattr(error, "partial", None), "n_samples", 0),
    ]))
"""
CALLS = {
    "measure": "measure(work, method='synchronized', precision=1e-9, max_time_s=5)",
    "compare": "compare(work, work, method='synchronized', precision=1e-9, max_time_s=5)",
    "calibrated": "measure(work, precision=1e-9, max_time_s=5)",
}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize("name", CALLS)
def test_an_index_out_of_range_says_that_the_context_is_lost(name: str) -> None:
    """After a device-side assert the error says which samples are kept, and to restart."""
    # A calibrated measurement may need few calls. The others must have samples before the fault.
    at = "20" if name == "calibrated" else "300"
    program = OUT_OF_RANGE.replace("{call}", CALLS[name]).replace("{at}", at)
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in ran.stdout.splitlines() if line.startswith("FOUND ")]
    assert len(lines) == 1, ran.stderr[-2000:]
    kind, message, notes, n_kept = json.loads(lines[0].removeprefix("FOUND "))
    assert kind == "AcceleratorError"
    assert "device-side assert" in message
    assert any("CUDA errors are asynchronous" in note for note in notes), notes
    assert any("context of this process is lost" in note for note in notes), notes
    if name == "measure":
        assert n_kept > 0
        assert any(f"the {n_kept} samples before are kept" in note for note in notes), notes
