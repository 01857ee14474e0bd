# %% [markdown]
# # Case 07: Do not upgrade
#
# Is version B really slower? *15 minutes. It helps to know lesson 05.*
#
# > **"Do not upgrade: version B is 9 % slower"** (a warning by Sven)
# >
# > I benchmark every release. 40 calls of the old version A, then 40 calls of the new version B,
# > on one machine in one process, with events and after a warm-up of both. B is 9 % slower. I
# > repeated it ten times, with the same result each time. That cannot be noise.

# %%
import time
from itertools import pairwise

import pandas as pd
import torch

import gpulab
from gpulab import exercises, plots
from gpulab.exercises import cases

gpulab.use("auto")


# %% [markdown]
# His comparison:


# %% tags=["exercise"]
def ratio(a, b, n_calls=40):
    for work in (a, b):
        work()  # warm-up
    first, second, third = (torch.cuda.Event(enable_timing=True) for _ in range(3))
    first.record()
    for _ in range(n_calls):
        a()
    second.record()
    for _ in range(n_calls):
        b()
    third.record()
    torch.cuda.synchronize()
    return second.elapsed_time(third) / first.elapsed_time(second)


# %% [markdown]
# `a` and `b` below are matmuls of the same size, and his program finds that `b` takes longer. Now
# give it the two in the other order: `ratio(b, a)`.

# %%
exercises.predict("case-07.swapped")

# %%
a, b = cases.rival_matmuls()
ratio(a, b, n_calls=1)  # first uses
time.sleep(3)  # let the GPU rest
print(f"b over a: {ratio(a, b):.3f}")

# %%
time.sleep(3)
a_over_b = ratio(b, a)
exercises.compare("case-07.swapped", a_over_b)

# %%
exercises.claim("case-07.the-second-loses", here=a_over_b)

# %% [markdown]
# The single calls of `a`, after another rest:

# %%
time.sleep(3)
marks = [torch.cuda.Event(enable_timing=True) for _ in range(81)]
for mark in marks:
    mark.record()
    a()
torch.cuda.synchronize()
times_s = [one.elapsed_time(two) / 1e3 for one, two in pairwise(marks)]
plots.scatter(pd.Series(times_s, name="time_s"), title="Time of each call")

# %% tags=["exercise"]
exercises.ask("case-07.flaw")
### BEGIN SOLUTION
exercises.check("case-07.flaw", "b")
### END SOLUTION

# %%
exercises.ask("case-07.mend")

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(a, b, n_calls=40):
    for work in (a, b):
        work()  # warm-up
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(2 * n_calls + 1)]
    marks[0].record()
    for number, mark in enumerate(marks[1:]):
        (b if number % 2 else a)()
        mark.record()
    torch.cuda.synchronize()
    times_ms = [one.elapsed_time(two) for one, two in pairwise(marks)]
    return sum(times_ms[1::2]) / sum(times_ms[::2])


### END SOLUTION
exercises.check("case-07.mend", mended)

# %%
print(gpulab.compare(a, b).verdict())

# %% [markdown]
# **What happened.** A ran on a cool GPU at its full clock. When B began, the power limit had
# lowered the clock. The second one loses, whoever it is. Repeating the whole comparison repeats
# the mistake too, so the result was very stable and wrong.
#
# **The habit.** Let A and B take turns. Then both meet the same clock, the same heat and the same
# neighbours. `gpulab.compare` does so, and gives the ratio with its interval.
#
# *The same in real life:* an autotuner timed its first finalists [while the clock still
# changed](https://github.com/pytorch/helion/pull/3572), and the last ones at the settled clock.
# That was enough to change the ranking.
