# %% [markdown]
# # Case 03: Eight percent are lost
#
# Why does a run take longer than its calls? *15 minutes. It helps to know lesson 05.*
#
# > **"Our training takes longer than we computed"** (a ticket by Marek)
# >
# > I timed the largest matmul of our model: 50 calls, events, warm-up, mean. Then I multiplied by
# > the number of calls in the run. The run takes 8 % longer than that, each time. Where are the
# > 8 % lost? In the data loader?

# %%
import time
from itertools import pairwise

import pandas as pd
import torch

import gpulab
from gpulab import clocks, exercises, plots
from gpulab.exercises import cases

gpulab.use("auto")


# %% [markdown]
# His benchmark:


# %%
def seconds_per_call(work, n_calls=50):
    work()  # warm-up
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(n_calls):
        work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / n_calls


matmul = cases.heavy_matmul()
posted_s = seconds_per_call(matmul)
print(f"{posted_s * 1e3:.3f} ms")

# %% [markdown]
# He averaged 50 calls. What would he find with 500 calls?

# %%
exercises.predict("case-03.longer")

# %%
long_run_s = seconds_per_call(matmul, n_calls=500)
exercises.compare("case-03.longer", long_run_s / posted_s)

# %% [markdown]
# Now let the GPU rest, and time each call on its own. The SM clock, in MHz, before and after:

# %%
torch.cuda.synchronize()
time.sleep(3)
print(clocks.read().sm_mhz, "MHz")

# %%
marks = [torch.cuda.Event(enable_timing=True) for _ in range(151)]
for mark in marks:
    mark.record()
    matmul()
torch.cuda.synchronize()
times_s = [one.elapsed_time(two) / 1e3 for one, two in pairwise(marks)]
plots.scatter(pd.Series(times_s, name="time_s"), title="Time of each call")

# %%
print(clocks.read().sm_mhz, "MHz")

# %% tags=["exercise"]
exercises.ask("case-03.flaw")
### BEGIN SOLUTION
exercises.check("case-03.flaw", "d")
### END SOLUTION

# %%
exercises.ask("case-03.mend")

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(work):
    for _ in range(300):  # until the clock has settled
        work()
    return seconds_per_call(work)


### END SOLUTION
exercises.check("case-03.mend", mended)

# %%
settled_s = mended(matmul) if callable(mended) else long_run_s
exercises.claim("case-03.too-short", here=settled_s / posted_s)

# %% [markdown]
# **What happened.** A heavy matmul needs more power than the GPU may draw for long. After some
# dozens of calls the GPU lowers its clock, and all later calls are slower. A mean over both is the
# time of neither, and it changes with the number of calls.
#
# **The habit.** Plot the calls in their order before you average them. Then say which number you
# report: a burst, or a settled GPU. Both are honest, for different questions.
#
# *The same in real life:* a contributor to a kernel library recorded a [loss of 15 % within 100
# calls](https://github.com/flashinfer-ai/flashinfer/pull/2899) on a B200.
