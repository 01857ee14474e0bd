"""The claims of lesson 06, each with the rule that says whether it is true."""

from gpulab.exercises._claims import Claim

_SAME = 1.05  # two times count as equal up to this ratio

CLAIMS = (
    Claim(
        "06.rotation-pays",
        "In rotation a softmax takes longer than after a flush that reads",
        unit="times",
        holds=lambda ratio: ratio > _SAME,
        because="the results of the softmax before it may not wait in the cache of this GPU",
    ),
)
