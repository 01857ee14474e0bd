"""The numbers that the exercises on warm-up are about, each made by a known rule."""

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


Trap = Literal["", "late outlier", "lucky sample"]

_N = 60
_NOISE = 0.004  # of each reading, about what a quiet GPU shows

# Calls on a virtual H200, and how long the host was blocked; the GPU was idle before and after.
_CALLS = {
    "a": (
        ("torch.cuda.synchronize()", 334e-3),
        ("torch.cuda.synchronize()", 4.05e-6),
        ("torch.cuda.synchronize()", 4.05e-6),
        ("torch.cuda.synchronize()", 4.05e-6),
    ),
    "b": (
        ("x.exp_()", 414e-6),
        ("x.exp_()", 13.5e-6),
        ("x.sin_()", 414e-6),
        ("y.exp_(), another size", 12.8e-6),
    ),
    "c": (
        ("a @ a, float32", 106e-3),
        ("a @ a, float32", 64.2e-6),
        ("h @ h, float16", 76.4e-3),
        ("h @ h, float16", 20.0e-6),
    ),
    "d": (
        ("p = torch.empty(64 MB)", 1.04e-3),
        ("q = torch.empty(64 MB)", 38.0e-6),
        ("del p; p = torch.empty(64 MB)", 5.75e-6),
        ("r = torch.empty(64 MB)", 38.0e-6),
    ),
    "e": (
        ("searched(56 x 56)", 889e-6),
        ("searched(56 x 56)", 58.1e-6),
        ("searched(64 x 64)", 1.09e-3),
        ("searched(56 x 56)", 58.1e-6),
    ),
}
# Thirteen calls of one work; in two of them the host was disturbed.
_SAMPLES_US = (40.9, 41.2, 40.7, 41.4, 2310.0, 41.0, 40.8, 41.3, 41.1, 43.9, 41.5, 1180.0, 41.2)
SAMPLES_S = tuple(sample_us * 1e-6 for sample_us in _SAMPLES_US)


class WarmUpTrace(NamedTuple):
    """Iterations in the order taken, and the first ones that may be called steady.

    Attributes
    ----------
    name
        What happens in it.
    samples_s
        Seconds of each iteration.
    first, last
        The right answers, from the boldest to the most careful.
    trap
        What a hasty rule falls for in it: one slow sample after the start, or one fast sample
        before it.
    """

    name: str
    samples_s: tuple[float, ...]
    first: int
    last: int
    trap: Trap = ""


def calls() -> "pd.DataFrame":
    """Return one row a trace of first uses, each call with the time that it took."""
    import pandas as pd

    from gpulab.units import format_time

    names = ("first call", "second call", "third call", "fourth call")
    rows = [
        (trace, *(f"{what}: {format_time(duration_s)}" for what, duration_s in steps))
        for trace, steps in _CALLS.items()
    ]
    return pd.DataFrame(rows, columns=["trace", *names])


def samples() -> "pd.DataFrame":
    """Return thirteen calls, two of them outliers."""
    import pandas as pd

    return pd.DataFrame({"call": range(1, len(SAMPLES_S) + 1), "duration_s": SAMPLES_S})


def traces() -> tuple[WarmUpTrace, ...]:
    """Return the loops whose steady state the exercise asks for."""
    index = np.arange(_N)
    late = np.ones(_N)
    late[:2], late[31] = (8.0, 3.0), 20.0
    lucky = np.where(index < 8, 3.0, 1.0)  # noqa: PLR2004  # as its answer
    lucky[3] = 1.0
    one = np.where(index < 1, 700.0, 1.0)
    chain = np.ones(_N)
    chain[:5] = (1500.0, 80.0, 480.0, 350.0, 5.0)
    decay = 1 + 3 * np.exp(-index / 5)
    return (
        _trace("one slow call", 150e-6, one, 1, 10),
        _trace("five first uses", 600e-6, chain, 5, 14),
        _trace("slow decay", 2e-3, decay, 16, 35),
        _trace("one late outlier", 40e-6, late, 2, 20, "late outlier"),
        _trace("a lucky call", 8e-3, lucky, 8, 17, "lucky sample"),
        _trace("still moving", 12e-6, 1 + index / 100, _N, _N),
    )


def to_frame() -> "pd.DataFrame":
    """Return all traces with the columns ``iteration``, ``duration_s`` and ``series``."""
    import pandas as pd

    rows = [(i, s, trace.name) for trace in traces() for i, s in enumerate(trace.samples_s)]
    return pd.DataFrame(rows, columns=["iteration", "duration_s", "series"])


def two_runs() -> "pd.DataFrame":
    """Return two runs whose histograms both have two humps; each hump is a virtual H200's.

    Columns are ``iteration``, ``duration_s`` and ``series``. Run a is a half-precision matmul
    of 8192 x 8192 numbers, while the clock falls; run b an addition that finds its data in the
    cache in six of ten calls. Where one hump ends, and the noise, are made up.
    """
    import pandas as pd

    generator = np.random.default_rng(4)
    noise = 1 + _NOISE * generator.standard_normal((2, _N))
    falls = np.where(np.arange(_N) < 0.4 * _N, 1.413e-3, 1.641e-3) * noise[0]
    misses = np.where(generator.random(_N) < 0.4, 8.4e-6, 4.9e-6) * noise[1]  # noqa: PLR2004  # share
    rows = [(i, s, "run a") for i, s in enumerate(falls)]
    rows += [(i, s, "run b") for i, s in enumerate(misses)]
    return pd.DataFrame(rows, columns=["iteration", "duration_s", "series"])


def _trace(  # noqa: PLR0913, PLR0917  # a row of the table above
    name: str, level_s: float, shape: "np.ndarray", first: int, last: int, trap: Trap = ""
) -> WarmUpTrace:
    # Its own seed by its length in letters, so that one trace can change without the others.
    noise = 1 + _NOISE * np.random.default_rng(len(name)).standard_normal(_N)
    return WarmUpTrace(name, tuple((level_s * shape * noise).tolist()), first, last, trap)
