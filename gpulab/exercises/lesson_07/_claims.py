"""The claims of lesson 07, each with the rule that says whether it is true."""

from gpulab.exercises._claims import Claim

_N_SAMPLES = 40

CLAIMS = (
    Claim(
        "07.full-queue",
        "The host is not ahead in all of 40 samples of 50 launches, however long the sleep is",
        unit="samples",
        holds=lambda n_ahead: n_ahead < _N_SAMPLES,
        because="the launch queue of this driver may take more than 2,000 launches",
    ),
)
