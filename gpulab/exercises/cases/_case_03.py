"""Case 03: a mean time of a GPU that lowers its clock during the measurement."""

from gpulab.device.work import Work
from gpulab.exercises._claims import Claim
from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Choice, Diagnosis, HiddenWork, Mended, like, reads


def heavy_matmul(n: int = 8192) -> Work:
    """Return a half-precision matmul that draws nearly all the power of the GPU."""
    import torch

    a = torch.randn(n, n, device="cuda", dtype=torch.float16)
    return lambda: a @ a


# Without a sleep in front, in which the clock would recover.
def _mean_s(work: Work, n_calls: int) -> float:
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]  # torch's gap
    torch.cuda.synchronize()
    start.record()
    for _ in range(n_calls):
        work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / n_calls


def _right(work: Work) -> float:
    _mean_s(work, 200)  # a third of a second: the clock settles within about 0.1 s of such work
    return _mean_s(work, 20)


def burst(work: Work) -> float:
    """Time only the first calls, at the full clock."""
    work()
    return _mean_s(work, 5)


EXERCISES = (
    Exercise(
        "case-03.flaw",
        "The post says that a run of hours takes its number of calls times the posted time. "
        "What is wrong?",
        Choice(
            right="d",
            why="The first calls run at the full clock. Then the power limit lowers it, and it "
            "stays low for hours. A mean of 50 calls mixes both and is the time of neither.",
            wrong={
                "a": Diagnosis(
                    "not-warm-up",
                    "One slow first call would make the mean too large. Here the late calls are "
                    "the slow ones.",
                ),
                "b": Diagnosis(
                    "not-noise",
                    "Look at the order of the samples: it is a step, and no noise. More calls "
                    "give another mean, not a more precise one.",
                ),
                "c": Diagnosis(
                    "not-the-launches",
                    "A call takes more than a millisecond and a launch some microseconds. The "
                    "host is far ahead.",
                ),
            },
        ),
        hints=(
            "Look at the times of the single calls, in their order.",
            "What else changes along with the times? gpulab.clocks.read() shows it.",
        ),
        choices={
            "a": "the first call should not count",
            "b": "50 calls are too few against the noise",
            "c": "the launches are timed as well",
            "d": "the mean mixes two clocks, and the run has only one of them",
        },
    ),
    Exercise(
        "case-03.mend",
        "Mend the program: write mended(work), the time of one call in a run that lasts for "
        "hours. It is tried on matmuls of other sizes, each on a cool GPU.",
        Mended(
            signature="mended(work)",
            returns="seconds of one call at the clock of a long run",
            why="For two matmuls that you had not seen, your number is the one that a long run "
            "has.",
            works=tuple(
                HiddenWork(f"a matmul of {n:,} x {n:,}", lambda n=n: (heavy_matmul(n),))  # type: ignore[misc]  # n is bound here
                for n in (8192, 9216)
            ),
            right=_right,
            mistakes=(
                (
                    like(burst),
                    Diagnosis(
                        "burst",
                        "That is the time of a cool GPU at its full clock. It is an honest number "
                        "for a short burst, or for a program with pauses, but the question is "
                        "about hours. Run the work until the clock has settled, then measure.",
                    ),
                ),
                (
                    # A burst reads 0.88 of the right time, so any mixture lies between that and 1.
                    reads(0.85, 1),
                    Diagnosis(
                        "mixed",
                        "Your number still contains calls at the full clock. Leave out all calls "
                        "from before the clock has settled.",
                    ),
                ),
                (
                    like(lambda work: _right(work) * 20),
                    Diagnosis("not-divided", "Divide the time by the number of calls."),
                ),
            ),
            show=lambda value: f"{1e3 * value:.4g} ms",
            # The posted mean is about 6 % too small, which the usual 10 % would accept.
            tolerance=0.02,
        ),
        hints=(
            "How many calls does it take until the times stay the same? See the figure.",
            "Call the work 200 times without timing, then time 50 calls.",
        ),
    ),
)

CLAIMS = (
    Claim(
        "case-03.too-short",
        "A call of a long run takes longer than the posted mean",
        unit="times",
        holds=lambda ratio: ratio > 1.01,  # noqa: PLR2004  # more than noise
        because="this GPU may have power to spare and keep its clock",
    ),
)
