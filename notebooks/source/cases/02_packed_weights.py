# %% [markdown]
# # Case 02: Packed weights
#
# Is the new layer 1.4 times as fast as the old one? *15 minutes. It helps to know lesson 06.*
#
# > **"Packed weights: 1.4 times as fast, and no other change"** (a pull request by Ines)
# >
# > I store the weights of the layer in another order. Old and new are timed in turns, and the L2
# > cache is emptied in every round with a tensor of 256 MiB, so this is a cold-cache number.
# > 1.4 times as fast, please merge.

# %%
from statistics import median

import pandas as pd
import torch

import gpulab
from gpulab import exercises, plots
from gpulab.exercises import cases

gpulab.use("auto")


# %% [markdown]
# Her benchmark:


# %% tags=["exercise"]
def speedup(old, new, n_rounds=20):
    scratch = torch.empty(2**28, dtype=torch.int8, device="cuda")
    rounds = [[torch.cuda.Event(enable_timing=True) for _ in range(3)] for _ in range(n_rounds)]
    for before, between, after in rounds:
        scratch.zero_()  # empty the L2 cache
        before.record()
        old()
        between.record()
        new()
        after.record()
    torch.cuda.synchronize()
    return median(a.elapsed_time(b) / b.elapsed_time(c) for a, b, c in rounds)


# %% [markdown]
# A good test of a comparison is to compare a work with itself. `weights` are 24 MiB, and both
# works read them once.

# %%
exercises.predict("case-02.itself")

# %%
weights = cases.weights(24)
speedup(weights.sum, weights.sum)  # first uses
posted = speedup(weights.sum, weights.sum)
exercises.compare("case-02.itself", posted)

# %%
exercises.claim("case-02.not-faster", here=posted)

# %% [markdown]
# Look at the time of one call in both states of the cache:

# %%
states = {state: gpulab.measure(weights.sum, cache=state) for state in ("cold", "hot")}
times_s = pd.Series({state: result.median_s for state, result in states.items()}, name="time_s")
ratio = times_s["cold"] / times_s["hot"]
plots.bars(times_s, title=f"A cold call takes {ratio:.2f} times as long as a hot one")

# %% tags=["exercise"]
exercises.ask("case-02.flaw")
### BEGIN SOLUTION
exercises.check("case-02.flaw", "c")
### END SOLUTION

# %%
exercises.ask("case-02.mend")

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(old, new, n_rounds=20):
    scratch = torch.empty(2**28, dtype=torch.int8, device="cuda")
    rounds = [[torch.cuda.Event(enable_timing=True) for _ in range(4)] for _ in range(n_rounds)]
    for a, b, c, d in rounds:
        scratch.zero_()
        a.record()
        old()
        b.record()
        scratch.zero_()
        c.record()
        new()
        d.record()
    torch.cuda.synchronize()
    return median(a.elapsed_time(b) / c.elapsed_time(d) for a, b, c, d in rounds)


### END SOLUTION
exercises.check("case-02.mend", mended)

# %%
print(f"{mended(weights.sum, weights.sum):.3f}" if callable(mended) else "mend the program first")

# %% [markdown]
# **What happened.** The flush was there, once in each round. The old version paid for bringing the
# weights into the L2 cache, and the new one found them there. In a model the other layers run in
# between, so both would be cold.
#
# **The habit.** Before you compare A with B, compare A with A. If the answer is not 1, the
# benchmark measures something else. `gpulab.compare` empties the cache before each sample, and so
# does `gpulab.measure`.
#
# *The same in real life:* a contributor to a kernel library [found 1.6 times too much
# bandwidth](https://github.com/NVIDIA/TileGym/pull/118) where the data fitted into the L2 cache.
