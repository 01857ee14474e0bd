"""The claims of lesson 06, each with the rule that says whether it is true."""

from gpulab.exercises._claims import Claim

_SAME = 1.05  # two times count as equal up to this ratio
_SMALL_L2 = "the weights may not fit into the L2 of this GPU; choose a smaller WIDTH"

CLAIMS = (
    Claim(
        "06.cold-slower",
        "The linear layer takes longer with a cold cache than with a hot one",
        unit="times",
        holds=lambda ratio: ratio > _SAME,
        because=_SMALL_L2,
    ),
    Claim(
        "06.fresh-rows",
        "With a fresh row in each call the layer is as fast as with the same row",
        unit="times",
        holds=lambda ratio: ratio < _SAME,
        because=_SMALL_L2,
    ),
    Claim(
        "06.write-flush-slower",
        "After a flush that writes, the layer takes longer than after one that reads",
        unit="times",
        holds=lambda ratio: ratio > _SAME,
        because="the cache of this GPU may write back differently",
    ),
    Claim(
        "06.rotation-pays",
        "In rotation a softmax takes longer than after a flush that reads",
        unit="times",
        holds=lambda ratio: ratio > _SAME,
        because="the results of the softmax before it may not wait in the cache of this GPU",
    ),
)
