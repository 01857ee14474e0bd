# %% [markdown]
# # 07 Sleep and graphs
#
# What if the GPU is faster than Python?
#
# Many kernels take less time than Python needs to launch the next one. Then the GPU waits for the
# host, and a pair of events measures that wait. There are two remedies. To *measure* such a
# kernel, let the GPU sleep until the host is ahead. To *speed up the program*, launch many kernels
# at once as a graph. Each half of the lesson stands alone.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | First half: sleep | | |
# | 1 The gaps | to see on a timeline what sets the pace | 8 |
# | 2 A head start | how long a sleep must be | 10 |
# | 3 A wait inside | what a sleep cannot repair | 4 |
# | Second half: graphs | | |
# | 4 A graph | to capture, to replay, and what that gains | 8 |
# | 5 What a graph contains | what a replay repeats, and what it does not | 8 |
# | Both | | |
# | 6 Your benchmark | to give the host a head start | 5 |
# | Going further (extra) | pace · queue · copies and caches · captures · the ladder | 55 |
#
# Begin with a toy: ten small kernels in a row. The host takes longer to launch one than the GPU
# takes to run it. Drop a sleep in before the kernels, then use a graph in their place. When do
# "your events" read the kernels, and when the launches?

# %%
import time
from functools import partial
from statistics import median

import pandas as pd
import torch
from IPython.display import display

import gpulab
from gpulab import exercises, live, plots
from gpulab.exercises import lesson_07 as lab

# %load_ext gpulab
gpulab.use("auto", max_value_bytes=24 << 20)  # of large tensors only the times matter
gpulab.explorers.machine_explorer("small kernels")

# %%
a = torch.randn(2048, 2048, device="cuda")
x = torch.randn(2**14, device="cuda")
small = torch.zeros(1024, device="cuda")
for _ in range(3):  # warm-up
    a @ a, small.add_(1), torch.relu(x), torch.cuda._sleep(1_000)
torch.cuda.synchronize()
small.sum().item()

# %% [markdown]
# **First half: sleep**
#
# ## 1 The gaps
#
# Python launches eight small additions in a row. From the start of the first kernel to the end of
# the last one, for what share of the time is the GPU busy?

# %%
exercises.predict("07.busy")

# %%
additions = gpulab.timeline(lambda: [small.add_(1) for _ in range(8)])
additions

# %%
kernels = additions.to_frame().query("kind == 'kernel'")
window_s = kernels["end_s"].max() - kernels["start_s"].min()
exercises.compare("07.busy", 100 * kernels["duration_s"].sum() / window_s)

# %% [markdown]
# The GPU finishes each addition before Python has launched the next one. Then it is idle. Such a
# program is *launch-bound*: a GPU twice as fast would change nothing. The list under the timeline
# names the cause of each gap. (On a real GPU the recording itself slows the launches down,
# *recorded* on one H200: from 7 to 15 µs each. So the gaps in a timeline are wider than those in
# the program.)
#
# Now put a pair of events around each addition. What share of a pair's reading is the kernel?

# %%
exercises.predict("07.share")

# %%
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))


def pair_of_events():
    start.record()
    small.add_(1)
    end.record()


gpulab.timeline(lambda: [pair_of_events() for _ in range(3)], n_warmup=3)

# %%
pair = gpulab.measure(lambda: small.add_(1), method="events", label="a pair of events")
exercises.compare("07.share", 100 * kernels["duration_s"].median() / pair.median_s)

# %% [markdown]
# There is a gap between the first event and the kernel, because Python launches the kernel after
# the event. The pair reads that gap as well. It has measured Python, with the clock of the GPU.
#
# Here are three other programs, as timelines. What sets the pace of each?

# %%
display(*[gpulab.timeline(lab.program(letter)) for letter in "abc"])

# %%
exercises.ask("07.gaps")

# %% tags=["exercise"]
answer = {"a": ..., "b": ..., "c": ...}
### BEGIN SOLUTION
answer = {"a": "wait", "b": "gpu", "c": "host"}
### END SOLUTION
exercises.check("07.gaps", answer)

# %% [markdown]
# ## 2 A head start
#
# `torch.cuda._sleep(n)` is a kernel that counts n clock cycles and does nothing else. The host
# launches it like any other kernel and goes on at once. (In CUDA C++ you can write such a kernel
# yourself, with `clock64()` or with `__nanosleep(ns)`, for about so many nanoseconds.) How long do
# a million cycles take?

# %%
exercises.predict("07.million")


# %%
def sleep_s(n_cycles):
    start.record()
    torch.cuda._sleep(n_cycles)
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


one_s, three_s = sleep_s(1_000_000), sleep_s(3_000_000)
cycles_per_s = 2_000_000 / (three_s - one_s)  # the difference leaves out what the events add
exercises.compare("07.million", one_s)

# %% [markdown]
# *Recorded* on an H200: 0.51 ms. The cycles per second are the clock of the GPU. That clock
# changes (lesson 05), so a sleep is no stopwatch.
#
# Now take 40 samples after one sleep. After each sample the host asks whether the GPU has already
# reached the first event. If not, the host was **ahead**: the whole sample was in the queue in
# time.


# %%
def samples_after(first, work, n_samples=40):
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in "se"] for _ in range(n_samples)]
    first()  # a sleep, or nothing
    begin, ahead = time.perf_counter(), 0
    for start, end in pairs:
        start.record(), work(), end.record()
        ahead += not start.query()
    host_s = time.perf_counter() - begin
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1e3 for start, end in pairs], ahead, host_s


add = partial(small.add_, 1)
samples_after(torch.cuda.synchronize, add, n_samples=2)


# %%
def sleep(duration_s):
    return lambda: torch.cuda._sleep(int(duration_s * cycles_per_s))


_, _, host_s = samples_after(sleep(0), add)
f"the host needs {host_s * 1e6:.0f} µs for 40 samples; next, the GPU sleeps for 200 µs"

# %%
exercises.predict("07.ahead")

# %%
_, ahead, _ = samples_after(sleep(200e-6), add)
exercises.compare("07.ahead", ahead)

# %%
lab.plot_samples({f"{ms} ms": samples_after(sleep(ms / 1e3), add)[0] for ms in (0, 0.2, 2)})

# %% [markdown]
# While the host is ahead, a pair reads the kernel and the fixed offset of the events. Once the GPU
# has caught up, it reads Python again. The step in the picture is where that happens. Nothing in
# the readings themselves warns you. So always ask the events.
#
# How long is long enough?

# %%
exercises.predict("07.enough")

# %%
sweep = pd.DataFrame({"sleep_us": [host_s * 1e6 * tenth / 10 for tenth in range(0, 31, 2)]})
sweep["ahead"] = [samples_after(sleep(us / 1e6), add)[1] for us in sweep["sleep_us"]]
plots.line(sweep, x="sleep_us", y="ahead", title="Samples with the host ahead")

# %%
exercises.compare(
    "07.enough", sweep["sleep_us"][sweep["ahead"] == sweep["ahead"].max()].min() / 1e6
)

# %% [markdown]
# The sleep must last **as long as the host needs for the whole batch**. (A little less can do,
# because the GPU needs time for the samples, too.) That is a time of the host, so no kernel's
# length gives it. Measure it, and add a margin. A longer sleep does not improve the reading.
#
# Any long kernel gives a head start. The oldest recipe puts an *expensive kernel first*: a large
# matmul before the batch. It works, but its length depends on the GPU, and it warms the chip
# (extra A tries it).
#
# `method="saturated"` does all of this. It measures the host, sleeps 1.3 times as long, asks every
# event, and discards a sample in which the host was not ahead.

# %%
# %%cudatime --method saturated --hot
small.add_(1)

# %%
exercises.ask("07.long-enough")

# %% tags=["exercise"]
head_start = ...


### BEGIN SOLUTION
def head_start(work):
    _, _, host_s = samples_after(sleep(0), work)
    return 2 * host_s * cycles_per_s


### END SOLUTION
exercises.check("07.long-enough", head_start)

# %% [markdown]
# ## 3 A wait inside
#
# This exercise is your prediction. Answer it before you go on.

# %%
exercises.ask("07.sync-inside")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = "c"
### END SOLUTION
exercises.check("07.sync-inside", answer)

# %%
with_sleep, ahead, _ = samples_after(sleep(10e-3), lambda: small.sum().item())
without, _, _ = samples_after(sleep(0), lambda: small.sum().item())
lab.plot_samples({f"sleep, ahead in {ahead} of 40": with_sleep, "no sleep": without})

# %% [markdown]
# `item()` of the first sample blocks the host until the sleep is over. Then the queue is empty and
# stays empty. A longer sleep only blocks the host longer. Take the wait out of the function, or
# time it with the stopwatch. `gpulab.measure` tests for such a wait before it begins.
#
# **Second half: graphs**
#
# ## 4 A graph
#
# A sleep gives you a correct reading. It does not make the program faster: there the GPU still
# waits for Python. Ten relus on a small tensor take ten launches.
#
# A **CUDA graph** contains the ten kernels with their arguments. Inside the `with` block in the
# second cell below, calls are written into the graph. Afterwards `replay()` sends all of them with
# one launch.


# %%
def ten_relus(tensor):
    for _ in range(10):
        tensor = torch.relu(tensor)
    return tensor


eager = gpulab.measure(lambda: ten_relus(x), method="events", label="ten launches")
eager

# %%
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    result = ten_relus(x)
graph.replay()
torch.equal(result, torch.relu(x))

# %%
exercises.predict("07.replay")

# %%
replayed = gpulab.measure(graph.replay, method="events", label="one replay")
exercises.compare("07.replay", replayed)

# %%
busy = gpulab.measure(lambda: ten_relus(x), method="profiler", cache="hot", label="kernels alone")
plots.compare_methods([eager, replayed, busy], title="Ten relus")

# %%
exercises.claim("07.graph-faster", here=replayed.median_s / eager.median_s)

# %% [markdown]
# *Recorded* on an H200: of the 14 µs in a graph, the kernels are busy for 10. The difference from
# ten launches was Python. The short pauses from kernel to kernel remain.
#
# ## 5 What a graph contains
#
# A graph contains kernels, their arguments and the addresses of their tensors. It contains no
# Python. What needs an answer from the GPU, such as `item()`, fails during the capture (extra D).
# Such errors are the harmless case. The next graph is captured without an error. `factor` is 2 at
# the capture and 10 at the replay.

# %%
exercises.predict("07.by")

# %%
factor, ones, scaling = 2, torch.ones(4, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(scaling):
    scaled = ones * factor
factor = 10
scaling.replay()
exercises.compare("07.by", f"{scaled[0].item():.0f}")

# %% [markdown]
# Python ran once, at the capture. Every number, `if`, loop count and `print` keeps the value that
# it had then. Now the next batch arrives, a tensor of fives, and gets the same name.

# %%
exercises.predict("07.reads")

# %%
captured_input = ones
ones = torch.full((4,), 5.0, device="cuda")
scaling.replay()
exercises.compare("07.reads", f"{scaled[0].item() / 2:.0f}")

# %%
captured_input.copy_(ones)  # new values, old address
scaling.replay()
scaled.tolist()

# %% [markdown]
# The graph knows an address, not a name. So keep the input tensor and copy new values into it. A
# batch of another *shape* needs another graph, or padding.

# %%
exercises.ask("07.graph-it")

# %% tags=["exercise"]
graphed = ...


### BEGIN SOLUTION
def graphed(function, x):
    function(x)  # first calls allocate and load; they do not belong into a capture
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function(x)

    def replay(new):
        x.copy_(new)
        graph.replay()
        return result.clone()

    return replay


### END SOLUTION
exercises.check("07.graph-it", graphed)

# %% [markdown]
# **Both halves**
#
# ## 6 Your benchmark
#
# This is your `benchmark(fn)` from lesson 06. For kernels that are shorter than their launches it
# still reads Python. Give the host a head start for all samples. (`torch.cuda._sleep(int(seconds *
# 2e9))` sleeps for at least that many seconds on any GPU whose clock is below 2e9 cycles per
# second.)


# %%
def once_s(fn):
    torch.cuda.synchronize()
    start = time.perf_counter()
    fn()
    torch.cuda.synchronize()
    return time.perf_counter() - start


once_s(lambda: ten_relus(x))


# %% tags=["exercise"]
def benchmark(fn, n_samples=11):
    last_s = []
    for _ in range(100):  # warm up until three calls in a row agree
        last_s = [*last_s[-2:], once_s(fn)]
        if last_s[2:] and max(last_s) < 1.05 * min(last_s):
            break
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    rows = torch.zeros(2 * l2_bytes // 65536, 16384, device="cuda")
    sums = torch.zeros(len(rows), device="cuda")
    starts = [torch.cuda.Event(enable_timing=True) for _ in range(n_samples)]
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(n_samples)]
    for start, end in zip(starts, ends, strict=True):
        torch.sum(rows, dim=1, out=sums)  # read twice the L2
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    clock_mhz = torch.cuda.clock_rate()  # right after the last call
    times_ms = [start.elapsed_time(end) for start, end in zip(starts, ends, strict=True)]
    return median(times_ms) / 1e3, clock_mhz


benchmark(lambda: ten_relus(x))

# %%
exercises.ask("07.benchmark")

# %% tags=["exercise"]
benchmark = ...


### BEGIN SOLUTION
def benchmark(fn, n_samples=11):
    last_s = []
    for _ in range(100):  # warm up until three calls in a row agree
        last_s = [*last_s[-2:], once_s(fn)]
        if last_s[2:] and max(last_s) < 1.05 * min(last_s):
            break
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    rows = torch.zeros(2 * l2_bytes // 65536, 16384, device="cuda")
    sums = torch.zeros(len(rows), device="cuda")
    starts = [torch.cuda.Event(enable_timing=True) for _ in range(n_samples)]
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(n_samples)]
    host_s = 0.0
    for _ in range(2):  # the first round measures the host, the second one counts
        torch.cuda._sleep(int(2 * host_s * 2e9))
        begin = time.perf_counter()
        for start, end in zip(starts, ends, strict=True):
            torch.sum(rows, dim=1, out=sums)  # read twice the L2
            start.record()
            fn()
            end.record()
        host_s = time.perf_counter() - begin
        torch.cuda.synchronize()
    clock_mhz = torch.cuda.clock_rate()  # right after the last call
    times_ms = [start.elapsed_time(end) for start, end in zip(starts, ends, strict=True)]
    return median(times_ms) / 1e3, clock_mhz


### END SOLUTION
exercises.check("07.benchmark", benchmark)

# %% [markdown]
# ## What you take along
#
# - If kernels are shorter than their launches, the host sets the pace, and events read Python.
# - A sleep is long enough if it outlasts the host's time for the whole batch. Ask the events.
# - A wait inside the work uses up the sleep. No length helps.
# - A graph launches many kernels at once. It contains addresses and numbers, not names and Python.
# - What needs an answer fails in a capture. What only Python does is frozen silently.
#
# Until now one kernel followed another. In lesson 08 they run at the same time.

# %%
exercises.progress()

# %% [markdown]
# # Going further
#
# Five extras. Each stands alone.
#
# | extra | what you will learn | minutes |
# |---|---|---|
# | A Who sets the pace | when you need a head start, and another way to get one | 8 |
# | B A full queue | how large a batch may be | 5 |
# | C Copies and caches | to time one kernel inside a graph, hot and cold | 12 |
# | D What can be captured | what fails in a capture, and who owns the tensors | 15 |
# | E The whole ladder | every method, and when its error matters | 15 |
#
# ## A Who sets the pace
#
# Additions from 2^10 to 2^24 elements, 50 of each in a row. From which size on does one more
# addition cost GPU time, and no longer Python time?

# %%
exercises.predict("07.takes-over")


# %%
def pace_s(tensor, n_calls=50):
    tensor.add_(1)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(n_calls):
        tensor.add_(1)
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / n_calls


paces = pd.DataFrame({"exponent": [10, 12, 14, 16, 18, 20, 22, 24]})
paces["time_us"] = [1e6 * pace_s(torch.zeros(2**n, device="cuda")) for n in paces["exponent"]]
plots.line(paces, x="exponent", y="time_us", title="Time per addition, 2^exponent elements")

# %%
slower = paces["exponent"][paces["time_us"] > 1.15 * paces["time_us"][0]]
exercises.compare("07.takes-over", f"2^{slower.min()}" if len(slower) else "not yet")

# %% [markdown]
# On the flat part you read the launch, whatever the size. A kernel that is longer than its launch
# fills the queue by itself. Then you need neither sleep nor graph.
#
# An expensive kernel before the batch gives a head start, too. Is one large matmul enough for the
# 40 samples of section 2?

# %%
exercises.predict("07.first")

# %%
_, after_matmul, _ = samples_after(lambda: a @ a, add)
exercises.compare("07.first", after_matmul)

# %%
exercises.claim("07.events-read-python", here=pair.median_s / kernels["duration_s"].median())

# %% [markdown]
# If one is not enough, put several before the batch.
#
# ## B A full queue
#
# About a thousand launches fit into the queue (lesson 01). Take 40 samples of 50 launches each,
# after a sleep four times as long as the host needs for them. Is the host ahead in all 40?

# %%
exercises.predict("07.all-ahead")


# %%
def fifty():
    for _ in range(50):
        small.add_(1)


_, _, host_s = samples_after(sleep(0), fifty)
readings_s, ahead, _ = samples_after(sleep(4 * host_s), fifty)
exercises.compare("07.all-ahead", "yes" if ahead == len(readings_s) else "no")

# %%
exercises.claim("07.full-queue", here=ahead)

# %% [markdown]
# When the queue is full, the next launch blocks until there is room, that is, until the sleep is
# over. From then on both run, and the GPU catches up. The remedy is a smaller batch, not a longer
# sleep.
#
# ## C Copies and caches
#
# A replay is a launch, too, and events round it have their fixed offset. To time one small kernel
# in a graph, put many copies of it inside and divide. What does each of a hundred copies read?

# %%
exercises.predict("07.each-of-100")


# %%
def seconds_per_copy(n_copies):
    copies = torch.cuda.CUDAGraph()
    with torch.cuda.graph(copies):
        for _ in range(n_copies):
            small.add_(1)
    for _ in range(3):  # the last round counts: the first replay also uploads the graph
        start.record(), copies.replay(), end.record()
        end.synchronize()
    return start.elapsed_time(end) / 1e3 / n_copies


copies = pd.DataFrame({"size": [1, 3, 10, 30, 100, 300]})
copies["time_us"] = [1e6 * seconds_per_copy(n) for n in copies["size"]]
exercises.compare("07.each-of-100", copies.set_index("size")["time_us"][100] / 1e6)

# %%
copies.round(2)

# %% [markdown]
# All copies share the launch and the offset. What remains is the kernel and the short pause to the
# next one. *Recorded* on an H200, with the host ahead: 3.0 µs with one copy, 1.07 µs with ten,
# 0.95 µs with a hundred.
#
# The copies run one after the other on the same tensors. For an addition of two tensors of 8 MB,
# does the graph read more or less than calibrated events, which empty the cache before each
# sample?

# %%
exercises.predict("07.cold")

# %%
add_8_mb = partial(torch.add, *torch.ones(2, 2**21, device="cuda"))
in_graph = gpulab.measure(add_8_mb, method="graph", label="graph")
calibrated = gpulab.measure(add_8_mb, label="calibrated, cold")
exercises.compare("07.cold", "less" if in_graph.median_s < calibrated.median_s else "more")

# %%
cold_graph = gpulab.measure(add_8_mb, method="graph", cache="cold", label="graph with a flush")
plots.compare_methods([in_graph, cold_graph, calibrated], title="An addition, hot and cold")

# %% [markdown]
# The copy before leaves its tensors in the L2 cache (lesson 06), so a graph reads **hot** unless
# the graph itself flushes. `cache="cold"` puts a flush in front of each copy *inside* the graph,
# and events inside the graph leave the flush out. Report which one you mean.
#
# ## D What can be captured
#
# Does the capture compute? The next capture increases a counter ten times.

# %%
exercises.predict("07.counted")

# %%
counter, counting = torch.zeros(1, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(counting):
    for _ in range(10):
        counter.add_(1)
exercises.compare("07.counted", f"{counter.item():.0f}")

# %% [markdown]
# A capture only records. Each replay then does all of it: two replays bring this counter to 20.
#
# During a capture nothing has an answer yet. Here are six functions. How many of them can be
# captured?

# %%
attempts = {
    "relu": lambda: torch.relu(x),
    "synchronize": lambda: (torch.relu(x), torch.cuda.synchronize()),
    "item": lambda: x.sum().item(),
    "x[x > 0]": lambda: x[x > 0],
    "cpu": lambda: torch.relu(x).cpu(),
    "zeros_like": lambda: torch.zeros_like(x) + x,
}
exercises.predict("07.captured")

# %%
outcomes = {name: lab.try_to_capture(work) for name, work in attempts.items()}
exercises.compare("07.captured", sum(outcome == "captured" for outcome in outcomes.values()))

# %%
outcomes

# %% [markdown]
# - **Waits** fail: during the capture nothing is computed, so there is nothing to wait for.
#   `item()`, `print(tensor)`, `if tensor:` and `event.synchronize()` are waits.
# - **Shapes that depend on values** fail: the host would have to wait for the number of elements.
#   `torch.where` and `masked_fill` keep the shape.
# - **Copies from and to pageable memory** fail; pinned memory (lesson 08) works.
# - **New tensors** work. Their memory belongs to the graph, and each replay uses the same
#   addresses.

# %%
exercises.ask("07.capturable")

# %% tags=["exercise"]
answer = {"a": ..., "b": ..., "c": ..., "d": ..., "e": ..., "f": ..., "g": ..., "h": ...}
### BEGIN SOLUTION
words = "runs raises frozen raises runs frozen raises runs"
answer = dict(zip("abcdefgh", words.split(), strict=True))
### END SOLUTION
exercises.check("07.capturable", answer)

# %% [markdown]
# Now back to the graph of section 5, which multiplies by 2.
#
# You keep the result of one batch. Then you replay for the next batch, of sevens. What does the
# kept result contain?

# %%
exercises.predict("07.kept")

# %%
kept = scaled  # 5 * 2
captured_input.fill_(7)
scaling.replay()
exercises.compare("07.kept", f"{kept[0].item():.0f}")

# %% [markdown]
# The result has a fixed address, too, and each replay overwrites it. `clone()` what you keep.
#
# The memory of the graph contains what was made *inside*. The input was made outside. Now the
# program drops it and creates other tensors, of nines. What does the replay read?

# %%
exercises.predict("07.gone")

# %%
del captured_input
others = [torch.full((4,), 9.0, device="cuda") for _ in range(50)]
scaling.replay()
exercises.compare("07.gone", f"{scaled[0].item() / 2:.0f}")

# %% [markdown]
# The allocator gives free memory to the next tensor (more in lesson 08), and the graph still reads
# there. Keep a name for every tensor that a graph reads, as long as you replay it.
#
# ## E The whole ladder
#
# Each method of lessons 01 to 07 is a rung, judged by the driver's own records of each kernel. The
# first work is thirty small relus. Which rung is farthest off?

# %%
exercises.predict("07.worst")

# %%
thirty_relus = partial(lab.repeat, 30, torch.relu, x)
climbed = live.ladder(thirty_relus, label="thirty small relus")
climbed

# %%
errors = climbed.to_frame().set_index("rung")["error"]
exercises.compare(
    "07.worst",
    errors[["naive", "synchronized", "events", "+ sleep", "calibrated", "graph"]].abs().idxmax(),
)

# %% [markdown]
# Here *events* read Python, and *+ sleep* repairs that. Look at *+ cache flush*: it reads less
# than *events*, although it makes the kernels slower. The flush keeps the GPU busy before the
# first event, and meanwhile the host gets ahead: a head start by accident.
#
# A rung can only repair a fault that the work has. So climb with two more works: a sum over 24 MiB
# and a large matmul. Make two predictions first.

# %%
exercises.predict("07.sum")

# %%
exercises.predict("07.off")

# %%
big, total = torch.randn(24 * 2**18, device="cuda"), torch.zeros((), device="cuda")
works = {"sum": partial(torch.sum, big, 0, out=total), "matmul": partial(torch.mm, a, a)}
ladders = {name: gpulab.ladder(work, label=name, max_time_s=0.1) for name, work in works.items()}
sum_us = 1e6 * ladders["sum"].to_frame().set_index("rung")["median_s"]
exercises.compare("07.sum", lab.largest_step(sum_us, ("+ warm-up", "+ cache flush", "+ sleep")))

# %%
matmul_errors = ladders["matmul"].to_frame().set_index("rung")["error"]
exercises.compare("07.off", 100 * abs(matmul_errors["synchronized"]))

# %%
ladders["relus"] = climbed
frames = {name: one.to_frame().set_index("rung") for name, one in ladders.items()}
pd.DataFrame({f"{name}, µs": 1e6 * frame["median_s"] for name, frame in frames.items()}).round(1)

# %%
pd.DataFrame({f"{name}, error %": 100 * one["error"] for name, one in frames.items()}).round(1)

# %% [markdown]
# *+ warm-up* changes nothing in these three: the rungs before it have called the work already. It
# repairs a *first* call. Here are five samples of an operator that this lesson has not used yet,
# without a warm-up:

# %%
fresh = gpulab.measure(lambda: torch.cumsum(x, 0), method="events", n_warmup=0, n_samples=5)
pd.Series(fresh.samples_s) * 1e6  # µs

# %% [markdown]
# | rung | error that remains | matters |
# |---|---|---|
# | naive | it reads the launch only | always, unless you ask for the launch |
# | synchronized | launch and wake-up | for short work |
# | events | the launch, if the GPU waits for it | if the kernel is shorter than its launch |
# | + warm-up | input from the cache | if your program finds it in memory |
# | + cache flush | the launch, in part | if the work launches many kernels |
# | + sleep | the fixed offset of the events | for short kernels |
# | calibrated | uncertainty of that offset | for the shortest kernels |
# | graph | a hot cache, shorter pauses | if your program launches one by one |

# %% [markdown]
# The sum is longer than its launch and finds its input in the cache, so the flush changes it and
# the sleep does not. The matmul has none of these faults: its errors are similar in microseconds,
# and small next to a long kernel. So do not ask which method is best. Ask how large its error is,
# compared with the difference that you want to see.

# %%
exercises.ask("07.which-rung")

# %% tags=["exercise"]
answer = {"a": ..., "b": ..., "c": ..., "d": ..., "e": ...}
### BEGIN SOLUTION
rungs = "naive synchronized events calibrated graph"
answer = dict(zip("abcde", rungs.split(), strict=True))
### END SOLUTION
exercises.check("07.which-rung", answer)

# %%
exercises.progress()
