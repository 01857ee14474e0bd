# %% [markdown]
# # 10 Roofline
#
# You have measured a time. Is it good? Here are two matmuls in half precision. The second one has
# one row and one column less.

# %%
import pandas as pd
import torch

import gpulab
from gpulab import exercises, explorers, plots, roofline
from gpulab.core.units import format_rate, format_time
from gpulab.exercises import lesson_10 as lab
from gpulab.workloads import WORKLOADS

half = {"device": "cuda", "dtype": torch.half}
gpulab.use("auto", max_value_bytes=8 << 20)  # of large tensors only the times matter

# %%
exercises.predict("10.odd")

# %%
large, small = torch.randn(2048, 2048, **half), torch.randn(2047, 2047, **half)
large_s = gpulab.measure(lambda: large @ large).median_s
small_s = gpulab.measure(lambda: small @ small).median_s
print(f"side 2048: {format_time(large_s)}, side 2047: {format_time(small_s)}")
exercises.compare("10.odd", small_s / large_s)

# %% [markdown]
# Less work, and a longer time. If you had measured only the second one, would you know that
# something is wrong?
#
# ## What must be done
#
# Count before you measure. In a matmul of an (M, K) matrix and a (K, N) one, each of the M N
# results takes K multiplications and K additions:
#
# $$F = 2\,M\,K\,N$$
#
# In half precision an element has two bytes, and each matrix moves once:
#
# $$B = 2\,(M K + K N + M N)$$
#
# A GPU has a highest rate of arithmetic, the *peak*, and a highest rate of moving bytes, the
# *bandwidth*. Divide, and you know how long each takes.
#
# ## Exercise: somebody's notes
#
# The peak, the bandwidth, one matmul. It all fits on a page, and still there is a slip in it.

# %% tags=["exercise"]
exercises.ask("10.a100")
### BEGIN SOLUTION
d = 4096
results = {
    "ridge": 312e12 / 2e12,
    "compute_ms": 2 * d**3 / 312e12 * 1e3,
    "memory_ms": 6 * d**2 / 2e12 * 1e3,
}
exercises.check("10.a100", results)
### END SOLUTION

# %% [markdown]
# Arithmetic and memory work at the same time, so the least time is the longer of the two. Compare
# both matmuls with theirs, by the data sheet of the GPU in use:

# %%
roofs = roofline.measure_ceilings(max_time_s=0.05)
sheet = roofs.data_sheet or roofs.measured  # not every GPU has a data sheet here
peak, bandwidth = sheet.peak("float16"), sheet.bandwidth_bytes_per_s
print(f"{format_rate(peak, 'FLOP')}, {format_rate(bandwidth, 'B')}")


# %%
def times_least(n, measured_s):
    least_s = max(2 * n**3 / peak, 6 * n**2 / bandwidth)
    times = measured_s / least_s
    return f"side {n}: at least {format_time(least_s)}, measured {times:.1f} times that"


print(times_least(2048, large_s), times_least(2047, small_s), sep="\n")

# %% [markdown]
# Now one number says which time is good. Why the other one is not, you find out below.
#
# Which of the two limits is the longer one? F/B is the *arithmetic intensity*. The two are equal
# at the **ridge**, where it is peak/bandwidth:

# %%
intensity = 2 * 2048**3 / (6 * 2048**2)
print(f"matmul {intensity:,.0f} FLOP/byte, ridge {peak / bandwidth:,.0f} FLOP/byte")

# %% [markdown]
# Above the ridge arithmetic is the limit, below it memory.
#
# ## A small addition
#
# An addition of two vectors of 1,024 numbers moves 12 kB. At the bandwidth of an H200's data sheet
# that takes 2.6 ns.

# %%
exercises.predict("10.tiny")


# %%
def addition(n):
    x, y = torch.randn(2, n, device="cuda")
    return lambda: x + y


tiny_s = gpulab.measure(addition(1024)).median_s
print(f"{tiny_s / (12 * 1024 / bandwidth):,.0f} times its least time")
exercises.compare("10.tiny", tiny_s)

# %% [markdown]
# And larger ones? Draw it.

# %%
growing = exercises.draw(
    "How long does an addition of n elements take?", ..., name="10.growing", axes=lab.ADDITIONS
)
growing

# %%
times_s = [gpulab.measure(addition(int(n))).median_s for n in growing.axes.x]
growing.compare(times_s)

# %% [markdown]
# A kernel must be fetched and started, its threads ask for their data and wait, and the last one
# reports back. This is the **floor**: the time of a kernel that does nothing. No data sheet states
# it. On the left of your picture, half the work takes as long as all of it.
#
# **A kernel takes at least max(FLOPs / peak, bytes / bandwidth, floor).**
#
# ## Exercise: three times too slow
#
# Three programs, each far above its least time:


# %%
def chain(n):
    x = torch.randn(n, **half)
    return lambda: x.sub(0.5).mul(2.0).add(1.0)


def matmul(side):
    x = torch.randn(side, side, **half)
    return lambda: x @ x


# %%
def gap(work, least_s):
    return gpulab.measure(work).median_s / least_s


gaps = pd.DataFrame(index=["a: addition", "b: chain", "c: matmul"])
gaps["as given"] = [
    gap(addition(2**17), 12 * 2**17 / bandwidth),
    gap(chain(2**23), 4 * 2**23 / bandwidth),
    gap(matmul(2047), 2 * 2047**3 / peak),
]
gaps.round(1)

# %% tags=["exercise"]
exercises.ask("10.three-gaps")
### BEGIN SOLUTION
reasons = {"a": "too small", "b": "moves more", "c": "slow kernel"}
exercises.check("10.three-gaps", reasons)
### END SOLUTION

# %% [markdown]
# Test your answer. Give each program 16 times as many elements, count its kernels, and round the
# side of c up to 2048.

# %%
gaps["grown"] = [
    gap(addition(2**21), 12 * 2**21 / bandwidth),
    gap(chain(2**27), 4 * 2**27 / bandwidth),
    gap(matmul(8191), 2 * 8191**3 / peak),
]
gaps.loc["c: matmul", "rounded"] = gap(matmul(2048), 2 * 2048**3 / peak)
gaps.map("{:.1f}".format).replace("nan", "")

# %%
works = (addition(2**17), chain(2**23), matmul(2047))
spans = [gpulab.timeline(work).spans for work in works]
gaps["kernels"] = [sum(span.kind == "kernel" for span in each) for each in spans]
lab.draw_gaps(gaps)

# %% [markdown]
# - *a* was too small. With more to do, the same kernel comes near its bound. (Below 1, a part of
#   the result is still in the L2 cache: lesson 06.)
# - *b* moves more than you counted: each of its kernels writes its result to memory, and the next
#   one reads it. One fused kernel would move it once (lesson 12).
# - *c* has rows that do not begin at multiples of 16 bytes. The library takes a slower kernel.
#   *Recorded* on an H200 near n = 2048: 155 µs with odd sides, and 25 µs with aligned rows.
#
# Two more reasons are inside a kernel, and only a profiler of kernels counts them. With a low
# **occupancy** a multiprocessor has too few threads, so nobody computes while they wait for
# memory. With a **bank conflict** threads read from the same bank of shared memory, and must take
# turns. A low clock (05), a hot cache (06) and a stopwatch around the launch (02) change the
# ratio, too.
#
# ## Equal bytes
#
# A softmax of rows of 4,096 numbers reads each number once and writes it once, as a copy does:

# %%
scores = torch.randn(16384, 4096, **half)
least_s = 2 * scores.nbytes / bandwidth
copy_s = gpulab.measure(scores.clone).median_s
softmax_s = gpulab.measure(lambda: torch.softmax(scores, -1)).median_s
print(f"copy {copy_s / least_s:.1f}, softmax {softmax_s / least_s:.1f} times its least time")

# %% [markdown]
# The roofline counts FLOPs and bytes, and nothing else. Here are *recorded* times of five
# operations on an H200. The line at each point leads from the prediction to the measured time.

# %%
explorers.roofline_explorer()

# %% [markdown]
# The roofline is a bound and not a forecast. Small kernels meet the floor; other operations do
# work that it does not count.
#
# ## What you take with you
#
# - Count FLOPs and bytes first. The least time says whether a measured time is good.
# - Three bounds: arithmetic, memory, and the floor of a kernel.
# - A gap has a reason, and an experiment finds it: let the work grow, count its kernels, round its
#   sides.
#
# That was one kernel. Where does the time of a whole program go? Next: `11_profiler.ipynb`.

# %% [markdown]
# # Going further
#
# ## More about intensity
#
# If you double all sides of a matmul, how many times as high is F/B?

# %%
exercises.predict("10.twice")


# %%
def intensity_of(a, b):
    flops = 2 * a.shape[0] * a.shape[1] * b.shape[1]
    return flops / (a.nbytes + b.nbytes + (a @ b).nbytes)


square, larger = torch.empty(2048, 2048, **half), torch.empty(4096, 4096, **half)
exercises.compare("10.twice", intensity_of(larger, larger) / intensity_of(square, square))

# %% [markdown]
# For squares of side d: F = 2 d³ and B = 6 d², so **I = d/3**. FLOPs grow faster than bytes, which
# is why GPUs are good at large matmuls. For other shapes the smallest side decides. A language
# model that writes one word multiplies a single row by its weights:

# %%
row = torch.empty(1, 4096, **half)
print(f"square: {intensity_of(larger, larger):,.0f} FLOP/byte")
print(f"one row: {intensity_of(row, larger):.2f} FLOP/byte")

# %% [markdown]
# `gpulab` knows the FLOPs and bytes of each operation of the explorer:

# %%
print(WORKLOADS["softmax"].derivation)

# %% [markdown]
# ### Exercise: the least time

# %%
exercises.ask("10.least-time")

# %% tags=["exercise"]
least_time = ...


### BEGIN SOLUTION
def least_time(m, k, n, peak, bandwidth):
    flops = 2 * m * k * n
    size_bytes = 2 * (m * k + k * n + m * n)
    return max(flops / peak, size_bytes / bandwidth)


### END SOLUTION
exercises.check("10.least-time", least_time)

# %% [markdown]
# ## Three roofs
#
# There are three answers to "how fast can this GPU be", and you must say which one you mean:
#
# - **data sheet**: what the vendor states. Each peak holds at a stated clock.
# - **live clocks**: the same at the clocks that the GPU has now. Nothing is faster *now*.
# - **measured**: what PyTorch's own kernels reach here, with matmuls of each type and a large
#   copy.
#
# What percentage of the data sheet's bandwidth does a large copy reach?

# %%
exercises.predict("10.share")

# %%
reached = 100 * roofs.measured.bandwidth_bytes_per_s / bandwidth
exercises.compare("10.share", reached)

# %%
exercises.claim("10.copy-below-sheet", here=reached)

# %% [markdown]
# Without a GPU, "measured" means: reached on the virtual GPU, by its model. *Recorded* on an H200,
# in TFLOP/s:

# %%
recorded = roofline.ceilings_of(gpulab.recordings.load("h200-sxm-2026-11"))
kept = (recorded.data_sheet, recorded.live, recorded.measured)
peaks = pd.DataFrame({roof.basis: roof.peak_flops_per_s for roof in kept}) / 1e12
peaks.round(0)

# %% [markdown]
# Look at float16: the live roof is *above* the data sheet. The 989 TFLOP/s of the H200's data
# sheet are 132 multiprocessors times 4,096 operations in a cycle times 1.83 GHz, and this GPU ran
# at 1.98 GHz. Under a heavy load the clock falls, and the live roof with it (lesson 05).
#
# ### Exercise: which roof?

# %% tags=["exercise"]
exercises.ask("10.which-roof")
### BEGIN SOLUTION
roof_for = {
    "a": "data sheet",
    "b": "live clocks",
    "c": "measured",
    "d": "data sheet",
    "e": "measured",
    "f": "live clocks",
}
exercises.check("10.which-roof", roof_for)
### END SOLUTION

# %% [markdown]
# ## The floor
#
# Where the floor is the longest of the three bounds, gpulab calls it `launch`. How far is the
# small addition above its least time? And how much longer is it for a host that waits for it
# (lesson 02)?

# %%
exercises.claim("10.floor", here=tiny_s / (12 * 1024 / bandwidth))

# %%
waited_s = gpulab.measure(addition(1024), method="synchronized").median_s
print(f"the kernel {format_time(tiny_s)}, with launch and wait {format_time(waited_s)}")

# %% [markdown]
# ### Exercise: which bound?

# %%
exercises.ask("10.which-bound")

# %% tags=["exercise"]
bound = ...


### BEGIN SOLUTION
def bound(flops, size_bytes):
    times_s = {"compute": flops / 989.4e12, "memory": size_bytes / 4.8e12, "launch": 1e-6}
    return max(times_s, key=times_s.get)


### END SOLUTION
exercises.check("10.which-bound", bound)

# %% [markdown]
# ## The farthest points
#
# The explorer has the recorded times of 29 operations, at several sizes each. Look at all sizes
# first, then at those that move about 64 MiB.

# %%
explorers.roofline_explorer(operations=WORKLOADS)

# %% tags=["exercise"]
exercises.ask("10.farthest")
### BEGIN SOLUTION
farthest = {"all sizes": ("argmax", "the floor"), "large": ("topk", "uncounted work")}
exercises.check("10.farthest", farthest)
### END SOLUTION

# %% [markdown]
# ## Up the slope
#
# Matmuls of half-precision squares, from a side of 64 to 8192. I = d/3, so each doubling of the
# side doubles the intensity. From which side on is a matmul bound by compute, says the ridge?

# %%
sides = WORKLOADS["matmul"].sizes
exercises.predict("10.turn")

# %%
exercises.compare(
    "10.turn", str(next(side for side in sides if side / 3 > sheet.ridge("float16")))
)

# %%
explorers.roofline_explorer(view="roofline", dtype="float16", operations=("matmul",))

# %% [markdown]
# Across is the intensity, up is what was reached, both on logarithmic axes. Left of the ridge a
# roof rises with the bandwidth; right of it the roof is flat, at the peak. The large matmuls come
# near it. The small ones do not, and neither limit explains it: the third bound does.
#
# Now yours. "Measure here" measures your roofs and the operations that are shown, and draws them
# instead if you choose "this GPU, measured". By code, for a few sizes:

# %%
mine = gpulab.sweep(
    gpulab.workloads.sweeps.tasks_of(["matmul"], dtypes=["float16"]),
    max_time_s=0.05,
    progress=False,
)
plots.roofline(roofline.chart(mine, roofs, dtype="float16"), names=False)

# %% [markdown]
# ## Partial waves
#
# A matmul is cut into tiles, and each multiprocessor computes one tile at a time. An H200 has 132
# multiprocessors: 132 tiles take one round, or *wave*. With one tile more, one multiprocessor
# works in a second wave, and 131 wait. If nothing else changed, the time would double. But a
# library can choose other tiles.
#
# The next cell takes just as many rows as fill one wave with tiles of 256 by 128, and then one row
# more. How many times as long does that take?

# %%
exercises.predict("10.wave")

# %%
n_rows = 256 * torch.cuda.get_device_properties().multi_processor_count // 12
weights = torch.randn(4096, 12 * 128, **half)
full, more = torch.randn(n_rows, 4096, **half), torch.randn(n_rows + 1, 4096, **half)
one_wave = gpulab.measure(lambda: full @ weights, n_samples=21)
two_waves = gpulab.measure(lambda: more @ weights, n_samples=21)
exercises.compare("10.wave", two_waves.median_s / one_wave.median_s)

# %%
exercises.claim("10.wave", here=100 * (two_waves.median_s / one_wave.median_s - 1))

# %% [markdown]
# So time doesn't grow in a straight line. More and more rows, times (4096, 4096):


# %%
def row_time(n_rows):
    x = torch.randn(n_rows, 4096, **half)
    return gpulab.measure(lambda: x @ larger, n_samples=11).median_s


rows = range(256, 4097, 256)
waves = pd.DataFrame({"rows": rows, "time_s": [row_time(n) for n in rows]})
waves["plain_roofline_s"] = [sheet.compute_s(2 * n * 4096**2, "float16") for n in rows]
over = waves["time_s"] / waves["plain_roofline_s"]
finding = f"{over.min():.2f} to {over.max():.2f} times the plain prediction"
plots.line(waves, x="rows", y=["time_s", "plain_roofline_s"], title=finding)

# %% [markdown]
# Batch sizes just above a step waste time. On some steps the time even falls: with a few rows
# more, other tiles fit better. (Without a GPU these are the tiles of the virtual GPU's model,
# which were fitted to an H200. A library has more of them.)
#
# ## Why is a softmax no copy?

# %%
exercises.claim("10.softmax-is-no-copy", here=softmax_s / copy_s)

# %% [markdown]
# Same bytes, same intensity, and not the same time. *Recorded* on an H200: 4,096 such rows take
# 54 µs in half precision, 3.9 times the plain prediction. In single precision they have twice the
# bytes and take 54 µs as well, 1.9 times the prediction.
#
# Why? The roofline can't say. One guess: a softmax needs the largest element of a row before it
# can sum, and the sum before it can divide. So a block of threads has to wait for itself twice. To
# test such a guess you would change the length of the rows, or look into the kernel with a
# profiler. FLOPs and bytes alone do not decide it.
#
# ## Two models
#
# The **refined** model of the explorer is the model behind the virtual GPU. It knows which kernels
# PyTorch launches, the floor, tiles and waves, the L2, and how efficient each kind of kernel was
# on an H200. *On the virtual GPU it predicts itself*, so its agreement says something only on
# hardware. Here it is on the recorded H200:

# %%
explorers.roofline_explorer(model="refined")

# %%
h200 = gpulab.recordings.load("h200-sxm-2026-11")
points = [p for p in h200.points if (p.task.cache, p.task.dtype) == ("cold", "float32")]
table = roofline.table(points)
names = {"n": "points", "median": "median error", "p90": "90 % are below"}
names["median_signed"] = "median with its sign"
roofline.errors(table).round(3).set_index("model").rename(columns=names)

# %% [markdown]
# An error is the predicted time divided by the measured one, minus one: -0.5 means that the
# prediction is half of the measured time. The plain model is hardly ever too long, since it is a
# bound, and often far too short, since it is no forecast. Group the recorded times by what limits
# them:

# %%
times = table.groupby("bound")["plain_ratio"].agg(["count", "median", "max"]).round(1)
times.columns = ["points", "median of measured / predicted", "largest"]
times

# %% [markdown]
# Where the floor is the limit, the plain roofline can be off by any factor. It comes closest where
# memory is the limit. `docs/fidelity.md` has the errors of the refined model for a thousand more
# calls, and says where it is not accurate either.
#
# Last, your GPU against both models, small and large sizes of every operation (half a minute):

# %%
tasks = [
    task
    for work in WORKLOADS.values()
    for task in gpulab.workloads.sweeps.tasks_of([work.name], [work.sizes[0], work.sizes[-2]])
]
everything = gpulab.sweep(tasks, max_time_s=0.05, progress=False)
plots.gaps(roofline.table(everything, ceilings=roofs))

# %%
explorers.roofline_explorer(found=[roofs, *everything.points], gpu="here", operations=WORKLOADS)

# %%
exercises.progress()
