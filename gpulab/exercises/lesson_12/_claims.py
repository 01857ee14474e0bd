"""The claims of lesson 12, some of them published ones, each with a rule that tests it."""

from gpulab.exercises._claims import Claim

_MORE = 1.02  # a larger ratio is no noise in these measurements

CLAIMS = (
    Claim(
        "12.data",
        "Random numbers take longer than zeros in the same matmul",
        unit="times",
        holds=lambda ratio: ratio > _MORE,
        because="the power is no limit here, or the virtual GPU does not look at the data",
        differs="The power of a real GPU depends on the data. The virtual GPU does not look at "
        "them.",
    ),
    Claim(
        "12.order-alone",
        "A function that is timed second is slower than itself timed first; by how much",
        unit="%",
        holds=lambda percent: percent > 2,  # noqa: PLR2004  # a larger one is no noise
        because="the clock of this GPU may not fall under such a load, or falls more slowly",
    ),
    Claim(
        "12.allocator",
        "A call that gets its memory from the driver takes longer than one that reuses it",
        unit="times",
        holds=lambda ratio: ratio > _MORE,
        because="this driver may return memory faster than the call can be timed",
    ),
    Claim(
        "12.contention",
        "A matmul takes longer while another stream runs one, too",
        unit="times",
        holds=lambda ratio: ratio > _MORE,
        because="the other kernel may leave enough multiprocessors free here",
    ),
    Claim(
        "12.placement",
        "With a cold cache one row times a matrix takes longer than with a hot one",
        unit="times",
        holds=lambda ratio: ratio > _MORE,
        because="the L2 cache of this GPU may be too small for the matrix",
    ),
    Claim(
        "12.odd-size",
        "A half-precision matmul of size 2,049 takes over 1.2 times as long as one of 2,048",
        unit="times",
        holds=lambda ratio: ratio > 1.2,  # noqa: PLR2004  # as the sentence says
        because="the library may have a kernel for unaligned rows that is as fast here",
    ),
    Claim(
        "12.transposed-slower",
        "A transposed copy takes longer than a contiguous one",
        unit="times",
        holds=lambda ratio: ratio > _MORE,
        because="the copy may go through shared memory here",
    ),
    Claim(
        "12.random-order",
        "A gather in random order takes longer than one in order",
        unit="times",
        holds=lambda ratio: ratio > _MORE,
        because="the virtual GPU counts the bytes of a gather, and no sectors",
        differs="A real GPU reads whole sectors, also if it needs one number of each. The "
        "virtual GPU counts only the bytes of a gather.",
    ),
    Claim(
        "12.batching",
        "One foreach operator is faster than 200 launches",
        unit="times",
        holds=lambda ratio: ratio > _MORE,
        because="the host may launch as fast as the GPU works here",
    ),
    Claim(
        "12.fusion",
        "GELU by hand takes at least three times as long as the fused kernel",
        unit="times",
        holds=lambda ratio: ratio >= 3,  # noqa: PLR2004  # as the sentence says
        because="the cache of this GPU may hold what goes from kernel to kernel",
    ),
    Claim(
        "12.channels-last",
        "A half-precision convolution is faster with channels_last",
        unit="times",
        holds=lambda ratio: ratio > _MORE,
        because="the library may convert the layout, or know a fast kernel for both",
    ),
    Claim(
        "12.mixed-precision",
        "Under autocast a large matmul is at least twice as fast as in float32",
        unit="times",
        holds=lambda ratio: ratio >= 2,  # noqa: PLR2004  # as the sentence says
        because="this GPU may have no tensor cores for bfloat16",
    ),
    Claim(
        "12.no-listing-runs",
        "None of the three listings runs",
        unit="raise",
        holds=lambda n_raised: n_raised == 3,  # noqa: PLR2004  # as the sentence says
        because="this version of PyTorch may accept one of them",
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
        "12.context",
        "The first call of CUDA takes 100 to 500 ms",
        unit="ms",
        holds=lambda seconds: 0.1 <= seconds <= 0.5,  # noqa: PLR2004  # as the sentence says
        because="the driver may be loaded already, or this machine be slower or faster",
    ),
    Claim(
        "12.launch-jitter",
        "The slowest percent of launches takes at least 1.2 times the median",
        unit="times",
        holds=lambda ratio: ratio >= 1.2,  # noqa: PLR2004  # as the sentence says
        because="the virtual GPU's host is always equally fast, and an idle host nearly so",
        differs="Other programs disturb a real host. The virtual host is always equally fast.",
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
