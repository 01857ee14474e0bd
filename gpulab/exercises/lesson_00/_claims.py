"""The claims of lesson 00, each with the rule that says whether it is true."""

from gpulab.exercises._claims import Claim

_RECORDED_S = 339e-6  # the matmul of the recording of an H200 that gpulab ships

CLAIMS = (
    Claim(
        "00.matmul-agrees",
        "A matmul of 2048 x 2048 takes about as long as on the recorded H200",
        unit="µs",
        holds=lambda time_s: _RECORDED_S / 1.5 < time_s < _RECORDED_S * 1.5,
        because="your GPU is faster or slower than an H200",
    ),
    Claim(
        "00.matmul-grows",
        "Twice the side takes about eight times as long",
        unit="times",
        holds=lambda ratio: 6 < ratio < 10,  # noqa: PLR2004  # about eight
        because="one of the two sizes uses this GPU better than the other",
    ),
)
