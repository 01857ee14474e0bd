# %% [markdown]
# # 03 Events
#
# How does the GPU time itself?
#
# In lesson 02 the host read its own clock, and launch and wake-up came into every number. An
# *event* is a marker in the queue of the GPU. When the GPU reaches it, the GPU writes down its own
# time. Two markers round a piece of work, one subtraction, and the host is out of the number.
# Almost.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 A pair of events | to record, to wait, to read; and the two errors you will meet | 10 |
# | 2 Many pairs | why one wait at the end reads less than a wait each time | 15 |
# | 3 The wrong stream | when a pair brackets nothing of yours | 10 |
# | 4 Resolution and floor | what the smallest reading is, and the constant in every reading | 15 |
# | 5 Options and methods | what each does, and what keeps the host | 10 |

# %%
import time
from functools import partial

import numpy as np
import pandas as pd
import torch

import gpulab
from gpulab import exercises, plots
from gpulab.units import format_time

draw_timeline = partial(plots.draw, plots.timeline, ax_size=(8, 2.4))
gpulab.use("auto")

# %%
a = torch.randn(2048, 2048, device="cuda")
small = torch.zeros(1024, device="cuda")
for _ in range(3):
    product = a @ a
    small.add_(1)
small.sum().item()

# %% [markdown]
# ## 1 A pair of events
#
# The stopwatch with both waits, as in lesson 02, says how long the host waits for this
# multiplication:

# %%
stopwatch = gpulab.measure(lambda: a @ a, method="synchronized", label="stopwatch, two waits")
stopwatch

# %% [markdown]
# Will a pair of events read more or less than the stopwatch?

# %%
less = exercises.predict("What will the pair read?", ..., choices=("more", "less", "the same"))
less

# %%
start = torch.cuda.Event(enable_timing=True)
end = torch.cuda.Event(enable_timing=True)
for _ in range(5):  # the last round counts: the first one after a pause is slow
    start.record()
    product = a @ a
    end.record()
    end.synchronize()
start.elapsed_time(end)

# %% [markdown]
# Three entries went into one queue: marker, multiplication, marker. The host waited until the
# second marker was reached and asked for the distance. The answer is in **milliseconds**, a unit
# of its own in a world of seconds: convert it on the line where you read it.
#
# One reading can be off by chance. `gpulab.measure` takes many and gives the median. Here it must
# be told to use plain events: by itself it does more, which the end of this lesson explains.

# %%
pair = gpulab.measure(lambda: a @ a, method="events", label="a pair of events")
pair

# %%
less.compare("less" if pair.median_s < stopwatch.median_s else "more")

# %% [markdown]
# Launch and wake-up have left the number. The difference is a matter of microseconds, so it should
# show most in small work. For the small addition the methods say:

# %%
methods = [
    gpulab.measure(lambda: small.add_(1), method=name, label=name, n_samples=31)
    for name in ("naive", "synchronized", "events")
]
plots.draw(
    plots.compare_methods,
    methods,
    title="One small addition, three methods",
    alt="Three rows with different medians for the same work.",
    ax_size=(6.4, 2.8),
)

# %% [markdown]
# You may have expected less of the events: on a large GPU the addition's kernel takes one to three
# microseconds. Section 2 finds out why they still read so much.
#
# ### Asked too early
#
# You ask for the distance while the GPU still works. What happens?

# %%
early = exercises.predict(
    "What does elapsed_time give?", ..., choices=("a number, later", "zero", "an error")
)
early

# %%
start.record()
for _ in range(20):
    product = a @ a
end.record()
try:
    reading = start.elapsed_time(end)
except RuntimeError as error:
    reading = f"{type(error).__name__}: {error}"
reading

# %%
early.compare("an error")

# %% [markdown]
# `elapsed_time` does not wait. It subtracts two times that the GPU has written down, and the
# second was not written yet. The cure is `end.synchronize()`.
#
# ### An event that keeps no time
#
# And if the events were made by `torch.cuda.Event()`, without `enable_timing`?

# %%
plain = exercises.predict(
    "What does elapsed_time give?", ..., choices=("a number", "zero", "an error")
)
plain

# %%
begin, finish = torch.cuda.Event(), torch.cuda.Event()
begin.record()
product = a @ a
finish.record()
finish.synchronize()
try:
    reading = begin.elapsed_time(finish)
except ValueError as error:
    reading = f"{type(error).__name__}: {error}"
reading

# %%
plain.compare("an error")

# %% [markdown]
# Without `enable_timing=True` an event only orders streams. That is cheaper, and the default.
#
# ### Exercise: a timer made of events

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
# `exercises.hint("03.event-time")` helps if you are stuck.

# %% [markdown]
# ## 2 Many pairs
#
# One reading is no measurement. The first loop that comes to mind waits in every iteration:

# %%
each_s = []
for _ in range(40):
    start.record()
    small.add_(1)
    end.record()
    torch.cuda.synchronize()
    each_s.append(start.elapsed_time(end) / 1e3)
del each_s[:10]  # the slow first ones after a pause
format_time(np.median(each_s))

# %% [markdown]
# The second keeps all pairs in a list, lets the GPU fall behind (a kernel that counts clock cycles
# gives the host a head start), and waits once at the end.

# %%
at_end = exercises.predict(
    "What do the pairs of the second loop read for the same addition?", ..., unit="µs"
)
at_end


# %%
def behind_a_head_start(work, n_pairs=30):
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2 * n_pairs)]
    pairs = list(zip(events[::2], events[1::2], strict=True))
    torch.cuda._sleep(20_000_000)  # the GPU is busy while Python fills the queue
    for start, end in pairs:
        start.record()
        work()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1e3 for start, end in pairs]


at_end_s = behind_a_head_start(lambda: small.add_(1))
format_time(np.median(at_end_s))

# %%
at_end.compare(np.median(at_end_s))


# %%
def as_measurement(samples_s, label):
    gpu = gpulab.device.current()
    here = gpulab.device.conditions()
    return gpulab.Measurement(tuple(samples_s), "events", gpu.source, here, label=label)


each = as_measurement(each_s, "a wait in every iteration")
each

# %%
at_end = as_measurement(at_end_s, "one wait at the end")
plots.draw(
    plots.samples,
    [each, at_end],
    title="The same kernel, the same events, two loops",
    alt="The readings of the loop that waits each time lie well above those of the other.",
)

# %% [markdown]
# The kernel is the same; what differs is the queue. After a wait it is empty. The GPU reaches the
# first marker at once, and then has to wait until Python has launched the kernel and recorded the
# second marker: that host time falls between the markers. *Recorded* on an H200 for a kernel of
# 1.2 µs: 14.9 µs with an idle GPU, 4.3 µs with a full queue. Here is one such iteration.


# %%
def one_pair():
    start.record()
    small.add_(1)
    end.record()


draw_timeline(
    gpulab.timeline(one_pair, n_warmup=5),
    title="With an empty queue, the launch is between the events",
    alt="Two events with a short kernel between them; most of the time the stream is idle.",
)

# %% [markdown]
# ### Is the list alone enough?
#
# A list of pairs and one wait at the end, but no head start. Like what do the pairs read?

# %%
alone = exercises.predict(
    "What do the pairs read?",
    ...,
    choices=("like a wait each time", "like a full queue"),
)
alone

# %%
events = [torch.cuda.Event(enable_timing=True) for _ in range(60)]
pairs = list(zip(events[::2], events[1::2], strict=True))
for start, end in pairs:
    start.record()
    small.add_(1)
    end.record()
torch.cuda.synchronize()
no_start_s = [start.elapsed_time(end) / 1e3 for start, end in pairs]
format_time(np.median(no_start_s))

# %%
middle_s = (np.median(each_s) + np.median(at_end_s)) / 2
alone.compare("like a wait each time" if np.median(no_start_s) > middle_s else "like a full queue")

# %% [markdown]
# The list helps only if the queue really fills. A kernel shorter than its launch is done before
# the next one arrives, so the host never gets ahead without help. A kernel that is longer than its
# launch fills the queue by itself: for the multiplication the plain list is enough. Lesson 07 is
# about work that is faster than Python.
#
# ### Exercise: one wait at the end

# %%
exercises.ask("03.one-sync-at-end")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = "b"
### END SOLUTION
exercises.check("03.one-sync-at-end", answer)

# %% [markdown]
# ## 3 The wrong stream
#
# An event goes into one stream: the current one, unless you name another. This exercise is your
# prediction; answer it before you go on.

# %%
exercises.ask("03.wrong-stream")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = "b"
### END SOLUTION
exercises.check("03.wrong-stream", answer)

# %% [markdown]
# Now measure it. The kernel counts cycles for some milliseconds, on a side stream.

# %%
side = torch.cuda.Stream()
for _ in range(3):  # the last round counts
    start.record()
    with torch.cuda.stream(side):
        torch.cuda._sleep(10_000_000)
    end.record()
    torch.cuda.synchronize()
format_time(start.elapsed_time(end) / 1e3)


# %%
def pair_round_another_stream():
    start.record()
    with torch.cuda.stream(side):
        torch.cuda._sleep(400_000)
    end.record()


draw_timeline(
    gpulab.timeline(pair_round_another_stream),
    title="Both markers are in the default stream, the kernel is not",
    alt="Both events of the default stream are reached long before the kernel ends.",
)

# %% [markdown]
# Nothing warns you: both events are completed, so a number comes out. In the text the pair stands
# round the kernel; in the queues it does not.
#
# ### Inside the stream's context
#
# Now the two `record()` calls move inside the `with` block. What does the pair read?

# %%
inside = exercises.predict(
    "What does the pair read?", ..., choices=("a few microseconds", "the kernel")
)
inside

# %%
with torch.cuda.stream(side):
    start.record()
    torch.cuda._sleep(10_000_000)
    end.record()
end.synchronize()
format_time(start.elapsed_time(end) / 1e3)

# %%
inside.compare("the kernel")

# %% [markdown]
# Inside the block the side stream is current, and `record()` takes the current stream.
# `start.record(side)` does the same without a block.

# %% [markdown]
# ## 4 Resolution and floor
#
# ### Nothing between the markers

# %%
empty_guess = exercises.predict("What does a pair with nothing between it read?", ..., unit="µs")
empty_guess

# %%
empty_s = behind_a_head_start(lambda: None)
format_time(np.median(empty_s))

# %%
empty_guess.compare(np.median(empty_s))

# %% [markdown]
# A marker takes time of its own. *Recorded* on an H200: about 1.3 µs.
#
# ### The smallest step
#
# Let a kernel grow by a few clock cycles at a time. Does the reading grow as smoothly?

# %%
smooth = exercises.predict("How does the reading grow?", ..., choices=("smoothly", "in steps"))
smooth

# %%
n_cycles = np.arange(2_000, 2_400, 10)
counters = [partial(torch.cuda._sleep, int(n)) for n in n_cycles]
readings_s = [np.median(behind_a_head_start(counter, 5)) for counter in counters]
stairs = pd.DataFrame({"cycles": n_cycles, "reading_us": np.array(readings_s) * 1e6})
plots.draw(
    lambda frame, ax: frame.plot.scatter("cycles", "reading_us", ax=ax, ylabel="reading (µs)"),
    stairs,
    title="A kernel that grows by 10 clock cycles at a time",
    alt="The readings lie on a few levels: several lengths of the kernel share one.",
    source=gpulab.device.current(),
)

# %%
levels_ns = np.unique(np.round(stairs["reading_us"] * 1e3))
smooth.compare("in steps" if len(levels_ns) < len(stairs) else "smoothly")

# %%
format_time(np.diff(levels_ns).min() * 1e-9)

# %% [markdown]
# The clock of the events ticks: the last number is the smallest step between two readings that you
# saw. NVIDIA's documentation promises only "around 0.5 microseconds". Do not read nanoseconds from
# one pair.
#
# ### The floor under a kernel
#
# If an empty pair reads something, a pair round a kernel reads more than the kernel. By as much as
# the empty pair?

# %%
more = exercises.predict("How much more?", ..., choices=("by less", "by as much", "by more"))
more

# %% [markdown]
# You need a kernel whose own time you know without events. Two ideas, neither of them perfect.
#
# **Idea 1: more copies.** Put 1, 2, 3, ... copies of one kernel between the markers and draw a
# line through the readings. At zero copies only the constant should be left.

# %%
n_copies = np.arange(1, 9)
copies_s = [
    np.median(behind_a_head_start(lambda n=n: [small.add_(1) for _ in range(n)])) for n in n_copies
]
slope_s, low_s = np.polyfit(n_copies, copies_s, 1)
f"each copy {format_time(slope_s)}, at zero copies {format_time(low_s)}"

# %% [markdown]
# But between two kernels there is a pause, and every further copy brings one. With one copy there
# is no pause yet. So what is left at zero copies is the constant *minus one pause*: **too low**.
# No number of copies can tell the two apart.
#
# **Idea 2: a kernel that counts.** `torch.cuda._sleep(n)` takes n clock cycles. The line through
# several n ends at zero cycles.

# %%
n_cycles = np.arange(5_000, 40_001, 5_000)
counted_s = [np.median(behind_a_head_start(partial(torch.cuda._sleep, int(n)))) for n in n_cycles]
cycle_s, high_s = np.polyfit(n_cycles, counted_s, 1)
f"{1e-6 / cycle_s:,.0f} MHz, at zero cycles {format_time(high_s)}"

# %%
kernel_us, pair_us = n_cycles * cycle_s * 1e6, np.array(counted_s) * 1e6
lines = pd.DataFrame(
    {"what the kernel counts (µs)": kernel_us, "what the pair reads (µs)": pair_us}
)
plots.draw(
    lambda frame, ax: frame.plot.line(0, 1, ax=ax, style="o-", xlim=(0, None), ylim=(0, None)),
    lines,
    title="The line does not go through zero",
    alt="The readings lie on a straight line that would meet the vertical axis above zero.",
    source=gpulab.device.current(),
)

# %% [markdown]
# A real kernel that counts to zero still has to start and to end. So what is left at zero cycles
# is the constant *plus* that: **too high**, if anything. Between the two lies the truth:

# %%
f"the constant lies between {format_time(low_s)} and {format_time(high_s)}"

# %%
more.compare("by more" if low_s > np.median(empty_s) else "by as much")

# %% [markdown]
# With a kernel between them, the markers have two more things to wait for: its start and its end.
# To do better than a bracket you need a referee that is not an event. The driver's own records of
# each kernel are one; lesson 11 reads them. Someone has done that on an H200:
#
# ### Exercise: the constant

# %%
exercises.ask("03.floor")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
recorded = exercises.readings("03.floor").query("kernel_s > 0")
answer = (recorded["pair_s"] - recorded["kernel_s"]).median()
### END SOLUTION
exercises.check("03.floor", answer)

# %% [markdown]
# ### Taken off: calibrated events
#
# A constant can be subtracted. First the raw readings of four kernels (in µs), then what your
# bracket leaves of them:

# %%
kernels = {
    "small addition": lambda: small.add_(1),
    "sum of 4 million": a.sum,
    "softmax of 2048 rows": lambda: a.softmax(-1),
    "2048 x 2048 product": lambda: a @ a,
}
pairs_s = {name: np.median(behind_a_head_start(work)) for name, work in kernels.items()}
pairs_us = pd.Series(pairs_s) * 1e6
pairs_us.round(2)

# %%
kernels_us = pd.DataFrame({"at least": pairs_us - high_s * 1e6, "at most": pairs_us - low_s * 1e6})
kernels_us.round(2)

# %% [markdown]
# For the small addition most of the reading was the constant; for the product it hardly counts.
# This is the idea of **calibrated events**: find the constant on the GPU in use, take it off, and
# say so. *Recorded* on an H200, over 31 workloads, against the driver's own records: the median
# error fell from 3.1 µs to 0.13 µs, and the mean relative error from 50 % to 2.6 %.

# %% [markdown]
# ## 5 Options and methods
#
# | option of `torch.cuda.Event` | what it does |
# |---|---|
# | `enable_timing=True` | the GPU notes the time; without, the event only orders |
# | `blocking=True` | how the host waits in `synchronize()`: see below |
# | `interprocess=True` | another process may wait for it; not together with timing |
#
# | method | what it does | who waits |
# |---|---|---|
# | `record(stream)` | puts the marker into the stream; again: moves it | ? |
# | `query()` | True if the marker was reached | ? |
# | `wait(stream)` | holds the stream until the marker (`stream.wait_event`) | ? |
# | `synchronize()` | returns when the marker was reached | ? |
# | `elapsed_time(end)` | milliseconds between two markers; an error if too early | nobody |
#
# Some milliseconds of work are in front of the event. Which of the four keeps the host?

# %%
who = exercises.predict(
    "Where does the host wait?", ..., choices=("record", "query", "wait", "synchronize")
)
who

# %%
event = torch.cuda.Event(enable_timing=True)
calls = [event.record, event.query, partial(event.wait, side), event.synchronize, event.query]
names = ["record", "query", "wait", "synchronize", "query again"]
for _ in range(2):  # the last round counts
    torch.cuda._sleep(10_000_000)
    rows = []
    for name, call in zip(names, calls, strict=True):
        begin = time.perf_counter()
        result = call()
        rows.append((name, time.perf_counter() - begin, result))
host = pd.DataFrame(rows, columns=["method", "host_s", "returns"])
host.assign(host=host["host_s"].map(format_time))[["method", "host", "returns"]]

# %%
who.compare(host.loc[host["host_s"].idxmax(), "method"])

# %% [markdown]
# Only `synchronize` waits for the GPU. `record` and `wait` are entries in a queue, `query` is a
# question.
#
# ### What `blocking=True` changes
#
# PyTorch's own description of `blocking` says that with it `wait()` will be blocking. Does it?
#
# The event is made with `blocking=True`. Which call keeps the host until the GPU is there?

# %%
blocks = exercises.predict(
    "Where does the host wait?", ..., choices=("wait", "synchronize", "both")
)
blocks

# %%
rows = []
for blocking in (False, True):
    event = torch.cuda.Event(blocking=blocking)
    torch.cuda._sleep(40_000_000)
    event.record()
    times = [time.perf_counter()]
    for call in (partial(event.wait, side), event.synchronize):
        call()
        times.append(time.perf_counter())
    rows.append((blocking, *np.diff(times)))
waits = pd.DataFrame(rows, columns=["blocking", "wait", "synchronize"]).set_index("blocking")
waits.map(format_time)

# %%
kept = [name for name in waits if waits.loc[True, name] > waits.to_numpy().max() / 2]
blocks.compare("both" if len(kept) > 1 else kept[0])

# %% [markdown]
# `wait` never keeps the host, whatever the option. What changes is *how* `synchronize` waits.
# Without `blocking` the host asks again and again and uses a whole core for it; with it, the host
# sleeps until the driver wakes it, which leaves the core to others and takes a little longer. On a
# real GPU you can see it in the processor time of the wait; the virtual GPU knows when the host
# goes on, not how it waits, so there both columns are small.

# %%
for blocking in (False, True):
    event = torch.cuda.Event(blocking=blocking)
    torch.cuda._sleep(40_000_000)
    event.record()
    begin = time.thread_time()
    event.synchronize()
    waits.loc[blocking, "processor time"] = time.thread_time() - begin
waits[["synchronize", "processor time"]].map(format_time)

# %% [markdown]
# ## What you take along
#
# - Marker, work, marker, wait, read; milliseconds. The wait comes before the reading, not between.
# - Keep pairs in a list, give the host a head start, and wait once.
# - A pair sees its own stream only.
# - A pair reads more than the kernel by a constant of some microseconds. It can be taken off.
# - Only `synchronize` keeps the host.
#
# `gpulab.measure` and `%%cudatime` do all of this when you name no method: head start, pairs, one
# wait, and the constant taken off. They call it *calibrated*; and they empty the GPU's cache
# before each sample, which is lesson 06.
#
# Still open: why everything ran three times first. That is lesson 04.

# %%
exercises.progress()
