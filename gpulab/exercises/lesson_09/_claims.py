"""The claims of lesson 09, each with the rule that says whether it is true."""

from gpulab.exercises._claims import Claim

CLAIMS = (
    Claim(
        "09.launch-is-flat",
        "The naive reading of a matmul hardly grows from n = 64 to n = 2,048, while the work "
        "grows 32,768 times; large over small",
        holds=lambda ratio: ratio < 3,  # noqa: PLR2004  # a launch may vary
        because="the queue was full, so the launch waited for the GPU",
    ),
    Claim(
        "09.cpu-wins-small",
        "One thread of the CPU is faster than the GPU for a matmul of n = 64; CPU time over GPU "
        "time",
        holds=lambda ratio: ratio < 1,
        because="other programs held up the CPU, or its launches are cheap beside its arithmetic",
    ),
)
