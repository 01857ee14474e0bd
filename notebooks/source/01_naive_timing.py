# ---
# jupyter:
#   lint: |
#     ruff: noqa: F821 (the magics bind names, which ruff cannot see)
# ---

# %% [markdown]
# # 01 Naive timing
#
# Why does a stopwatch around a GPU call read almost nothing?
#
# Read the clock, call the function, read the clock again: this is how you time Python. With a
# GPU it gives a number that is small, repeats well, and has little to do with the work. In this
# lesson you find out what it does time. You also see when it is right by accident, which is
# worse.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 The queue | what happens between your call and the GPU | 12 |
# | 2 Flat and steep | how wrong the naive reading is, from n = 64 to 8192 | 8 |
# | 3 A full queue | when a launch has to wait | 10 |
# | 4 Hidden waits | which harmless lines wait for the GPU | 10 |
# | 5 Your own benchmark | the first version of `benchmark(fn)` | 5 |
# | *Going further* | a naive loop, and what a launch costs | extra, 15 |
#
# Begin with a toy. This machine runs a program of three calls: read the clock, launch a kernel,
# read the clock. Drag the end of the kernel. Which readings follow it, and which do not? Then make
# the stopwatch right.

# %%
import time

import pandas as pd
import torch

import gpulab
from gpulab import animations, exercises, plots
from gpulab.core.units import format_time

# %load_ext gpulab
gpulab.use("auto")
gpulab.explorers.machine_explorer("stopwatch", challenge="right stopwatch")

# %% [markdown]
# The work is a matmul of two large matrices. It runs three times before you time it, because first
# calls are slow for reasons of their own (lesson 04).

# %%
x = torch.randn(4096, 4096, device="cuda")
for _ in range(3):
    y = x @ x
torch.cuda.synchronize()
x.shape, x.device

# %% [markdown]
# ## 1 The queue
#
# This matmul takes 137 billion floating-point operations. First look at how long that takes:

# %%
# %%cudatime --save work
x @ x

# %% [markdown]
# Now put a stopwatch around it.

# %%
exercises.predict("01.naive")

# %%
for _ in range(3):  # the last round counts: the first calls after a pause are slow
    torch.cuda.synchronize()
    start = time.perf_counter()
    y = x @ x
    naive_s = time.perf_counter() - start
format_time(naive_s)

# %%
exercises.compare("01.naive", naive_s)

# %% [markdown]
# Compare it with the time above. Your computer has two workers: the **host**, which runs Python,
# and the **device**, the GPU. Between them is a **queue**. `x @ x` does not multiply. It
# *launches*: it puts the matmul into the queue and returns. You timed the launch.

# %%
exercises.claim("01.reads-too-little", here=naive_s / work.median_s)

# %% [markdown]
# If this is true, the GPU cannot be ready when the call returns. PyTorch calls such a queue a
# *stream*. You can ask a stream whether it is done, without waiting for it.

# %%
exercises.predict("01.done")

# %%
y = x @ x
is_done = torch.cuda.current_stream().query()
exercises.compare("01.done", "yes" if is_done else "no")

# %% [markdown]
# You can still use `y` in the next line, as if it were there. This is safe: the next operation
# goes into the same queue, after the matmul.
#
# ### See it
#
# `gpulab.timeline` runs some work, records what host and GPU do, and waits for the GPU at the end.
# Here are three matmuls, small enough that you can see the launches beside them.

# %%
exercises.predict("01.behind")

# %%
small = torch.randn(1280, 1280, device="cuda")
queue = gpulab.timeline(lambda: [small @ small for _ in range(3)], n_warmup=3)
plots.timeline(queue)

# %%
spans = queue.to_frame().set_index("kind")
exercises.compare("01.behind", (spans.loc["kernel", "end_s"] < spans.loc["wait", "start_s"]).sum())

# %% [markdown]
# The upper lane is the host, the lower one the stream. An arrow goes from each launch to the
# kernel that it started. Below them, *queue depth* counts the launches that the GPU has not
# finished yet. The last row shows the memory in use.
#
# A naive stopwatch reads the time from one launch to the next. The work is in the other lane. The
# same as a film, with five matmuls; *Pause* stops it, and *In words* says what it shows.

# %%
animations.show("queue")

# %% [markdown]
# ## 2 Flat and steep
#
# How wrong is the naive reading? That depends on the size. From n = 64 to n = 8192 the side of the
# matrices grows 128 times, and the arithmetic about two million times.

# %%
exercises.predict("01.flat")

# %% [markdown]
# `gpulab.measure` does what you did above several times, and takes the median. The method `naive`
# waits for nothing. The method `synchronized` stops when the GPU has finished; lesson 02 is about
# it.

# %%
rows = []
for n in (64, 128, 256, 512, 1024, 2048, 4096, 8192):
    a = torch.randn(n, n, device="cuda")
    for method in ("naive", "synchronized"):
        reading = gpulab.measure(lambda a=a: a @ a, method=method, n_samples=11, n_warmup=3)
        rows.append((n, reading.median_s, method))
readings = pd.DataFrame(rows, columns=["size", "duration_s", "series"])
plots.scaling(readings, size_label="n (matrices are n by n)")

# %%
times_s = readings.pivot_table(index="size", columns="series", values="duration_s")
exercises.compare("01.flat", times_s["naive"][8192] / times_s["naive"][64])

# %% [markdown]
# Now look at the other line. When n doubles, a matmul has eight times as much work:

# %%
times_s["synchronized"] / times_s["synchronized"].shift(1)

# %% [markdown]
# For large n the factor comes near 8: the time grows as n³. For small n it is near 1, because
# the launch and the wait take longer than the work (lesson 02). Does the naive reading follow the
# work at all? Compare how much each of the two lines grows:

# %%
grown = times_s.loc[8192] / times_s.loc[64]
exercises.claim("01.follows-no-work", here=grown["naive"] / grown["synchronized"])

# %% [markdown]
# So the naive reading is most wrong where you care most: for large work. On the virtual GPU it is
# the same for every n. On a real machine it moves, too, but not with the work of the call that you
# time; *Going further* shows what moves it.
#
# ### Exercise: what was timed?

# %%
exercises.ask("01.what-was-timed")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = "b"
### END SOLUTION
exercises.check("01.what-was-timed", answer)

# %% [markdown]
# ## 3 A full queue
#
# The queue has an end. Keep the GPU busy with something long, and launch many tiny additions after
# it. The long work is `torch.cuda._sleep(n)`: a kernel that counts n clock cycles and does nothing
# else.

# %%
exercises.predict("01.jump")

# %%
tiny = torch.zeros(1024, device="cuda")
tiny.add_(1)
torch.cuda.synchronize()
torch.cuda._sleep(100_000_000)
calls_s = []
for _ in range(1300):
    start = time.perf_counter()
    tiny.add_(1)
    calls_s.append(time.perf_counter() - start)
plots.call_times(calls_s)

# %%
ordered_s = sorted(calls_s)
jumped = ordered_s[-1] > 100 * ordered_s[650]
exercises.compare("01.jump", "jump once" if jumped else "stay the same")

# %% [markdown]
# A launch that finds the queue full is *blocked*. It returns when the GPU has finished the long
# kernel and taken something out of the queue. (Single points a little above the others come from
# the operating system.)
#
# ### Exercise: how long is the queue?
#
# Find the number in `calls_s`, or read it off the figure.

# %%
exercises.ask("01.queue-length")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = calls_s.index(max(calls_s))
### END SOLUTION
exercises.check("01.queue-length", answer, readings=calls_s)

# %% [markdown]
# ## 4 Hidden waits
#
# A full queue is one way in which a naive reading becomes right by accident. There is a more
# common one. Add one harmless call to the matmul:

# %%
w = torch.randn(2048, 2048, device="cuda")
exercises.predict("01.item")

# %%
(w @ w).sum().item()  # once before, as always
start = time.perf_counter()
total = (w @ w).sum().item()
item_s = time.perf_counter() - start
exercises.compare("01.item", item_s)

# %% [markdown]
# `.item()` gives you a Python number, and there is no number before the GPU has computed it. So
# the host waits for everything that is in the queue before it. You did not write `synchronize`,
# but it happened all the same: a **hidden synchronization**.
#
# ### Exercise: find the others
#
# Which of these lines wait, too? Answer first. Then measure. Then check your answer.

# %%
exercises.ask("01.hidden-sync")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {"a", "c", "e", "f", "g"}
### END SOLUTION
answer

# %% [markdown]
# Here are two tensors on the host, and the eight lines, each as a small function. Add lines of
# your own: `y.tolist()`, `torch.nonzero(y)`, `len(y)`, `y.max()`.

# %%
m = torch.randn(256, 256, device="cuda")
ordinary, pinned = torch.zeros(256, 256), torch.zeros(256, 256).pin_memory()
ordinary.is_pinned(), pinned.is_pinned()

# %%
lines = {
    "a: y.sum().item()": lambda y: y.sum().item(),
    "b: y.shape": lambda y: y.shape,
    "c: print(y[0, 0])": lambda y: print(y[0, 0]),
    "d: torch.relu(y)": torch.relu,
    "e: y.cpu()": lambda y: y.cpu(),
    "f: if (y > 0).any(): pass": lambda y: bool((y > 0).any()),
    "g: y.copy_(ordinary)": lambda y: y.copy_(ordinary),
    "h: pinned.copy_(y, non_blocking=True)": lambda y: pinned.copy_(y, non_blocking=True),
}
list(lines)

# %% [markdown]
# The GPU is kept busy for 20 million cycles before the matmul, so that you cannot miss a wait.
# (The number that is printed comes from line c: once before, and once timed.)

# %%
host_s = {}
for text, line in lines.items():
    line(m @ m)  # once before, so that nothing is new
    torch.cuda.synchronize()
    torch.cuda._sleep(20_000_000)
    start = time.perf_counter()
    line(m @ m)
    host_s[text] = time.perf_counter() - start
plots.bars(pd.Series(host_s, name="host_s"), title="Time on the host")

# %% [markdown]
# Milliseconds: the line waited. Microseconds: it did not. Was your answer right?

# %%
exercises.check("01.hidden-sync", answer)

# %% [markdown]
# The rule: the host waits whenever it needs a *value*, to show it, to calculate with it, to decide
# by it, or to have it in ordinary memory. It knows shapes and types without asking. Are you stuck?
# Run `exercises.hint("01.hidden-sync")`.
#
# gpulab looks for hidden waits, too, and says so in a note:

# %%
gpulab.measure(lambda: (w @ w).sum().item(), method="naive", label="with a hidden wait")

# %% [markdown]
# ## 5 Your own benchmark
#
# Through lessons 01 to 08 you write one function, `benchmark(fn)`. It calls `fn` and returns the
# seconds that one call takes. In each lesson it learns one thing more. Begin with what you have: a
# stopwatch around a loop, divided by the number of calls.

# %%
exercises.ask("01.benchmark")

# %% tags=["exercise"]
benchmark = ...


### BEGIN SOLUTION
def benchmark(fn, n_calls=20):
    start = time.perf_counter()
    for _ in range(n_calls):
        fn()
    return (time.perf_counter() - start) / n_calls


### END SOLUTION
exercises.check("01.benchmark", benchmark)

# %% [markdown]
# ## What you take with you
#
# - A call launches and returns. A stopwatch around it times the launch.
# - The naive reading does not follow the work. It follows the host: how long the launch takes, and
#   whether the queue is full.
# - A line that needs a value waits for the GPU, and makes a naive reading right by accident.
# - To time work you must wait for it, on purpose and in the right place.
#
# Next: `02_synchronize.ipynb`. What does waiting add, and what does it cost?

# %%
exercises.progress()

# %% [markdown]
# # Going further
#
# ## What a full queue does to a naive loop
#
# Many people time a loop and divide by the number of calls, as your `benchmark` does now. Take
# work that takes longer than its launch: an addition to 33 million numbers.

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
    naive_s = (time.perf_counter() - start) / n_calls
    torch.cuda.synchronize()
    rows.append((n_calls, naive_s, (time.perf_counter() - start) / n_calls))
loops = pd.DataFrame(rows, columns=["calls in the loop", "no_wait_s", "until_done_s"])
plots.line(loops, log="xy", title="Time per call")

# %%
first_s, *_, last_s = loops["no_wait_s"]
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
# and chooses an algorithm. *Recorded* on an H200 with a fast host: about 6 µs for an
# element-wise operation, 12 to 20 µs for a matmul or a linear layer, 30 µs for a convolution.
# This is time of the *host*. Another host gives other numbers.
#
# ## A cold host
#
# The launch of one operation on one host is not always the same either. Wait for the GPU, longer
# and longer, and time one launch after each wait. The launch is the same every time.

# %%
exercises.predict("01.cold-host")

# %%
rows = []
for n_cycles in (100_000, 1_000_000, 10_000_000, 40_000_000):
    torch.cuda._sleep(n_cycles)
    start = time.perf_counter()
    torch.cuda.synchronize()
    waited = time.perf_counter()
    m @ m
    rows.append((format_time(waited - start), time.perf_counter() - waited))
after_waits = pd.DataFrame(rows, columns=["the host waited", "launch_s"])
after_waits

# %%
first_s, *_, last_s = after_waits["launch_s"]
exercises.compare("01.cold-host", "becomes slower" if last_s > 2 * first_s else "stays the same")

# %% [markdown]
# The virtual host is always warm. *Recorded* on an H100: a launch took 30 µs after a wait of 0.1
# ms, 88 µs after 2.7 ms and 300 µs after 21 ms, while launches in a loop without waits took 20 µs
# for every size. During a wait the host's processor slows down and its caches fill with other
# data. The method `naive` waits before each sample, so after large work it reads the launch of a
# host that has become cold.
