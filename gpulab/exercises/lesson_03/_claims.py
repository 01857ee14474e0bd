"""The claims of lesson 03, each with the rule that says whether it is true."""

from gpulab.exercises._claims import Claim

_NOTICEABLE = 1.2  # a ratio of two readings that differ for a reason
_DIFFERENT_S = 0.5e-6  # more than events and records scatter

CLAIMS = (
    Claim(
        "03.empty-queue-reads-more",
        "A wait in each iteration makes the pairs read more",
        unit="times",
        holds=lambda ratio: ratio > _NOTICEABLE,
        because="the kernel takes longer than its launch on this GPU",
    ),
    Claim(
        "03.floor-above-empty",
        "The floor of a kernel is larger than the reading of an empty pair",
        unit="times",
        holds=lambda ratio: ratio > _NOTICEABLE,
        because="the events of this GPU are close together",
    ),
    Claim(
        "03.floors-differ",
        "The floor is not the same for all work",
        unit="µs",
        holds=lambda range_s: range_s > _DIFFERENT_S,
        because="the floors differ too little to see on this GPU",
        differs="The recorded GPU adds more to a copy than to a kernel. The virtual GPU has one "
        "floor for all work.",
    ),
)
