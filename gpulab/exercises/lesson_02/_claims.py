"""The claims of lesson 02, each with the rule that says whether it is true."""

from gpulab.exercises._claims import Claim

_NOTICEABLE = 1.05  # a ratio of two readings that differ for a reason

CLAIMS = (
    Claim(
        "02.waits-slow-a-model",
        "A wait after each layer makes a model slower",
        unit="times",
        holds=lambda ratio: ratio > _NOTICEABLE,
        because="each layer takes so long on this GPU that the waits do not matter",
    ),
)
