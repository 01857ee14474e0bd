"""Random programs obey the laws that hardware obeys, on a real GPU and on the virtual one.

Times of a real GPU have noise, so they get a margin. Run it alone by
``python -m pytest -n0 -q -m gpu tests/gpu/test_laws.py``.
"""

import pytest
import torch

from benchmarks.laws.campaign import broken
from benchmarks.laws.laws import LAWS, Law
from benchmarks.laws.programs import program_of
from benchmarks.laws.readings import CUDA, VIRTUAL, Gpu

pytestmark = [pytest.mark.gpu, pytest.mark.slow]
N_PROGRAMS, N_STEPS = 25, 8
# A busy host delays a whole program now and then, and a law is about all of its runs.
N_TRIALS = 3


@pytest.fixture(params=["real", "virtual"])
def gpu(request: pytest.FixtureRequest) -> Gpu:
    """Return the GPU of this machine, if there is one, and the virtual H200."""
    if request.param == "real" and not torch.cuda.is_available():
        pytest.skip("no CUDA GPU: only the virtual one runs here")
    return CUDA if request.param == "real" else VIRTUAL


@pytest.mark.parametrize(
    "law", [law for law in LAWS.values() if law.is_hardware_s], ids=lambda law: law.number
)
def test_programs_obey_the_laws(law: Law, gpu: Gpu) -> None:
    """No random program breaks a law in each of three trials."""
    for check, _ in law.checks:
        for seed in range(N_PROGRAMS):
            program = program_of(seed, N_STEPS)
            found = [broken(check, program, gpu) for _ in range(N_TRIALS if gpu is CUDA else 1)]
            assert None in found, f"{found[0]}\n{program.text()}"
