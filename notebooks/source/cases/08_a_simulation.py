# %% [markdown]
# # Case 08: A simulation
#
# Is a GPU too slow for this simulation? *15 minutes. It helps to know lesson 09.*
#
# > **"GPUs are overrated for simulations"** (a post by Hanna)
# >
# > One step of our simulation on a million numbers. I ran the same function on both devices and
# > counted everything, as one should: launches, waits, copies. The GPU is barely faster than the
# > CPU, at ten times the price. We stay with CPUs.

# %%
import time

import gpulab
from gpulab import exercises, plots
from gpulab.exercises import cases

gpulab.use("auto")


# %% [markdown]
# Her benchmark. `step` takes a tensor and returns the next one, on the device of its argument:


# %%
def gpu_seconds(step, data, n_steps):
    start = time.perf_counter()
    for _ in range(n_steps):
        x = data.to("cuda")
        x = step(x)
        data = x.cpu()
    return (time.perf_counter() - start) / n_steps


data = cases.host_data()  # a million numbers
gpu_seconds(cases.smooth, data, 3)  # first uses
posted_s = gpu_seconds(cases.smooth, data, 40)
print(f"{posted_s * 1e3:.2f} ms for each step")

# %%
exercises.predict("case-08.share")


# %%
def copies_s(data, n_steps=40):
    start = time.perf_counter()
    for _ in range(n_steps):
        data.to("cuda").cpu()
    return (time.perf_counter() - start) / n_steps


exercises.compare("case-08.share", 100 * copies_s(data) / posted_s)

# %%
seen = gpulab.timeline(lambda: gpu_seconds(cases.smooth, data, 2))
plots.timeline(seen, title="Two steps of the simulation")

# %% tags=["exercise"]
exercises.ask("case-08.flaw")
### BEGIN SOLUTION
exercises.check("case-08.flaw", "b")
### END SOLUTION

# %%
exercises.ask("case-08.mend")

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(step, data, n_steps):
    start = time.perf_counter()
    x = data.to("cuda")
    for _ in range(n_steps):
        x = step(x)
    x.cpu()
    return (time.perf_counter() - start) / n_steps


### END SOLUTION
exercises.check("case-08.mend", mended)

# %%
mended_s = mended(cases.smooth, data, 40) if callable(mended) else ...
exercises.claim("case-08.mostly-copies", here=mended_s if mended_s is ... else mended_s / posted_s)

# %% [markdown]
# **What happened.** The CPU's data stay in memory from step to step. The GPU's data came in and
# went out in each step, and that took most of the time. Nothing in the simulation needs it: only
# the first state comes from the host, and only the last one is wanted there.
#
# **The habit.** Count the copies that the *whole run* needs, not those of one step. And do not
# leave them out altogether: a time without any copy is the opposite trick.
#
# *The same in real life:* the authors of a signal library [argued about exactly
# this](https://github.com/alphacsc/alphacsc/pull/20), and both sides had a point.
