# ---
# jupyter:
#   lint: |
#     ruff: noqa: F821 (the magics bind names, which ruff cannot see)
# ---

# %% [markdown]
# # 02 Synchronize
#
# What does waiting add to a reading, and what does it cost?
#
# Lesson 01 showed that a call returns before the GPU has done the work. So you must wait before
# you read the clock. In this lesson you find out where to wait, how much the wait adds to the
# number, and what too many waits do to a program.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 Before and after | where to put the two waits, and why you need two | 10 |
# | 2 What is still inside | what the stopwatch reads besides the work | 7 |
# | 3 Who waits for what | five ways to wait, each with its timeline | 13 |
# | 4 A wait after every layer | what waiting costs a model | 5 |
# | 5 The snippet quiz | to see from a listing what it times | 5 |
# | 6 Your own benchmark | `benchmark(fn)` learns to wait | 5 |
# | *Going further* | when a stopwatch is good enough, when a wait is cheap | extra, 10 |
#
# Begin with a toy: a stopwatch with its two waits. Take one wait out, put it back at another
# place, and make the kernel short. What does "your stopwatch" read besides the kernel?

# %%
import statistics
import time

import numpy as np
import pandas as pd
import torch
from IPython.display import display

import gpulab
from gpulab import exercises, plots

# %load_ext gpulab
gpulab.use("auto")
gpulab.explorers.machine_explorer("synchronize")

# %% [markdown]
# This lesson times two pieces of work: a large matmul, and an addition so small that the GPU has
# almost nothing to do. Both run three times first. Lesson 04 says why.

# %%
a = torch.randn(2048, 2048, device="cuda")
small = torch.zeros(1024, device="cuda")
for _ in range(3):
    a @ a
    small.add_(1)
torch.cuda.synchronize()
a.shape, small.shape

# %% [markdown]
# ## 1 Before and after
#
# ### After: wait for your own work
#
# You read the clock twice: once when the call returns, and once when the GPU has finished. (The
# first calls after a pause are slow on a real machine. So the cell runs five rounds and keeps the
# last one.)

# %%
exercises.predict("02.after")

# %%
for _ in range(5):
    torch.cuda.synchronize()
    start = time.perf_counter()
    a @ a
    launched_s = time.perf_counter() - start
    torch.cuda.synchronize()
    finished_s = time.perf_counter() - start
exercises.compare("02.after", finished_s / launched_s)

# %% [markdown]
# Without a wait you time the launch. `torch.cuda.synchronize()` blocks the host until the GPU has
# done everything in its queues. Only then is the second reading about your work.
#
# ### Before: wait for other people's work
#
# Now ten more matmuls are already in the queue when you start your stopwatch. You wait *after*
# your own matmul, as you have just learned.

# %%
exercises.predict("02.before")

# %%
torch.cuda.synchronize()
for _ in range(10):
    a @ a  # other people's work
start = time.perf_counter()
a @ a  # yours
torch.cuda.synchronize()
charged_s = time.perf_counter() - start
exercises.compare("02.before", charged_s / finished_s)

# %% [markdown]
# The wait does not know which work is yours. It waits for all of it, so the stopwatch charges you
# for the backlog. (You may get less than eleven times the work, because the GPU starts on the
# backlog while Python is still launching it.) The cure is a second wait, *before* the first
# reading:

# %%
for _ in range(10):
    a @ a
torch.cuda.synchronize()  # the backlog ends here
start = time.perf_counter()
a @ a
torch.cuda.synchronize()
alone_s = time.perf_counter() - start
exercises.claim("02.backlog-is-charged", here=charged_s / alone_s)

# %% [markdown]
# ### See it
#
# `gpulab.timeline` runs a function, notes what the host and the GPU do, and waits at the end, as
# your stopwatch does. Here are four other matmuls and then yours, the fifth. Find the end of your
# launch and the start of your kernel.

# %%
plots.timeline(gpulab.timeline(lambda: [a @ a for _ in range(5)], n_warmup=3))

# %% [markdown]
# ### Exercise: time it right

# %%
exercises.ask("02.time-it-right")

# %% tags=["exercise"]
timed = ...


### BEGIN SOLUTION
def timed(work):
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


### END SOLUTION
exercises.check("02.time-it-right", timed)

# %% [markdown]
# If you are stuck, `exercises.hint("02.time-it-right")` gives you a hint. Call it again for the
# next one.
#
# ## 2 What is still inside
#
# Your stopwatch has both waits now. Does it read the GPU's time? Try the small addition.
# (*Recorded* on an H200: its kernel takes 1.2 µs.)

# %%
exercises.predict("02.inside")

# %%
# %%cudatime --method synchronized --save addition
small.add_(1)

# %%
exercises.compare("02.inside", addition)

# %% [markdown]
# How much of this is the wait itself? Time nothing at all.

# %%
exercises.predict("02.empty")

# %%
nothing = gpulab.measure(lambda: None, method="synchronized", label="no work")
exercises.compare("02.empty", nothing)

# %%
exercises.claim("02.waiting-for-nothing", here=nothing)

# %% [markdown]
# A call of `synchronize` takes time even when there is nothing to wait for. So the reading
# contains two things that are not work of the GPU:
#
# - the **launch**: until the kernel has reached the GPU;
# - the **wake-up**: until the waiting host notices that the GPU has finished.
#
# *Recorded* on an H200: the small addition reads about 14 µs. This overhead hardly depends on the
# work. It does not matter for milliseconds of work, and it hides a short kernel completely. For
# short kernels the GPU must read its own clock: lesson 03.
#
# ## 3 Who waits for what
#
# `torch.cuda.synchronize()` is one of five ways to wait. They differ in *what* they wait for, and
# in *who* waits: the host, or only a stream. (A stream is a queue of the GPU. Work in two streams
# may run at the same time.)
#
# | call | waits for | in CuPy |
# |---|---|---|
# | `torch.cuda.synchronize()` | all streams of this device | `cupy.cuda.Device().synchronize()` |
# | `stream.synchronize()` | one stream | `stream.synchronize()` |
# | `event.synchronize()` | the work before one event | `event.synchronize()` |
# | `stream.wait_event(event)` | the work before one event | `stream.wait_event(event)` |
# | `one.wait_stream(other)` | what is in the other now | `one.wait_event(other.record())` |
#
# An *event* is a marker that you put into a stream. "This device" is the current one: with several
# GPUs the first call does not wait for the others, but `torch.cuda.synchronize("cuda:1")` does.
# CuPy's `cupy.cuda.Stream.null.synchronize()` waits for the default stream.
#
# You will try all five. The work is `torch.cuda._sleep(n)`: a kernel that counts n clock cycles
# and does nothing else. An event after each kernel lets you ask which kernel has ended:
# `event.query()` answers without waiting.

# %%
left, right = torch.cuda.Stream(), torch.cuda.Stream()
ends = {name: torch.cuda.Event() for name in "ABC"}


def launch(name, stream, n_cycles):
    with torch.cuda.stream(stream):
        torch.cuda._sleep(n_cycles)
    ends[name].record(stream)


launch("A", left, 1_000_000)
torch.cuda.synchronize()
ends["A"].query()


# %%
def ended_after(program, names):
    torch.cuda.synchronize()
    program()
    ended = [name for name in names if ends[name].query()]
    display(plots.timeline(gpulab.timeline(program)))
    return " and ".join(ended) or "neither"


plots.timeline(gpulab.timeline(lambda: launch("A", left, 1_000_000)))

# %% [markdown]
# `ended_after` runs a program, asks which kernels have ended when the program returns, and draws
# the program. The last wait in each picture belongs to `gpulab.timeline`.
#
# **`torch.cuda.synchronize()`.** Kernel A is in stream `left`. Kernel B, three times longer, is in
# stream `right`. Which kernels have ended when the call returns?

# %%
exercises.predict("02.whole")


# %%
def wait_for_the_device():
    launch("A", left, 1_000_000)
    launch("B", right, 3_000_000)
    torch.cuda.synchronize()


exercises.compare("02.whole", ended_after(wait_for_the_device, "AB"))

# %% [markdown]
# **`left.synchronize()`.** The same two kernels.

# %%
exercises.predict("02.one")


# %%
def wait_for_a_stream():
    launch("A", left, 1_000_000)
    launch("B", right, 3_000_000)
    left.synchronize()


exercises.compare("02.one", ended_after(wait_for_a_stream, "AB"))

# %% [markdown]
# **`event.synchronize()`.** Now both kernels are in stream `left`: A, the event, B.

# %%
exercises.predict("02.marker")


# %%
def wait_for_an_event():
    launch("A", left, 1_000_000)
    launch("B", left, 3_000_000)
    ends["A"].synchronize()


exercises.compare("02.marker", ended_after(wait_for_an_event, "AB"))

# %% [markdown]
# Each of the three waits for less than the one before: for every stream of the device, for one
# stream, for the work before one event.
#
# **`stream.wait_event(event)`.** A is in stream `left`. Then `right.wait_event(...)` waits for the
# event after A, and B is in stream `right`.

# %%
exercises.predict("02.gpu-side")


# %%
def let_a_stream_wait():
    launch("A", left, 1_000_000)
    right.wait_event(ends["A"])
    launch("B", right, 1_000_000)


exercises.compare("02.gpu-side", ended_after(let_a_stream_wait, "AB"))

# %% [markdown]
# The wait is an entry in the queue of stream `right`. The host puts it there and goes on. Only the
# stream waits: in the picture B starts when A has ended.
#
# **`one.wait_stream(other)`.** A in `left`, then `right.wait_stream(left)`, then C in `left`, then
# a short B in `right`. The host waits for B. Which of the two kernels in `left` has ended then?

# %%
exercises.predict("02.late")


# %%
def wait_for_what_is_there():
    launch("A", left, 1_000_000)
    right.wait_stream(left)
    launch("C", left, 3_000_000)
    launch("B", right, 100_000)
    ends["B"].synchronize()


exercises.compare("02.late", ended_after(wait_for_what_is_there, "AC"))

# %% [markdown]
# `wait_stream` waits for the work that is in the other stream *at this moment*. C comes later, so
# B does not wait for it.
#
# ### Exercise: who blocks

# %%
exercises.ask("02.who-blocks")

# %% tags=["exercise"]
answer = {
    "torch.cuda.synchronize": ...,
    "stream.synchronize": ...,
    "event.synchronize": ...,
    "stream.wait_event": ...,
    "stream.wait_stream": ...,
}
### BEGIN SOLUTION
answer = {
    "torch.cuda.synchronize": "host",
    "stream.synchronize": "host",
    "event.synchronize": "host",
    "stream.wait_event": "gpu",
    "stream.wait_stream": "gpu",
}
### END SOLUTION
exercises.check("02.who-blocks", answer)

# %% [markdown]
# ## 4 A wait after every layer
#
# While you time a program, you may want to wait after every step. What does that cost? Here is a
# model of twenty layers, and a function that runs it with a wait after each layer.

# %%
layers = [torch.nn.Linear(512, 512, device="cuda") for _ in range(20)]
model = torch.nn.Sequential(*layers).requires_grad_(requires_grad=False)
batch = torch.randn(512, 512, device="cuda")


def wait_after_every_layer(x, n_layers=20):
    for layer in layers[:n_layers]:
        x = layer(x)
        torch.cuda.synchronize()
    return x


wait_after_every_layer(batch).shape

# %%
exercises.predict("02.slower")

# %%
once = gpulab.measure(lambda: model(batch), method="synchronized", label="one wait")
every = gpulab.measure(
    lambda: wait_after_every_layer(batch), method="synchronized", label="a wait per layer"
)
display(plots.compare_methods([once, every]))
exercises.compare("02.slower", every.median_s / once.median_s)

# %%
exercises.claim("02.waits-slow-a-model", here=every.median_s / once.median_s)

# %% [markdown]
# Look at five layers, first with one wait at the end, then with a wait after each layer. (On a
# real GPU taking notes for the picture takes time. Read the order from it, not the speed.)

# %%
five = model[:5]
display(plots.timeline(gpulab.timeline(lambda: five(batch), n_warmup=3)))
plots.timeline(gpulab.timeline(lambda: wait_after_every_layer(batch, 5), n_warmup=3))

# %% [markdown]
# With one wait, the host launches layer after layer while the GPU works. With a wait after each
# layer, host and GPU take turns: launch, work, wake up, launch. So remove the waits from code that
# you are not timing, and look for the hidden ones of lesson 01: `.item()`, `.cpu()`, `print`.
#
# ## 5 The snippet quiz
#
# Each of these listings should time a model. Say what its number contains, and what the listing
# needs.

# %%
exercises.ask("02.snippet-quiz")

# %% tags=["exercise"]
answer = {"a": (..., ...), "b": (..., ...), "c": (..., ...), "d": (..., ...), "e": (..., ...)}
### BEGIN SOLUTION
answer = {
    "a": ("launch", "wait after"),
    "b": ("work and backlog", "wait before"),
    "c": ("work", "none"),
    "d": ("an error", "wait after"),
    "e": ("no work", "record on side"),
}
### END SOLUTION
exercises.check("02.snippet-quiz", answer)

# %% [markdown]
# ## 6 Your own benchmark
#
# This is where `benchmark(fn)` stood at the end of lesson 01:


# %%
def benchmark(fn, n_calls=20):
    start = time.perf_counter()
    for _ in range(n_calls):
        fn()
    return (time.perf_counter() - start) / n_calls


exercises.ask("02.benchmark")

# %% tags=["exercise"]
benchmark = ...


### BEGIN SOLUTION
def benchmark(fn, n_samples=11):
    samples_s = []
    for _ in range(n_samples):
        torch.cuda.synchronize()
        start = time.perf_counter()
        fn()
        torch.cuda.synchronize()
        samples_s.append(time.perf_counter() - start)
    return statistics.median(samples_s)


### END SOLUTION
exercises.check("02.benchmark", benchmark)

# %% [markdown]
# ## What you take with you
#
# - Wait, read, work, wait, read. The first wait keeps the backlog out of the reading. The second
#   puts your work into it.
# - The reading still contains the launch and the wake-up. That is fine for milliseconds of work,
#   and useless for microseconds.
# - Every call named `synchronize` blocks the host. `wait_event` and `wait_stream` make a stream
#   wait, and the host goes on.
# - `torch.cuda.synchronize()` waits for the current device only.
# - A wait after every layer makes host and GPU take turns.
#
# Next: `03_events.ipynb`. The GPU has a clock of its own.

# %% [markdown]
# # Going further
#
# ## From which size on is a stopwatch good enough?
#
# The overhead hardly depends on the work. From which n on is it less than 5 % of the reading of an
# n x n matmul?

# %%
exercises.predict("02.size")

# %%
rows = []
for n in (64, 128, 256, 512, 1024, 2048, 4096):
    x = torch.randn(n, n, device="cuda")
    reading = gpulab.measure(lambda x=x: x @ x, method="synchronized", n_samples=21)
    rows.append((n, reading.median_s, "stopwatch with both waits"))
readings = pd.DataFrame(rows, columns=["size", "duration_s", "series"])
plots.scaling(readings, title="n x n matmul by the stopwatch with both waits")

# %% [markdown]
# For small n the line is nearly flat: there the stopwatch reads launch and wake-up. So the
# smallest reading is about the overhead (a little more, because it contains a small kernel). This
# is its share of each reading:

# %%
share = readings["duration_s"].min() / readings.set_index("size")["duration_s"]
limit = 0.05
good = [str(n) for n in (64, 512, 4096) if share[n] < limit]
display(share.map("{:.1%}".format).rename("share of the overhead").to_frame())
exercises.compare("02.size", good[0] if good else "none of these")

# %% [markdown]
# ## When is a wait cheap?
#
# Twenty kernels in a row, with one wait or with a wait after each. The kernels become longer. What
# happens to the factor of section 4?

# %%
exercises.predict("02.larger")


# %%
def factor(n_cycles):
    def steps(wait):
        for _ in range(20):
            torch.cuda._sleep(n_cycles)
            if wait:
                torch.cuda.synchronize()

    ways = (lambda: steps(wait=True)), (lambda: steps(wait=False))
    every, once = (gpulab.measure(way, method="synchronized", n_samples=11) for way in ways)
    return every.median_s / once.median_s


factors = pd.Series({n: factor(n) for n in (10_000, 100_000, 1_000_000)}, name="factor")
factors.rename_axis("cycles of each kernel").round(2).to_frame()

# %%
outcome = {-1: "smaller", 0: "the same", 1: "larger"}
exercises.compare(
    "02.larger", outcome[int(np.sign((factors.iloc[-1] - factors.iloc[0]).round(2)))]
)

# %% [markdown]
# Each wait costs about the same few microseconds. After a long kernel you do not notice them.
# After a kernel that takes as long as its launch, they halve the speed.

# %%
exercises.progress()
