"""What a first call pays for, from which call on the times count, and how to make one of many."""

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Diagnosis, Table
from gpulab.exercises.lesson_04._one_number import OneNumber
from gpulab.exercises.lesson_04._steady_rule import SteadyRule
from gpulab.exercises.lesson_04.traces import calls, samples

_COSTS = ("context", "library", "kernel", "allocation", "search")


_KERNEL_OR_MEMORY = Diagnosis(
    "kernel-or-memory",
    "b and d: both take a millisecond or less, but they come back for other reasons. A "
    "new operation needs a kernel that was not loaded; a new tensor needs memory. exp_ and sin_ "
    "work in place and ask for none.",
)
_CONTEXT_OR_LIBRARY = Diagnosis(
    "context-or-library",
    "a and c: the context is paid by the first call of all, whatever it is, and never again. c "
    "comes a second time, for another type of number.",
)
_LIBRARY_OR_KERNEL = Diagnosis(
    "library-or-kernel",
    "b and c: one plain kernel loads in less than a millisecond. A product needs a library, with "
    "its handle and hundreds of kernels: that takes a hundred times as long.",
)
_SEARCH = Diagnosis(
    "search-or-load",
    "e: it is slow at each size that is new, and fast when a size comes back. A kernel that was "
    "loaded serves every size: compare the last call of b.",
)
_NO_SEARCH = Diagnosis(
    "kernel-not-search",
    "b: sin_ has the shape of exp_ and is slow; the last call has a new shape and is fast. Not "
    "the shape is new in the slow calls, but the operation.",
)

NAME_THE_COST = Exercise(
    "04.name-the-cost",
    "Five traces, one after another, of a virtual H200 that was new. In each call the "
    "host stood as long as is written. Which first-use cost does each trace show?",
    Table(
        right={"a": "context", "b": "kernel", "c": "library", "d": "allocation", "e": "search"},
        why="Ask what makes a cost come back. The context: nothing in this process. A library: "
        "another family of its kernels. A kernel: an operation that is new. An allocation: memory "
        "that the cache of PyTorch does not hold. A search: a shape that is new.",
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
                "Look at which of the four calls are slow, and at what is new in just these.",
            ),
        ),
    ),
    hints=(
        (
            "In each trace, mark the slow calls. What is new in them: everything, the operation, "
            "the type, the memory or the shape?"
        ),
        (
            "By size: the context and a library take a tenth of a second or more, the other three "
            "about a millisecond."
        ),
    ),
    readings=calls,
)


STEADY_STATE = Exercise(
    "04.steady-state",
    "Six loops were timed, each call by itself. Write first_steady(samples_s): the index of the "
    "first iteration that may count, found from the samples. It is tried on all six.",
    SteadyRule(),
    hints=(
        (
            "What is the level? Take it from where the warm-up is over, if there is one: the last "
            "half. The median, so that an outlier does not move it."
        ),
        (
            "Steady from the first three in a row that lie within some per cent of that level. If "
            "two parts of the last half do not agree with each other, it is not steady yet."
        ),
    ),
)


ONE_NUMBER = Exercise(
    "04.one-number",
    "Thirteen calls of one work; in two of them the host was held up. How long does a call take? "
    "Give the number that the two strays cannot move.",
    OneNumber(),
    hints=(
        "The mean adds all samples, the strays too.",
        "numpy.median, or sort them and take the seventh.",
    ),
    readings=samples,
)

_CAUSES = ("clock", "cache", "outliers")
_SAY = ("median", "mean", "fast hump", "two numbers")
_NOT_OUTLIERS = Diagnosis(
    "hump-as-outliers",
    "A third of the calls or more, all of about the same length, are no outliers: outliers "
    "are few and lie anywhere. This is a second way in which the work runs.",
)
_ORDER = Diagnosis(
    "histogram-only",
    "The two histograms look alike, since a histogram forgets the order. Look at the samples in "
    "the order taken: does the time change once and stay, or go to and fro?",
)
_BY_SAYING = {
    "median": Diagnosis(
        "median-of-two-humps",
        "The median lies in whichever hump holds more than half of the calls. A few calls more or "
        "less, and it jumps to the other one.",
    ),
    "mean": Diagnosis(
        "mean-of-two-humps",
        "The mean lies between the humps, at a time that hardly any call took. It is right for a "
        "sum, as long as the shares stay as they are.",
    ),
    "fast hump": Diagnosis(
        "fast-hump-only",
        "The fast hump is what the work can do, not what it does: the slow calls will come in "
        "your program, too. Name it only with its condition.",
    ),
}

TWO_HUMPS = Exercise(
    "04.two-humps",
    "Runs a and b both have two humps, above. For each: what makes them (the clock fell; the data "
    "were sometimes in the cache; outliers), and what do you report?",
    Table(
        right={"a": ("clock", "two numbers"), "b": ("cache", "two numbers")},
        why="A time that changes once and stays says that the state of the GPU changed: the "
        "clock. One that goes to and fro says that something differs from call to call: the "
        "cache. In both, name each hump with its condition, then fix the condition and measure "
        "again: lessons 05 and 06.",
        allowed=(_CAUSES, _SAY),
        wrong={("a", "outliers"): _NOT_OUTLIERS, ("b", "outliers"): _NOT_OUTLIERS}
        | {(run, word): found for run in "ab" for word, found in _BY_SAYING.items()},
        otherwise=(_ORDER, _BY_SAYING["median"]),
    ),
    hints=(
        "The histogram shows that there are two ways; the samples in order show when.",
        "Which single number would tell somebody else how long the next call takes?",
    ),
)

EXERCISES = (NAME_THE_COST, STEADY_STATE, ONE_NUMBER, TWO_HUMPS)
