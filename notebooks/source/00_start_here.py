# ---
# jupyter:
#   lint: |
#     ruff: noqa: F821 (the magics bind names, which ruff cannot see)
# ---

# %% [markdown]
# # 00 Start here
#
# What can I measure on this machine, and how far can I trust it?
#
# In these lessons you time the work of a GPU, and you learn what can go wrong with such a number.
# You do not need a GPU for it. Where there is none, a *virtual* one takes its place behind
# `torch.cuda`: the same code runs, and its times are computed in place of measured.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 This machine | what is here, and what stands in for what is missing | 5 |
# | 2 Three sources of a number | measured, recorded, virtual: never take one for another | 10 |
# | 3 One timing, one line | to time a cell with `%%cudatime`, and to read what it prints | 10 |
# | 4 Predict, measure, compare | the rhythm of all lessons | 5 |
# | 5 How far to trust it | why a sharp number can still be the wrong number | 10 |
#
# Run one cell after the other with Shift+Enter. The first one chooses the GPU: a real one if
# PyTorch can use it, else the virtual H200.

# %%
import torch

import gpulab
from gpulab import exercises, plots
from gpulab.units import format_time

gpulab.use("auto")

# %% [markdown]
# The line above says which GPU it is, and why this one. You can also ask for a certain one:
# `gpulab.use("cuda")` insists on a real GPU, `gpulab.use("A100")` takes a virtual A100.
#
# ## 1 This machine
#
# Before each measurement you are asked for a guess. Put it in the place of the three dots and run
# the cell. Leave the dots and everything still runs, but a wrong guess teaches more than no guess.

# %%
source = exercises.predict(
    "Will the times in this notebook be measured on hardware, or computed by the virtual GPU?",
    ...,
    choices=("measured", "virtual"),
)
source

# %% [markdown]
# `gpulab.doctor()` looks at everything that timing depends on. In a terminal, `gpulab doctor` says
# the same.

# %%
gpulab.doctor()

# %%
source.compare(gpulab.device.current().source)

# %% [markdown]
# Read the last column. Where something is missing it says what is used instead, so every lesson
# runs here. What it cannot do is make up for it: without a GPU nothing in this notebook is
# measured on one, and without readable clocks you cannot see whether the GPU slowed down (lesson
# 05).

# %% [markdown]
# ## 2 Three sources of a number
#
# A time that you meet in these lessons has one of three sources, and always says which.
#
# | source | what it is | what it is good for |
# |---|---|---|
# | *measured* | a real GPU did the work, here and now | the truth about this machine |
# | *recorded* | a named GPU did the work earlier; the number was kept | a comparison |
# | *virtual* | a model of a named GPU computed the time | to learn how timing works |
#
# The virtual H200 is a model that was fitted to times of a real one. It gets the reasons right:
# the queue, the waits, which of two things takes longer. Its microseconds are estimates. Do not
# publish them.
#
# Here is a number of this machine. The last words of the line are its source.

# %%
v = torch.ones(2**24, device="cuda")
here = gpulab.measure(lambda: v + v, label="an addition, 2^24 elements")
here

# %% [markdown]
# And here are some that were recorded, with the GPU that gave them. (In figures the source stands
# at the end of the title.)

# %%
recorded = exercises.readings("03.floor").tail(3)
recorded["time"] = recorded["kernel_s"].map(format_time)
recorded[["work", "time", "source", "device_name"]]

# %% [markdown]
# ### Exercise: where does it come from?
#
# An exercise has three parts. `ask` shows the question. In the next cell you put your answer in
# the place of the dots. `check` then says whether it is right, and if not, what you may have mixed
# up. Nothing is sent anywhere, and you can answer as often as you like.

# %%
exercises.ask("00.sources")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {"a": "virtual", "b": "measured", "c": "recorded", "d": "virtual"}
### END SOLUTION
exercises.check("00.sources", answer)

# %% [markdown]
# Give a wrong answer on purpose once and see what the check makes of it. If you are stuck, run the
# next cell: each time it gives one hint more.

# %%
exercises.hint("00.sources")

# %% [markdown]
# ## 3 One timing, one line
#
# In a notebook the shortest way to time something is `%%cudatime`. It is used like `%%timeit`.
# What stands on its own line is set-up: it runs once and is not timed. What stands below is timed,
# again and again, until the answer is precise enough.
#
# A multiplication of two 2048 x 2048 matrices takes 17 billion floating-point operations.

# %%
matmul_guess = exercises.predict("How long does the multiplication take?", ..., unit="µs")
matmul_guess

# %%
# %load_ext gpulab

# %%
# %%cudatime --save matmul a = torch.randn(2048, 2048, device="cuda")
a @ a

# %%
matmul_guess.compare(matmul)

# %% [markdown]
# Read the line from left to right:
#
# | part | what it says |
# |---|---|
# | the first number | the time of one call: the median of all samples |
# | the two in brackets | the 95 % interval of this median, in the same unit |
# | `of N` | how many samples were taken |
# | `calibrated` | the method, that is, who held the stopwatch (lessons 01 to 03) |
# | `cold cache` | before each sample the cache of the GPU was filled with something else |
# | `floor ... subtracted` | what it would read of no work at all was taken off (lesson 03) |
# | the end | the GPU, the source of the number, and the clock at which it ran |
#
# Lines below it that begin with `note:` say what there is to doubt. Take them seriously.
#
# `--save matmul` kept the result in a variable. It holds every sample, and under what conditions
# they were taken.

# %%
matmul

# %% [markdown]
# Good to know: `%cudatime STATEMENT` times a single line, `-n` and `-r` mean the same as for
# `%timeit`, and `%cudatime?` lists the rest.
#
# ### Exercise: read the line

# %%
exercises.ask("00.read-the-line")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = "c"
### END SOLUTION
exercises.check("00.read-the-line", answer)

# %% [markdown]
# ## 4 Predict, measure, compare
#
# You have done it twice now: guess, measure, compare. Once more, with a question that you can
# answer by thinking. Both sides of the matrices double, from 2048 to 4096.

# %%
growth = exercises.predict("How many times longer does it take?", ..., unit="times")
growth

# %%
# %%cudatime --save larger b = torch.randn(4096, 4096, device="cuda")
b @ b

# %%
growth.compare(larger.median_s / matmul.median_s)

# %% [markdown]
# There are four times as many results, and each needs a sum that is twice as long: eight times the
# work, so about eight times the time. When a measurement is far from what you can reason out, one
# of the two is wrong. It is worth an hour to find out which.

# %% [markdown]
# ## 5 How far to trust it
#
# The interval was narrow. Is the number right? The kit knows several methods to time the same
# work; you will build each of them yourself in the next lessons. Here are three, on the
# multiplication from above.

# %%
agree = exercises.predict(
    "Three methods time the same work. Will they agree, to within 2 times?",
    ...,
    choices=("yes", "no"),
)
agree

# %%
x = torch.randn(2048, 2048, device="cuda")
methods = [
    gpulab.measure(lambda: x @ x, method=name, label=name)
    for name in ("naive", "synchronized", "events")
]
plots.draw(
    plots.compare_methods,
    methods,
    title="One multiplication, three methods",
    alt="Each row has a narrow interval, yet the naive method reads far less than the other two.",
    ax_size=(6.4, 2.8),
)

# %%
times_s = [reading.median_s for reading in methods]
agree.compare("yes" if max(times_s) < 2 * min(times_s) else "no")

# %% [markdown]
# Three narrow intervals, and they contradict each other. (On the virtual GPU nothing jitters, so
# there an interval can be a single point.) The interval tells how well a number repeats. It cannot
# tell whether the method timed what you meant: the naive one did not.
#
# So ask three questions of every time that you are shown:
#
# 1. **Which source?** Measured, recorded or virtual, and on which GPU.
# 2. **How sharp?** The interval, and from how many samples.
# 3. **Of what?** What lay between start and stop of the stopwatch. This is what lessons 01 to 03
#    are about, and the reason why they begin with a method that is wrong.

# %%
exercises.progress()

# %% [markdown]
# Next: `01_naive_timing.ipynb`. Why does a stopwatch around a GPU call read almost nothing?
