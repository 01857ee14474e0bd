# %% [markdown]
# # Case 01: Faster than its data sheet
#
# Can a GPU compute faster than its maker says? *15 minutes. It helps to know lessons 01 and 02.*
#
# > **"NVIDIA's data sheet is wrong"** (a forum post by Tomasz)
# >
# > I benchmarked my H200 with ten lines of Python. The data sheet says 989 TFLOP/s in half
# > precision. I get more than 7,000! And larger matrices are even better. Did they hold something
# > back? Warm-up is included, I know that the first call is slow.

# %%
import time

import torch

import gpulab
from gpulab import exercises, plots

gpulab.use("auto")


# %% [markdown]
# His program:


# %%
def tflops(n):
    a, b = torch.randn(2, n, n, device="cuda", dtype=torch.float16)
    a @ b  # warm-up
    start = time.perf_counter()
    a @ b
    seconds = time.perf_counter() - start
    return 2 * n**3 / seconds / 1e12


print(f"{tflops(4096):,.0f} TFLOP/s")

# %% [markdown]
# With n twice as large, a matmul has eight times as much to do.

# %%
exercises.predict("case-01.growth")

# %%
sizes = (4096, 8192)
posted = {n: tflops(n) for n in sizes}
clock_s = {n: 2 * n**3 / (1e12 * posted[n]) for n in sizes}
exercises.compare("case-01.growth", clock_s[8192] / clock_s[4096])

# %% tags=["exercise"]
exercises.ask("case-01.flaw")
### BEGIN SOLUTION
exercises.check("case-01.flaw", "b")
### END SOLUTION

# %% [markdown]
# Here is what host and GPU do in his program. The clock runs during the second short call of the
# host:

# %%
a, b = torch.randn(2, 4096, 4096, device="cuda", dtype=torch.float16)
seen = gpulab.timeline(lambda: (a @ b, a @ b))
spans = seen.to_frame()
launched_s = spans.query("kind == 'launch'")["end_s"].max()
kernels = spans.query("kind == 'kernel'").nlargest(2, "duration_s")  # the two matmuls
n_done = (kernels["end_s"] < launched_s).sum()
plots.timeline(seen, title=f"When the second call returns, {n_done} of 2 matmuls are done")

# %%
exercises.ask("case-01.mend")

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(n):
    a, b = torch.randn(2, n, n, device="cuda", dtype=torch.float16)
    a @ b  # warm-up
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(10):
        a @ b
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - start) / 10
    return 2 * n**3 / seconds / 1e12


### END SOLUTION
exercises.check("case-01.mend", mended)

# %% [markdown]
# The right number, by `gpulab.measure`, and how many times too large the posted one is:

# %%
right = gpulab.measure(lambda: a @ b, cache="hot")
exercises.claim("case-01.too-much", here=right.median_s / clock_s[4096])

# %% [markdown]
# **What happened.** A launch takes about as long for a large matmul as for a small one, so the
# "speed" grew with n³. The first wait was missing as well: without it, the mended clock would also
# time the warm-up and the random numbers.
#
# **The habit.** Compare each result with what the hardware can do at most. A number above the data
# sheet is never good news. It is a bug in the benchmark.
#
# *The same in real life:* [a table of twenty operations that took 0.02 to 0.06 ms, until a wait
# was added](https://github.com/TristanBilot/mlx-benchmark/pull/21), as its author recorded on an
# RTX 4090.
