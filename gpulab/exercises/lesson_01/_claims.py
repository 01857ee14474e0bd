"""The claims of lesson 01, each with the rule that says whether it is true."""

from gpulab.exercises._claims import Claim

CLAIMS = (
    Claim(
        "01.follows-no-work",
        "From n = 64 to n = 8192 the naive reading grows less than a tenth as much as the time of "
        "the work",
        unit="of the growth",
        holds=lambda share: share < 0.1,  # noqa: PLR2004  # as the sentence says
        because="something made the launch wait, such as a full queue",
    ),
)
