"""The claims of lesson 07, each with the rule that says whether it is true."""

from gpulab.exercises._claims import Claim

_N_SAMPLES = 40
_SLOW_GPU = "on this GPU the kernels may take longer than Python needs to launch them"

CLAIMS = (
    Claim(
        "07.events-read-python",
        "A pair of events reads at least twice the time of a small kernel",
        unit="times",
        holds=lambda ratio: ratio >= 2,  # noqa: PLR2004  # as the sentence says
        because=_SLOW_GPU,
    ),
    Claim(
        "07.graph-faster",
        "A graph of ten small kernels takes at most half the time of ten launches",
        unit="times",
        holds=lambda ratio: ratio <= 0.5,  # noqa: PLR2004  # as the sentence says
        because=_SLOW_GPU,
    ),
    Claim(
        "07.full-queue",
        "The host is not ahead in all of 40 samples of 50 launches, however long the sleep is",
        unit="samples",
        holds=lambda n_ahead: n_ahead < _N_SAMPLES,
        because="the launch queue of this driver may take more than 2,000 launches",
    ),
)
