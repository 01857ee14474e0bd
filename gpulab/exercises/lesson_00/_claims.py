"""The claims of lesson 00, each with the rule that says whether it is true."""

from gpulab.exercises._claims import Claim

CLAIMS = (
    Claim(
        "00.matmul-grows",
        "Twice the side takes about eight times as long",
        unit="times",
        holds=lambda ratio: 6 < ratio < 10,  # noqa: PLR2004  # about eight
        because="one of the two sizes uses this GPU better than the other",
    ),
)
