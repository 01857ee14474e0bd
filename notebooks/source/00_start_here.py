# ---
# jupyter:
#   lint: |
#     ruff: noqa: F821 (the magics bind names, which ruff cannot see)
# ---

# %% [markdown]
# # 00 Start here
#
# What can you measure on this machine, and how far can you trust it?
#
# In these lessons you time the work of a GPU, and you learn what can go wrong with such a number.
# You need no GPU for that. Where there is none, a *virtual* GPU takes its place: the same
# `torch.cuda` code runs, and its times are computed, not measured.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 This machine | what is here, and what replaces the missing parts | 5 |
# | 2 Three sources of a number | measured, recorded, virtual: which is which | 10 |
# | 3 One cell, one time | to time a cell with `%%cudatime` and to read its result | 10 |
# | 4 Predict, measure, compare | the rhythm of all lessons | 5 |
# | 5 How far to trust it | why a precise number can still be wrong | 10 |
#
# Run one cell after the other with Shift+Enter. The first one chooses the GPU: a real one if
# PyTorch can use it, and the virtual H200 if not.

# %%
import torch

import gpulab
from gpulab import exercises, plots, recordings

# %load_ext gpulab
gpulab.use("auto")

# %% [markdown]
# The line above says which GPU you have, and why. You can also ask for a GPU by name:
# `gpulab.use("cuda")` insists on a real GPU, and `gpulab.use("A100")` takes a virtual A100.
#
# ## 1 This machine
#
# Before each measurement you make a guess. Run the cell and answer below it, or put the guess in
# place of the three dots. Without one, everything still runs; but a wrong guess teaches you more
# than no guess.
#
# If you like, say how sure you are: "guess" (right once in three, for yes or no once in two),
# "likely" (twice in three) or "sure" (19 times in 20); in code it is `confidence="likely"`. Your
# guesses are kept in `gpulab-progress.jsonl` beside the lessons. At the end of each lesson
# `exercises.progress()` shows how far your feeling can be trusted, and what to look at again. What
# counts is the last guess before you see the outcome.

# %%
exercises.predict("00.source")

# %% [markdown]
# `gpulab.doctor()` checks everything that timing depends on. In a terminal, `gpulab doctor` prints
# the same table.

# %%
gpulab.doctor()

# %%
exercises.compare("00.source", gpulab.device.current().source)

# %% [markdown]
# Read the last column. If something is missing, it says what gpulab uses instead, so every lesson
# runs here. Some things have no replacement: without a GPU, nothing in this notebook is measured
# on one, and without readable clocks you cannot see whether the GPU slowed down (lesson 05).
#
# ## 2 Three sources of a number
#
# Every time in these lessons has one of three sources, and always says which.
#
# | source | what it is | what you use it for |
# |---|---|---|
# | *measured* | a real GPU did the work, here and now | to know this machine |
# | *recorded* | a named GPU did the work earlier, and the number was saved | to compare |
# | *virtual* | a model of a named GPU computed the time | to learn how timing works |
#
# Here are some recorded times: matmuls of n x n matrices, in seconds. The last two columns name
# the source.

# %%
recorded = recordings.load("h200-sxm-2026-11").frame()
matmuls = recorded.query("workload == 'matmul' and dtype == 'float32' and method == 'calibrated'")
matmuls = matmuls.query("cache == 'cold'").sort_values("size")
matmuls[["size", "median_s", "source", "device_name"]]

# %% [markdown]
# Here is a time of your machine. Its line ends with its source.

# %%
a = torch.randn(2048, 2048, device="cuda")
matmul = gpulab.measure(lambda: a @ a, label="matmul, n = 2048")
matmul

# %% [markdown]
# And here are both together, with a verdict for your machine. You will meet such lines in all
# lessons: a claim, its value in three worlds, and whether it holds here.

# %%
exercises.claim("00.matmul-agrees", here=matmul)

# %% [markdown]
# The virtual H200 is a model that was fitted to a real one. It gets the reasons right: the queue,
# the waits, and which of two things takes longer. Its microseconds are estimates. Do not publish
# them.
#
# ### Exercise: where does it come from?
#
# An exercise has three parts. `ask` shows the question. In the next cell you put your answer in
# place of the dots. `check` says whether the answer is right and, if it is not, what you may have
# mixed up. Nothing leaves your machine, and you can answer as often as you like.

# %%
exercises.ask("00.sources")

# %% tags=["exercise"]
answer = {"a": ..., "b": ..., "c": ..., "d": ...}
### BEGIN SOLUTION
answer = {"a": "virtual", "b": "measured", "c": "recorded", "d": "virtual"}
### END SOLUTION
exercises.check("00.sources", answer)

# %% [markdown]
# Give a wrong answer on purpose once, and read what the check says. If you are stuck, run the next
# cell. Each time it gives you one more hint.

# %%
exercises.hint("00.sources")

# %% [markdown]
# ## 3 One cell, one time
#
# The shortest way to time something in a notebook is `%%cudatime`. You use it like `%%timeit`. The
# code on its own line is set-up: it runs once and is not timed. The code below is timed, again and
# again, until the result is precise enough.

# %%
exercises.predict("00.matmul")

# %%
# %%cudatime --save result a = torch.randn(2048, 2048, device="cuda")
a @ a

# %%
exercises.compare("00.matmul", result)

# %% [markdown]
# Read the line from left to right:
#
# | part | what it means |
# |---|---|
# | the number | the time of one call: the median of all samples |
# | brackets, if any | the 95 % interval of the median; without them it is too narrow to show |
# | `of N` | how many samples were taken |
# | `calibrated` | the method: what held the stopwatch (lessons 01 to 03) |
# | `cold cache` | other data filled the GPU's cache before each sample (lesson 06) |
# | `floor ... subtracted` | the method reads this much too much, so it is subtracted (lesson 03) |
# | `launch-bound` | only for short work: Python needs longer to start it than the GPU to do it |
# | the end | the GPU, the source of the number, and the clock rate |
#
# Lines below that begin with `note:` are doubts. Take them seriously.
#
# `--save result` kept the result in a variable. It contains every sample, and how it was taken.

# %%
result

# %% [markdown]
# `%cudatime STATEMENT` times a single line. `-n` and `-r` mean the same as for `%timeit`, and
# `%cudatime?` lists the other options. Try it with something short:

# %%
# %cudatime torch.zeros(1024, device="cuda")

# %% [markdown]
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
# You have done this twice: guess, measure, compare. Do it once more, with a question that you can
# answer by thinking. The side of the matrices doubles, from 2048 to 4096.

# %%
exercises.predict("00.growth")

# %%
# %%cudatime --save larger b = torch.randn(4096, 4096, device="cuda")
b @ b

# %%
exercises.compare("00.growth", larger.median_s / result.median_s)

# %% [markdown]
# The result has four times as many elements, and each element is a sum of twice as many terms. So
# there is eight times as much work. If a measurement is far from what you can work out, one of the
# two is wrong. Find out which one before you go on.

# %%
exercises.claim("00.matmul-grows", here=larger.median_s / result.median_s)

# %% [markdown]
# ## 5 How far to trust it
#
# The interval was narrow. But is the number right? gpulab has several methods to time the same
# work, and you will build them yourself in the next lessons. Here are three of them, for the
# matmul from above.

# %%
exercises.predict("00.agree")

# %%
methods = [
    gpulab.measure(lambda: a @ a, method=name, label=name)
    for name in ("naive", "synchronized", "events")
]
plots.compare_methods(methods)

# %%
times_s = [reading.median_s for reading in methods]
exercises.compare("00.agree", "yes" if max(times_s) < 2 * min(times_s) else "no")

# %% [markdown]
# All three intervals are narrow. The interval says how well a number repeats. It cannot say
# whether the method timed what you meant.
#
# So ask three questions about every time that you see:
#
# 1. **Which source?** Measured, recorded or virtual, and on which GPU.
# 2. **How precise?** The interval, and the number of samples.
# 3. **Of what?** What happened between the start and the stop of the stopwatch. Lessons 01 to 03
#    are about this question, and they begin with a method that gets it wrong.

# %%
exercises.progress()

# %% [markdown]
# Next: `01_naive_timing.ipynb`. Why does a stopwatch around a GPU call read almost nothing?
