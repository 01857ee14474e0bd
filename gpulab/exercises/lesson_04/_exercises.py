"""Exercises of lesson 04: the cost of first calls, the steady state, and one number for many."""

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import BenchmarkJudge, Diagnosis, Table
from gpulab.exercises.lesson_04._one_number import ONE_NUMBER_JUDGE
from gpulab.exercises.lesson_04._steady_rule import SteadyRule
from gpulab.exercises.lesson_04.traces import calls, samples

_COSTS = ("context", "library", "kernel", "allocation", "search")


_KERNEL_OR_MEMORY = Diagnosis(
    "kernel-or-memory",
    "b and d: both take a millisecond or less, but they come back for different reasons. A new "
    "operation needs a kernel that is not loaded yet. A new tensor needs memory. exp_ and sin_ "
    "work in place, so they need none.",
)
_CONTEXT_OR_LIBRARY = Diagnosis(
    "context-or-library",
    "a and c: the very first call pays for the context, whatever it does, and no later call pays "
    "again. The cost in c comes a second time, for another type of number.",
)
_LIBRARY_OR_KERNEL = Diagnosis(
    "library-or-kernel",
    "b and c: one kernel loads in less than a millisecond. A matmul needs a library, with its "
    "handle and hundreds of kernels. That takes a hundred times as long.",
)
_SEARCH = Diagnosis(
    "search-or-load",
    "e: each new size is slow, and a size that comes back is fast. A loaded kernel works for "
    "every size: compare the last call of b.",
)
_NO_SEARCH = Diagnosis(
    "kernel-not-search",
    "b: sin_ has the same shape as exp_ and is slow. The last call has a new shape and is fast. "
    "So the slow calls have a new operation, not a new shape.",
)

NAME_THE_COST = Exercise(
    "04.name-the-cost",
    "Five traces, one after another, of a virtual H200 that was new. Each time is how long the "
    "host was blocked in the call. Which first-use cost does each trace show?",
    Table(
        right={"a": "context", "b": "kernel", "c": "library", "d": "allocation", "e": "search"},
        why="Ask what makes a cost come back. The context: nothing in this process. A library: "
        "another family of its kernels. A kernel: a new operation. An allocation: memory that "
        "PyTorch's cache does not have. A search: a new shape.",
        allowed=(_COSTS,),
        wrong={
            ("b", "allocation"): _KERNEL_OR_MEMORY,
            ("d", "kernel"): _KERNEL_OR_MEMORY,
            ("a", "library"): _CONTEXT_OR_LIBRARY,
            ("c", "context"): _CONTEXT_OR_LIBRARY,
            ("b", "library"): _LIBRARY_OR_KERNEL,
            ("c", "kernel"): _LIBRARY_OR_KERNEL,
            ("e", "kernel"): _SEARCH,
            ("e", "library"): _SEARCH,
            ("b", "search"): _NO_SEARCH,
        },
        otherwise=(
            Diagnosis(
                "wrong-cost",
                "Which of the four calls are slow? What is new in these, and only in these?",
            ),
        ),
    ),
    hints=(
        (
            "Mark the slow calls in each trace. What is new in them: everything, the operation, "
            "the type, the memory or the shape?"
        ),
        (
            "The sizes help: the context and a library take about a tenth of a second or more, "
            "the other three about a millisecond."
        ),
    ),
    readings=calls,
)


_OUTLIER = Diagnosis(
    "outlier-as-warm-up",
    "d: one slow call among fast ones is not warm-up. The median ignores it. How many calls are "
    "slow at the beginning?",
)
_MOVING = Diagnosis(
    "still-moving",
    "f: the times rise from the first call to the last, so no beginning is steady. More calls do "
    "not help. Say so beside the number.",
)
_LUCKY = Diagnosis(
    "one-lucky-call",
    "e: one fast call is followed by slow ones. Look for the call from which on all are fast.",
)
_TOO_EARLY = Diagnosis(
    "too-early", "c: the calls that follow still take clearly longer than those at the end."
)

WHERE_TO_BEGIN = Exercise(
    "04.where-to-begin",
    "After how many calls do you begin to count? Choose the smallest number that is enough for "
    'each loop, or "never" if the loop is not steady at its end.',
    Table(
        right={
            "a": "after 1",
            "b": "after 5",
            "c": "after 30",
            "d": "after 5",
            "e": "after 10",
            "f": "never",
        },
        why="You looked at the level at the end, and for the first calls in a row at this level. "
        "A single slow call does not matter to a median, and a single fast one is no beginning. A "
        "loop that still moves has no level.",
        allowed=(("after 1", "after 5", "after 10", "after 30", "never"),),
        wrong={
            **{("d", word): _OUTLIER for word in ("after 10", "after 30", "never")},
            **{("f", word): _MOVING for word in ("after 1", "after 5", "after 10", "after 30")},
            **{("e", word): _LUCKY for word in ("after 1", "after 5")},
            **{("c", word): _TOO_EARLY for word in ("after 1", "after 5", "after 10")},
        },
        otherwise=(
            Diagnosis(
                "wrong-count",
                "Where does the line reach its level at the end, and stay? The horizontal axis "
                "begins with 0, so its number is how many calls are before.",
            ),
        ),
    ),
    hints=(
        "The level is the thin line at 1. From which call on does the loop stay near it?",
        "A few calls too many are safe. Calls that are too early are in your number.",
    ),
)


STEADY_STATE = Exercise(
    "04.steady-state",
    "Six loops were timed call by call. Write first_steady(samples_s). It returns the index of "
    "the first iteration that may count, found from the samples. The check tries it on all six.",
    SteadyRule(),
    hints=(
        (
            "What is the level? Take it from the second half, where the warm-up should be over. "
            "Take the median, so that an outlier does not move it."
        ),
        (
            "Start at the first three in a row that are within a few percent of that level. If "
            "the two parts of the second half differ, the loop is not steady yet."
        ),
    ),
)


ONE_NUMBER = Exercise(
    "04.one-number",
    "Thirteen calls of the same work. In two of them the host was disturbed. How long does a call "
    "take? Give the number that the two outliers cannot move.",
    ONE_NUMBER_JUDGE,
    hints=(
        "The mean adds up all samples, and the outliers too.",
        "Use numpy.median, or sort the samples and take the seventh.",
    ),
    readings=samples,
)

_CAUSES = ("clock", "cache", "outliers")
_SAY = ("median", "mean", "fast hump", "two numbers")
_NOT_OUTLIERS = Diagnosis(
    "hump-as-outliers",
    "Outliers are few, and they lie anywhere. Here a third of the calls or more take about the "
    "same time: this is a second way in which the work runs.",
)
_ORDER = Diagnosis(
    "histogram-only",
    "The two histograms look alike, because a histogram has no order. Look at the samples in the "
    "order taken: does the time change once and stay, or does it go up and down?",
)
_BY_SAYING = {
    "median": Diagnosis(
        "median-of-two-humps",
        "The median is in the hump that has more than half of the calls. With a few calls more or "
        "less it jumps to the other one.",
    ),
    "mean": Diagnosis(
        "mean-of-two-humps",
        "The mean is between the humps, at a time that hardly any call took. It is right for a "
        "sum, as long as the shares do not change.",
    ),
    "fast hump": Diagnosis(
        "fast-hump-only",
        "The fast hump is what the work can do, not what it does: your program will have slow "
        "calls too. Report it only with its condition.",
    ),
}

TWO_HUMPS = Exercise(
    "04.two-humps",
    "Runs a and b, above, both have two humps. What causes them in each run (the clock fell; the "
    "data were sometimes in the cache; outliers), and what do you report?",
    Table(
        right={"a": ("clock", "two numbers"), "b": ("cache", "two numbers")},
        why="In run a the time changes once and stays, so the state of the GPU changed: the "
        "clock. In run b it goes up and down, so something differs from call to call: the cache. "
        "Report each hump with its condition. Then fix the condition and measure again: lessons "
        "05 and 06.",
        allowed=(_CAUSES, _SAY),
        wrong={("a", "outliers"): _NOT_OUTLIERS, ("b", "outliers"): _NOT_OUTLIERS}
        | {(run, word): found for run in "ab" for word, found in _BY_SAYING.items()},
        otherwise=(_ORDER, _BY_SAYING["median"]),
        headings=("cause", "report"),
    ),
    hints=(
        "The histogram shows that there are two ways. The samples in order show when.",
        "Is there one number that says how long the next call takes?",
    ),
)

BENCHMARK = Exercise(
    "04.benchmark",
    "Your benchmark(fn) from lesson 03 counts first calls like all others. Let it call fn until "
    "its time is steady, and only then take the samples. Set a limit, because some work never "
    "becomes steady.",
    BenchmarkJudge("warm-up"),
    hints=(
        "Time each warm-up call separately, as seconds(fn) of this lesson does.",
        "Stop when the last three calls differ by less than some percent.",
    ),
)

EXERCISES = (NAME_THE_COST, WHERE_TO_BEGIN, STEADY_STATE, ONE_NUMBER, TWO_HUMPS, BENCHMARK)
