"""The lab "streams": the order of kernels, the time of a pipeline, and two functions to write."""

from gpulab.course._question import Lab, LabQuestion, Variant
from gpulab.course._seeded_random import SeededDraw


def _surely_done(draw: SeededDraw) -> Variant:
    # The order of the draws decides each learner's numbers, so a new draw must come after these.
    letters = draw.shuffled("uvwxyz")
    after_marker = draw.number(1, 2)  # how many of left's three kernels come after the marker
    left = [f"left {letter}" for letter in letters[:3]]
    left.insert(3 - after_marker, "left marker.record()")
    right = [f"right {letter}" for letter in letters[3:]]
    right.insert(draw.number(0, 2), "right right.wait_event(marker)")
    before = draw.number(0, 1)
    program = [*right[:before], *left, *right[before:]]
    if program[0].endswith("wait_event(marker)"):  # nothing was recorded yet
        program.append(program.pop(0))
    listing = "".join(f"    {_line(step)}\n" for step in program)
    return Variant(
        "left and right are two side streams on an idle GPU. The host launches six kernels, u to "
        "z, each in the stream that the line names, and then calls LINE. Which kernels are surely "
        "done when LINE returns?\n\n"
        f"{listing}    LINE\n\n"
        "Answer for three lines. left: left.synchronize(). right: right.synchronize(). marker: "
        "marker.synchronize().",
        numbers={"program": tuple(program)},
    )


def _line(step: str) -> str:
    stream, _, action = step.partition(" ")
    return f"with torch.cuda.stream({stream}): {action}{'' if '.' in action else '()'}"


def _makespan(draw: SeededDraw) -> Variant:
    n_steps = draw.number(8, 20)
    copy, compute = draw.number(3, 9), draw.number(10, 16)
    # Either may be the longer one, so that no formula for one case is right for everybody.
    if draw.below(2):
        copy, compute = compute, copy
    return Variant(
        f"A program does {n_steps} steps. Each copies a batch to the GPU, which takes {copy} ms, "
        f"and then computes on it, which takes {compute} ms. Copies and kernels can run at the "
        "same time. How many milliseconds does it take from the first copy to the last result? "
        "serial: in one stream. overlapped: with a stream for the copies and two buffers, so that "
        "a copy into a buffer waits until the step that used it before has computed.",
        numbers={"n_steps": n_steps, "copy": copy, "compute": compute},
    )


def _seconds_in(_draw: SeededDraw) -> Variant:
    return Variant(
        "Write seconds_in(stream, work). It runs work, a function without arguments that launches "
        "on the current stream, in the given stream, and returns the seconds that it takes on the "
        "GPU. Work that is already in the stream does not count. Other streams may have much work "
        "left: the host does not wait for them."
    )


def _pipeline(_draw: SeededDraw) -> Variant:
    return Variant(
        "Write pipeline(side, copies, computes). copies and computes are lists of functions of "
        "the same length; each launches on the current stream. copies[i] brings the input of "
        "computes[i] to the GPU, into a buffer of its own. Run the copies in the stream side and "
        "the computing in the current stream, each computing after its copy and no later than it "
        "must. The GPU is idle when pipeline is called. It returns nothing."
    )


STREAMS = Lab(
    "streams",
    "Lab: streams and overlap",
    "This lab belongs to lesson 08. Try on the GPU whatever you like before you answer.",
    (
        LabQuestion(
            "surely_done",
            "What is surely done?",
            3,
            'Answer with three texts of letters: `surely_done = {"left": "uv", "right": "", '
            '"marker": ""}`.',
            _surely_done,
        ),
        LabQuestion(
            "makespan",
            "How long a pipeline takes",
            2,
            "Answer with two numbers in milliseconds: "
            '`makespan = {"serial": 1.0, "overlapped": 1.0}`.',
            _makespan,
        ),
        LabQuestion(
            "seconds_in",
            "Time one stream",
            5,
            "Answer with the function `def seconds_in(stream, work):`. You may import torch.",
            _seconds_in,
            trial="seconds_in",
        ),
        LabQuestion(
            "pipeline",
            "Copy while computing",
            3,
            "Answer with the function `def pipeline(side, copies, computes):`. You may import "
            "torch.",
            _pipeline,
            trial="pipeline",
        ),
    ),
)
