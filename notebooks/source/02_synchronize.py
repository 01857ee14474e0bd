# %% [markdown]
# # 02 Synchronize
#
# Where do you have to wait?

# %%
import time
from statistics import median

import pandas as pd
import torch

import gpulab
from gpulab import exercises, plots

gpu = gpulab.use("auto")  # your GPU, or a virtual one
a = torch.randn(2048, 2048, device="cuda")
gpu

# %% [markdown]
# The stopwatch of lesson 01, now with a wait after the work. You time `a @ a`. Then you time the
# same `a @ a` just after ten others.

# %%
exercises.predict("02.before")


# %%
def stopwatch(fn):
    start = time.perf_counter()
    fn()
    torch.cuda.synchronize()  # new: wait for the GPU
    return time.perf_counter() - start


alone_s = [stopwatch(lambda: a @ a) for _ in range(5)][-1]  # the last one counts
for _ in range(10):
    a @ a
after_ten_s = stopwatch(lambda: a @ a)
exercises.compare("02.before", after_ten_s / alone_s)

# %% [markdown]
# ## Is that possible?
#
# Lesson 01 had a check:

# %%
speeds = (2 * 2048**3 / reading_s / 1e12 for reading_s in (alone_s, after_ten_s))
print(*(f"{speed:.1f} TFLOP/s" for speed in speeds), sep="\n")

# %% [markdown]
# A GPU can be as slow as that. So the check finds nothing: it finds only readings that are too
# short. But this is the same matmul on the same GPU, and at most one of the two numbers can be
# right.
#
# ## How much do the others matter?
#
# Change one thing: how many matmuls you launch before yours.

# %%
counts = [0, 1, 2, 5, 10, 20]
readings_s = []
for n_before in counts:
    for _ in range(n_before):
        a @ a
    readings_s.append(stopwatch(lambda: a @ a))
each_us = (readings_s[-1] - readings_s[0]) / 20 * 1e6
frame = pd.DataFrame({"matmuls before yours": counts, "reading_s": readings_s})
plots.line(frame, title=f"Each matmul before yours adds {each_us:.0f} µs to the reading")

# %% [markdown]
# ## Exercise: why?

# %% tags=["exercise"]
exercises.ask("02.what-is-charged")
### BEGIN SOLUTION
exercises.check("02.what-is-charged", "b")
### END SOLUTION

# %% [markdown]
# Look at four others and yours. The grey ones are launched before the stopwatch starts.


# %%
def five_matmuls():
    for _ in range(5):
        a @ a
    torch.cuda.synchronize()


names = ["1", "2", "3", "4", "yours"]
plots.host_and_gpu(gpulab.timeline(five_matmuls, n_warmup=3), names=names, n_before=4)

# %% [markdown]
# `torch.cuda.synchronize()` blocks the host until the GPU has done *everything* in its queues. It
# does not know which work is yours, so it charges you for the **backlog**. The cure is a second
# wait. **Wait, read the clock, work, wait, read the clock.**


# %%
def timed(fn):
    torch.cuda.synchronize()  # the backlog ends here
    return stopwatch(fn)


for _ in range(10):
    a @ a
print(f"{timed(lambda: a @ a) / alone_s:.2f} times the reading without a backlog")

# %% [markdown]
# ## What is still inside?
#
# Time an addition of 1,024 numbers with `timed`. *Recorded* on an H200: its kernel takes 1.2 µs.

# %%
exercises.predict("02.inside")

# %%
small = torch.zeros(1024, device="cuda")
small_s = median(timed(lambda: small.add_(1)) for _ in range(51))
exercises.compare("02.inside", small_s)

# %% [markdown]
# How much of that is the wait? Time nothing at all.

# %%
exercises.predict("02.empty")

# %%
nothing_s = median(timed(lambda: None) for _ in range(51))
exercises.compare("02.empty", nothing_s)

# %% [markdown]
# A wait takes time even if there is nothing to wait for. So the reading contains two things that
# are not work of the GPU: the *launch*, until the kernel has reached the GPU, and the *wake-up*,
# until the waiting host notices that the GPU has finished. *Recorded* on an H200: 14 µs for the
# addition. For a matmul of milliseconds this does not matter. It hides a short kernel completely.
#
# ## A wait after every layer
#
# Many programs wait too often. Here are twenty layers, with one wait at the end or with one after
# each layer. (`Sequential` calls its layers in a Python loop as well, so the waits are what
# differs.)

# %%
layers = [torch.nn.Linear(512, 512, device="cuda") for _ in range(20)]
model = torch.nn.Sequential(*layers).requires_grad_(requires_grad=False)
batch = torch.randn(512, 512, device="cuda")


def with_waits(x, n_layers=20):
    for layer in layers[:n_layers]:
        x = layer(x)
        torch.cuda.synchronize()
    return x


with_waits(batch).shape

# %%
exercises.predict("02.layers")

# %%
once_s = median(timed(lambda: model(batch)) for _ in range(11))
every_s = median(timed(lambda: with_waits(batch)) for _ in range(11))
exercises.compare("02.layers", every_s / once_s)

# %% [markdown]
# Here are five of the layers with a wait after each:

# %%
plots.timeline(gpulab.timeline(lambda: with_waits(batch, 5), n_warmup=3), names="12345")

# %% [markdown]
# Host and GPU take turns: launch, work, wake up, launch. While one of them works, the other waits.
# So remove the waits from code that you are not timing, and look for the hidden ones of lesson 01:
# `.item()`, `.cpu()`, `print`.
#
# ## Exercise: four listings
#
# Each of them should time a model.

# %% tags=["exercise"]
exercises.ask("02.snippet-quiz")
### BEGIN SOLUTION
answer = {
    "a": ("launch", "wait after"),
    "b": ("work and backlog", "wait before"),
    "c": ("work", "none"),
    "d": ("work", "none"),
}
exercises.check("02.snippet-quiz", answer)
### END SOLUTION

# %% [markdown]
# ## Your own benchmark
#
# Let `benchmark(fn)` wait in the right places. It calls `fn` several times and returns the median
# of the seconds.

# %% tags=["exercise"]
exercises.continue_from("02.benchmark")


### BEGIN SOLUTION
def benchmark(fn, n_samples=11):
    samples_s = []
    for _ in range(n_samples):
        torch.cuda.synchronize()
        start = time.perf_counter()
        fn()
        torch.cuda.synchronize()
        samples_s.append(time.perf_counter() - start)
    return median(samples_s)


exercises.check("02.benchmark", benchmark)
### END SOLUTION

# %% [markdown]
# ## What you take with you
#
# - Wait, read the clock, work, wait, read the clock. Without the first wait, a backlog is in the
#   reading.
# - The reading also contains launch and wake-up. That is fine for milliseconds of work, and
#   useless for microseconds.
# - A wait after every layer makes host and GPU take turns.
#
# For short kernels, the GPU must read a clock of its own. Next: `03_events.ipynb`.

# %% [markdown]
# # Going further
#
# ## Who waits for what
#
# `torch.cuda.synchronize()` is one of five ways to wait. They differ in *what* they wait for, and
# in *who* waits: the host, or only a stream. (A stream is a queue of the GPU. Work in two streams
# may run at the same time. An *event* is a marker that you put into a stream.)
#
# | call | waits for | in CuPy |
# |---|---|---|
# | `torch.cuda.synchronize()` | all streams of this device | `cupy.cuda.Device().synchronize()` |
# | `stream.synchronize()` | one stream | `stream.synchronize()` |
# | `event.synchronize()` | the work before one event | `event.synchronize()` |
# | `stream.wait_event(event)` | the work before one event | `stream.wait_event(event)` |
# | `one.wait_stream(other)` | what is in the other now | `one.wait_event(other.record())` |
#
# "This device" is the current one: with several GPUs the first call does not wait for the others,
# but `torch.cuda.synchronize("cuda:1")` does. CuPy's `cupy.cuda.Stream.null.synchronize()` waits
# for the default stream.
#
# The work is `torch.cuda._sleep(n)`: a kernel that counts n clock cycles and does nothing else. An
# event after each kernel lets you ask which of them have ended: `event.query()` answers without
# waiting.

# %%
left, right = torch.cuda.Stream(), torch.cuda.Stream()
ends = {name: torch.cuda.Event() for name in "ABC"}


def launch(name, stream, n_cycles):
    with torch.cuda.stream(stream):
        torch.cuda._sleep(n_cycles)
    ends[name].record(stream)


def ended(names):
    return " and ".join(name for name in names if ends[name].query()) or "neither"


launch("A", left, 10_000_000)
torch.cuda.synchronize()
print(ended("A"), "has ended")

# %% [markdown]
# Kernel A is in stream `left`. Kernel B, three times longer, is in stream `right`. The host waits
# for `left` only. (The last wait in each picture belongs to `gpulab.timeline`.)


# %%
def wait_for_a_stream():
    launch("A", left, 10_000_000)
    launch("B", right, 30_000_000)
    left.synchronize()


wait_for_a_stream()
title = f"When left.synchronize() returns, {ended('AB')} has ended"
plots.timeline(gpulab.timeline(wait_for_a_stream), names="AB", title=title)

# %% [markdown]
# `event.synchronize()` waits for even less: for what comes before one event. Both kernels are in
# stream `left` now.


# %%
def wait_for_an_event():
    launch("A", left, 10_000_000)
    launch("B", left, 30_000_000)
    ends["A"].synchronize()


wait_for_an_event()
title = f"When event.synchronize() returns, {ended('AB')} has ended"
plots.timeline(gpulab.timeline(wait_for_an_event), names="AB", title=title)


# %% [markdown]
# Now `right.wait_event(...)` waits for the event after A, which is in stream `left`. B is in
# stream `right`. Which of the two have ended when this function returns?


# %%
def let_a_stream_wait():
    launch("A", left, 10_000_000)
    right.wait_event(ends["A"])
    launch("B", right, 10_000_000)


exercises.predict("02.gpu-side")

# %%
torch.cuda.synchronize()
let_a_stream_wait()
at_return = ended("AB")
exercises.compare("02.gpu-side", at_return)

# %%
title = f"When the function returns, {at_return} has ended"
plots.timeline(gpulab.timeline(let_a_stream_wait), names="AB", title=title)

# %% [markdown]
# The wait is an entry in the queue of stream `right`. The host puts it there and goes on. Only the
# stream waits: B starts when A has ended.
#
# The last one, `right.wait_stream(left)`, comes after A. C is launched into `left` after it. The
# host waits for a short B in `right`. Which of the two kernels in `left` have ended then?


# %%
def wait_for_what_is_there():
    launch("A", left, 10_000_000)
    right.wait_stream(left)
    with torch.cuda.stream(left):
        torch.cuda._sleep(30_000_000)  # C
    launch("B", right, 1_000_000)
    ends["B"].synchronize()


exercises.predict("02.late")

# %%
torch.cuda.synchronize()
wait_for_what_is_there()
in_left = "A and C" if left.query() else ended("A")
exercises.compare("02.late", in_left)

# %%
title = f"When B has ended, {in_left} has ended, too"
plots.timeline(gpulab.timeline(wait_for_what_is_there), names="ACB", title=title)

# %% [markdown]
# `wait_stream` waits for the work that is in the other stream *at this moment*. C comes later, so
# B does not wait for it.
#
# ### Exercise: who blocks

# %% tags=["exercise"]
exercises.ask("02.who-blocks")
### BEGIN SOLUTION
answer = {
    "torch.cuda.synchronize": "host",
    "stream.synchronize": "host",
    "event.synchronize": "host",
    "stream.wait_event": "gpu",
    "stream.wait_stream": "gpu",
}
exercises.check("02.who-blocks", answer)
### END SOLUTION

# %% [markdown]
# ### Exercise: another way to wait
#
# Write `timed` once more, with a wait that you have not used in it yet.

# %%
exercises.ask("02.time-it-right")

# %% tags=["exercise"]
timed_anew = ...


### BEGIN SOLUTION
def timed_anew(work):
    stream = torch.cuda.current_stream()
    stream.synchronize()
    start = time.perf_counter()
    work()
    stream.synchronize()
    return time.perf_counter() - start


### END SOLUTION
exercises.check("02.time-it-right", timed_anew)

# %% [markdown]
# ## A stopwatch to play with
#
# A stopwatch with its two waits. Take one wait out, put it back at another place, and make the
# kernel short. What does "your stopwatch" read besides the kernel?

# %%
gpulab.explorers.machine_explorer("synchronize")

# %% [markdown]
# ## From which size on is a stopwatch good enough?
#
# Launch and wake-up hardly depend on the work. From which n on are they less than 5 % of the
# reading of an n x n matmul?

# %%
exercises.predict("02.size")

# %%
rows = []
for n in (64, 128, 256, 512, 1024, 2048, 4096):
    x = torch.randn(n, n, device="cuda")
    rows.append((n, median(timed(lambda: x @ x) for _ in range(21)), "stopwatch with both waits"))
by_size = pd.DataFrame(rows, columns=["size", "duration_s", "series"])
label = "n (matrices are n by n)"
plots.scaling(by_size, size_label=label, title="For small n the reading hardly depends on n")

# %% [markdown]
# For small n the stopwatch reads a launch, a wake-up and a small kernel. They do not grow much,
# so what they take is the smallest reading of all. This is its share of each reading:

# %%
share = by_size["duration_s"].min() / by_size.set_index("size")["duration_s"]
share.mul(100).map("{:.1f} %".format).rename("share of the smallest reading").to_frame()

# %%
limit = 0.05
enough = [str(n) for n in (64, 512, 4096) if share[n] < limit]
exercises.compare("02.size", enough[0] if enough else "none of these")

# %% [markdown]
# ## When is a wait cheap?
#
# In the core, a wait after every layer made the model slower:

# %%
exercises.claim("02.waits-slow-a-model", here=every_s / once_s)

# %% [markdown]
# Now twenty kernels in a row, with one wait or with a wait after each. The kernels become longer.
# What happens to the factor?

# %%
exercises.predict("02.longer")


# %%
def factor(n_cycles):
    def steps(wait):
        for _ in range(20):
            torch.cuda._sleep(n_cycles)
            if wait:
                torch.cuda.synchronize()

    every, once = (median(timed(lambda: steps(wait)) for _ in range(11)) for wait in (True, False))
    return every / once


factors = pd.Series({n: factor(n) for n in (10_000, 100_000, 1_000_000)}, name="factor")
factors.rename_axis("cycles of each kernel").round(2).to_frame()

# %%
is_smaller = factors.iloc[-1] < factors.iloc[0]
exercises.compare("02.longer", "smaller" if is_smaller else "larger")

# %% [markdown]
# Each wait costs about the same few microseconds. After a long kernel you do not notice them.
# After a kernel that takes as long as its launch, they halve the speed.

# %%
exercises.progress()
