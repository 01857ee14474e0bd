"""What a stopwatch without a wait reads, and what makes it right by accident."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from gpulab.exercises._exercise import Exercise, Verdict, is_open
from gpulab.exercises.answers import Choice, Diagnosis, Letters, malformed, read_number, unanswered

_MISSED_COPY = Diagnosis(
    "missed-copy",
    "You left out an ordinary copy between host and GPU. Without pinned memory and "
    "non_blocking=True the call returns when the copy is done, and the copy waits for the "
    "multiplication in front of it.",
)

HIDDEN_SYNC = Exercise(
    "01.hidden-sync",
    "One line stands in the place of LINE. With which lines does the reading hold the whole "
    "multiplication, although nobody calls synchronize?\n\n"
    "    t0 = time.perf_counter()\n"
    "    y = x @ x              # on the GPU\n"
    "    LINE\n"
    "    t1 = time.perf_counter()",
    Letters(
        right=frozenset("acefg"),
        why="Each of them needs a value from the GPU, or an ordinary copy, and so waits for the "
        "multiplication: a hidden synchronization. The reading then also holds what the line "
        "itself does.",
        wrongly_in={
            "b": Diagnosis(
                "metadata",
                "b: the host knows the shape without asking the GPU; nothing is waited for.",
            ),
            "d": Diagnosis(
                "another-launch",
                "d: relu is one more launch. It goes into the queue behind the multiplication, "
                "and the host goes on.",
            ),
            "h": Diagnosis(
                "non-blocking-copy",
                "h: the memory is pinned and the copy non_blocking, so it is only put into the "
                "queue. The host returns before anything was copied.",
            ),
        },
        missing={
            "a": Diagnosis(
                "missed-item",
                "You left out .item(): it gives a Python number, and the host has no number "
                "before the GPU has computed it.",
            ),
            "f": Diagnosis(
                "missed-branch",
                "You left out a branch: the host cannot take it before it knows the value, so "
                "`if` waits for the GPU.",
            ),
            "c": Diagnosis(
                "missed-print",
                "You left out print: the digits have to come from the GPU first, so it waits.",
            ),
            "e": _MISSED_COPY,
            "g": _MISSED_COPY,
        },
    ),
    hints=(
        "Ask of each line: could the host go on without knowing a result?",
        "Five lines wait. Of the two copies in which h takes part, one does not.",
    ),
    choices={
        "a": "`y.sum().item()`",
        "b": "`y.shape`",
        "c": "`print(y[0, 0])`",
        "d": "`z = torch.relu(y)`",
        "e": "`h = y.cpu()`",
        "f": "`if (y > 0).any(): pass`",
        "g": "`y.copy_(h)`, where h is an ordinary CPU tensor",
        "h": "`h.copy_(y, non_blocking=True)`, where h is a pinned CPU tensor",
    },
)

WHAT_WAS_TIMED = Exercise(
    "01.what-was-timed",
    "Look at the two lines of your plot: from n = 64 to n = 8192 the naive reading of x @ x "
    "hardly changes, while the true time grows as n³. What did the naive reading time?",
    Choice(
        right="b",
        why="The host puts a multiplication into the queue and goes on. That takes the same few "
        "microseconds whatever n is, because no element is touched.",
        wrong={
            "a": Diagnosis(
                "parallel-myth",
                "Being parallel makes the GPU fast, not free: the other line of the plot is the "
                "same multiplication on the same GPU, and it grows. You timed the launch, not "
                "the kernel.",
            ),
            "c": Diagnosis(
                "start-of-kernel",
                "The host does not know when the GPU begins, and does not ask. With a long queue "
                "the kernel begins long after the second reading of the clock.",
            ),
            "d": Diagnosis(
                "transfer",
                "Nothing was transferred: y stays on the GPU. A transfer would also grow, as n².",
            ),
        },
    ),
    hints=(
        "What does the host do that is the same for 64 and for 8192?",
        "When x @ x returns, has any element of y been computed?",
    ),
    choices={
        "a": "The multiplication: the GPU does all elements at the same time.",
        "b": "What the host does to put the multiplication into the queue.",
        "c": "The time until the GPU began with the multiplication.",
        "d": "The transfer of the result to the host.",
    },
)

# An H200 blocked at the 1,022nd pending launch; other drivers differ by a few.
_USUAL_RANGE = (1000.0, 1050.0)
_TOLERANCE = 0.05
_FAR_LONGER, _SLOWER, _STAYS = 100, 1.8, 21


@dataclass(frozen=True, slots=True)
class QueueLength:
    """Judges a count of launches against the first call that took much longer than the rest."""

    how: str = (
        "Answer with a whole number of launches; pass your own times of the calls, in seconds, "
        "as readings=."
    )

    def __call__(self, answer: object, readings: object = None) -> Verdict:
        """Judge a number of launches."""
        if is_open(answer):
            return unanswered(self.how)
        number = None if isinstance(answer, str) else read_number(answer)
        if number is None:
            return malformed(answer, self.how)
        durations_s = _seconds(readings)
        expected = first_blocked(durations_s) if durations_s else None
        if durations_s and expected is None:
            message = "In these readings no call had to wait: queue more work in front of them."
            return Diagnosis("never-blocked", message).verdict()
        low, high = _range(expected)
        if low <= number <= high:
            return Verdict(ok=True, message=_FITS)
        return _diagnose_length(number, expected, len(durations_s), low).verdict()


_FITS = (
    "So many launches were waiting when the next one found the queue full. From there on a "
    "launch takes as long as the GPU needs to finish one, so a naive reading in a long loop "
    "comes right by accident."
)


def first_blocked(durations_s: Sequence[float]) -> int | None:
    """Count the launches before the first one that was blocked; None if none was.

    The queue blocks at the longest call when it is far longer than all others, for one long
    kernel stood in front; else where the calls become, and stay, about twice as slow. A single
    slow call in between is the operating system's.
    """
    if len(durations_s) <= _STAYS:
        return None
    usual_s = median(durations_s[1:101])  # the first call may pay for a first use
    longest = max(range(1, len(durations_s)), key=durations_s.__getitem__)
    if durations_s[longest] > _FAR_LONGER * usual_s:
        return longest
    starts = range(1, len(durations_s) - _STAYS)
    slow = (i for i in starts if median(durations_s[i : i + _STAYS]) > _SLOWER * usual_s)
    # The median of a window turns when half of it is slow: the change is in its middle.
    middle = next(slow, None)
    return None if middle is None else middle + _STAYS // 2


def _seconds(readings: object) -> list[float]:
    """Read durations from a sequence, a Measurement or a frame."""
    values = getattr(readings, "samples_s", readings)
    values = getattr(values, "duration_s", values)  # a frame's column
    return [float(value) for value in values] if isinstance(values, Iterable) else []


def _range(expected: int | None) -> tuple[float, float]:
    if expected is None:
        return _USUAL_RANGE
    return expected * (1 - _TOLERANCE) - 1, expected * (1 + _TOLERANCE) + 1


def _diagnose_length(number: float, expected: int | None, n_calls: int, low: float) -> Diagnosis:
    if number < 1:
        return Diagnosis(
            "duration",
            f"{number:g} looks like a duration. Asked is how many launches were made before one "
            "had to wait: the position on the horizontal axis, not the height.",
        )
    if n_calls and number == n_calls:
        return Diagnosis(
            "all-launches",
            f"{n_calls:,} is the number of all launches. The queue holds those that were made "
            "before one had to wait: look for the jump.",
        )
    if expected and abs(number - (n_calls - expected)) <= _TOLERANCE * expected:
        return Diagnosis(
            "blocked-calls",
            "You counted the calls that had to wait. The queue holds those that did not: count "
            "up to the jump.",
        )
    if number < low:
        message = "Too few: at this launch the host was not blocked yet. Look for the jump."
        return Diagnosis("too-few", message)
    message = "Too many: an earlier launch was already blocked. Look for the first slow call."
    return Diagnosis("too-many", message)


QUEUE_LENGTH = Exercise(
    "01.queue-length",
    "You launched the same kernel again and again, behind work that keeps the GPU busy, and "
    "timed each call on the host. How many launches fit into the queue before one has to wait?",
    QueueLength(),
    hints=(
        "Plot the time of each call against its number: plots.call_times does.",
        "The first call that takes many times longer than those before it found the queue full.",
    ),
)

EXERCISES = (HIDDEN_SYNC, WHAT_WAS_TIMED, QUEUE_LENGTH)
