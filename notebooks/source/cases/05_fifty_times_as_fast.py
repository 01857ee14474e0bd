# %% [markdown]
# # Case 05: Fifty times as fast
#
# Can a new library be 50 times as fast as cuBLAS? *15 minutes. It helps to know lessons 03 and
# 08.*
#
# > **"Your kernel is 50 times as fast as cuBLAS?!"** (an issue by Jonas)
# >
# > I ran your new library through my benchmark. Events before and after, as in Triton's
# > `do_bench`, so no launch overhead and no forgotten wait. It reads some microseconds, whatever
# > the size of the problem. Congratulations?

# %%
import torch

import gpulab
from gpulab import exercises, plots
from gpulab.exercises import cases

gpulab.use("auto")


# %% [markdown]
# His benchmark. `op.launch()` is the call into the library:


# %%
def seconds(op):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    op.launch()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


short, long = cases.library_kernel(0.1), cases.library_kernel(2.0)
seconds(short)  # first use
print(f"{seconds(long) * 1e6:.1f} µs")

# %% [markdown]
# The kernel of `long` is twenty times as long as that of `short`.

# %%
exercises.predict("case-05.growth")

# %%
torch.cuda.synchronize()
posted = {"short": seconds(short)}
torch.cuda.synchronize()
posted["long"] = seconds(long)
exercises.compare("case-05.growth", posted["long"] / posted["short"])

# %% [markdown]
# Where is the kernel? Each lane below is a stream, and the marks are the two events:

# %%
torch.cuda.synchronize()
plots.timeline(gpulab.timeline(lambda: seconds(short)), title="The kernel and the two events")

# %% tags=["exercise"]
exercises.ask("case-05.flaw")
### BEGIN SOLUTION
exercises.check("case-05.flaw", "a")
### END SOLUTION

# %%
exercises.ask("case-05.mend")

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(op):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record(op.stream)
    op.launch()
    end.record(op.stream)
    end.synchronize()
    return start.elapsed_time(end) / 1e3


### END SOLUTION
exercises.check("case-05.mend", mended)

# %%
with torch.cuda.stream(long.stream):  # now this stream is the current one
    right = gpulab.measure(long.launch, cache="hot")
exercises.claim("case-05.too-little", here=posted["long"] / right.median_s)

# %% [markdown]
# **What happened.** An event is a mark in one stream. Both marks were in the current stream, which
# had nothing to do, and the kernel ran in another one. Recorded there, they enclose it.
#
# **The habit.** If a time does not grow with the size of the problem, you do not time the problem.
# Ask a library in which stream it works. If it does not say, a stopwatch with
# `torch.cuda.synchronize()` is safe for long kernels: it waits for all streams.
#
# *The same in real life:* in an autotuner a kernel of about 250 µs [was recorded as
# 5 µs](https://github.com/pytorch/helion/pull/2994) in this way.
