"""The claims of lesson 05, each with the rule that says whether it is true."""

from gpulab.exercises._claims import Claim

CLAIMS = (
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
