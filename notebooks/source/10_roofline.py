# %% [markdown]
# # 10 Roofline
#
# How fast could it be at all?
#
# You have measured a time. Is it good? A stopwatch can't answer that. In this lesson you compute
# what the hardware allows, compare it with measured times, and find out where the rest goes.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 Look first | to find the operation that is farthest from its roof | 8 |
# | 2 What has to be done | to count FLOPs and bytes | 7 |
# | 3 Two limits | the ridge, and a slip in somebody's notes | 10 |
# | 4 Three roofs | what is promised, what is possible now, what is reached | 7 |
# | 5 The third bound | what a kernel costs that does nothing | 6 |
# | 6 Three times too slow | three reasons, found by experiment | 7 |
# | *Going further* | *up the slope, partial waves, softmax, two models* | *25* |

# %%
import pandas as pd
import torch

import gpulab
from gpulab import exercises, plots, roofline
from gpulab.exercises import lesson_10 as lab
from gpulab.views.explorers import roofline_explorer
from gpulab.workloads import WORKLOADS

gpulab.use("auto", max_value_bytes=8 << 20)  # of large tensors only the times matter

# %% [markdown]
# ## 1 Look first
#
# The explorer shows the *recorded* times of one H200: 29 operations of PyTorch, each at several
# sizes. Across is what the **plain roofline** predicts: the time that the arithmetic or the bytes
# take at the full speed of the hardware, whichever is longer. Up is what was measured.
#
# By what factor does the median operation exceed the plain roofline?

# %%
exercises.predict("10.middle")

# %%
explorer = roofline_explorer(model="plain")
explorer

# %%
explorer.choose(operations=WORKLOADS)  # it opens with five of the 29
exercises.compare("10.middle", explorer.to_frame()["plain_ratio"].median())

# %% [markdown]
# A point on the line takes exactly as long as predicted. A point above it takes longer; none
# should be far below. Point at a sign to see what it is. Now use the controls: choose the model,
# the operations, and with the slider the size, by the bytes that move.
#
# ### Exercise: the farthest

# %%
exercises.ask("10.farthest")

# %%
explorer.choose(span=1 << 20)  # by code: those that move about 1 MiB
print(explorer)

# %% tags=["exercise"]
answer = {"all sizes": (..., ...), "large": (..., ...)}
### BEGIN SOLUTION
answer = {
    "all sizes": ("argmax", "the floor"),
    "large": ("topk", "uncounted work"),
}
### END SOLUTION
exercises.check("10.farthest", answer)

# %% [markdown]
# ## 2 What has to be done
#
# Two numbers describe work before you run it: how many floating-point operations it takes (FLOPs),
# and how many bytes must move between memory and chip. In the matmul of an (M, K) matrix and a (K,
# N) one, each of the M N results takes K multiplications and K additions:
#
# $$F = 2\,M\,K\,N$$
#
# In half precision an element has two bytes, and each matrix moves once:
#
# $$B = 2\,(M K + K N + M N)$$
#
# F/B is the *arithmetic intensity*, in FLOP/byte: how much is computed with each byte. If you
# double all sides, how many times as high is it?

# %%
exercises.predict("10.twice")


# %%
def intensity(a, b):
    flops = 2 * a.shape[0] * a.shape[1] * b.shape[1]
    return flops / (a.nbytes + b.nbytes + (a @ b).nbytes)


half = {"device": "cuda", "dtype": torch.half}
small, large = torch.empty(2048, 2048, **half), torch.empty(4096, 4096, **half)
exercises.compare("10.twice", intensity(large, large) / intensity(small, small))

# %% [markdown]
# For squares of side d: F = 2 d³ and B = 6 d², so **I = d/3**. FLOPs grow faster than bytes, which
# is why GPUs are good at large matmuls. For other shapes the smallest side decides. A language
# model that writes one word multiplies a single row by its weights:

# %%
row = torch.empty(1, 4096, **half)
print(f"square: {intensity(large, large):,.0f} FLOP/byte; one row: {intensity(row, large):.2f}")

# %% [markdown]
# `gpulab` knows the FLOPs and bytes of each operation of the explorer:

# %%
print(WORKLOADS["softmax"].derivation)

# %% [markdown]
# ## 3 Two limits
#
# A GPU has a highest rate of arithmetic, the peak P in FLOP/s, and a highest rate of moving bytes,
# the bandwidth W in bytes/s. So the work takes at least F/P, and at least B/W.
#
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
# The two limits are equal where F/P = B/W, that is where the intensity is P/W. This is the **ridge
# point**. Work below it is bound by memory: faster arithmetic would not help. Work above it is
# bound by compute.
#
# ### Exercise: the notes on the A100
#
# The peak of the tensor cores for half precision, the bandwidth, one matmul. It all fits on a
# page, and still there is a slip in it.

# %%
exercises.ask("10.a100")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
d = 4096
answer = {
    "ridge": 312e12 / 2e12,
    "compute_ms": 2 * d**3 / 312e12 * 1e3,
    "memory_ms": 6 * d**2 / 2e12 * 1e3,
}
### END SOLUTION
exercises.check("10.a100", answer)

# %% [markdown]
# Is the prediction any good? Measure that matmul here, and predict it for the GPU in use:

# %%
measured = gpulab.measure(lambda: large @ large, n_samples=21)
plain = roofline.predict("matmul", 4096, "float16", model="plain")
print(measured, plain, sep="\n")

# %% [markdown]
# ## 4 Three roofs
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
roofs = roofline.measure_ceilings(max_time_s=0.05)
roofs

# %%
limit = roofs.data_sheet or roofs.measured  # not every GPU is in the table of data sheets
reached = 100 * roofs.measured.bandwidth_bytes_per_s / limit.bandwidth_bytes_per_s
exercises.compare("10.share", reached)

# %%
exercises.claim("10.copy-below-sheet", here=reached)

# %% [markdown]
# Without a GPU, "measured" means: reached on the virtual GPU, by its model. *Recorded* on an H200:

# %%
roofline.ceilings_of(gpulab.recordings.load("h200-sxm-2026-11")).to_frame().pivot_table(
    index="quantity", columns="roof", values="value", sort=False
)

# %% [markdown]
# The rows are FLOP/s by type, bytes/s of memory and L2, and seconds of the floor (section 5). Look
# at float16: the live roof is *above* the data sheet. The 989 TFLOP/s of the H200's data sheet are
# 132 multiprocessors times 4,096 operations in a cycle times 1.83 GHz, and this GPU ran at 1.98
# GHz. Under a heavy load the clock falls, and the live roof with it (lesson 05).
#
# ### Exercise: which roof?

# %%
exercises.ask("10.which-roof")

# %% tags=["exercise"]
answer = {"a": ..., "b": ..., "c": ..., "d": ..., "e": ..., "f": ...}
### BEGIN SOLUTION
answer = {
    "a": "data sheet",
    "b": "live clocks",
    "c": "measured",
    "d": "data sheet",
    "e": "measured",
    "f": "live clocks",
}
### END SOLUTION
exercises.check("10.which-roof", answer)

# %% [markdown]
# ## 5 The third bound
#
# An addition of 1,024 elements moves 12 kB. At the 4.8 TB/s of an H200's data sheet that takes 2.6
# ns. How long does it take?

# %%
exercises.predict("10.tiny")

# %%
x, y = torch.randn(2, 1024, device="cuda")
few = gpulab.measure(lambda: x + y, n_samples=21)
exercises.compare("10.tiny", few)

# %%
exercises.claim("10.floor", here=few.median_s / limit.memory_s(3 * x.nbytes))

# %% [markdown]
# And larger ones? Draw the time of an addition from 2^10 to 2^24 elements.

# %%
growing = exercises.draw(
    "How long does an addition of n elements take?", ..., name="10.growing", axes=lab.ADDITIONS
)
growing


# %%
def addition_s(n):
    x = torch.empty(n, device="cuda")
    return gpulab.measure(lambda: x + x, n_samples=11).median_s


growing.compare([addition_s(int(n)) for n in growing.axes.x])

# %% [markdown]
# A kernel must be fetched and started, its threads ask for their data and wait for memory, and the
# last one reports back. That is the **floor**: about a microsecond, whatever the kernel does. It
# is a third bound, and no data sheet states it. Here are the recorded additions of all sizes:

# %%
roofline_explorer(operations=("add",), model="plain")

# %% [markdown]
# To the left everything takes the same time. There, half the work costs as much as all of it, and
# only fewer kernels help. And this is only the time on the GPU. If the host waits for each kernel,
# the launch and the wake-up come on top (lesson 02):

# %%
gpulab.measure(lambda: x + y, method="synchronized", n_samples=21)

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
# ## 6 Three times too slow
#
# Now you know what a GPU could do, and your program takes three times as long. The usual reasons:
#
# - **too small**: the work doesn't fill the GPU, and you time the floor or a half-empty wave;
# - **moves more**: more bytes move than you counted, since intermediate results go to memory and
#   come back;
# - **slow kernel**: the library takes another kernel than the one that you expected.
#
# One experiment finds each of them.

# %%
exercises.ask("10.three-gaps")

# %% [markdown]
# First the gap itself: the measured time over the plain roofline.


# %%
def gap(program):
    flops_s = limit.compute_s(program.flops, program.arithmetic)
    plain_s = max(flops_s, limit.memory_s(program.size_bytes))
    return gpulab.measure(program.work, n_samples=21).median_s / plain_s


gaps = pd.DataFrame({"as given": {letter: gap(lab.slow_program(letter)) for letter in "abc"}})
gaps.round(1)

# %% [markdown]
# Now experiment: let the programs grow, round their sides, and count their kernels, which
# `gpulab.timeline(program.work)` shows. Which experiment closes which gap?

# %% tags=["exercise"]
### BEGIN SOLUTION
gaps["grown"] = [gap(lab.slow_program(letter, grown=True)) for letter in "abc"]
gaps["rounded"] = [gap(lab.slow_program(letter, rounded=True)) for letter in "abc"]
shown = [gpulab.timeline(lab.slow_program(letter).work).to_frame() for letter in "abc"]
gaps["kernels"] = [int((frame["kind"] == "kernel").sum()) for frame in shown]
### END SOLUTION
gaps.round(1)

# %% tags=["exercise"]
answer = {"a": ..., "b": ..., "c": ...}
### BEGIN SOLUTION
answer = {"a": "too small", "b": "moves more", "c": "slow kernel"}
### END SOLUTION
exercises.check("10.three-gaps", answer)

# %% [markdown]
# *Recorded* on an H200: five half-precision matmuls with odd sides took 8 to 10 times as long as
# the plain roofline says; ten whose rows begin at multiples of 16 bytes took 1.3 times (the
# median). Other rows can't be loaded in the widest pieces, so the library takes an older kernel.
#
# You have met more reasons: a hot cache makes the ratio *smaller* than it should be (lesson 06), a
# low clock makes it larger (05), and so does a stopwatch that includes the launch (02). And
# kernels have two more, which you can name now and measure in lesson 12. **Occupancy**: how many
# threads a multiprocessor holds at once; with too few, nobody computes while the others wait for
# memory. **Coalescing**: neighbouring threads read neighbouring addresses, so that the memory
# serves them together; if they don't, most bytes of each access are wasted.
#
# ## What you take along
#
# - Count first: FLOPs, bytes, and their ratio. Below the ridge memory is the limit, above it
#   arithmetic.
# - The roofline is a bound and not a forecast. Say which roof: data sheet, clocks, or measured.
# - The third bound is the floor. Small kernels meet it, and only fewer kernels help.
# - A gap has a reason, and one experiment finds it: let the work grow, count its kernels, round
#   its sides.
#
# Next: where does the time of a whole program go? That is lesson 11.

# %%
exercises.progress()

# %% [markdown]
# # Going further
#
# What follows is not part of the 45 minutes.
#
# ## Up the slope
#
# Matmuls of half-precision squares, from a side of 64 to 8192. I = d/3, so each doubling of the
# side doubles the intensity. From which side on is a matmul bound by compute, says the ridge?

# %%
sides = WORKLOADS["matmul"].sizes
exercises.predict("10.turn")

# %%
exercises.compare(
    "10.turn", str(next(side for side in sides if side / 3 > limit.ridge("float16")))
)

# %%
roofline_explorer(view="roofline", dtype="float16", operations=("matmul",))

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
    return gpulab.measure(lambda: x @ large, n_samples=11).median_s


rows = range(256, 4097, 256)
waves = pd.DataFrame({"rows": rows, "time_s": [row_time(n) for n in rows]})
waves["plain_roofline_s"] = [limit.compute_s(2 * n * 4096**2, "float16") for n in rows]
plots.line(waves, x="rows", y=["time_s", "plain_roofline_s"])

# %%
over = waves["time_s"] / waves["plain_roofline_s"]
print(f"{over.min():.2f} to {over.max():.2f} times the plain prediction")

# %% [markdown]
# Batch sizes just above a step waste time. On some steps the time even falls: with a few rows
# more, other tiles fit better. (Without a GPU these are the tiles of the virtual GPU's model,
# which were fitted to an H200. A library has more of them.)
#
# ## Softmax
#
# Rows of 4,096 numbers in half precision, 134 MB in and as much out. Softmax reads once, writes
# once, and computes hardly anything. Is it as fast as a copy?

# %%
exercises.predict("10.soft")

# %%
scores = torch.randn(16384, 4096, **half)
copied = gpulab.measure(scores.clone, n_samples=21)
normalized = gpulab.measure(lambda: torch.softmax(scores, -1), n_samples=21)
print(copied, normalized, sep="\n")

# %%
exercises.compare("10.soft", normalized.median_s / copied.median_s)

# %%
exercises.claim("10.softmax-is-no-copy", here=normalized.median_s / copied.median_s)

# %% [markdown]
# Same bytes, same intensity, and not the same time. *Recorded* on an H200: this softmax takes 212
# µs, 3.8 times the plain prediction; 4,096 rows of 1,024 in single precision take 10.4 µs, 1.5
# times.
#
# Why? The roofline can't say. One guess: a softmax needs the largest element of a row before it
# can sum, and the sum before it can divide, so a block of threads has to wait for itself twice. To
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
roofline_explorer(model="refined")

# %%
h200 = gpulab.recordings.load("h200-sxm-2026-11")
points = [p for p in h200.points if (p.task.cache, p.task.dtype) == ("cold", "float32")]
table = roofline.table(points)
roofline.errors(table).round(3)

# %% [markdown]
# An error is the predicted time divided by the measured one, minus one: -0.5 means that the
# prediction is half of the measured time. The plain model is hardly ever too long, since it is a
# bound, and often far too short, since it is no forecast. Group the recorded times by what limits
# them:

# %%
table.groupby("bound")["plain_ratio"].describe(percentiles=[0.5])[["count", "50%", "max"]].round(2)

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
rings = roofline_explorer(found=[roofs, *everything.points], gpu="here", operations=WORKLOADS)
print(rings)
