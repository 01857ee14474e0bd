"""The claims of lesson 03, each with the rule that says whether it is true."""

from gpulab.exercises._claims import Claim

_NOTICEABLE = 1.2  # a ratio of two readings that differ for a reason

CLAIMS = (
    Claim(
        "03.floor-above-empty",
        "The floor of a kernel is larger than the reading of an empty pair",
        unit="times",
        holds=lambda ratio: ratio > _NOTICEABLE,
        because="the events of this GPU are close together",
    ),
)
