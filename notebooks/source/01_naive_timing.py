# %% [markdown]
# # 01 Naive timing
#
# How long does a matmul take on the GPU?

# %%
import time
from statistics import median

import torch

import gpulab
from gpulab import exercises, plots

gpu = gpulab.use("auto")  # your GPU, or a virtual one
x = torch.randn(8192, 8192, device="cuda")
y = x @ x  # once before: the first call is slow (lesson 04)
gpu

# %% [markdown]
# A stopwatch: read the clock, multiply, read the clock again.

# %%
exercises.predict("01.naive")

# %%
for _ in range(5):  # the last round counts
    start = time.perf_counter()
    y = x @ x
    naive_s = time.perf_counter() - start
exercises.compare("01.naive", naive_s)

# %% [markdown]
# ## Is that possible?
#
# A matmul of two n by n matrices takes 2n³ floating-point operations. So your reading is a speed:

# %%
speed = 2 * 8192**3 / naive_s / 1e12
print(f"{speed:,.0f} TFLOP/s")

# %% [markdown]
# NVIDIA's data sheet promises 67 TFLOP/s for an H200 (float32). No GPU comes near your number. So
# the number is wrong.
#
# ## Does the reading follow the work?
#
# From n = 64 to n = 8192 the work grows 128³ times: two million.

# %%
exercises.predict("01.grows")


# %%
def stopwatch(fn):
    start = time.perf_counter()
    fn()
    return time.perf_counter() - start


# %%
sizes = [64, 128, 256, 512, 1024, 2048, 4096, 8192]
stopwatch_s = []
for n in sizes:
    a = torch.randn(n, n, device="cuda")
    stopwatch_s.append(median(stopwatch(lambda: a @ a) for _ in range(11)))
exercises.compare("01.grows", stopwatch_s[-1] / stopwatch_s[0])

# %% [markdown]
# For comparison, the time that the GPU really needs. Lessons 02 and 03 show how to measure it.

# %%
gpu_s = []
for n in sizes:
    a = torch.randn(n, n, device="cuda")
    gpu_s.append(gpulab.measure(lambda: a @ a).median_s)
plots.reading_and_work({"n": sizes, "reading_s": stopwatch_s, "gpu_s": gpu_s})

# %% [markdown]
# Twice the n is eight times the work. At the right end of the picture the GPU needs about eight
# times as long. (Small matmuls use only a part of the GPU: lesson 10.) The reading does not follow
# the work.
#
# ## Exercise: what did it time?
#
# You have seen an impossible speed, and a reading that does not follow the work. What explains
# both?

# %% tags=["exercise"]
exercises.ask("01.what-was-timed")
### BEGIN SOLUTION
exercises.check("01.what-was-timed", "b")
### END SOLUTION

# %% [markdown]
# Test it. Call, and ask the GPU at once whether its work is done.

# %%
y = x @ x
torch.cuda.current_stream().query()  # True if all its work is done

# %% [markdown]
# ## The queue
#
# Your program has two workers. The **host** is the processor that runs Python. The **device** is
# the GPU. Between them is a **queue**. `x @ x` does not multiply. It puts a matmul into the queue
# and returns: this is a **launch**. The GPU takes one entry after the other.
#
# Here are three calls:

# %%
s = torch.randn(1280, 1280, device="cuda")


def three_calls():
    a = s @ s
    b = s @ s
    c = s @ s
    return a, b, c


plots.host_and_gpu(gpulab.timeline(three_calls, n_warmup=3), names="abc")

# %% [markdown]
# **A stopwatch without a wait times the launch.** The work is in the other row, and it ends later.
#
# You may still use `y` in your next line. That line goes into the same queue, after the matmul.
#
# ## One more call
#
# Multiply two matrices with n = 2048, add up the result, and ask for the sum as a Python number:
# `(w @ w).sum().item()`.

# %%
exercises.predict("01.item")

# %%
w = torch.randn(2048, 2048, device="cuda")
(w @ w).sum().item()  # once before
without_s = median(stopwatch(lambda: (w @ w).sum()) for _ in range(11))
with_item_s = median(stopwatch(lambda: (w @ w).sum().item()) for _ in range(11))
exercises.compare("01.item", with_item_s)

# %%
print(f"{with_item_s / without_s:.0f} times as long as without .item()")

# %% [markdown]
# `.item()` returns a number, and there is no number before the GPU has computed it. So the host
# waits for everything in the queue. You did not ask for a wait: it is a **hidden
# synchronization**. The reading is nearly right now, by accident.
#
# It also works the other way. Delete a line that prints the loss, and your training step *seems*
# to become many times faster.
#
# ## Exercise: which lines wait?
#
# Answer first. Then measure.

# %% tags=["exercise"]
exercises.ask("01.hidden-sync")
### BEGIN SOLUTION
exercises.check("01.hidden-sync", {"a", "c", "e", "f", "g"})
### END SOLUTION

# %%
lines = {
    "a: y.sum().item()": lambda y: y.sum().item(),
    "b: y.shape": lambda y: y.shape,
    "c: print(y[0, 0])": lambda y: print(y[0, 0]),
    "d: torch.relu(y)": lambda y: torch.relu(y),
    "e: y.cpu()": lambda y: y.cpu(),
    "f: if (y > 0).any(): pass": lambda y: bool((y > 0).any()),
    "g: y.copy_(ordinary)": lambda y: y.copy_(ordinary),
    "h: pinned.copy_(y, non_blocking=True)": lambda y: pinned.copy_(y, non_blocking=True),
}
print(len(lines), "lines")

# %% [markdown]
# The large matmul goes first, so that you cannot miss a wait. Add lines of your own: `y.tolist()`,
# `len(y)`, `y.max()`.

# %%
m = torch.randn(256, 256, device="cuda")
ordinary, pinned = torch.zeros(256, 256), torch.zeros(256, 256).pin_memory()
host_s = {}
for text, line in lines.items():
    line(m @ m)  # once before
    x @ x
    host_s[text] = stopwatch(lambda: line(m @ m))
plots.host_times(host_s)

# %% [markdown]
# The rule: the host waits if it needs a *value*, to show it, to decide by it, or to have it in
# ordinary memory. It knows the shape without asking.
#
# ## Your own benchmark
#
# From lesson 01 to lesson 08 you write one function, and each lesson adds one thing. Begin with
# what you have: `benchmark(fn)` calls `fn` several times with a stopwatch around the loop, and
# returns the seconds for one call.

# %% tags=["exercise"]
exercises.continue_from("01.benchmark")


### BEGIN SOLUTION
def benchmark(fn, n_calls=20):
    start = time.perf_counter()
    for _ in range(n_calls):
        fn()
    return (time.perf_counter() - start) / n_calls


exercises.check("01.benchmark", benchmark)
### END SOLUTION

# %%
exercises.progress()

# %% [markdown]
# ## What you take with you
#
# - A call launches and returns. A stopwatch around it times the launch.
# - A line that needs a value waits for the GPU, and makes the reading right by accident.
# - Check each time against the data sheet: is this speed possible?
#
# Your benchmark is still wrong. It has to wait, but where? Next: `02_synchronize.ipynb`.

# %% [markdown]
# # Going further
#
# ## A film of the queue
#
# Five matmuls. *Pause* stops the film, and *In words* says what it shows.

# %%
import pandas as pd

from gpulab import animations
from gpulab.core.units import format_time

animations.show("queue")

# %% [markdown]
# ## A stopwatch to play with
#
# This machine runs a program of three calls: read the clock, launch a kernel, read the clock. Drag
# the end of the kernel. Which readings follow it? Then make the stopwatch right.

# %%
gpulab.explorers.machine_explorer("stopwatch", challenge="right stopwatch")

# %% [markdown]
# ## A full queue
#
# The queue has an end. Keep the GPU busy with something long, launch 1,300 tiny additions after
# it, and time each call on the host. The long work is `torch.cuda._sleep(n)`: a kernel that counts
# n clock cycles and does nothing else.

# %%
exercises.predict("01.many-calls")

# %%
tiny = torch.zeros(1024, device="cuda")
tiny.add_(1)
torch.cuda.synchronize()
torch.cuda._sleep(100_000_000)
calls_s = [stopwatch(lambda: tiny.add_(1)) for _ in range(1300)]
plots.call_times(calls_s)

# %%
jumped = max(calls_s) > 100 * median(calls_s)
exercises.compare("01.many-calls", "jump once" if jumped else "stay the same")

# %% [markdown]
# A launch that finds the queue full is *blocked*. It returns when the GPU has finished the long
# kernel and taken something out of the queue. (Single points a little above the others come from
# the operating system.)
#
# ### Exercise: how long is the queue?
#
# Find the number in `calls_s`, or read it off the figure.

# %% tags=["exercise"]
exercises.ask("01.queue-length", readings=calls_s)
### BEGIN SOLUTION
exercises.check("01.queue-length", calls_s.index(max(calls_s)), readings=calls_s)
### END SOLUTION

# %% [markdown]
# ## What a full queue does to a naive loop
#
# Many people put a stopwatch around a loop and divide by the number of calls, as your `benchmark`
# does now. The work here takes longer than its launch: an addition to 134 million numbers.

# %%
exercises.predict("01.loop")

# %%
large = torch.zeros(2**27, device="cuda")
rows = []
for n_calls in (10, 100, 1000, 2000, 5000):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(n_calls):
        large.add_(1)
    no_wait_s = (time.perf_counter() - start) / n_calls
    torch.cuda.synchronize()
    rows.append((n_calls, no_wait_s, (time.perf_counter() - start) / n_calls))
print(f"the loop of {n_calls:,} calls took {time.perf_counter() - start:.1f} s")

# %%
loops = pd.DataFrame(rows, columns=["calls in the loop", "no_wait_s", "until_done_s"])
first_s, *_, last_s = loops["no_wait_s"]
plots.line(
    loops, log="xy", title=f"A long loop reads {last_s / first_s:.0f} times as much per call"
)

# %%
exercises.compare("01.loop", "grows" if last_s > 2 * first_s else "stays the same")

# %% [markdown]
# As long as the queue has room, you time launches. When it is full, each launch waits until the
# GPU has finished one, so the host runs at the pace of the GPU. It is the same code and the same
# work, and the number depends on how often you repeat it.
#
# ## What a launch costs
#
# If the naive reading is the time of a launch, is it at least the same for every operation? Here
# are four operations on small tensors, so that the GPU has almost nothing to do.

# %%
exercises.predict("01.cost")

# %%
image, weights = torch.randn(1, 8, 32, 32, device="cuda"), torch.randn(8, 8, 3, 3, device="cuda")
works = {
    "addition": lambda: m + m,
    "matmul": lambda: m @ m,
    "linear layer": lambda: torch.nn.functional.linear(m, m, m[0]),
    "convolution": lambda: torch.nn.functional.conv2d(image, weights),
}
launches = [
    gpulab.measure(work, method="naive", n_samples=51, label=name) for name, work in works.items()
]
plots.compare_methods(launches)

# %%
exercises.compare("01.cost", max(launches, key=lambda reading: reading.median_s).label)

# %% [markdown]
# Each line of Python needs a different amount of preparation: PyTorch checks types, finds memory
# and chooses an algorithm. *Recorded* on the host of an H200: 6 to 9 µs for an element-wise
# operation, 11 to 21 µs for a matmul or a linear layer, 30 µs for a convolution. On another host
# another one of the four may take longest.
#
# ## A cold host
#
# The launch of one operation on one host is not always the same either. Wait for the GPU, longer
# and longer, and time one launch after each wait. The launch is the same every time.

# %%
rows = []
m @ m  # once before
for n_cycles in (100_000, 1_000_000, 10_000_000, 40_000_000):
    torch.cuda._sleep(n_cycles)
    start = time.perf_counter()
    torch.cuda.synchronize()
    waited = time.perf_counter()
    m @ m
    rows.append((format_time(waited - start), format_time(time.perf_counter() - waited)))
pd.DataFrame(rows, columns=["the host waited", "then a launch took"])

# %% [markdown]
# *Recorded* on the host of an H100, beside a loop without waits: after a wait of 0.1 ms a launch
# takes 1.05 times as long, after 2.7 ms 1.6 times and after 21 ms 3.8 times. During a wait the
# host's processor slows down, and its caches fill with other data. The method `naive` of
# `gpulab.measure` waits before each sample. So after large work it reads the launch of a host that
# has become cold. Even then the reading grows much less than the work:

# %%
a, b = torch.randn(64, 64, device="cuda"), torch.randn(8192, 8192, device="cuda")
options, grown = {"n_samples": 11, "n_warmup": 3}, {}
for method in ("naive", "synchronized"):
    small = gpulab.measure(lambda: a @ a, method=method, **options)
    large = gpulab.measure(lambda: b @ b, method=method, **options)
    grown[method] = large.median_s / small.median_s
exercises.claim("01.follows-no-work", here=grown["naive"] / grown["synchronized"])
