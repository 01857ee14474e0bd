"""The claims of lesson 12, some of them published ones, each with a rule that tests it."""

from gpulab.exercises._claims import Claim

CLAIMS = (
    Claim(
        "12.mixed-precision",
        "Under autocast a large matmul is at least twice as fast as in float32",
        unit="times",
        holds=lambda ratio: ratio >= 2,  # noqa: PLR2004  # as the sentence says
        because="this GPU may have no tensor cores for bfloat16",
    ),
    Claim(
        "12.no-default-fence",
        "Kernels on side streams and on the default stream of PyTorch overlap",
        unit="times one of them",
        holds=lambda ratio: ratio < 1.5,  # noqa: PLR2004  # one after the other would be 3
        because="the streams may share one queue of the hardware here",
    ),
    Claim(
        "12.one-wait-is-enough",
        "On an idle GPU one wait after the work is enough",
        unit="times the kernel",
        holds=lambda ratio: 0.8 < ratio < 1.5,  # noqa: PLR2004  # launch and wake-up, clock
        because="the host may be slow at launching, or the clock may have changed",
    ),
    Claim(
        "12.pageable-blocks",
        "A non_blocking copy from ordinary memory blocks the host far longer than a pinned one",
        unit="times",
        holds=lambda ratio: ratio > 10,  # noqa: PLR2004  # far
        because="the copy may be so short that the launch takes most of its time",
    ),
    Claim(
        "12.shifted-view",
        "A large addition of a view that is not aligned takes about as long: the memory is the "
        "limit",
        unit="times",
        holds=lambda ratio: ratio < 1.05,  # noqa: PLR2004  # about
        because="the arithmetic of this GPU may be slow beside its memory",
    ),
)
