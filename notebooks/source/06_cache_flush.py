# %% [markdown]
# # 06 Cache flush
#
# How fast can an addition be?

# %%
import time
from itertools import cycle
from statistics import median

import pandas as pd
import torch
from torch.nn.functional import linear

import gpulab
from gpulab import animations, exercises, plots
from gpulab.exercises import lesson_06 as lab

gpu = gpulab.use("auto", max_value_bytes=16 << 20)  # of large tensors only the times matter
a, b, total = (torch.randn(2**21, device="cuda") for _ in range(3))
gpu

# %% [markdown]
# Add two tensors of two million numbers. The kernel reads both and writes a third: 25 million
# bytes in all. `measure` calls it again and again, as a loop of yours does, and reads the
# driver's records.

# %%
exercises.predict("06.speed")

# %%
small = gpulab.measure(lambda: torch.add(a, b, out=total), method="profiler", cache="hot")
bytes_per_s = (a.nbytes + b.nbytes + total.nbytes) / small.median_s
exercises.compare("06.speed", bytes_per_s / 1e9)

# %% [markdown]
# ## Is that possible?
#
# NVIDIA's data sheets promise 4,800 GB/s for the memory of an H200, and 3,350 GB/s for an H100.

# %%
print(f"{bytes_per_s / 4800e9:.2f} times the memory of an H200")
print(f"{bytes_per_s / 3350e9:.2f} times the memory of an H100")

# %% [markdown]
# No kernel can read from the memory faster than the memory gives. And yet the driver recorded
# it.
#
# ## Twice the numbers
#
# The same addition of four million numbers. How many times as long does it take?

# %%
exercises.predict("06.twice")

# %%
a2, b2, total2 = (torch.randn(2**22, device="cuda") for _ in range(3))
large = gpulab.measure(lambda: torch.add(a2, b2, out=total2), method="profiler", cache="hot")
exercises.compare("06.twice", large.median_s / small.median_s)

# %% [markdown]
# *Recorded* on an H200: 30 MiB in all take 5.3 µs, and 60 MiB take 15.3 µs.
#
# ## Exercise: what explains both?

# %% tags=["exercise"]
exercises.ask("06.both")
### BEGIN SOLUTION
exercises.check("06.both", "c")
### END SOLUTION

# %% [markdown]
# Test it, with *working sets* (all bytes of the three tensors) of several sizes. `cache="cold"`
# replaces everything in the cache before each call and does not time that. `cache="hot"` calls
# again at once.


# %%
def speed(size_mib, cache):
    n_bytes = size_mib * 2**20
    a, b, total = (torch.randn(n_bytes // 12, device="cuda") for _ in range(3))
    took = gpulab.measure(lambda: torch.add(a, b, out=total), method="profiler", cache=cache)
    return n_bytes / took.median_s


# %%
sizes = [3, 6, 12, 24, 30, 36, 48, 60, 96, 192]
hot = [speed(size_mib, "hot") for size_mib in sizes]
cold = [speed(size_mib, "cold") for size_mib in sizes]
lab.plot_speeds(sizes, {"hot": hot, "cold": cold})

# %% [markdown]
# ## The cache
#
# Between the multiprocessors and the memory of a GPU lies a cache, the **L2**. It contains the
# *lines* of 128 bytes that were read or written last. A small addition finds all its data there,
# from the call before: it is **hot**. A large one pushes out what its next call needs: it is
# **cold**, and the memory sets its speed. (It may come out a little above the memory: a part of
# its result is still in the cache.) **A loop with little data measures hot. Say which state you
# report.**
#
# ## Fresh inputs
#
# A language model runs a linear layer on one row for every word. "I give it a new row in each
# call. So it cannot be hot." Is it?

# %%
exercises.predict("06.fresh")

# %%
weights = torch.randn(4096, 4096, device="cuda", dtype=torch.half)  # half of a large L2
rows = [torch.randn(1, 4096, device="cuda", dtype=torch.half) for _ in range(16)]


def layer(row=rows[0]):
    return linear(row, weights)


print(f"a row {rows[0].nbytes:,} bytes, the weights {weights.nbytes:,} bytes")

# %%
same_row = gpulab.measure(layer, cache="hot", label="hot, the same row")
in_turn = [(row,) for row in rows]
fresh_rows = gpulab.measure(layer, inputs=in_turn, cache="hot", label="fresh rows")
cold_layer = gpulab.measure(layer, cache="cold", label="cold")
plots.compare_methods([same_row, fresh_rows, cold_layer])

# %%
half_way_s = (same_row.median_s + cold_layer.median_s) / 2
exercises.compare("06.fresh", "hot" if fresh_rows.median_s < half_way_s else "cold")

# %% [markdown]
# The weights are what the layer reads, and they stay where they are. *Recorded* on an H200 and
# an H100: fresh rows take 1.00 and 1.04 times as long as the same row, and cold ones 1.29 and
# 1.59 times.
#
# ## Two ways to empty a cache
#
# Most benchmarks fill a large buffer with zeros before each call: Triton's `do_bench`, NVBench,
# Inductor. `cache="cold"` *reads* a buffer. Both replace the weights. How long does the layer
# take after the zeros?

# %%
exercises.predict("06.writing")

# %%
buffer = torch.empty(2**26, device="cuda")  # 256 MiB
after_zeros = gpulab.measure(layer, setup=buffer.zero_, cache="hot", label="cold, after zeros")
plots.compare_methods([cold_layer, after_zeros])

# %%
ratio = after_zeros.median_s / cold_layer.median_s
exercises.compare("06.writing", ratio)

# %% [markdown]
# *Recorded*: 1.30 times as long on an H200, and 1.36 times on an H100. Counters of an H200 saw
# what moved while a layer with weights of 30 MiB ran:

# %%
moved = exercises.readings("06.choose-a-flush").set_index("run_ahead")
moved[["from_memory_mb", "to_memory_mb"]].head(3).round(1)

# %% [markdown]
# ## Exercise: write a flush
#
# `answer["flush"]` is your function, and `answer["because"]` one of the letters.

# %%
exercises.ask("06.choose-a-flush")

# %% tags=["exercise"]
answer = {"flush": ..., "because": ...}
### BEGIN SOLUTION
n_bytes = 2 * torch.cuda.get_device_properties(0).L2_cache_size
ahead = torch.zeros(n_bytes // 65536, 16384, device="cuda")
sums = torch.zeros(len(ahead), device="cuda")
answer = {"flush": lambda: torch.sum(ahead, dim=1, out=sums), "because": "c"}
### END SOLUTION
exercises.check("06.choose-a-flush", answer)

# %% [markdown]
# The film shows the L2 while the layer runs after the zeros.

# %%
animations.show("dirty_lines")

# %% [markdown]
# The L2 is a *write-back* cache: what a kernel writes stays there at first, marked *dirty*. It
# goes to memory when another line needs its place. So the layer waits until zeros that are not
# its own are written. **Flush by reading twice the L2.**
#
# ## Which state is right?
#
# The state in which your program finds the cache. An activation runs right after the matmul that
# has written its input. In which state does it find that input?

# %%
exercises.predict("06.after")

# %%
left, right, hidden = (torch.randn(1024, 1024, device="cuda") for _ in range(3))
after_matmul = gpulab.measure(
    lambda: torch.relu_(hidden),
    setup=lambda: torch.mm(left, right, out=hidden),
    cache="hot",
    label="after the matmul",
)
hot_relu, cold_relu = (
    gpulab.measure(lambda: torch.relu_(hidden), cache=state, label=state)
    for state in ("hot", "cold")
)
plots.compare_methods([hot_relu, after_matmul, cold_relu])

# %%
half_way_s = (hot_relu.median_s + cold_relu.median_s) / 2
exercises.compare("06.after", "hot" if after_matmul.median_s < half_way_s else "cold")

# %% [markdown]
# What a kernel has just written is hot for the next one. A layer of a large model is cold,
# because the other layers ran in between. And know your tool: `timeit` and
# `torch.utils.benchmark` flush nothing.
#
# ## Your own benchmark
#
# Your `benchmark(fn)` from lesson 05 measures hot. Flush before each sample, outside the timed
# interval.

# %% tags=["exercise"]
exercises.continue_from("06.benchmark")  # puts your last version here: run it, then change it


### BEGIN SOLUTION
def benchmark(fn, n_samples=11):
    last_s = []
    for _ in range(100):  # warm up until three calls in a row agree
        torch.cuda.synchronize()
        begin_s = time.perf_counter()
        fn()
        torch.cuda.synchronize()
        last_s = [*last_s[-2:], time.perf_counter() - begin_s]
        if last_s[2:] and max(last_s) < 1.05 * min(last_s):
            break
    n_bytes = 2 * torch.cuda.get_device_properties(0).L2_cache_size
    ahead = torch.zeros(n_bytes // 65536, 16384, device="cuda")
    sums = torch.zeros(len(ahead), device="cuda")
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in "se"] for _ in range(n_samples)]
    for start, end in pairs:
        torch.sum(ahead, dim=1, out=sums)  # read twice the L2
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    clock_mhz = torch.cuda.clock_rate()  # right after the last call
    return median(start.elapsed_time(end) for start, end in pairs) / 1e3, clock_mhz


exercises.check("06.benchmark", benchmark)
### END SOLUTION

# %% [markdown]
# ## What you take with you
#
# - A repeated kernel finds its data in the L2 and looks faster than the memory.
# - Fresh inputs do not help if the weights are the large part.
# - Flush by reading twice the L2. After a flush that writes, the kernel pays for your zeros.
#
# And what if the kernel ends before Python has launched the next one? Next: `07_sleep.ipynb`.

# %% [markdown]
# # Going further
#
# Each part stands alone.
#
# ## How much to flush
#
# `setup=` runs before each sample and is not timed. The work is a smaller layer. Its weights are
# easy to keep. By its time, from which buffer on is it cold?

# %%
small_weights = [torch.randn(1024, 4096, device="cuda", dtype=torch.half) for _ in range(16)]
l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
print(f"L2 {l2_bytes >> 20} MiB, weights {small_weights[0].nbytes >> 20} MiB")

# %%
exercises.predict("06.enough")

# %%
shares = {"1/16": 1 / 16, "1/8": 1 / 8, "1/4": 1 / 4, "1/2": 1 / 2, "1": 1, "2": 2}
flushed_s = {}
for name, share in shares.items():
    part = torch.zeros(int(share * l2_bytes) // 65536, 16384, device="cuda")
    part_sums = torch.zeros(len(part), device="cuda")
    flushed_s[name] = gpulab.measure(
        lambda: linear(rows[0], small_weights[0]),
        setup=lambda: torch.sum(part, dim=1, out=part_sums),
        cache="hot",
    ).median_s
pd.Series(flushed_s, name="µs").mul(1e6).round(2).rename_axis("buffer").to_frame()

# %%
half_way_s = (flushed_s["1/16"] + flushed_s["2"]) / 2
slow = [name for name, time_s in flushed_s.items() if time_s > half_way_s]
exercises.compare("06.enough", slow[0] if slow else "2")

# %% [markdown]
# By its time the layer is cold as soon as the buffer and the weights no longer fit together.
# That does not prove that nothing is left: the virtual GPU drops exactly the lines that were
# unused for longest, and hardware does so only roughly. Counters see the rest. *Recorded* on an
# H200, over 14 kernels:
#
# | read before the kernel (recorded) | takes | still in the L2, at most | written back meanwhile |
# |---|---|---|---|
# | 1 times the L2 | 23 µs | 2.4 % | 7.9 MB |
# | 1.5 times | 31 µs | 0.3 % | 2.7 MB |
# | 2 times | 39 µs | 0.2 % | 2.5 MB |
# | 4 times | 71 µs | 0.0 % | 2.5 MB |
#
# (The last column is for a kernel that scales 30 MiB in place. About 2.5 MB of its new results
# go back in any case.) So one L2 is not enough, although the time says so. From 1.5 on nothing
# changes, and twice the L2 has a margin. `cache="cold"` reads as much.
#
# ## Which state is right
#
# Measure hot where data pass from one kernel straight to the next, or where a loop stays on a
# small set of data. Measure cold where much else runs in between. Hot is not always faster:
# *recorded* on an H200, a softmax of 60 MiB takes 18.3 µs when repeated and 16.0 µs in a clean
# cache, because each run writes the last one's results back.
#
# In gpulab the plain methods (`naive`, `synchronized`, `events`) and `graph` are hot, like a
# loop of yours. `saturated`, `calibrated` and the profiler's methods are cold unless you say
# otherwise.

# %% tags=["exercise"]
exercises.ask("06.hot-or-cold")
### BEGIN SOLUTION
exercises.check(
    "06.hot-or-cold", {"a": "cold", "b": "hot", "c": "hot", "d": "cold", "e": "rotated"}
)
### END SOLUTION

# %% [markdown]
# ## Who pays for the zeros
#
# Perhaps the cache writes its zeros back when it has nothing else to do. Let the GPU sleep for
# about a millisecond between the flush and the layer. (`torch.cuda._sleep` counts clock cycles.)

# %%
exercises.predict("06.pause")


# %%
def zeros_and_pause():
    buffer.zero_()
    torch.cuda._sleep(2_000_000)  # cycles


paused = gpulab.measure(layer, setup=zeros_and_pause, cache="hot", label="cold, zeros and a pause")
plots.compare_methods([cold_layer, after_zeros, paused])

# %%
is_clean = paused.median_s < (cold_layer.median_s + after_zeros.median_s) / 2
exercises.compare(
    "06.pause", "as long as after reading" if is_clean else "as long as after writing"
)

# %% [markdown]
# A dirty line waits until something needs its place, however long that takes. *Recorded* on an
# H200: 14.4 µs without the pause, 14.3 µs with it.
#
# Now three kernels on about 30 MiB. Which one loses most to a flush that writes?

# %%
exercises.predict("06.loser")

# %%
big, one = torch.randn(30 << 18, device="cuda"), torch.zeros((), device="cuda")
square = torch.randn(1600, 1600, device="cuda")
works = {
    "a fill": lambda: big.fill_(1.5),
    "a sum": lambda: torch.sum(big, 0, out=one),
    "a matmul": lambda: square @ square,
}
lost = {}
for name, work in works.items():
    read, write = (gpulab.measure(work, flush=kind).median_s for kind in ("read", "write"))
    lost[name] = 100 * (write / read - 1)
exercises.compare("06.loser", max(lost, key=lost.get))

# %%
pd.Series(lost, name="longer by (%)").round(1).add(0.0).to_frame()  # no -0.0

# %% [markdown]
# A kernel that reads and does little else pays in full. A kernel that only writes puts its bytes
# into the cache. If they find room there, as in a large L2, it does not wait. A kernel that
# computes hides the traffic. *Recorded* on an H200 at 30 MiB: fill +1 %, sum +21 %, matmul 0 %,
# linear layer +24 %. So the write flush does not slow everything down alike. It can change which
# candidate wins.
#
# ## Rotation
#
# You can do without a flush: let the work push out its own data. With enough sets of tensors,
# used in turn, each set has left the cache before it is used again. But not every loop that
# looks like rotation is one. Answer this before you go on.

# %% tags=["exercise"]
exercises.ask("06.which-is-cold")
### BEGIN SOLUTION
exercises.check("06.which-is-cold", {"a": "hot", "b": "hot", "c": "cold", "d": "hot", "e": "hot"})
### END SOLUTION

# %% [markdown]
# Now measure the five loops. (They are made for an L2 of 60 MiB. On a GPU with a smaller L2 more
# of them are cold.)

# %%
row, weight, next_weight = rows[0], small_weights[0].clone(), cycle(small_weights)
loops = {
    "a": {"inputs": [(torch.randn_like(row), weight) for _ in range(16)]},
    "b": {"inputs": [(row, w) for w in small_weights[:2]]},
    "c": {"inputs": [(row, w) for w in small_weights]},
    "d": {"inputs": [(row, w) for w in [weight] * 16]},
    "e": {"inputs": [(row, weight)], "setup": lambda: weight.copy_(next(next_weight))},
}
marks = [gpulab.measure(linear, cache="hot", label=name, **how) for name, how in loops.items()]
times_s = pd.Series({mark.label: mark.median_s for mark in marks}, name="time_per_call_s")
cold = times_s.index[times_s > (times_s.min() + times_s.max()) / 2]
plots.bars(times_s, title=f"Longer, and so cold: {', '.join(cold)}")

# %% [markdown]
# What counts is how many other bytes pass between two uses of the same memory. Fresh rows are
# too few bytes, and so are two matrices. Sixteen names for one matrix are one matrix. And a copy
# makes hot what it writes.
#
# Rotation is cold. Is it also clean? That depends on the kernel. The layer writes little, so
# after other layers the cache is clean. A softmax writes as much as it reads. Rotate six sets of
# input and output, and compare with both flushes.

# %%
exercises.predict("06.who-pays")

# %%
sets = [[torch.randn(3840, 1024, device="cuda") for _ in range(2)] for _ in range(6)]


def softmax(source, result):
    return torch.softmax(source, 1, out=result)


after_read, after_write = (
    gpulab.measure(lambda: softmax(*sets[0]), flush=kind, label=f"{kind} flush")
    for kind in ("read", "write")
)
rotated = gpulab.measure(softmax, inputs=sets, cache="hot", label="cold, rotation")
plots.compare_methods([after_read, after_write, rotated])

# %%
is_clean = rotated.median_s < (after_read.median_s + after_write.median_s) / 2
exercises.compare("06.who-pays", "read" if is_clean else "write")

# %%
exercises.claim("06.rotation-pays", here=rotated.median_s / after_read.median_s)

# %% [markdown]
# Each softmax finds the results of the one before it dirty, and waits for them. The next one
# waits for its own. *Recorded* on an H200: 10.4 µs after a read flush, 11.7 µs after a write
# flush, 11.7 µs in rotation. For the linear layer: 11.7, 14.4 and 11.6 µs.
#
# So there are three different questions:
#
# | question | before each sample |
# |---|---|
# | How long does this kernel take by itself, cold? | read twice the L2 |
# | What does it add to a program of such kernels? | rotate inputs *and* outputs |
# | What would the usual tool say? | write zeros |
#
# ## Two halves
#
# A repeated kernel becomes cold well below the size of the L2. Counters on an H200 recorded a
# repeated linear layer with weights of 46.1 MB, in an L2 of 62.9 MB. How much of the data still
# came from memory?

# %%
exercises.predict("06.share")

# %%
counted = exercises.readings("06.staircase")
counted["from_memory_percent"] = 100 * counted["hot_mb"] / counted["cold_mb"]
at_45 = counted.query("work == 'linear layer' and working_set_mib == 45").squeeze()
exercises.compare("06.share", at_45["from_memory_percent"])

# %% tags=["exercise"]
exercises.ask("06.staircase")
### BEGIN SOLUTION
exercises.check("06.staircase", {"hot up to": "36", "cold from": "52", "l2 size": "60"})
### END SOLUTION

# %%
title = "Repeated kernels: the share of their bytes that comes from memory"
lab.draw_shares(counted, "from_memory_percent", "bytes from memory", title=title)

# %% [markdown]
# The L2 of an H200 consists of two halves. A multiprocessor asks the half next to it. If the
# line belongs to the other half, that half is asked in turn, **and the near half keeps a copy**.
# Counters see the requests that cross over:

# %%
counted["crossing_percent"] = 100 * counted["hot_crossing"]
title = "Repeated kernels: the share of their requests that crosses over"
lab.draw_shares(counted, "crossing_percent", "requests that cross over", title=title)

# %% [markdown]
# When the kernel is cold, half of all requests cross, because half of the memory is far. When it
# is hot, almost none do, although the addresses are the same: lines of the far half now lie in
# both halves. A line that is read from one side takes one and a half places on average. So the
# L2 has room for two thirds of its size, and there the misses begin. The oldest lines leave
# first, so a kernel that reads in the same order each time soon finds nothing at all.
#
# So **a benchmark is not hot just because its data are smaller than the L2.** (The virtual GPU
# models this more simply, and its step comes a little earlier.)

# %%
exercises.progress()
