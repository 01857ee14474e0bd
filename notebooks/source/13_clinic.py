# %% [markdown]
# # 13 The clinic
#
# Five programs time something else than they should. What is wrong with each, and how do you mend
# it?

# %%
import time

import torch
from IPython.display import display

import gpulab
from gpulab import clocks, exercises, plots
from gpulab.exercises import lesson_13 as lab

gpulab.use("auto")

# %% [markdown]
# ## Patient 1: a stopwatch that waits
#
# This one waits for the GPU, as lesson 02 says. It should time `work`, one kernel of some
# milliseconds. In the author's program another kernel has just been launched, five times as long.


# %% tags=["exercise"]
def work():
    torch.cuda._sleep(4_000_000)  # a kernel that counts clock cycles


def stopwatch(work):
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


exercises.predict("13.patient-1")

# %%
work_s = gpulab.measure(work, cache="hot").median_s
torch.cuda._sleep(20_000_000)  # the other kernel
read_s = stopwatch(work)
exercises.compare("13.patient-1", read_s / work_s)


# %% [markdown]
# ### Is that possible?
#
# The kernel counts four million clock cycles. At the clock of this moment these take:

# %%
print(f"{4_000_000 / clocks.read().sm_mhz / 1e3:.2f} ms, and it reads {read_s * 1e3:.2f} ms")

# %% [markdown]
# The wait is there, and the number is still wrong. Look at what the stopwatch saw. Its kernel is
# the second one.


# %%
def program():
    torch.cuda._sleep(20_000_000)
    stopwatch(work)


plots.host_and_gpu(gpulab.timeline(program), names=["sleep", "work"], n_before=1)

# %% [markdown]
# Mend it. `mended(work)` returns the seconds of `work()` alone, whatever the GPU was doing
# before. The check tries it with other kernels than yours.

# %% tags=["exercise"]
mended = ...  # copy the program, and change it


### BEGIN SOLUTION
def mended(work):
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


### END SOLUTION
exercises.check("13.backlog", mended)

# %% [markdown]
# **A time needs two waits: one before the clock starts, one before it stops.**
#
# ## Patient 2: two events


# %% tags=["exercise"]
def by_events(work):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    return start.elapsed_time(end) / 1e3


exercises.predict("13.patient-2")

# %%
try:
    got = "the kernel's time" if by_events(work) > work_s / 2 else "almost zero"
except RuntimeError as error:
    print(f"RuntimeError: {error}")
    got = "no number"
exercises.compare("13.patient-2", got)

# %% tags=["exercise"]
mended = ...  # returns the seconds of work(), still by two events


### BEGIN SOLUTION
def mended(work):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


### END SOLUTION
exercises.check("13.too-early", mended)

# %% [markdown]
# **An event has a time only when the GPU has passed it.**
#
# ## Patient 3: two readings
#
# Two waits, and no backlog. It reads a matmul twice, one call after the other. No matmul has run
# in this notebook before. (Run the cell once more, and the surprise is gone.)


# %% tags=["exercise"]
def one_call(work):
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


exercises.predict("13.patient-3")

# %%
a = torch.randn(2048, 2048, device="cuda")
first_s, second_s = one_call(lambda: a @ a), one_call(lambda: a @ a)
print(f"{first_s * 1e3:.3f} ms, then {second_s * 1e3:.3f} ms")
exercises.compare("13.patient-3", first_s / second_s)

# %% tags=["exercise"]
mended = ...  # returns the seconds of a usual call of work()


### BEGIN SOLUTION
def mended(work):
    work()  # warm-up
    return one_call(work)


### END SOLUTION
exercises.check("13.first-call", mended)

# %% [markdown]
# **A first call pays for what later calls find ready.**
#
# ## Patient 4: a model with short layers
#
# Six layers, a short kernel each (`lab.kernel(0.03)`, the length in milliseconds). The author
# wants the time of one pass through the model.


# %% tags=["exercise"]
def one_pass(layers):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for layer in layers:
        layer()
        torch.cuda.synchronize()
    return time.perf_counter() - start


exercises.predict("13.patient-4")

# %%
seen = gpulab.timeline(lambda: one_pass([lab.kernel(0.03)] * 6))
summary = seen.summary()
idle_percent = 100 * (1 - summary.devices[0].busy_s / summary.window_s)
display(plots.timeline(seen, title=f"The GPU is idle for {idle_percent:.0f} % of the pass"))
exercises.compare("13.patient-4", idle_percent)

# %% tags=["exercise"]
mended = ...  # returns the seconds of one pass through all layers


### BEGIN SOLUTION
def mended(layers):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for layer in layers:
        layer()
    torch.cuda.synchronize()
    return time.perf_counter() - start


### END SOLUTION
exercises.check("13.each-layer", mended)

# %% [markdown]
# **Too many waits are wrong as well. The number is then that of another program.**
#
# ## Patient 5: a copy and a kernel
#
# The author wants both at the same time. The copy has `non_blocking=True` and a stream of its
# own, and it takes longer than the kernel.


# %% tags=["exercise"]
def copy_and_work(n_bytes, work):
    host = torch.empty(n_bytes, dtype=torch.uint8)
    on_gpu = torch.empty_like(host, device="cuda")
    copying = torch.cuda.Stream()
    torch.cuda.synchronize()
    start = time.perf_counter()
    with torch.cuda.stream(copying):
        on_gpu.copy_(host, non_blocking=True)
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


exercises.predict("13.patient-5")

# %%
seen = gpulab.timeline(lambda: copy_and_work(2**24, lab.kernel(0.5)))
percent = 100 * seen.summary().devices[0].overlap_achieved
display(plots.timeline(seen, title=f"{percent:.0f} % of the kernel runs beside the copy"))
exercises.compare("13.patient-5", percent)

# %% tags=["exercise"]
mended = ...  # returns the seconds of both, at the same time


### BEGIN SOLUTION
def mended(n_bytes, work):
    host = torch.empty(n_bytes, dtype=torch.uint8, pin_memory=True)
    on_gpu = torch.empty_like(host, device="cuda")
    copying = torch.cuda.Stream()
    torch.cuda.synchronize()
    start = time.perf_counter()
    with torch.cuda.stream(copying):
        on_gpu.copy_(host, non_blocking=True)
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


### END SOLUTION
exercises.check("13.pageable", mended)

# %% [markdown]
# ## What you take with you
#
# - A stopwatch needs a wait on both sides, and events need one before you read them.
# - The first call is never a usual one.
# - A wait inside the work, or a copy from ordinary memory, changes what you time.
#
# These five gave a wrong *time*. In the next five the work itself goes wrong. Next:
# `13b_clinic.ipynb`.

# %% [markdown]
# # Going further
#
# ## Patient 6: the oldest mistake
#
# You met it in lesson 01. Which share of the kernel's time does it read?


# %% tags=["exercise"]
def naive(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


exercises.predict("13.patient-6")

# %%
torch.cuda.synchronize()
share_percent = 100 * naive(work) / work_s
exercises.compare("13.patient-6", share_percent)

# %% tags=["exercise"]
mended = ...  # returns the seconds of work()


### BEGIN SOLUTION
def mended(work):
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


### END SOLUTION
exercises.check("13.unwaited", mended)

# %%
exercises.progress("13")
