# %% [markdown]
# # Case 10: Slow after a thousand calls
#
# Why does a kernel become slower while nothing changes? *15 minutes. It helps to know lesson 01.*
#
# > **"Kernel slows down by 20 times after about 1,000 iterations"** (an issue by Wen)
# >
# > My kernel takes 3 µs. After a thousand iterations it suddenly takes 60 µs, and stays there. If
# > I restart Python it is fast again, for a thousand iterations. Memory is constant. Is this a
# > leak in the driver?

# %%
import time
from statistics import median

import torch

import gpulab
from gpulab import exercises, plots
from gpulab.exercises import cases

gpulab.use("auto")


# %% [markdown]
# The loop from the issue:


# %%
def call_times_s(work, n_calls=1500):
    samples_s = []
    for _ in range(n_calls):
        start = time.perf_counter()
        work()
        samples_s.append(time.perf_counter() - start)
    return samples_s


# %%
kernel = cases.kernel(60)
kernel()  # first use
torch.cuda.synchronize()
samples_s = call_times_s(kernel)
early_s, late_s = median(samples_s[:500]), median(samples_s[-200:])
print(f"at first {early_s * 1e6:.1f} µs, in the end {late_s * 1e6:.1f} µs")

# %%
plots.call_times(samples_s)

# %% [markdown]
# Suppose the loop waits for the GPU after every 500 calls, outside the timed lines.

# %%
exercises.predict("case-10.later")

# %%
torch.cuda.synchronize()
with_waits_s = []
for _ in range(3):
    with_waits_s += call_times_s(kernel, 500)
    torch.cuda.synchronize()
exercises.compare("case-10.later", median(with_waits_s[1400:]))

# %%
exercises.claim("case-10.step", here=late_s / early_s)

# %% tags=["exercise"]
exercises.ask("case-10.flaw")
### BEGIN SOLUTION
exercises.check("case-10.flaw", "c")
### END SOLUTION

# %%
exercises.ask("case-10.mend")

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(work, n_calls=200):
    work()  # warm-up
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(n_calls):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / n_calls


### END SOLUTION
exercises.check("case-10.mend", mended)

# %%
print(f"{mended(kernel) * 1e6:.1f} µs" if callable(mended) else "mend the program first")

# %% [markdown]
# **What happened.** The loop never timed the kernel. At first it timed launches into an empty
# queue. When the queue was full, each launch had to wait until the GPU had finished one kernel, so
# the late readings were right by accident.
#
# **The habit.** Divide the time of many calls, waited for at the end, by their number. And be
# suspicious when a "kernel" takes just as long as a launch.
#
# *The same in real life:* the issue is asked again and again, for [Numba's
# kernels](https://github.com/numba/numba/issues/4390) as for [PyTorch's
# convolutions](https://github.com/pytorch/pytorch/issues/15793).
