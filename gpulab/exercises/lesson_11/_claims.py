"""The claims of lesson 11, each with the rule that says whether it is true."""

from gpulab.exercises._claims import Claim

CLAIMS = (
    Claim(
        "11.profiler-costs",
        "A training step takes longer while it is profiled; by how much",
        unit="%",
        holds=lambda percent: percent > 0,
        because=(
            "the step may be bound by the GPU here, and then slower launches do not show; or "
            "other programs disturbed the host"
        ),
    ),
    Claim(
        "11.totals-overlap",
        "The CPU totals of all rows add up to more than the step",
        unit="times",
        holds=lambda ratio: ratio > 1,
        because="no operator may contain another one here",
    ),
    Claim(
        "11.step-partly-idle",
        "The GPU is idle for at least a quarter of the profiled step",
        unit="%",
        holds=lambda percent: percent >= 25,  # noqa: PLR2004  # as the sentence says
        because="this GPU may need longer for the kernels than Python for their launches",
    ),
    Claim(
        "11.pinned-copy-overlaps",
        "A copy from pinned memory on a second stream runs beside a matmul for over half its time",
        unit="%",
        holds=lambda percent: percent > 50,  # noqa: PLR2004  # as the sentence says
        because="the matmul may be over before the copy begins, on a fast GPU or a slow host",
    ),
)
