"""The claims of lesson 08, each with the rule that says whether it is true."""

from gpulab.exercises._claims import Claim

CLAIMS = (
    Claim(
        "08.no-fence",
        "A sleep in the default stream runs beside sleeps in side streams; together they take "
        "this share of the time that they take one by one",
        holds=lambda share: share < 0.75,  # noqa: PLR2004  # of three, a third is all
        because="these streams wait for the default stream, as CUDA's blocking streams do",
    ),
    Claim(
        "08.prefetch-is-faster",
        "Copying the next batch during the computing saves time; time over that of one by one",
        holds=lambda ratio: ratio < 1,
        because="the copies or the launches take all the time, so there is nothing to hide",
    ),
    Claim(
        "08.caller-waits",
        "The optimizer finds the gradients if backward() was called under its own stream, and "
        "not if it was called under another one; the two weights",
        holds=lambda weights: weights == "-2 and 1",
        because="the gradients were ready in time by luck, or this PyTorch waits for more",
    ),
)
