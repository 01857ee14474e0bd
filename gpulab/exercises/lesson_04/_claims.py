"""The claims of lesson 04, each with the rule that says whether it is true."""

from gpulab.exercises._claims import Claim

_SLOW = 3.0  # times as long as the second call
_FAR_SLOWER = 10.0
_PROMISED = 85.0  # percent; 50 intervals of 95 % rarely fall below it

CLAIMS = (
    Claim(
        "04.cudnn-searches",
        "With cudnn.benchmark the first call of a new shape is slow",
        unit="times",
        holds=lambda ratio: ratio > _SLOW,
        because="cuDNN remembers the shapes that it has seen; restart the kernel",
        differs="The virtual GPU has one algorithm for a convolution, so it does not search.",
    ),
    Claim(
        "04.compile-first",
        "The first call of a compiled function is far slower than the second",
        unit="times",
        holds=lambda ratio: ratio > _FAR_SLOWER,
        because="nothing was compiled: some machines have no compiler",
        differs="The virtual GPU runs the function as it is written and compiles nothing.",
    ),
    Claim(
        "04.intervals-need-independence",
        "Intervals of samples that depend on each other contain the median too rarely",
        unit="%",
        holds=lambda percent: percent < _PROMISED,
        because="the lengths of the batches did not dominate the times",
    ),
)
