# %% [markdown]
# # 02 Synchronize
#
# What does waiting add to a reading, and what does it cost?
#
# Lesson 01 showed that a call returns before the GPU has done the work. So you must wait before
# you read the clock. This lesson is about where to wait, what the wait itself puts into the
# number, and what it takes away from a program that waits too often.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 Before and after | where the two waits stand, and why there are two | 10 |
# | 2 What is still inside | from which size of work on the stopwatch is good enough | 10 |
# | 3 Who waits for what | the five ways to wait, each with its timeline | 15 |
# | 4 A wait after every layer | what a wait costs a model | 10 |
# | 5 The snippet quiz | to see from a listing what its number is | 5 |

# %%
import time
from functools import partial

import pandas as pd
import torch

import gpulab
from gpulab import exercises, plots
from gpulab.units import format_time

draw_timeline = partial(plots.draw, plots.timeline, ax_size=(8, 2.4))
gpulab.use("auto")

# %% [markdown]
# Two pieces of work go through this lesson: a large multiplication, and an addition so small that
# the GPU has almost nothing to do. Both run three times first; lesson 04 says why.

# %%
a = torch.randn(2048, 2048, device="cuda")
small = torch.zeros(1024, device="cuda")
for _ in range(3):
    product = a @ a
    small.add_(1)
small.sum().item()

# %% [markdown]
# ## 1 Before and after
#
# ### After: wait for your own work
#
# The first reading below is taken when the call returns, the second when the GPU has finished. (On
# a real machine the first calls after a pause are slow, so the cell goes five rounds and keeps the
# last one. Other cells do the same.)

# %%
after = exercises.predict("The second is how many times the first?", ..., unit="times")
after

# %%
for _ in range(5):  # the last round counts: the first one after a pause is slow
    torch.cuda.synchronize()
    start = time.perf_counter()
    product = a @ a
    launched_s = time.perf_counter() - start
    torch.cuda.synchronize()
    finished_s = time.perf_counter() - start
format_time(launched_s), format_time(finished_s)

# %%
after.compare(finished_s / launched_s)

# %% [markdown]
# Without the wait you read the launch. With `torch.cuda.synchronize()` the host stands still until
# the GPU has done everything it was given; only then does the second look at the clock mean
# something.
#
# ### Before: wait for everybody else's work
#
# Now ten other multiplications are in the queue when you start your stopwatch. You wait *after*
# your own one, as you have just learnt.

# %%
before = exercises.predict("How many times too long is your reading?", ..., unit="times")
before

# %%
torch.cuda.synchronize()
for _ in range(10):
    product = a @ a  # somebody else's work
start = time.perf_counter()
product = a @ a  # yours
torch.cuda.synchronize()
charged_s = time.perf_counter() - start
format_time(charged_s)

# %%
before.compare(charged_s / finished_s)

# %% [markdown]
# The wait at the end does not know whose work is whose: it waits for all of it, and the backlog is
# charged to you. (It is a little less than eleven times where the GPU could begin on the backlog
# while Python was still launching it.) The cure is a second wait, *before* the first reading.

# %%
for _ in range(10):
    product = a @ a
torch.cuda.synchronize()  # the backlog ends here
start = time.perf_counter()
product = a @ a
torch.cuda.synchronize()
format_time(time.perf_counter() - start)

# %% [markdown]
# ### See it
#
# `gpulab.timeline` waits for the GPU at the end, as your stopwatch does. Here are four calls in
# the queue and then yours, the fifth. Look at when your launch ends, and when your kernel begins.

# %%
draw_timeline(
    gpulab.timeline(lambda: [a @ a for _ in range(5)], n_warmup=3),
    title="Your wait lasts as long as everybody's work",
    alt="The host launches five multiplications at once and then waits until the last has ended.",
)

# %% [markdown]
# ### Exercise: time it right

# %%
exercises.ask("02.time-it-right")

# %% tags=["exercise"]
timed = ...


### BEGIN SOLUTION
def timed(work):
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


### END SOLUTION
exercises.check("02.time-it-right", timed)

# %% [markdown]
# Stuck? `exercises.hint("02.time-it-right")` gives a hint, and one more each time.

# %% [markdown]
# ## 2 What is still inside
#
# Both waits are there now. Is the number the GPU's time? Take the small addition. On a large GPU
# its kernel is done in one to three microseconds.

# %%
inside = exercises.predict(
    "What does the stopwatch with both waits read for the small addition?", ..., unit="µs"
)
inside

# %%
addition = gpulab.measure(lambda: small.add_(1), method="synchronized", label="one small addition")
addition

# %%
inside.compare(addition)

# %% [markdown]
# Most of this is not the kernel. Two things are in the reading that are not work of the GPU: the
# **launch** (until the kernel has reached the GPU) and the **wake-up** (until the waiting host
# notices that the GPU is done). *Recorded* on an H200: a kernel of 1.2 µs reads about 14 µs.
#
# ### A wait for nothing
#
# How much of it is the wake-up? Let the stopwatch time no work at all.

# %%
nothing_guess = exercises.predict("What does it read with no work inside?", ..., unit="µs")
nothing_guess

# %%
nothing = gpulab.measure(lambda: None, method="synchronized", label="no work at all")
plots.draw(
    plots.compare_methods,
    [nothing, addition],
    title="The stopwatch with both waits",
    alt="A wait for nothing already takes microseconds; the small addition takes some more.",
    ax_size=(6.4, 2.4),
)

# %%
nothing_guess.compare(nothing)

# %% [markdown]
# Calling `synchronize` costs microseconds even when there is nothing to wait for. The rest of the
# addition's reading is mostly its launch.
#
# ### From which size on is it good enough?
#
# This overhead hardly depends on the work: 10 µs are nothing in 10 ms, and everything in 10 µs.

# %%
size_guess = exercises.predict(
    "Overhead below 5 % from which n on?", ..., choices=("64", "512", "4096", "none of these")
)
size_guess

# %%
rows = []
for n in (64, 128, 256, 512, 1024, 2048, 4096):
    x = torch.randn(n, n, device="cuda")
    work = partial(torch.mm, x, x)
    reading = gpulab.measure(work, method="synchronized", n_samples=21)
    rows.append((n, reading.median_s, "stopwatch with both waits"))
readings = pd.DataFrame(rows, columns=["size", "duration_s", "series"])
readings[["size"]].assign(time=readings["duration_s"].map(format_time))

# %%
plots.draw(
    plots.scaling,
    readings,
    title="n x n multiplication: short work reads as launch and wake-up",
    alt="The readings are nearly flat for small n and rise steeply for large n.",
    size_label="n (matrices are n by n)",
    source=gpulab.device.current(),
)

# %% [markdown]
# For small n the curve is nearly flat: there the stopwatch reads launch and wake-up, whatever the
# GPU does. So the smallest reading is about the overhead (a little more, since it holds a small
# kernel too). What share of each reading is that?

# %%
share = readings["duration_s"].min() / readings.set_index("size")["duration_s"]
share.map("{:.1%}".format)

# %%
limit = 0.05
good = [str(n) for n in (64, 512, 4096) if share[n] < limit]
size_guess.compare(good[0] if good else "none of these")

# %% [markdown]
# The stopwatch with two waits is fine for milliseconds. For microseconds the GPU must read its own
# clock: lesson 03.

# %% [markdown]
# ## 3 Who waits for what
#
# `torch.cuda.synchronize()` is one of five ways to wait. They differ in what is waited for, and in
# *who* waits: the host, or only a stream. A stream is a queue of the GPU; work in two streams may
# run at the same time.
#
# | call | waits for | who waits | in CuPy |
# |---|---|---|---|
# | `torch.cuda.synchronize()` | all streams | ? | `cupy.cuda.Device().synchronize()` |
# | `stream.synchronize()` | one stream | ? | `stream.synchronize()` |
# | `event.synchronize()` | what is before one marker | ? | `event.synchronize()` |
# | `stream.wait_event(event)` | what is before one marker | ? | `stream.wait_event(event)` |
# | `a.wait_stream(b)` | what is in stream b now | ? | `a.wait_event(b.record())` |
#
# The question marks are yours. For the work we take `torch.cuda._sleep(n)`: a kernel that counts n
# clock cycles and does nothing else. It leaves room on the GPU, so that both streams run freely.
# In the pictures, `left` is the upper stream and `right` the lower one.
#
# `gpulab.timeline` takes a function, so each program below is one. When the function has returned,
# `timeline` waits for all that is still running: this is the last wait of each picture.

# %%
left, right = torch.cuda.Stream(), torch.cuda.Stream()
SHORT, LONG = 1_000_000, 3_000_000  # cycles


def sleep_in(stream, n_cycles):
    with torch.cuda.stream(stream):
        torch.cuda._sleep(n_cycles)


left, right

# %% [markdown]
# Kernel A is in stream `left`, a kernel B that is three times longer in stream `right`. How long
# does the host stand in `torch.cuda.synchronize()`?

# %%
whole = exercises.predict(
    "How long does the host stand?", ..., choices=("until A ends", "until B ends", "not at all")
)
whole


# %%
def wait_for_the_device():
    sleep_in(left, SHORT)  # A
    sleep_in(right, LONG)  # B
    torch.cuda.synchronize()


draw_timeline(
    gpulab.timeline(wait_for_the_device),
    title="The device: the host waits for every stream",
    alt="The host's wait ends when the longer kernel B ends.",
)

# %%
whole.compare("until B ends")

# %% [markdown]
# The whole device is waited for, and the host does nothing meanwhile. Most often you want just
# this when you time something; in a program it waits for strangers too.
#
# The same two kernels. How long does the host stand in `left.synchronize()`?

# %%
one = exercises.predict(
    "How long does the host stand?", ..., choices=("until A ends", "until B ends", "not at all")
)
one


# %%
def wait_for_a_stream():
    sleep_in(left, SHORT)  # A
    sleep_in(right, LONG)  # B
    left.synchronize()


draw_timeline(
    gpulab.timeline(wait_for_a_stream),
    title="left.synchronize(): the host waits for one stream",
    alt="The host's first wait ends when A ends; B goes on in the other stream.",
)

# %%
one.compare("until A ends")

# %% [markdown]
# Only the stream that you name counts; what runs elsewhere goes on. An event is finer still: a
# marker between two pieces of work in one stream.
#
# A, then a marker, then B, all in stream `left`. How long does the host stand in
# `marker.synchronize()`?

# %%
marker = exercises.predict(
    "How long does the host stand?", ..., choices=("until A ends", "until B ends", "not at all")
)
marker

# %%
event = torch.cuda.Event()


def wait_for_an_event():
    sleep_in(left, SHORT)  # A
    event.record(left)
    sleep_in(left, LONG)  # B
    event.synchronize()


waited = gpulab.timeline(wait_for_an_event)
format_time(waited.duration_s)

# %%
draw_timeline(
    waited,
    title="event.synchronize(): the host waits for the work before a marker",
    alt="The host's first wait ends when A ends, although B follows in the same stream.",
)

# %%
marker.compare("until A ends")

# %% [markdown]
# The host waits for what was in front of the marker, and not for what came after it. Now the other
# two.
#
# A marker stands behind A in stream `left`. Then `right.wait_event(marker)`, then B in stream
# `right`. How long does the host stand in `wait_event`?

# %%
gpu_side = exercises.predict(
    "How long does the host stand?", ..., choices=("until A ends", "until B ends", "not at all")
)
gpu_side


# %%
def let_a_stream_wait():
    sleep_in(left, SHORT)  # A
    event.record(left)
    right.wait_event(event)
    sleep_in(right, SHORT)  # B
    time.sleep(1e-3)  # the host is free


waited = gpulab.timeline(let_a_stream_wait)
format_time(waited.duration_s)

# %%
draw_timeline(
    waited,
    title="right.wait_event(event): only the stream waits",
    alt="The host goes on at once; the lower stream waits until A has ended and then runs B.",
)

# %%
gpu_side.compare("not at all")

# %% [markdown]
# The wait is one more entry in the queue of the stream. The host puts it there and goes on: it has
# time for a nap, so its lane is empty. `wait_stream` is the same with a marker that PyTorch makes
# for you, behind everything that is in the other stream at this moment.
#
# A in `left`, then `right.wait_stream(left)`, then C in `left`, then B in `right`. When does B
# start?

# %%
late = exercises.predict("When does B start?", ..., choices=("at once", "after A", "after C"))
late


# %%
def wait_for_what_is_there():
    sleep_in(left, SHORT)  # A
    right.wait_stream(left)
    sleep_in(left, LONG)  # C
    sleep_in(right, SHORT)  # B


draw_timeline(
    gpulab.timeline(wait_for_what_is_there),
    title="right.wait_stream(left): for what is there now",
    alt="The lower stream waits until A has ended; then B runs beside C.",
)

# %%
late.compare("after A")

# %% [markdown]
# C came too late to be waited for. To order streams, use these two: they cost the host nothing. To
# read a clock on the host, you need one of the first three.
#
# ### Exercise: who blocks

# %%
exercises.ask("02.who-blocks")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {
    "torch.cuda.synchronize": "host",
    "stream.synchronize": "host",
    "event.synchronize": "host",
    "stream.wait_event": "gpu",
    "stream.wait_stream": "gpu",
}
### END SOLUTION
exercises.check("02.who-blocks", answer)

# %% [markdown]
# ## 4 A wait after every layer
#
# While you time something, it is tempting to leave a wait behind every step. What does a model pay
# for it? Here are twenty layers, run in two ways.

# %%
layers = [torch.nn.Linear(2048, 2048, device="cuda", dtype=torch.half) for _ in range(20)]
model = torch.nn.Sequential(*layers).requires_grad_(requires_grad=False)
batch = torch.randn(2048, 2048, device="cuda", dtype=torch.half)


def wait_after_every_layer(x):
    for layer in model:
        x = layer(x)
        torch.cuda.synchronize()
    return x


wait_after_every_layer(batch).shape

# %%
slower = exercises.predict(
    "How many times slower is the model with a wait after every layer?", ..., unit="times"
)
slower

# %%
once = gpulab.measure(lambda: model(batch), method="synchronized", label="one wait at the end")
every = gpulab.measure(
    lambda: wait_after_every_layer(batch), method="synchronized", label="a wait after every layer"
)
slower.compare(every.median_s / once.median_s)

# %%
throughput = pd.DataFrame(
    {
        "one forward pass": {way.label: format_time(way.median_s) for way in (once, every)},
        "rows per second": {way.label: len(batch) / way.median_s for way in (once, every)},
    }
)
throughput.round(-3).astype({"rows per second": int})

# %% [markdown]
# With one wait at the end, the host launches layer after layer while the GPU works. With a wait
# after each, host and GPU take turns: launch, work, wake up, and again. Look at five layers of
# each, with a larger batch so that the kernels can be seen.

# %%
large = torch.randn(4096, 2048, device="cuda", dtype=torch.half)
wait_after_every_layer(large).shape

# %%
draw_timeline(
    gpulab.timeline(lambda: model[:5](large), n_warmup=3),
    title="Five layers, one wait at the end",
    alt="The launches follow one another without a pause; the host waits once.",
)


# %%
def five_with_waits():
    x = large
    for layer in model[:5]:
        x = layer(x)
        torch.cuda.synchronize()


draw_timeline(
    gpulab.timeline(five_with_waits, n_warmup=3),
    title="Five layers, a wait after each",
    alt="Launches and waits alternate; between two layers the stream stands idle.",
)

# %% [markdown]
# (On a real GPU the notes for the picture take time: read the order from it, not the speed.)
#
# ### Does it always cost that much?
#
# The batch grows. What happens to the ratio of the two?

# %%
larger = exercises.predict(
    "The ratio for a large batch?", ..., choices=("more", "the same", "nearly 1")
)
larger

# %%
rows = []
for n_rows in (64, 512, 4096, 16384):
    x = torch.randn(n_rows, 2048, device="cuda", dtype=torch.half)
    ways = {"one wait at the end": model, "a wait after every layer": wait_after_every_layer}
    for name, way in ways.items():
        work = partial(way, x)
        reading = gpulab.measure(work, method="synchronized", n_samples=11)
        rows.append((n_rows, reading.median_s, name))
costs = pd.DataFrame(rows, columns=["size", "duration_s", "series"])
costs.pivot_table(index="size", columns="series", values="duration_s")

# %%
plots.draw(
    plots.scaling,
    costs,
    title="Twenty layers, waited for once or twenty times",
    alt="The two lines are apart for small batches and come together for large ones.",
    size_label="rows in the batch",
    source=gpulab.device.current(),
)

# %%
ratio = costs.pivot_table(index="size", columns="series", values="duration_s")
ratio = ratio["a wait after every layer"] / ratio["one wait at the end"]
answer = "nearly 1" if ratio.iloc[-1] < ratio.iloc[0] else "more"
larger.compare(answer)

# %% [markdown]
# A wait costs the same few microseconds after every layer. Where a layer takes a millisecond
# nobody notices; where it takes about as long as its launch, the model is about half as fast. So
# take the waits out of code that you do not time just now, and look for the hidden ones of lesson
# 01: `.item()`, `.cpu()`, `print`.

# %% [markdown]
# ## 5 The snippet quiz
#
# Three listings, each meant to time a model. Say what each number is, and what it needs.

# %%
exercises.ask("02.snippet-quiz")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {
    "a": ("launch", "wait after"),
    "b": ("work and backlog", "wait before"),
    "c": ("work", "none"),
}
### END SOLUTION
exercises.check("02.snippet-quiz", answer)

# %% [markdown]
# ## What you take along
#
# - Wait, read, work, wait, read. The first wait keeps the backlog out, the second keeps your work
#   in.
# - What is left in the reading is the launch and the wake-up: microseconds. Fine for 10 ms,
#   useless for 10 µs.
# - Whatever is called `synchronize` keeps the host. `wait_event` and `wait_stream` keep a stream,
#   and the host goes on.
# - A wait costs next to nothing after a millisecond of work, and up to half the speed after tens
#   of microseconds.
#
# Next: `03_events.ipynb`. The GPU has a clock of its own.

# %%
exercises.progress()
