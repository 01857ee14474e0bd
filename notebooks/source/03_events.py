# %% [markdown]
# # 03 Events
#
# How long does a kernel take, by the clock of the GPU itself?
#
# An *event* is an entry in the GPU's queue: when the GPU reaches it, the GPU writes down the time.
# Put one event before a kernel and one after it. The kernel here adds 1 to each of
# 1,024 numbers.

# %%
from statistics import median

import torch

import gpulab
from gpulab import exercises, plots

gpu = gpulab.use("auto")  # your GPU, or a virtual one
small = torch.zeros(1024, device="cuda")
gpu

# %%
start = torch.cuda.Event(enable_timing=True)
end = torch.cuda.Event(enable_timing=True)
exercises.predict("03.pair")

# %%
for _ in range(5):  # the last round counts
    start.record()
    small.add_(1)
    end.record()
    torch.cuda.synchronize()
pair_s = start.elapsed_time(end) / 1e3  # elapsed_time returns milliseconds
exercises.compare("03.pair", pair_s)

# %% [markdown]
# Is that the kernel? The driver can keep a record of each kernel: when it started and when it
# ended (lesson 11). Keep this check: it is the referee for every other method.

# %%
kernel = gpulab.measure(lambda: small.add_(1), method="profiler", cache="hot")
print(f"The events read {pair_s / kernel.median_s:.1f} times the kernel.")
kernel

# %% [markdown]
# The GPU wrote down both times, and no clock of the host took part. Still the reading is far too
# long.
#
# ## One more line
#
# Put a large matmul *before* the first event. It is not between the events.

# %%
a = torch.randn(2048, 2048, device="cuda")
exercises.predict("03.busy")

# %%
for _ in range(5):  # the last round counts
    a @ a  # the only new line
    start.record()
    small.add_(1)
    end.record()
    torch.cuda.synchronize()
busy_s = start.elapsed_time(end) / 1e3
print(f"{busy_s * 1e6:.2f} µs")
exercises.compare("03.busy", busy_s / pair_s)

# %% [markdown]
# More work, and a shorter time.
#
# ## Exercise: why?
#
# The same was recorded on an H200 with two loops, and there the GPU was kept busy in another way.

# %% tags=["exercise"]
exercises.ask("03.one-sync-at-end")
### BEGIN SOLUTION
exercises.check("03.one-sync-at-end", "b")
### END SOLUTION

# %% [markdown]
# Now look at both cells. The black lines are the two events.


# %%
def idle_gpu():
    start.record()
    small.add_(1)
    end.record()


def busy_gpu():
    a @ a
    idle_gpu()


# %%
programs = {"idle GPU": idle_gpu, "busy GPU": busy_gpu}
records = {name: gpulab.timeline(fn, n_warmup=3) for name, fn in programs.items()}
plots.between_two_events(records)

# %% [markdown]
# An idle GPU reaches the first event at once and writes down the time. Then it waits until Python
# has launched the kernel, so the launch is between the two events. A busy GPU finds all three
# entries in its queue. **Events time the GPU only if the GPU never waits for Python.**
#
# The shorter reading is still longer than the kernel, because the GPU needs time to start it, to
# end it, and to write down the times. This rest is the **floor** of the pair. *Recorded* on an
# H200: about 3 µs, for short and for long kernels. *Going further* measures and subtracts it.
#
# ## Two hundred readings
#
# One reading is no measurement. Record two hundred pairs, and wait once at the end. Three matmuls
# go first, so that Python is well ahead.


# %%
def read_pairs(fn, n_pairs=200):
    starts = [torch.cuda.Event(enable_timing=True) for _ in range(n_pairs)]
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(n_pairs)]
    for _ in range(3):  # a head start for Python
        a @ a
    for start, end in zip(starts, ends, strict=True):
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1e3 for start, end in zip(starts, ends, strict=True)]


exercises.predict("03.last")

# %%
short_s = read_pairs(lambda: small.add_(1))
exercises.compare("03.last", short_s[-1] / short_s[0])

# %% [markdown]
# The same for a longer kernel, which adds 1 to each of 8 million numbers:

# %%
large = torch.zeros(2**23, device="cuda")
long_s = read_pairs(lambda: large.add_(1))
print(f"{long_s[-1] * 1e6:.1f} µs")

# %%
plots.readings_in_order(
    {"short kernel": short_s, "long kernel": long_s},
    what="pair",
    before="busy GPU",
    after="the GPU waits for Python",
)

# %% [markdown]
# Python needs more time to launch the short kernel than the GPU needs to run it. So the GPU
# catches up. From then on each pair times Python again, although you wait only once. (Your picture
# shows no jump? If all pairs read little, the GPU never caught up: record more pairs. If all read
# much, it caught up at once: put more matmuls first.)
#
# A kernel that takes longer than its launch fills the queue by itself. A short kernel needs a
# longer head start (lesson 07).
#
# ## Two traps
#
# **Too early.** You ask for the time while the GPU is still working:

# %%
start.record()
a @ a
end.record()
try:
    start.elapsed_time(end)
except RuntimeError as error:
    print(error)
end.synchronize()
print(f"after a wait: {start.elapsed_time(end):.3f} ms")

# %% [markdown]
# `elapsed_time` does not wait. It subtracts two times, and the second one did not exist yet.
#
# **The wrong stream.** A *stream* is one of the GPU's queues. This exercise is your guess.

# %% tags=["exercise"]
exercises.ask("03.wrong-stream")
### BEGIN SOLUTION
exercises.check("03.wrong-stream", "b")
### END SOLUTION

# %%
b = torch.randn(5120, 5120, device="cuda")
side = torch.cuda.Stream()
for _ in range(2):  # the last round counts
    torch.cuda.synchronize()
    start.record()
    with torch.cuda.stream(side):
        b @ b
    end.record()
torch.cuda.synchronize()
print(f"{start.elapsed_time(end):.3f} ms")

# %% [markdown]
# No error, no warning, and nothing of yours between the events. Put both events into the stream
# of the work:

# %%
start.record(side)
with torch.cuda.stream(side):
    b @ b
end.record(side)
torch.cuda.synchronize()
print(f"{start.elapsed_time(end):.3f} ms")

# %% [markdown]
# ## Your own benchmark
#
# Your `benchmark(fn)` from lesson 02 reads the host's clock. Put a pair of events around each call
# in its place, wait once at the end, and return the median in seconds.

# %% tags=["exercise"]
exercises.continue_from("03.benchmark")  # puts your last version here: run it, then change it


### BEGIN SOLUTION
def benchmark(fn, n_samples=11):
    starts = [torch.cuda.Event(enable_timing=True) for _ in range(n_samples)]
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(n_samples)]
    for start, end in zip(starts, ends, strict=True):
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    times_ms = [start.elapsed_time(end) for start, end in zip(starts, ends, strict=True)]
    return median(times_ms) / 1e3


exercises.check("03.benchmark", benchmark)
### END SOLUTION

# %% [markdown]
# ## What you take with you
#
# - Event, work, event, wait, read. The result is in milliseconds.
# - A pair also times whatever the GPU waits for. Keep the GPU busy.
# - A pair times only the stream it was recorded in.
#
# And why did every cell count its last round only? Next: `04_warmup.ipynb`.

# %% [markdown]
# # Going further
#
# From here on a kernel that counts clock cycles gives the head start. It is longer than a matmul,
# and its length is known (lesson 07).
#
# ## The floor
#
# What does a pair read with nothing between its events?

# %%
import time

import numpy as np
import pandas as pd

from gpulab.core.units import format_time

print("the median of the readings above:", format_time(median(short_s)))


# %%
def pairs_s(work, n_pairs=30, n_cycles=20_000_000):
    starts = [torch.cuda.Event(enable_timing=True) for _ in range(n_pairs)]
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(n_pairs)]
    torch.cuda._sleep(n_cycles)  # the head start
    for start, end in zip(starts, ends, strict=True):
        start.record()
        work()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1e3 for start, end in zip(starts, ends, strict=True)]


exercises.predict("03.empty")

# %%
empty_s = median(pairs_s(lambda: None))
exercises.compare("03.empty", empty_s)

# %% [markdown]
# A pair around a kernel reads more than the kernel. The difference is the **floor** of the pair.
# The driver's records say how long the kernel itself takes.

# %%
exercises.predict("03.more")


# %%
def floor_s(work):
    kernel = gpulab.measure(work, method="profiler", cache="hot")
    return median(pairs_s(work)) - kernel.median_s


# %%
addition_s = floor_s(lambda: small.add_(1))
exercises.compare("03.more", addition_s)

# %%
exercises.claim("03.floor-above-empty", here=addition_s / empty_s)

# %% [markdown]
# With a kernel between them, the events have two more things to wait for: its start and its end.
#
# ### Exercise: a typical floor
#
# The virtual GPU has one floor for all work. A real GPU has not, so the readings of this exercise
# are recorded.

# %% tags=["exercise"]
exercises.ask("03.floor")
### BEGIN SOLUTION
recorded = exercises.readings("03.floor").query("kernel_s > 0")
typical_s = (recorded["pair_s"] - recorded["kernel_s"]).median()
exercises.check("03.floor", typical_s)
### END SOLUTION

# %% [markdown]
# So one constant is nearly right for kernels. It is wrong for copies, which have a larger floor.
#
# ### Calibrated events
#
# You can subtract the floor. That is what `gpulab.measure` does when you name no method. It calls
# your work a dozen times more while the driver writes records, and finds the floor of *this* work.
# Where that is not possible it subtracts the floor of the device.

# %%
gpulab.measure(lambda: small.add_(1), cache="hot")

# %% [markdown]
# *Recorded* on an H200, as the median error of a reading: 3.1 µs for plain pairs, 0.14 µs with the
# floor of the device, 0.07 µs with the floor of the work itself.
#
# ## A function for one reading

# %%
exercises.ask("03.event-time")

# %% tags=["exercise"]
event_seconds = ...


### BEGIN SOLUTION
def event_seconds(work):
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    start.record()
    work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


### END SOLUTION
exercises.check("03.event-time", event_seconds)

# %% [markdown]
# ## Options and methods
#
# | option of `torch.cuda.Event` | what it does |
# |---|---|
# | `enable_timing=True` | the GPU writes down the time; without it the event only orders |
# | `blocking=True` | changes how the host waits in `synchronize()` |
# | `interprocess=True` | another process can wait for the event; CUDA allows no timing then |
#
# | method | what it does |
# |---|---|
# | `record(stream)` | puts the event into the stream; a second call moves it |
# | `query()` | returns True if the GPU has reached the event |
# | `wait(stream)` | makes the stream wait for the event, as `stream.wait_event` does |
# | `synchronize()` | returns when the GPU has reached the event |
# | `elapsed_time(end)` | returns the milliseconds between two events |
#
# There is a long kernel before the event. In which call is the host blocked?

# %%
exercises.predict("03.who")

# %%
event, host_s = torch.cuda.Event(), {}
calls = {"record": event.record, "query": event.query, "wait": lambda: event.wait(side)}
for _ in range(2):  # the last round counts
    torch.cuda._sleep(10_000_000)
    for name, call in (calls | {"synchronize": event.synchronize}).items():
        begin = time.perf_counter()
        call()
        host_s[name] = time.perf_counter() - begin
print(*(f"{name} {format_time(value_s)}" for name, value_s in host_s.items()), sep=", ")
exercises.compare("03.who", max(host_s, key=host_s.get))

# %% [markdown]
# `record` and `wait` put an entry into a queue. `query` asks and returns.
#
# ## An event without a time
#
# What happens if you make the events by `torch.cuda.Event()`, without `enable_timing`?

# %%
exercises.predict("03.plain")

# %%
first, second = torch.cuda.Event(), torch.cuda.Event()
first.record()
second.record()
second.synchronize()
try:
    outcome = "a number" if first.elapsed_time(second) else "zero"
except ValueError as error:
    outcome = "an exception"
    print(type(error).__name__, error)
exercises.compare("03.plain", outcome)

# %% [markdown]
# An event made without `enable_timing=True` only orders streams. That is the default, and it is
# cheaper.
#
# ## The smallest step
#
# A kernel grows by a few clock cycles at a time. Does the reading grow as smoothly?

# %%
exercises.predict("03.smooth")

# %%
steps = pd.DataFrame({"cycles": range(2_000, 2_400, 10)})
readings_s = [median(pairs_s(lambda n=n: torch.cuda._sleep(n), 5)) for n in steps["cycles"]]
steps["above the smallest reading (ns)"] = (np.array(readings_s) - min(readings_s)) * 1e9
levels_ns = np.unique(np.round(steps["above the smallest reading (ns)"]))
step = format_time(np.diff(levels_ns).min() * 1e-9)
plots.scatter(steps, title=f"The smallest step between two readings is {step}")

# %%
exercises.compare("03.smooth", "in steps" if len(levels_ns) < len(steps) else "smoothly")

# %% [markdown]
# The clock of the events ticks. NVIDIA's documentation promises a resolution of about 0.5 µs. Do
# not read nanoseconds from one pair.
#
# ## A floor without records
#
# Some systems give you no records. Can you find the floor with events alone? Here are two ideas.
# Neither is perfect.
#
# **More copies.** Put 1, 2, 3, ... copies of one kernel between the events, and draw a line
# through the readings. Zero copies should leave only the floor.


# %%
def copies(n):
    for _ in range(n):
        small.add_(1)


n_copies = np.arange(1, 9)
copies_s = [median(pairs_s(lambda n=n: copies(n))) for n in n_copies]
slope_s, low_s = np.polyfit(n_copies, copies_s, 1)
print(f"each copy {format_time(slope_s)}, at zero copies {format_time(low_s)}")

# %% [markdown]
# There is a pause between two kernels, and each further copy adds one. A single copy has no pause.
# So the value at zero copies is the floor *minus one pause*: too low.
#
# **A kernel that counts.** `torch.cuda._sleep(n)` takes n clock cycles. Draw the line to zero
# cycles.

# %%
n_cycles = np.arange(5_000, 40_001, 5_000)
counted_s = [median(pairs_s(lambda n=n: torch.cuda._sleep(int(n)))) for n in n_cycles]
cycle_s, high_s = np.polyfit(n_cycles, counted_s, 1)
line = pd.DataFrame({"counts (µs)": [0, *n_cycles], "pair (µs)": [high_s, *counted_s]})
line = line * [cycle_s * 1e6, 1e6]
plots.line(line, title=f"At zero cycles the line is at {format_time(high_s)}")

# %% [markdown]
# A kernel that counts to zero still has to start and to end, so this value is too high, if
# anything. The floor lies between the two. Compare with the records:

# %%
found_s = {"copies": low_s, "records, small addition": addition_s, "counting": high_s}
pd.Series(found_s, name="floor").map(format_time).to_frame()

# %% [markdown]
# ## What `blocking=True` changes
#
# PyTorch's documentation says that with `blocking=True` the method `wait()` blocks. Does it? The
# event is made with `blocking=True`, and long work is before it. Where is the host blocked?

# %%
exercises.predict("03.blocks")

# %%
event = torch.cuda.Event(blocking=True)
torch.cuda._sleep(40_000_000)
event.record()
times_s = [time.perf_counter()]
for call in (lambda: event.wait(side), event.synchronize):
    call()
    times_s.append(time.perf_counter())
wait_s, synchronize_s = np.diff(times_s)
shorter_s, longer_s = sorted((wait_s, synchronize_s))
longest = "wait" if wait_s > synchronize_s else "synchronize"
exercises.compare("03.blocks", "both" if shorter_s > longer_s / 2 else longest)

# %% [markdown]
# `wait` never blocks the host. The option changes *how* `synchronize` waits: without it the host
# asks again and again and keeps a core busy, with it the host sleeps until the driver wakes it.
# You see that in the processor time of the wait.

# %%
used_s = {}
for blocking in (False, True):
    event = torch.cuda.Event(blocking=blocking)
    torch.cuda._sleep(40_000_000)
    event.record()
    begin = time.thread_time()
    event.synchronize()
    used_s[f"blocking={blocking}"] = time.thread_time() - begin
pd.Series(used_s).map(format_time).rename("processor time of the wait").to_frame()

# %% [markdown]
# ## Events for two processes
#
# A process can hand an event to another one: `ipc_handle()` makes a handle, and
# `torch.cuda.Event.from_ipc_handle(device, handle)` opens it. That needs `interprocess=True`, and
# CUDA refuses to combine it with timing. (The virtual GPU refuses each event of two processes.)

# %%
try:
    shared = torch.cuda.Event(enable_timing=True, interprocess=True)
    shared.record()
    said = "recorded"
except (RuntimeError, ValueError) as error:
    said = f"{type(error).__name__}: {str(error).splitlines()[0]}"
print(said)

# %%
exercises.progress()
