# %% [markdown]
# # 06 Cache flush
#
# Is my data already in the L2 cache?
#
# A benchmark runs the same kernel again and again on the same data. A program rarely does. Between
# the multiprocessors and the memory of a GPU lies a cache, the L2, and it keeps data from one
# kernel to the next. This lesson shows what it keeps, how you empty it, and what the emptying can
# cost.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 The staircase | to see a cache in a curve of times | 8 |
# | 2 Hot and cold | the same kernel, two honest times | 8 |
# | 3 Fresh inputs | whether new inputs make a kernel cold | 4 |
# | 4 How much to flush | how large a flush must be | 5 |
# | 5 Read or write | what a flush leaves in the cache | 10 |
# | 6 Which state is right | to choose a state, and to report it | 5 |
# | 7 Your benchmark | to flush before each sample | 5 |
# | Going further (extra) | who pays · rotation · two halves | 30 |

# %%
import time
from functools import partial
from itertools import cycle
from statistics import median

import pandas as pd
import torch
from torch.nn.functional import linear

import gpulab
from gpulab import animations, exercises, plots
from gpulab.exercises import lesson_06 as lab

# %load_ext gpulab
gpulab.use("auto", max_value_bytes=16 << 20)  # of large tensors only the times matter

# %% [markdown]
# The driver reports the size of the L2, in bytes. (1 MiB is 1,048,576 bytes.)

# %%
MIB = 2**20
l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
f"{l2_bytes / MIB:.0f} MiB"

# %% [markdown]
# The cache keeps *lines* of 128 bytes: those that were read or written last, until other lines
# need the room. A kernel makes the best use of a line when neighbouring threads read neighbouring
# addresses, so that the hardware can combine their reads. This is called *coalescing*.
#
# ## 1 The staircase
#
# Take additions of several sizes. Each reads two tensors and writes a third. Together the three
# are the *working set*. The smallest is a sixteenth of the L2, the largest four times as large.

# %%
shares = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 2 / 3, 5 / 6, 1, 2, 4)
additions = {}
for share in shares:
    n = int(share * l2_bytes) // 12  # three tensors, four bytes each
    a, b, out = (torch.randn(n, device="cuda") for _ in range(3))
    additions[share * l2_bytes / MIB] = partial(torch.add, a, b, out=out)
[f"{size:.3g} MiB" for size in additions]

# %% [markdown]
# Each addition is repeated, and nothing else runs in between. Twice the bytes should need twice
# the time, so the time *per megabyte* should be the same for all of them. Is it?

# %%
exercises.predict("06.steps")

# %%
shown = lab.live_staircase(additions, "hot", title="A repeated addition", l2_mib=l2_bytes / MIB)
shown

# %%
hot_steps = shown.to_frame()
per_mb = hot_steps["value"].set_axis([*shares])
exercises.compare(
    "06.steps", lab.in_words(per_mb[4] / per_mb[1 / 4], ("falls", "stays the same", "rises"))
)

# %% [markdown]
# Read the curve from the left. Very small kernels are expensive per byte, because each kernel has
# a fixed cost. The first flat part is the cache: all three tensors are still there from the run
# before. Then the curve steps up: the run pushes out what the next run needs. From there on, every
# byte comes from memory.
#
# *Recorded* on an H200: a working set of 30 MiB takes 5.3 µs and one of 60 MiB 15.3 µs. Twice the
# bytes take 2.9 times as long.
#
# ## 2 Hot and cold
#
# The main kernel of this lesson is a linear layer on one row: a language model runs such layers
# for every word it writes. (If your L2 is smaller than that of an H200, choose a smaller `WIDTH`:
# the weights should fill about half of it.)

# %%
WIDTH = 4096
layer = torch.nn.Linear(WIDTH, WIDTH, bias=False, device="cuda", dtype=torch.half)
layer.requires_grad_(requires_grad=False)
x = torch.randn(1, WIDTH, device="cuda", dtype=torch.half)
f"{layer.weight.nbytes / 1e6:.1f} MB of weights, {x.nbytes / 1e3:.1f} kB of input"

# %% [markdown]
# `cache="hot"` (in a cell: `--hot`) repeats the layer and nothing else. `cache="cold"` fills the
# L2 with other data before each sample, outside the timed interval.

# %%
exercises.predict("06.colder")

# %%
# %%cudatime --hot
layer(x)

# %%
# %%cudatime --cold
layer(x)

# %%
hot = gpulab.measure(lambda: layer(x), cache="hot", label="hot")
cold = gpulab.measure(lambda: layer(x), cache="cold", label="cold")
exercises.compare("06.colder", cold.median_s / hot.median_s)

# %%
exercises.claim("06.cold-slower", here=cold.median_s / hot.median_s)

# %% [markdown]
# The kernel, the values and the clock are the same. Both times are right. They answer different
# questions. *Recorded* on an H200 with weights of 30.5 MB: 9.3 µs hot and 11.7 µs cold. Hardware
# counters saw 0.1 MB come from memory in the first case and 30.5 MB in the second.
#
# Now measure the additions of section 1 again, but cold. Where does the cold curve meet the hot
# one?

# %%
exercises.predict("06.meet")

# %%
cold_steps = pd.DataFrame(lab.per_megabyte(additions, "cold"))
both_steps = pd.concat([hot_steps, cold_steps])
lab.plot_staircase(
    both_steps,
    title="Hot and cold additions",
    value_label="time per MB (µs)",
    l2_mib=l2_bytes / MIB,
)

# %%
met = lab.meeting_point(both_steps) * MIB / l2_bytes
exercises.compare(
    "06.meet",
    lab.in_words(
        met,
        ("below half of the L2", "between half and all of the L2", "above its size"),
        low=1 / 2,
        high=1,
    ),
)

# %% [markdown]
# On an H200 they meet well *below* the size of the cache; the extra "Two halves" shows why. Right
# of that point a repeated kernel is cold without any flush. A benchmark of large tensors is honest
# by accident. Left of it you have to choose a state and to report it.
#
# ## 3 Fresh inputs
#
# "I give my layer a new input in each call, so it cannot be cached." Use sixteen rows in turn, and
# flush nothing. Is the layer hot or cold?

# %%
exercises.predict("06.fresh")

# %%
rows16 = [(torch.randn_like(x),) for _ in range(16)]
fresh = gpulab.measure(layer, inputs=rows16, cache="hot", label="fresh rows")
plots.compare_methods([hot, fresh, cold], title="Fresh inputs")

# %%
nearer_hot = fresh.median_s < (hot.median_s + cold.median_s) / 2
exercises.compare("06.fresh", "hot" if nearer_hot else "cold")

# %%
exercises.claim("06.fresh-rows", here=fresh.median_s / hot.median_s)

# %% [markdown]
# The row is small. Most of what the layer reads are its weights, and they stay where they are.
# Fresh inputs help only if the inputs are the large part. (`cache="hot"` means only that gpulab
# does not flush. What your code does to the cache is up to you.)
#
# ## 4 How much to flush
#
# You can flush by yourself: read a buffer, so that it takes the room of the old data. `setup=`
# runs before each sample and is not timed. The work here is a smaller layer whose weights are easy
# to keep. How large must the buffer be until the layer is as slow as after a large one?

# %%
additions.clear()  # gives their tensors' memory back
small_weights = [torch.randn(1024, 4096, device="cuda", dtype=torch.half) for _ in range(16)]
row = torch.randn(1, 4096, device="cuda", dtype=torch.half)
small_layer = partial(linear, row, small_weights[0])
f"{small_weights[0].nbytes / MIB:.0f} MiB of weights"

# %%
exercises.predict("06.enough")

# %%
parts = {"1/16": 1 / 16, "1/8": 1 / 8, "1/4": 1 / 4, "1/2": 1 / 2, "1": 1, "2": 2}
flushed_s = {}
for name, share in parts.items():
    rows = torch.zeros(int(share * l2_bytes) // 65536, 16384, device="cuda")
    read = partial(torch.sum, rows, dim=1, out=torch.zeros(len(rows), device="cuda"))
    flushed_s[name] = gpulab.measure(small_layer, setup=read, cache="hot").median_s
pd.Series(flushed_s) * 1e6  # µs, by the size of the buffer

# %%
halfway_s = (flushed_s["1/16"] + flushed_s["2"]) / 2
slow = [name for name, time_s in flushed_s.items() if time_s > halfway_s]
exercises.compare("06.enough", slow[0] if slow else "2")

# %% [markdown]
# By its time the layer looks cold as soon as the buffer and the weights no longer fit together.
# That does not prove that nothing is left: the virtual GPU drops exactly the lines that were
# unused for longest, and real hardware does so only roughly. Counters see the rest. *Recorded* on
# an H200, over 14 kernels:
#
# | read before the kernel (recorded) | takes | still in the L2, at most | written back meanwhile |
# |---|---|---|---|
# | 1 times the L2 | 23 µs | 2.4 % | 7.9 MB |
# | 1.5 times | 31 µs | 0.3 % | 2.7 MB |
# | 2 times | 39 µs | 0.2 % | 2.5 MB |
# | 4 times | 71 µs | 0.0 % | 2.6 MB |
#
# (The last column is for a kernel that scales 30 MiB in place. About 2.5 MB of its new results go
# back in any case.) By the counters one L2 is not enough; from 1.5 on nothing changes. **Read
# twice the L2** to have a margin. `gpulab.measure` does the same.
#
# ## 5 Read or write
#
# Most benchmark tools *write* to flush. Triton's `do_bench`, NVBench and Inductor fill a large
# buffer with zeros before each sample. That pushes the weights out as well as reading does. So
# does the layer take the same time after either flush?

# %%
exercises.predict("06.writing")

# %%
clean = gpulab.measure(lambda: layer(x), flush="read", label="cold, read")
dirty = gpulab.measure(lambda: layer(x), flush="write", label="cold, written")
plots.compare_methods([hot, clean, dirty], title="Two ways to empty a cache")

# %%
exercises.compare(
    "06.writing", lab.in_words(dirty.median_s / clean.median_s, ("less", "as long", "longer"))
)

# %%
exercises.claim("06.write-flush-slower", here=dirty.median_s / clean.median_s)

# %% [markdown]
# Both are cold. The difference lies in the data that fill the cache instead. The L2 is a
# *write-back* cache: what a kernel writes stays in the cache at first, marked *dirty*. It goes to
# memory when another line needs its place. After the zeros about half of the cache is dirty. The
# layer needs that room, so it waits until zeros that are not its own have been written to memory.
#
# *Recorded* on an H200 by counters, while the kernel ran (weights of 30.5 MB):

# %%
moved = exercises.readings("06.choose-a-flush").set_index("run_ahead")
moved["kernel_us"] = moved["kernel_s"] * 1e6
moved[["kernel_us", "from_memory_mb", "to_memory_mb"]].head(3).round(2)

# %% [markdown]
# After either flush all weights come from memory: the kernel is fully cold. But after the write
# flush megabytes also go *to* memory, from a layer whose own result is a few kilobytes. So the
# standard recipe makes cold kernels look slower than they are.
#
# Look at it on a timeline: read flush, layer, write flush, layer.

# %%
read_flush, write_flush = gpulab.timing.flusher("read"), gpulab.timing.flusher("write")
record = gpulab.timeline(lambda: (read_flush(), layer(x), write_flush(), layer(x)))
record

# %%
kernels = record.to_frame().query("kind == 'kernel'").set_index("name")
(kernels["duration_s"] * 1e6).round(1)  # µs

# %% [markdown]
# Neither flush is inside a sample: each has ended when the layer begins. But the work that it
# leaves behind is inside. Compare the second layer with the first. The film shows what happens in
# the L2 meanwhile; the virtual GPU knows it.

# %%
animations.show("dirty_lines")

# %%
exercises.ask("06.choose-a-flush")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
rows = torch.zeros(2 * l2_bytes // 65536, 16384, device="cuda")
sums = torch.zeros(len(rows), device="cuda")
answer = {"flush": lambda: torch.sum(rows, dim=1, out=sums), "because": "c"}
### END SOLUTION
exercises.check("06.choose-a-flush", answer)

# %% [markdown]
# Stuck? `exercises.hint("06.choose-a-flush")` gives a hint, and one more each time. To compare
# your numbers with a tool that writes, write too: `flush="write"`. The measurement then carries a
# finding that says so.
#
# ## 6 Which state is right
#
# Cold is not the honest state and hot the flattering one. The right state is the one in which your
# program finds the cache. An activation runs right after the matmul that has written its input. In
# which state does it find that input?

# %%
exercises.predict("06.after")

# %%
left, right, hidden = (torch.randn(1024, 1024, device="cuda") for _ in range(3))
activation, matmul = partial(torch.relu_, hidden), partial(torch.mm, left, right, out=hidden)
chained = gpulab.measure(activation, setup=matmul, cache="hot", label="after the matmul")
states = [gpulab.measure(activation, cache=state, label=state) for state in ("hot", "cold")]
plots.compare_methods([states[0], chained, states[1]], title="An activation")

# %%
midway_s = (states[0].median_s + states[1].median_s) / 2
exercises.compare("06.after", "hot" if chained.median_s < midway_s else "cold")

# %% [markdown]
# Measure hot where data pass from one kernel straight to the next, or where a loop stays on a
# small set of data. Measure cold where much else runs in between: the layers of a large model, a
# training step. And hot is not always faster: *recorded* on an H200, a softmax of 60 MiB takes
# 18.3 µs when repeated and 16.0 µs in a clean cache, because each run writes the last one's
# results back.
#
# A time without the state of the cache is half a result, so report both. And know what a tool does
# by default. In gpulab the plain methods (`naive`, `synchronized`, `events`) and `graph` are hot,
# like a loop of your own. `saturated`, `calibrated` and the profiler's methods are cold unless you
# say otherwise.

# %%
exercises.ask("06.hot-or-cold")

# %% tags=["exercise"]
answer = {"a": ..., "b": ..., "c": ..., "d": ..., "e": ...}
### BEGIN SOLUTION
answer = {"a": "cold", "b": "hot", "c": "hot", "d": "cold", "e": "rotated"}
### END SOLUTION
exercises.check("06.hot-or-cold", answer)

# %% [markdown]
# ## 7 Your benchmark
#
# This is your `benchmark(fn)` from lesson 05. It measures hot. Let it flush before each sample, in
# the way that you have chosen, and outside the timed interval.


# %%
def once_s(fn):
    torch.cuda.synchronize()
    start = time.perf_counter()
    fn()
    torch.cuda.synchronize()
    return time.perf_counter() - start


once_s(lambda: layer(x))


# %% tags=["exercise"]
def benchmark(fn, n_samples=11):
    last_s = []
    for _ in range(100):  # warm up until three calls in a row agree
        last_s = [*last_s[-2:], once_s(fn)]
        if last_s[2:] and max(last_s) < 1.05 * min(last_s):
            break
    starts = [torch.cuda.Event(enable_timing=True) for _ in range(n_samples)]
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(n_samples)]
    for start, end in zip(starts, ends, strict=True):
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    clock_mhz = torch.cuda.clock_rate()  # right after the last call
    times_ms = [start.elapsed_time(end) for start, end in zip(starts, ends, strict=True)]
    return median(times_ms) / 1e3, clock_mhz


benchmark(lambda: layer(x))

# %%
exercises.ask("06.benchmark")

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
    for start, end in zip(starts, ends, strict=True):
        torch.sum(rows, dim=1, out=sums)  # read twice the L2
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    clock_mhz = torch.cuda.clock_rate()  # right after the last call
    times_ms = [start.elapsed_time(end) for start, end in zip(starts, ends, strict=True)]
    return median(times_ms) / 1e3, clock_mhz


### END SOLUTION
exercises.check("06.benchmark", benchmark)

# %% [markdown]
# ## What you take along
#
# - A repeated kernel finds its data in the L2, up to a size well below that of the cache.
# - Fresh inputs do not help if the weights are the large part.
# - Flush by reading twice the L2. A flush that writes is as cold, and then the kernel pays for its
#   zeros.
# - No state is the honest one. Choose the one of your program, and report it.
#
# Still open: what if the GPU finishes before Python has launched the next kernel? That is lesson
# 07.

# %%
exercises.progress()

# %% [markdown]
# # Going further
#
# Three extras. Each uses the tensors of the core and stands alone otherwise.
#
# | extra | what you will learn | minutes |
# |---|---|---|
# | A Who pays | which kernels suffer from a write flush, and whether waiting helps | 8 |
# | B Rotation | another way to be cold, and what it measures | 12 |
# | C Two halves | why hot is not always fully hot | 10 |
#
# ## A Who pays
#
# Perhaps the cache writes its zeros back when it has nothing else to do. Let the GPU sleep for
# about a millisecond between the flush and the layer. (`torch.cuda._sleep` counts clock cycles.)

# %%
exercises.predict("06.pause")


# %%
def write_and_pause():
    write_flush()
    torch.cuda._sleep(2_000_000)  # cycles


paused = gpulab.measure(lambda: layer(x), setup=write_and_pause, cache="hot", label="cold, paused")
plots.compare_methods([clean, dirty, paused], title="A pause after the flush")

# %%
nearer_read = paused.median_s < (clean.median_s + dirty.median_s) / 2
exercises.compare(
    "06.pause", "as long as after reading" if nearer_read else "as long as after writing"
)

# %% [markdown]
# A dirty line waits until something needs its place, however long that takes. *Recorded* on an
# H200: 14.4 µs without the pause, 14.3 µs with it.
#
# Now three kernels on about 30 MiB. Which one loses most to a flush that writes?

# %%
exercises.predict("06.loser")

# %%
big, total = torch.randn(30 * MIB // 4, device="cuda"), torch.zeros((), device="cuda")
square = torch.randn(1600, 1600, device="cuda")
works = {
    "a fill": lambda: big.fill_(1.5),
    "a sum": lambda: torch.sum(big, 0, out=total),
    "a matmul": lambda: square @ square,
}
lost = {}
for name, work in works.items():
    read, write = (gpulab.measure(work, flush=kind).median_s for kind in ("read", "write"))
    lost[name] = 100 * (write / read - 1)
exercises.compare("06.loser", max(lost, key=lost.get))

# %%
pd.Series(lost).round(1)  # percent

# %% [markdown]
# A kernel that reads and does little else pays in full. A kernel that only writes puts its bytes
# into the cache and does not wait for the traffic. A kernel that computes hides it. *Recorded* on
# an H200 at 30 MiB: fill +1 %, sum +21 %, matmul 0 %, linear layer +24 %. So the write flush does
# not slow everything down alike. It can change which candidate wins.
#
# ## B Rotation
#
# You can do without a flush: let the work push out its own data. With enough sets of tensors, used
# in turn, each set has left the cache before it is used again. But not every loop that looks like
# rotation is one. Answer this before you go on.

# %%
exercises.ask("06.which-is-cold")

# %% tags=["exercise"]
answer = {"a": ..., "b": ..., "c": ..., "d": ..., "e": ...}
### BEGIN SOLUTION
answer = {"a": "hot", "b": "hot", "c": "cold", "d": "hot", "e": "hot"}
### END SOLUTION
exercises.check("06.which-is-cold", answer)

# %% [markdown]
# Now measure the five loops. (They are made for an L2 of 60 MiB. On a GPU with a smaller L2 more
# of them are cold.)

# %%
weight, next_weight = small_weights[0].clone(), cycle(small_weights)
loops = {
    "a": {"inputs": [(torch.randn_like(row), weight) for _ in range(16)]},
    "b": {"inputs": [(row, w) for w in small_weights[:2]]},
    "c": {"inputs": [(row, w) for w in small_weights]},
    "d": {"inputs": [(row, w) for w in [weight] * 16]},
    "e": {"inputs": [(row, weight)], "setup": lambda: weight.copy_(next(next_weight))},
}
marks = [gpulab.measure(linear, cache="hot", label=name, **how) for name, how in loops.items()]
marks.append(gpulab.measure(small_layer, cache="cold", label="flushed"))

# %%
medians_s = pd.Series({mark.label: mark.median_s for mark in marks}, name="time_per_call_s")
plots.bars(medians_s, title="Five loops, and the layer after a flush")

# %% [markdown]
# What counts is how many other bytes pass between two uses of the same memory. Fresh rows are too
# few bytes, and so are two matrices. Sixteen names for one matrix are one matrix. And a copy makes
# hot what it writes.
#
# Rotation is cold. Is it also clean? That depends on the kernel. The layer writes little, so after
# other layers the cache is clean. A softmax writes as much as it reads. Rotate six sets of input
# and output, and compare with both flushes.

# %%
exercises.predict("06.who-pays")

# %%
sets = [[torch.randn(3840, 1024, device="cuda") for _ in range(2)] for _ in range(6)]


def softmax(source, result):
    return torch.softmax(source, 1, out=result)


first = partial(softmax, *sets[0])
states = [gpulab.measure(first, flush=kind, label=f"{kind} flush") for kind in ("read", "write")]
states.append(gpulab.measure(softmax, inputs=sets, cache="hot", label="cold, rotation"))
plots.compare_methods(states, title="A softmax")

# %%
read_s, write_s, rotated_s = (state.median_s for state in states)
exercises.compare(
    "06.who-pays",
    "as long as after reading"
    if rotated_s < (read_s + write_s) / 2
    else "as long as after writing",
)

# %%
exercises.claim("06.rotation-pays", here=rotated_s / read_s)

# %% [markdown]
# Each softmax finds the results of the one before it dirty, and waits for them. The next one waits
# for its own. *Recorded* on an H200: 10.4 µs after a read flush, 11.7 µs after a write flush, 11.7
# µs in rotation. For the linear layer: 11.7, 14.4 and 11.6 µs.
#
# So there are three different questions:
#
# | question | before each sample |
# |---|---|
# | How long does this kernel take by itself, cold? | read twice the L2 |
# | What does it add to a program of such kernels? | rotate inputs *and* outputs |
# | What would the usual tool say? | write zeros |
#
# ## C Two halves
#
# The step of section 1 came too early. Counters on an H200 recorded a repeated linear layer with
# weights of 46.1 MB, in an L2 of 62.9 MB. How much of the data still came from memory?

# %%
exercises.predict("06.share")

# %%
counted = exercises.readings("06.staircase")
counted["from_memory"] = 100 * counted["hot_mb"] / counted["cold_mb"]
at_45 = counted.query("work == 'linear layer' and working_set_mib == 45").squeeze()
exercises.compare("06.share", at_45["from_memory"])

# %%
names = {"working_set_mib": "size_mib", "from_memory": "value", "work": "series"}
lab.plot_staircase(
    counted.rename(columns=names),
    title="Repeated kernels, by hardware counters",
    value_label="share that comes from memory (%)",
    l2_mib=60,
)

# %% [markdown]
# From 52 MiB on these kernels find almost nothing, in a cache of 60 MiB (*recorded*, as above).
# The L2 of an H200 consists of two halves. A multiprocessor asks the half next to it. If the line
# belongs to the other half, that half is asked in turn, **and the near half keeps a copy**.
# Counters see the requests that cross over:

# %%
lab.plot_staircase(
    counted.rename(columns=names).assign(value=100 * counted["hot_crossing"]),
    title="Requests that go on to the other half, repeated kernels",
    value_label="share of requests that cross (%)",
    l2_mib=60,
)

# %% [markdown]
# When the kernel is cold, half of all requests cross, because half of the memory is far. When it
# is hot, almost none do, although the addresses are the same: lines of the far half now lie in
# both halves. A line that is read from one side takes one and a half places on average, so the L2
# has room for such lines up to two thirds of its size. There the misses begin. The oldest lines
# leave first, so a kernel that reads in the same order each time soon finds nothing at all.
#
# So **a benchmark is not hot just because its data are smaller than the L2.** (The virtual GPU
# models this more simply, and its step comes a little earlier.)

# %%
exercises.ask("06.staircase")

# %% tags=["exercise"]
answer = {"hot up to": ..., "cold from": ..., "l2 size": ...}
### BEGIN SOLUTION
answer = {"hot up to": "36", "cold from": "52", "l2 size": "60"}
### END SOLUTION
exercises.check("06.staircase", answer)

# %%
exercises.progress()
