"""The guesses of lesson 08."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "08.mean",
        "What is the mean?",
        choices=("exactly 1", "less than 1"),
        idea="Across streams there is no order: a kernel may read before the copy has written.",
    ),
    GuessQuestion(
        "08.fence",
        "How do the three sleeps run?",
        choices=("sequentially", "together"),
        idea="PyTorch's side streams do not wait for the default stream, nor it for them.",
    ),
    GuessQuestion(
        "08.engines",
        "How long do all three take?",
        unit="ms",
        idea=(
            "Kernels and copies in both directions use different engines, so all three can run "
            "at once."
        ),
    ),
    GuessQuestion(
        "08.blocks",
        "Which of the two blocks Python until the copy is done?",
        choices=("wait_stream", "synchronize", "both", "neither"),
        idea="wait_event and wait_stream make a stream wait; only synchronize blocks the host.",
    ),
    GuessQuestion(
        "08.beside",
        "How do the copy from ordinary memory and the kernel run?",
        choices=("sequentially", "together"),
        idea="From ordinary memory a copy blocks Python, so the next kernel is launched too late.",
    ),
    GuessQuestion(
        "08.returns",
        "When does the call return?",
        choices=("at once", "when the copy is done"),
        idea="non_blocking=True has no effect on a copy from pageable memory.",
    ),
    GuessQuestion(
        "08.wrong",
        "How many of 40 steps compute with wrong data?",
        unit="steps",
        counts="count",
        idea="A program with a race gives no error: most steps are wrong in silence.",
    ),
    GuessQuestion(
        "08.half",
        "How many of 40 steps compute with wrong data now?",
        unit="steps",
        counts="count",
        idea="One race can hide another: a program with one race is as wrong as one with two.",
    ),
    GuessQuestion(
        "08.big",
        "How do the two matmuls run?",
        choices=("sequentially", "together"),
        idea="Two kernels that each fill the GPU run one after the other, even in two streams.",
    ),
    GuessQuestion(
        "08.tiny",
        "How do the two small kernels run?",
        choices=("sequentially", "together"),
        idea="Kernels shorter than their launch end before the next one arrives.",
    ),
    GuessQuestion(
        "08.pair",
        "How do the two sleeps run, each on a GPU of its own?",
        choices=("sequentially", "together"),
        idea="Each GPU has a default stream of its own, and nothing orders two GPUs by itself.",
    ),
    GuessQuestion(
        "08b.dropped",
        "After each call a tensor of sevens is made. In how many of 20 calls is the sum 65,536?",
        unit="calls",
        counts="count",
        idea="The allocator gives memory away while another stream still reads it.",
    ),
    GuessQuestion(
        "08b.ahead",
        "How many of the 20 calls of mean() are right?",
        unit="calls",
        counts="count",
        idea=(
            "A batch belongs to the stream of its copy, which may overwrite it before another "
            "stream reads it."
        ),
    ),
    GuessQuestion(
        "08b.saved",
        "The loop with the prefetcher takes how many times as long?",
        unit="times",
        counts="direction",
        idea="A prefetcher hides the copy at most as far as there is work to hide it.",
    ),
    GuessQuestion(
        "08b.where",
        "Where does backward run?",
        choices=("the default stream", "the side stream"),
        idea="Each operator runs backward in the stream in which it ran forward.",
    ),
    GuessQuestion(
        "08b.outside",
        "What is the new weight?",
        choices=("-2 (right)", "1 (too early)"),
        idea=(
            "At its end, backward orders its gradients only with the stream that was current at "
            "the call."
        ),
    ),
    GuessQuestion(
        "08b.raises",
        "Which line raises?",
        choices=("the look-up", "the addition", "the wait"),
        idea="An error on the GPU is raised later, by an innocent line that waits.",
    ),
    GuessQuestion(
        "08b.more",
        "With record_stream it reserves how many times as much?",
        unit="times",
        idea=(
            "With record_stream the memory is not free until the other stream is done, so more "
            "is reserved."
        ),
    ),
    GuessQuestion(
        "08b.grows",
        "Must the allocator take more?",
        choices=("yes", "no"),
        idea="Free memory in pieces cannot serve a large tensor: this is fragmentation.",
    ),
)
