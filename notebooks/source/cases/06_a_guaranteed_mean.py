# %% [markdown]
# # Case 06: A guaranteed mean
#
# Why does the text stutter, although the mean is right? *15 minutes. It helps to know lesson 04.*
#
# > **"0.34 ms per token, guaranteed"** (a product page, and a complaint by Aylin)
# >
# > They promise a mean of 0.34 ms per token over 120 tokens, and their benchmark confirms it. But
# > in our chat window the text stutters. The mean is right, I measured it myself. So what am I
# > seeing?

# %%
from itertools import pairwise
from statistics import fmean

import pandas as pd
import torch

import gpulab
from gpulab import exercises, plots
from gpulab.exercises import cases

gpulab.use("auto")


# %% [markdown]
# The benchmark from the product page. `step` decodes one token:


# %%
def times_s(step, n_calls=120):
    pairs = []
    for _ in range(n_calls):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        step()
        end.record()
        pairs.append((start, end))
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1e3 for start, end in pairs]


samples_s = times_s(cases.decoder())
print(f"{fmean(samples_s) * 1e3:.3f} ms")

# %%
exercises.predict("case-06.near")

# %%
mean_s = fmean(samples_s)
n_near = sum(abs(sample_s - mean_s) < 0.1 * mean_s for sample_s in samples_s)
exercises.compare("case-06.near", n_near)

# %%
exercises.claim("case-06.no-such-step", here=n_near)

# %%
plots.scatter(pd.Series(samples_s, name="time_s"), title="Time of each step")

# %% tags=["exercise"]
exercises.ask("case-06.flaw")
### BEGIN SOLUTION
exercises.check("case-06.flaw", "c")
### END SOLUTION

# %%
exercises.ask("case-06.mend")

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(step):
    ordered = sorted(times_s(step))[:-1]  # one call is disturbed
    gaps = [later - earlier for earlier, later in pairwise(ordered)]
    cut = gaps.index(max(gaps)) + 1
    fast, slow = ordered[:cut], ordered[cut:]
    return fast[len(fast) // 2], slow[len(slow) // 2], len(slow) / len(ordered)


### END SOLUTION
exercises.check("case-06.mend", mended)

# %%
if callable(mended):
    fast_s, slow_s, share = mended(cases.decoder())
    said = f"{fast_s * 1e3:.2f} ms, and {slow_s * 1e3:.2f} ms in {100 * share:.0f} % of the steps"
print(said if callable(mended) else "mend the program first")

# %% [markdown]
# **What happened.** Every eighth step tidies up its memory and takes five times as long. One mean
# hides that: it is too long for seven steps of eight, and far too short for the other one. A user
# notices the slow steps.
#
# **The habit.** Look at the samples before you summarise them. If there are two heaps, report two
# numbers and a share. `gpulab.measure` looks for two modes and says so in its findings.
#
# *The same in real life:* in a database two benchmarks of unchanged code [jumped between two
# times](https://github.com/man-group/ArcticDB/issues/3391), one twice the other.
