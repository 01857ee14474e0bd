"""The claims of lesson 10, each with the rule that says whether it is true."""

from gpulab.exercises._claims import Claim

CLAIMS = (
    Claim(
        "10.copy-below-sheet",
        "A large copy stays below the bandwidth of the data sheet",
        unit="%",
        holds=lambda share: share < 100,  # noqa: PLR2004  # percent
        because="no data sheet is known for this GPU, or its memory runs at another clock",
    ),
    Claim(
        "10.floor",
        "An addition of 1,024 elements takes many times the time of its bytes; how many",
        holds=lambda ratio: ratio > 10,  # noqa: PLR2004  # many
        because="this GPU starts kernels in less time than any GPU that was measured",
    ),
    Claim(
        "10.wave",
        "One row more than fills a wave makes a matmul slower; by how much",
        unit="%",
        holds=lambda percent: percent > 2,  # noqa: PLR2004  # more than the intervals
        because="the library cuts this matmul into other tiles here",
    ),
    Claim(
        "10.softmax-is-no-copy",
        "Softmax takes longer than a copy of the same bytes; time over time",
        holds=lambda ratio: ratio > 1.05,  # noqa: PLR2004  # as above
        because="this library has a softmax as fast as its copies",
    ),
)
