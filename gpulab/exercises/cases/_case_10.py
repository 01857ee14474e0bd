"""Case 10: a loop that times launches, first into an empty queue and then into a full one."""

import time
from math import inf
from statistics import median

from gpulab.core.units import format_time
from gpulab.device.work import Work
from gpulab.exercises._claims import Claim
from gpulab.exercises._exercise import Exercise
from gpulab.exercises._gpu_work import device_s, spinning
from gpulab.exercises.answers import Choice, Diagnosis, HiddenWork, Mended, like, reads

_N_POSTED = 1500  # more than the launch queue takes, which is about a thousand


def kernel(length_us: float = 60.0) -> Work:
    """Return a kernel that takes about ``length_us`` at 1,980 MHz."""
    return spinning(length_us / 1e3)


def as_posted(work: Work) -> float:
    """Return the median time of the launches, as the published program does."""
    samples = []
    for _ in range(_N_POSTED):
        start = time.perf_counter()
        work()
        samples.append(time.perf_counter() - start)
    return median(samples)


def wait_each_call(work: Work) -> float:
    """Wait after each call, so that every sample contains the launch and the wake-up."""
    import torch

    samples = []
    for _ in range(20):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        samples.append(time.perf_counter() - start)
    return median(samples)


EXERCISES = (
    Exercise(
        "case-10.flaw",
        "What happens at about the thousandth call?",
        Choice(
            right="c",
            why="The queue takes about a thousand launches. Until then a call returns at once; "
            "after that it must wait until the GPU has finished one. The kernel is the same "
            "length all the time.",
            wrong={
                "a": Diagnosis(
                    "no-leak",
                    "The kernel allocates nothing, and memory does not grow. What else can fill "
                    "up?",
                ),
                "b": Diagnosis(
                    "no-heat",
                    "A clock falls by some percent. Here the time grows tenfold in one step. And "
                    "before the step: can a kernel be that short?",
                ),
                "d": Diagnosis(
                    "not-python",
                    "Python's collector runs now and then, and a later call is fast again. Here "
                    "all later calls are slow.",
                ),
            },
        ),
        hints=(
            "Wait for the GPU after every 500 calls. Is the step still there?",
            "A launch is an entry in a queue. Queues have a length.",
        ),
        choices={
            "a": "memory leaks, and the allocator becomes slow",
            "b": "the GPU becomes hot and lowers its clock",
            "c": "the launch queue is full, and each launch has to wait for a place",
            "d": "Python's garbage collector starts",
        },
    ),
    Exercise(
        "case-10.mend",
        "Mend the program: write mended(work), the time of one call on the GPU. It is tried with "
        "a shorter and a longer kernel.",
        Mended(
            signature="mended(work)",
            returns="seconds that one call takes on the GPU",
            why="Your number is the kernel's, for the short one too.",
            works=(
                # So short that a launch and a wake-up in each sample show.
                HiddenWork("a kernel of 25 µs", lambda: (kernel(25.0),)),
                HiddenWork("a kernel of 90 µs", lambda: (kernel(90.0),)),
            ),
            right=device_s,
            mistakes=(
                (
                    like(as_posted),
                    Diagnosis(
                        "launch",
                        "That is the time of a launch into an empty queue. Wait for the GPU "
                        "before you stop the clock, or use events.",
                    ),
                ),
                (
                    reads(-inf, 0.9),
                    Diagnosis(
                        "mean-of-both",
                        "That is less than the kernel takes, as a mean of launches is, some "
                        "of which find an empty queue. Such a number changes with the number of "
                        "calls, so it is no property of the kernel.",
                    ),
                ),
                (
                    like(wait_each_call),
                    Diagnosis(
                        "wait-each-call",
                        "You wait after each call. Then launch and wake-up are in each sample: "
                        "too much for a short kernel. Wait once after many calls, or use events.",
                    ),
                ),
                (
                    # Milliseconds are too large as well, and have a diagnosis of their own.
                    lambda trial: reads(10, inf)(trial) and not trial.is_in_unit(1e3),
                    Diagnosis("not-divided", "Divide the time of the loop by its calls."),
                ),
            ),
            show=format_time,
            tolerance=0.1,
            # Events may add this to a kernel; a wait in each call adds more than twice as much.
            floor=3e-6,
        ),
        hints=(
            "A stopwatch around 200 calls, with a wait before and after, divided by 200.",
            "Or an event before and after, elapsed_time, and one wait.",
        ),
    ),
)

CLAIMS = (
    Claim(
        "case-10.step",
        "The calls after the thousandth take at least five times as long as the first ones",
        unit="times",
        holds=lambda ratio: ratio >= 5,  # noqa: PLR2004  # as the sentence says
        because="the queue may be longer here, or a launch slower",
    ),
)
