"""The claims of lesson 02, each with the rule that says whether it is true."""

from gpulab.exercises._claims import Claim

_NOTICEABLE = 1.05  # a ratio of two readings that differ for a reason

CLAIMS = (
    Claim(
        "02.backlog-is-charged",
        "Without a wait before the first reading, the backlog is in the reading",
        unit="times",
        holds=lambda ratio: ratio > _NOTICEABLE,
        because="the GPU finished the other work while Python was launching it",
    ),
    Claim(
        "02.waiting-for-nothing",
        "A wait takes time even if there is nothing to wait for",
        unit="µs",
        holds=lambda wait_s: wait_s > 0,
        because="the clock did not move",
    ),
    Claim(
        "02.waits-slow-a-model",
        "A wait after each layer makes a model slower",
        unit="times",
        holds=lambda ratio: ratio > _NOTICEABLE,
        because="each layer takes so long on this GPU that the waits do not matter",
    ),
)
