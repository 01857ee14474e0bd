"""The claims of lesson 05, each with the rule that says whether it is true."""

from gpulab.exercises._claims import Claim

_LIMIT = "this GPU may draw more power than the matmul needs, so its clock did not fall"

CLAIMS = (
    Claim(
        "05.slower-later",
        "After a second of matmuls, a call takes longer than at the start",
        unit="times",
        holds=lambda ratio: ratio > 1.03,  # noqa: PLR2004  # more than a clock moves anyway
        because=_LIMIT,
    ),
    Claim(
        "05.rest-restores",
        "After heavy work, a rest below 0.3 s restores the clock of a burst",
        unit="s",
        holds=lambda rest_s: rest_s < 0.3,  # noqa: PLR2004  # as the sentence says
        because="the clock had not recovered after the shorter rests",
    ),
    Claim(
        "05.sequence-misleads",
        "B / A is larger when B is timed after A than when both are timed in turns",
        unit="times",
        holds=lambda ratio: ratio > 1.01,  # noqa: PLR2004  # a third of what B saves
        because=_LIMIT,
    ),
    Claim(
        "05.zeros-settle-higher",
        "Matmuls of zeros settle at a higher clock than those of random numbers",
        unit="times",
        holds=lambda ratio: ratio > 1.03,  # noqa: PLR2004  # more than a clock moves anyway
        because="a GPU below its power limit has no reason to change its clock",
        differs="The power of a real GPU depends on the data. The virtual GPU does not look at "
        "them.",
    ),
)
