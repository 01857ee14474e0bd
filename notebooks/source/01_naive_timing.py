# %% [markdown]
# # 01 Naive timing
#
# Why does a stopwatch around a GPU call read almost nothing?
#
# Read the clock, call the function, read the clock again: this is how one times Python. With a GPU
# it gives a number that is small, repeats well, and has nothing to do with the work. Here you find
# out what it does time, and when it comes right by accident, which is worse.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 The queue | what happens between your call and the GPU | 10 |
# | 2 Flat and steep | how far the naive reading is off, from n = 64 to 8192 | 10 |
# | 3 A full queue | why the naive reading of a long loop grows after all | 15 |
# | 4 Hidden waits | which harmless lines wait for the GPU | 15 |
# | 5 What a launch costs | that not every operation costs the host the same | 5 |

# %%
import time
from functools import partial

import pandas as pd
import torch

import gpulab
from gpulab import exercises, plots
from gpulab.units import format_time

gpulab.use("auto")

# %% [markdown]
# The work is a multiplication of two large matrices. It runs three times before we time anything,
# because first runs are slow for reasons of their own (lesson 04).

# %%
x = torch.randn(4096, 4096, device="cuda")
for _ in range(3):
    y = x @ x
torch.cuda.synchronize()
x.shape, x.device

# %% [markdown]
# ## 1 The queue
#
# This multiplication takes 137 billion floating-point operations. In single precision that keeps
# even a fast GPU busy for milliseconds.

# %%
naive_guess = exercises.predict("What does the stopwatch below read?", ..., unit="µs")
naive_guess

# %%
for _ in range(3):  # the last round counts: the first calls after a pause are slow
    torch.cuda.synchronize()
    start = time.perf_counter()
    y = x @ x
    naive_s = time.perf_counter() - start
format_time(naive_s)

# %%
naive_guess.compare(naive_s)

# %% [markdown]
# Far too little. Your computer has two workers: the **host**, which runs Python, and the
# **device**, the GPU. Between them is a **queue**. `x @ x` does not multiply. It *launches*: it
# puts a note "multiply these two" into the queue and returns. You timed the writing of the note.
#
# If that is so, the GPU cannot be ready when the call returns. A stream, as PyTorch calls such a
# queue, can be asked whether it is done, without waiting for it.

# %%
done_guess = exercises.predict(
    "x @ x has just returned. Is the multiplication done?", ..., choices=("yes", "no")
)
done_guess

# %%
y = x @ x
is_done = torch.cuda.current_stream().query()
is_done

# %%
done_guess.compare("yes" if is_done else "no")

# %% [markdown]
# And yet you can use `y` in the next line, as if it were there. That is safe: the next operation
# joins the same queue, behind the multiplication.
#
# ### See it
#
# `gpulab.timeline` runs a piece of work, notes what the host and the GPU do, and waits for the GPU
# at the end. Three multiplications, small enough that the launches do not vanish beside them.

# %%
behind_guess = exercises.predict(
    "The host has launched all three. How many of them has the GPU finished?", ..., unit="calls"
)
behind_guess

# %%
small = torch.randn(1280, 1280, device="cuda")
queue = gpulab.timeline(lambda: [small @ small for _ in range(3)], n_warmup=3)
format_time(queue.duration_s)

# %%
plots.draw(
    plots.timeline,
    queue,
    title="The host launches and goes on; the GPU follows",
    alt="The host has launched the third multiplication before the GPU is done with the second, "
    "and then waits until the GPU is done with all.",
    ax_size=(8, 2.8),
)

# %% [markdown]
# The upper lane is the host, the lower one the stream. An arrow leads from each launch to the
# kernel that it started. Of the grey rows, *queue depth* counts the launches that the GPU has not
# finished yet; the others show how many kernels run at once, and the memory in use.

# %%
spans = queue.to_frame()
launched_s = spans[spans["kind"] == "wait"]["start_s"].item()
behind_guess.compare(sum(spans[spans["kind"] == "kernel"]["end_s"] < launched_s))

# %% [markdown]
# The naive stopwatch reads the time from one launch to the next. (On a real GPU it is longer here,
# because the notes take time, too.) The work is in the other lane.

# %% [markdown]
# ## 2 Flat and steep
#
# How far off is the naive reading? It depends on the size. From n = 64 to n = 8192 the side of the
# matrices grows 128 times, and the arithmetic about two million times.

# %%
flat_guess = exercises.predict(
    "How many times larger is the naive reading for n = 8192 than for n = 64?", ..., unit="times"
)
flat_guess

# %% [markdown]
# `gpulab.measure` does what you did above, several times, and takes the median. The method `naive`
# waits for nothing. The method `synchronized` stops only when the GPU has finished; lesson 02 is
# about it.

# %%
rows = []
for n in (64, 128, 256, 512, 1024, 2048, 4096, 8192):
    x = torch.randn(n, n, device="cuda")
    for method in ("naive", "synchronized"):
        reading = gpulab.measure(
            partial(torch.matmul, x, x), method=method, n_samples=11, n_warmup=3
        )
        rows.append((n, reading.median_s, method))
readings = pd.DataFrame(rows, columns=["size", "duration_s", "series"])
readings.tail(2).assign(duration_s=readings["duration_s"].map(format_time))

# %%
plots.draw(
    plots.scaling,
    readings.replace({"naive": "naive: no wait", "synchronized": "until the GPU is done"}),
    title="Multiplication of two n x n matrices",
    alt="The naive line stays flat over all sizes. The other line is near it for small n, and "
    "rises steeply for large n.",
    size_label="n (matrices are n by n)",
    source=gpulab.device.current(),
)

# %%
table = readings.pivot_table(index="size", columns="series", values="duration_s")
flat_guess.compare(table["naive"][8192] / table["naive"][64])

# %% [markdown]
# The naive line is flat, because a note about large matrices is as short as one about small ones.
# *Recorded* on an H200: 6 to 20 µs of the host, whatever n is. Now the other line. When n doubles,
# a multiplication has eight times the work:

# %%
table["synchronized"] / table["synchronized"].shift(1)

# %% [markdown]
# Towards large n the factor comes near 8: the time grows as n³. For small n it is near 1, because
# there the wait and the launch take longer than the work (lesson 02). So the naive reading is most
# wrong where you care most: for large work.
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
# A queue has an end. Let the GPU be busy with something long, and launch many tiny additions
# behind it. For the long work we take `torch.cuda._sleep(n)`: a kernel that counts n clock cycles
# and does nothing else.

# %%
jump_guess = exercises.predict(
    "You launch 1,300 tiny additions while the GPU is busy, and time each call on the host. "
    "What do the times do?",
    ...,
    choices=("stay the same", "grow slowly", "jump once"),
)
jump_guess

# %%
tiny = torch.zeros(1024, device="cuda")
for _ in range(3):
    tiny.add_(1)
torch.cuda.synchronize()
torch.cuda._sleep(100_000_000)
calls_s = []
for _ in range(1300):
    start = time.perf_counter()
    tiny.add_(1)
    calls_s.append(time.perf_counter() - start)
[format_time(call_s) for call_s in calls_s[:5]]

# %%
plots.draw(
    plots.call_times,
    calls_s,
    title="Each of 1,300 launches behind a long kernel",
    alt="Nearly all calls take a few microseconds. One call, after about a thousand, takes "
    "thousands of times longer.",
    source=gpulab.device.current(),
)

# %%
ordered_s = sorted(calls_s)
jump_guess.compare("jump once" if ordered_s[-1] > 100 * ordered_s[650] else "stay the same")

# %% [markdown]
# About a thousand launches found room. The next one was *blocked*: it could not return before the
# GPU had finished the long kernel and taken something out of the queue. After that there was room
# again. (Single points a little above the others are the operating system's doing.)
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
# ### What this does to a naive loop
#
# Many people time a loop and divide by the number of calls. Now take work that keeps the GPU
# longer than its launch keeps the host: an addition to 33 million numbers.

# %%
loop_guess = exercises.predict(
    "A naive stopwatch around a loop, divided by the number of calls. What does the reading do "
    "when the loop becomes longer?",
    ...,
    choices=("stays the same", "falls", "grows"),
)
loop_guess

# %%
large = torch.zeros(2**25, device="cuda")
large.add_(1)
large.shape

# %%
rows = []
for n_calls in (10, 100, 1000, 2000, 5000):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(n_calls):
        large.add_(1)
    rows.append((n_calls, (time.perf_counter() - start) / n_calls, "naive: no wait"))
    torch.cuda.synchronize()
    rows.append((n_calls, (time.perf_counter() - start) / n_calls, "until the GPU is done"))
rows[-2:]

# %%
loops = pd.DataFrame(rows, columns=["size", "duration_s", "series"])
plots.draw(
    plots.scaling,
    loops,
    title="The same addition, in loops of different length",
    alt="Until the GPU is done, a call takes the same time in every loop. The naive reading is "
    "several times smaller up to 1,000 calls, and comes near the other line in longer loops.",
    size_label="calls in the loop",
    source=gpulab.device.current(),
)

# %%
naive_loops_s = [call_s for _, call_s, series in rows if series == "naive: no wait"]
loop_guess.compare("grows" if naive_loops_s[-1] > 2 * naive_loops_s[0] else "stays the same")

# %% [markdown]
# As long as the queue has room, you time launches. When it is full, each launch has to wait until
# the GPU has finished one, so the host is slowed down to the pace of the GPU. The same code, the
# same work, and the number depends on how often you repeat it.

# %% [markdown]
# ## 4 Hidden waits
#
# A full queue is one way in which a naive reading becomes right by accident. There is a more
# common one. Add one harmless call to the multiplication:

# %%
x = torch.randn(4096, 4096, device="cuda")
item_guess = exercises.predict(
    "What does the stopwatch read with .sum().item() behind the multiplication?", ..., unit="µs"
)
item_guess

# %%
(x @ x).sum().item()  # once before, as always
start = time.perf_counter()
total = (x @ x).sum().item()
item_s = time.perf_counter() - start
format_time(item_s)

# %%
item_guess.compare(item_s)

# %% [markdown]
# `.item()` gives you a Python number, and nobody has a number before the GPU has computed it. So
# the host waits for all that stands before it in the queue. Nobody wrote `synchronize`, and yet
# there it is: a **hidden synchronization**.
#
# ### Exercise: find the others
#
# Which of these lines wait, too? Answer first. Then measure. Then let your answer be checked.

# %%
exercises.ask("01.hidden-sync")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {"a", "c", "e", "f", "g"}
### END SOLUTION
answer

# %% [markdown]
# Here are two tensors of the host, and the eight lines, each as a small function. Add lines of
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
# So that a wait cannot be overlooked, the GPU is kept busy for 20 million cycles in front of the
# multiplication. (The number that you see printed is line c's: once before, and once timed.)

# %%
host_s = {}
for text, line in lines.items():
    line(m @ m)  # once before, so that nothing is new
    torch.cuda.synchronize()
    torch.cuda._sleep(20_000_000)
    start = time.perf_counter()
    y = m @ m
    line(y)
    host_s[text] = time.perf_counter() - start
pd.Series(host_s).map(format_time).rename("time on the host").to_frame()

# %% [markdown]
# Milliseconds: the line waited. Microseconds: it did not. Was your answer right?

# %%
exercises.check("01.hidden-sync", answer)

# %% [markdown]
# The rule behind it: the host must wait whenever it needs a *value*, to show it, to count with it,
# to decide by it, or to have it in ordinary memory. Shapes and types it knows without asking.
# Stuck? `exercises.hint("01.hidden-sync")`.
#
# The kit looks for hidden waits, too, and says so in a note:

# %%
gpulab.measure(lambda: (x @ x).sum().item(), method="naive", label="with a hidden wait")

# %% [markdown]
# ## 5 What a launch costs
#
# One thing is left. If the naive reading is the time of a launch, is it at least the same for
# every operation? Four operations on small tensors, where the GPU has hardly anything to do.

# %%
cost_guess = exercises.predict(
    "Which of the four keeps the host longest?",
    ...,
    choices=("addition", "multiplication", "linear layer", "convolution"),
)
cost_guess

# %%
image, weights = torch.randn(1, 8, 32, 32, device="cuda"), torch.randn(8, 8, 3, 3, device="cuda")
works = {
    "addition": lambda: m + m,
    "multiplication": lambda: m @ m,
    "linear layer": lambda: torch.nn.functional.linear(m, m, m[0]),
    "convolution": lambda: torch.nn.functional.conv2d(image, weights),
}
launches = [
    gpulab.measure(work, method="naive", n_samples=51, label=name) for name, work in works.items()
]
launches[-1]

# %%
plots.draw(
    plots.compare_methods,
    launches,
    title="What a launch costs the host",
    alt="The addition costs the host least; multiplication, linear layer and convolution cost "
    "several times as much.",
    ax_size=(6.4, 3.2),
)

# %%
cost_guess.compare(max(launches, key=lambda reading: reading.median_s).label)

# %% [markdown]
# Behind each line of Python there is a different amount of preparation: types are checked, memory
# is found, an algorithm is chosen. *Recorded* on an H200 with a fast host: about 6 µs for an
# element-wise operation, 12 to 20 µs for a multiplication or a linear layer, 30 µs for a
# convolution. It is time of your *host*, and another host gives other numbers.
#
# ## What to take with you
#
# - A call launches and returns. A stopwatch around it times the launch.
# - The naive reading is flat where the work grows; it grows only when the queue is full.
# - A line that needs a value waits for the GPU, and makes a naive reading right by accident.
# - To time work you must wait for it, on purpose and in the right place.

# %%
exercises.progress()

# %% [markdown]
# Next: `02_synchronize.ipynb`. What does waiting add, and what does it cost?
