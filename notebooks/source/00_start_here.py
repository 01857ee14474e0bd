# ---
# jupyter:
#   lint: |
#     ruff: noqa: F821 (the magics bind names, which ruff cannot see)
# ---

# %% [markdown]
# # 00 Start here
#
# How long does a matmul take? Run the cells one after the other with Shift+Enter.

# %%
import torch

import gpulab
from gpulab import exercises, plots, recordings
from gpulab.exercises import lesson_00 as lab

# %load_ext gpulab
gpu = gpulab.use("auto")  # your GPU, or a virtual one
a = torch.randn(2048, 2048, device="cuda")
gpu

# %% [markdown]
# Guess before you measure: a wrong guess teaches you more than no guess. If you like, say how sure
# you are.

# %%
exercises.predict("00.matmul")

# %%
first = gpulab.measure(lambda: a @ a, method="naive")
low_us, high_us = (edge_s * 1e6 for edge_s in first.interval_s)
print(f"{first.median_s * 1e6:.2f} µs, 95 % interval from {low_us:.2f} to {high_us:.2f} µs")
exercises.compare("00.matmul", first)

# %% [markdown]
# The call was timed again and again. This is the median, with its interval: a precise number. Do
# you believe it? Here is the same measurement, five times more.

# %%
again = [gpulab.measure(lambda: a @ a, method="naive").median_s * 1e6 for _ in range(5)]
print(*(f"{time_us:.2f} µs" for time_us in again))

# %% [markdown]
# ## Ask another method
#
# gpulab can time the same call by other methods. You will build them yourself in lessons 01 to 03.

# %%
exercises.predict("00.agree")

# %%
others = [gpulab.measure(lambda: a @ a, method=name) for name in ("synchronized", "events")]
methods = [first, *others]
plots.compare_methods(methods)

# %%
times_s = [method.median_s for method in methods]
exercises.compare("00.agree", "yes" if max(times_s) < 2 * min(times_s) else "no")

# %%
rows = [(each.method, *(edge_s * 1e6 for edge_s in each.interval_s)) for each in methods]
print(*(f"{name}: from {low:.2f} to {high:.2f} µs" for name, low, high in rows), sep="\n")

# %% [markdown]
# All three intervals are narrow. The three numbers cannot all be right.
#
# ## Exercise: what does the interval say?
#
# In an exercise you answer, and the check says whether the answer is right and, if not, what you
# may have mixed up. Give a wrong answer on purpose once, and read what it says.

# %% tags=["exercise"]
exercises.ask("00.read-the-line")
### BEGIN SOLUTION
exercises.check("00.read-the-line", "c")
### END SOLUTION

# %% [markdown]
# **The interval says how well a number repeats. It cannot say whether the method timed what you
# meant.**
#
# ## Which one is right?
#
# Ask somebody who has measured it before. gpulab contains the times of an H200, which were
# recorded once. Here they are for matmuls of seven sizes, and yours for n = 2048.

# %%
recorded = recordings.load("h200-sxm-2026-11").frame()
recorded = recorded.query("workload == 'matmul' and dtype == 'float32' and cache == 'cold'")
lab.beside_recorded(methods, recorded.query("method == 'calibrated'"), n=2048)

# %% [markdown]
# Your GPU may be slower or faster than an H200. But a method that reads far less than every other
# one did not time the matmul. What did it time? That is lesson 01.
#
# ## Can you work it out?
#
# A second check needs no other GPU. Take twice the n: the result has four times as many elements,
# and each of them is a sum of twice as many terms.

# %%
exercises.predict("00.growth")

# %% [markdown]
# `%%cudatime` times a cell, as `%%timeit` does. The code on its own line is set-up: it runs once
# and is not timed.

# %%
# %%cudatime --save larger b = torch.randn(4096, 4096, device="cuda")
b @ b

# %%
events = others[-1]
exercises.compare("00.growth", larger.median_s / events.median_s)

# %% [markdown]
# There is eight times as much work. If a measurement is far from what you can work out, one of the
# two is wrong. Find out which one before you go on.
#
# ## Where does a number come from?
#
# The line of `%%cudatime` ends with its source. There are three of them:
#
# | source | what it is | what you use it for |
# |---|---|---|
# | *measured* | a real GPU did the work, here and now | to know this machine |
# | *recorded* | a named GPU did the work earlier, and the number was saved | to compare |
# | *virtual* | a model of a named GPU computed the time | to learn how timing works |
#
# Without a CUDA GPU, a *virtual* H200 takes its place: the same `torch.cuda` code runs, and its
# times are computed by a model that was fitted to a real one. It gets the reasons right: the
# queue, the waits, and which of two things takes longer. Its microseconds are estimates, so they
# differ a little from recorded ones. Do not publish them.
#
# Time a line of your own, and look for its source:

# %%
# %%cudatime
torch.relu(a)

# %% [markdown]
# ## Exercise: where does it come from?

# %% tags=["exercise"]
exercises.ask("00.sources")
### BEGIN SOLUTION
exercises.check("00.sources", {"a": "virtual", "b": "measured", "c": "recorded", "d": "virtual"})
### END SOLUTION

# %% [markdown]
# ## What you take with you
#
# Ask three questions about every time that you see:
#
# - Which source? Measured, recorded or virtual, and on which GPU.
# - How precise? The interval, and the number of samples.
# - Of what? What happened between the start and the stop of the stopwatch.
#
# The third question is the hard one. Next: `01_naive_timing.ipynb`.

# %% [markdown]
# # Going further
#
# ## This machine
#
# `gpulab.doctor()` checks everything that timing depends on. In a terminal, `gpulab doctor` prints
# the same table. Read the last column: if something is missing, it says what gpulab uses instead.

# %%
gpulab.doctor()

# %% [markdown]
# Some things have no replacement. Without a GPU, nothing is measured on one. Without readable
# clocks, you cannot see whether the GPU slowed down (lesson 05). `gpulab.use("cuda")` insists on a
# real GPU, and `gpulab.use("A100")` takes a virtual A100.
#
# ## What a line says
#
# This is the whole line of a measurement:

# %%
larger

# %% [markdown]
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
# Lines below that begin with `note:` are doubts. Take them seriously. This is one for the first
# number of this lesson:

# %%
first

# %% [markdown]
# `%cudatime STATEMENT` times a single line. `-n` and `-r` mean the same as for `%timeit`, and
# `%cudatime?` lists the other options. Try it with something short:

# %%
# %cudatime torch.zeros(1024, device="cuda")

# %% [markdown]
# ## A claim
#
# In other lessons you will meet such lines: a sentence, its value on the virtual GPU and on
# recorded ones, and whether it holds here.

# %%
smaller = gpulab.measure(lambda: a @ a)
exercises.claim("00.matmul-grows", here=larger.median_s / smaller.median_s)

# %% [markdown]
# ## What is kept of your answers
#
# Your guesses and answers are kept in `gpulab-progress.jsonl` beside the lessons, and nothing
# leaves your machine. What counts is the last guess before you see the outcome. If you are stuck
# in an exercise, `exercises.hint("00.sources")` gives you one hint more each time. At the end of a
# lesson `exercises.progress()` shows how often you were right, and what to look at again. "Guess"
# means right once in three (for yes or no once in two), "likely" twice in three, "sure" 19 times
# in 20.

# %%
exercises.progress()
