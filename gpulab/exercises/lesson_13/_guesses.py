"""The guesses of lessons 13 and 13b."""

from gpulab.exercises._guess_question import GuessQuestion
from gpulab.happens_before import HAZARD_KINDS

NO_RACE = "no race"
RACES = (*HAZARD_KINDS, NO_RACE)

NEVER, TEN_TIMES, ENDLESS = "never", "about ten times", "without end"

GUESSES = (
    GuessQuestion(
        "13.patient-1",
        "How many times the kernel's time does it read?",
        unit="times",
        idea="A wait at the end includes all work that was in the queue before the clock started.",
    ),
    GuessQuestion(
        "13.patient-2",
        "What does it return?",
        choices=("the kernel's time", "almost zero", "no number"),
        idea=(
            "elapsed_time does not wait: until the GPU has passed both events there is no number."
        ),
    ),
    GuessQuestion(
        "13.patient-3",
        "How many times as long as the second reading is the first?",
        unit="times",
        idea=(
            "The first matmul loads its library, which takes a hundred times as long as the "
            "matmul itself."
        ),
    ),
    GuessQuestion(
        "13.patient-4",
        "For what share of this time is the GPU idle?",
        unit="%",
        idea=(
            "After a wait the GPU is idle until the next launch arrives; short layers lose much "
            "by it."
        ),
    ),
    GuessQuestion(
        "13.patient-5",
        "What share of the kernel runs beside the copy?",
        unit="%",
        idea="A copy from pageable memory blocks the host, so the kernel is launched after it.",
    ),
    GuessQuestion(
        "13.patient-6",
        "What share of the kernel's time does it read?",
        unit="%",
        idea="A stopwatch without a wait reads the launch, a tiny share of the kernel.",
    ),
    GuessQuestion(
        "13b.patient-7",
        "Which race is in it?",
        choices=RACES,
        idea="wait_stream works in one direction: the current stream needs a wait of its own.",
    ),
    GuessQuestion(
        "13b.patient-8",
        "Which race is in it?",
        choices=RACES,
        idea=(
            "The allocator gives memory away as soon as its tensor is deleted, even if another "
            "stream reads it."
        ),
    ),
    GuessQuestion(
        "13b.patient-9",
        "Which race is in it?",
        choices=RACES,
        idea="A copy with non_blocking=True returns before the bytes have arrived.",
    ),
    GuessQuestion(
        "13b.patient-10",
        "Which race is in it?",
        choices=RACES,
        idea="The host must not write into a pinned buffer before the last copy from it is done.",
    ),
    GuessQuestion(
        "13b.patient-11",
        "How often does it call fill()?",
        choices=(NEVER, TEN_TIMES, ENDLESS),
        idea="An event that is recorded again marks a new moment, so the old one never completes.",
    ),
    GuessQuestion(
        "13b.patient-12",
        "Which race is in it?",
        choices=RACES,
        idea="A wait for an event that nobody has recorded yet waits for nothing.",
    ),
)
