# %% [markdown]
# # 10 Roofline
#
# How fast could it be at all?
#
# You have measured 2.7 ms. Is that good? A stopwatch cannot tell. This lesson works out what the
# hardware would allow, holds it against what was measured, and finds out where the rest goes.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 What has to be done | to count FLOPs and bytes | 10 |
# | 2 Two limits | the ridge, and a slip in somebody's notes | 15 |
# | 3 Three roofs | what is promised, possible now, and reached | 10 |
# | 4 Up the slope | one operation from memory-bound to compute-bound | 5 |
# | 5 The third bound | what a kernel costs that does nothing | 10 |
# | 6 Predicted and measured | the whole catalogue, here and as recorded | 15 |
# | 7 Where the plain roofline fails | small sizes, partial waves, softmax: by how much | 15 |
# | 8 Three times too slow | three reasons, found by experiment | 15 |

# %%
from functools import partial

import pandas as pd
import torch

import gpulab
from gpulab import exercises, plots, recordings, roofline
from gpulab.exercises.lesson_10 import slow_program, steps
from gpulab.sweeps import sweep, tasks_of
from gpulab.units import format_rate, format_time
from gpulab.workloads import WORKLOADS, workload

measure = partial(gpulab.measure, n_samples=21, progress=False)
gpulab.use("auto")

# %% [markdown]
# ## 1 What has to be done
#
# Two numbers describe work before anybody runs it: how many floating-point operations it takes
# (FLOPs), and how many bytes must cross between memory and chip. For a product of an (M, K) matrix
# and a (K, N) one, each of the M N results has K multiplications and K additions:
#
# $$F = 2\,M\,K\,N$$
#
# In half precision an element has two bytes, and each matrix crosses once:
#
# $$B = 2\,(M K + K N + M N)$$
#
# Their quotient is the *arithmetic intensity*, in FLOP/byte: how much is computed with each byte.
# If all sides are twice as long, how many times as high is it?

# %%
twice = exercises.predict("Twice the side: the intensity grows by", ..., unit="times")
twice


# %%
def intensity(m, k, n, item_bytes=2):
    return 2 * m * k * n / (item_bytes * (m * k + k * n + m * n))


twice.compare(intensity(4096, 4096, 4096) / intensity(2048, 2048, 2048))

# %% [markdown]
# For squares of side d: F = 2 d³ and B = 6 d², so **I = d/3**. FLOPs grow faster than bytes, which
# is why large products are what GPUs are good at. For other shapes the smallest side decides:

# %%
shapes = [(64, 64, 64), (1024, 1024, 1024), (4096, 4096, 4096), (1, 4096, 4096), (4096, 16, 4096)]
pd.DataFrame(
    [(*shape, 2 * shape[0] * shape[1] * shape[2] / 1e9, intensity(*shape)) for shape in shapes],
    columns=["m", "k", "n", "GFLOP", "FLOP/byte"],
).round(3)

# %% [markdown]
# A product with one row has 1 FLOP/byte, whatever its weights: this is what a language model does
# for every word.
#
# The catalogue of `gpulab` knows FLOPs and bytes of each of its operations, and how they were
# counted:

# %%
print(workload("softmax").derivation)

# %%
rows = [
    (name, listed.flops(listed.sizes[-1]) / 1e6, listed.bytes(listed.sizes[-1], "float32") / 1e6)
    for name, listed in WORKLOADS.items()
]
counted = pd.DataFrame(rows, columns=["workload", "MFLOP", "MB"]).set_index("workload")
counted["FLOP/byte"] = counted["MFLOP"] / counted["MB"]
counted.sort_values("FLOP/byte").round(2)

# %% [markdown]
# Products and convolutions have tens to thousands. All the rest have a few at most: one or two
# operations on a number that had to be fetched first.

# %% [markdown]
# ## 2 Two limits
#
# A GPU has a highest rate of arithmetic, the peak P in FLOP/s, and a highest rate of moving, the
# bandwidth W in bytes/s. So the work takes at least F/P, and at least B/W.
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
# The two limits are equal where F/P = B/W, which is where the intensity is P/W. That is the
# **ridge point**. Work below it is bound by memory: a faster multiplier would not help it. Work
# above it is bound by compute.
#
# ### Exercise: the notes on the A100
#
# The peak of tensor cores for half precision, the bandwidth, one product. It fits on a page, and
# still there is a slip in it.

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
# `gpulab` does the same sum. A roof is a set of limits, and knows the least times below it:

# %%
a100 = roofline.Roof("data sheet", {"float16": 312e12}, 2e12)
compute_s, memory_s = a100.compute_s(2 * 4096**3, "float16"), a100.memory_s(6 * 4096**2)
a100.ridge("float16"), format_time(compute_s), format_time(memory_s)

# %% [markdown]
# For every GPU of its table and every workload of its catalogue:

# %%
found = roofline.predict("matmul", 4096, "float16", "A100", model="plain")
found.bound, format_time(found.duration_s), found.basis

# %% [markdown]
# ## 3 Three roofs
#
# The data sheet is a promise. It holds at the boost clock, and for a kernel that nobody has
# written. So there are three roofs, and it matters which one you mean:
#
# - **data sheet**: what the vendor states. Nothing is faster.
# - **live clocks**: the same at the clocks that the GPU holds now. Nothing is faster *now*.
# - **measured**: what PyTorch's own kernels reach here, products of each type and a large copy.
#
# What share of the data sheet's bandwidth does a large copy reach?

# %%
share = exercises.predict("A copy reaches how much of the data sheet?", ..., unit="%")
share

# %%
roofs = roofline.measure_ceilings(max_time_s=0.05)
roofs

# %%
promised = roofs.data_sheet  # None for a GPU that the table does not know
limit = promised or roofs.measured
share.compare(100 * roofs.measured.bandwidth_bytes_per_s / limit.bandwidth_bytes_per_s)

# %%
table = roofs.to_frame().pivot_table(index="quantity", columns="roof", values="value", sort=False)
if promised:
    table["reached"] = (table["measured"] / table["data sheet"]).map(
        "{:.0%}".format, na_action="ignore"
    )
table

# %% [markdown]
# The rows are FLOP/s by type, bytes/s of memory and L2, and seconds of the floor, which section 5
# is about. *Measured* on an H200: 788 TFLOP/s in half precision, 369 in TF32, 51 in single and 59
# in double precision, and 4.3 TB/s. About 80 % of the promised arithmetic and 90 % of the
# bandwidth is what the best kernels get.
#
# The live clocks were read under a light load. Under a heavy one they fall, and the roof with
# them: lesson 05.
#
# ### Exercise: which roof?

# %%
exercises.ask("10.which-roof")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {
    "a": "data sheet",
    "b": "live clocks",
    "c": "measured",
    "d": "data sheet",
    "e": "measured",
}
### END SOLUTION
exercises.check("10.which-roof", answer)

# %% [markdown]
# ## 4 Up the slope
#
# Half-precision products of squares, from a side of 64 on. I = d/3, so each step to the right
# doubles the intensity. From which side on is a product bound by compute, says the ridge?

# %%
sides = workload("matmul").sizes
turn = exercises.predict(
    "Bound by compute from which side on?", ..., choices=tuple(str(side) for side in sides)
)
turn

# %%
turn.compare(str(next(side for side in sides if side / 3 > limit.ridge("float16"))))

# %%
quick = {"progress": False, "max_time_s": 0.05}
products = sweep(tasks_of(["matmul"], dtypes=["float16"]), **quick)
plots.draw(
    plots.roofline,
    roofline.chart(products, roofs, dtype="float16"),
    title="Products of half-precision squares",
    alt="Three roofs, each a slope and a flat part. The products lie below them: the larger, the "
    "closer, and only those of the largest sides come near.",
    names=False,
)

# %% [markdown]
# How to read it: across is the intensity, up is what was reached, both on logarithmic axes. Left
# of the ridge a roof rises with the bandwidth; right of it it is flat, at the peak. A roof can be
# approached and not crossed.
#
# The large products come near. The small ones do not, and neither limit explains it: they are
# *far* below both.

# %% [markdown]
# ## 5 The third bound
#
# An addition of 1,024 elements moves 12 kB. At 4.8 TB/s that takes 2.6 ns. How long does it
# take?

# %%
tiny = exercises.predict("An addition of 1,024 elements takes", ..., unit="µs")
tiny

# %%
few = measure(workload("add").make(1024, "float32"), label="1,024 elements")
tiny.compare(few)

# %% [markdown]
# A kernel must be fetched and started, its threads must ask for their data and wait for memory to
# answer, and the last one must report back. That is the **floor**: about a microsecond, whatever
# the kernel does. It is a third bound, and it stands on no data sheet. Where does it end?

# %%
adds = sweep(tasks_of(["add"]), **quick)
below = roofline.table(adds, ceilings=roofs)
columns = ["plain_ratio", "bound", "size"]
below[columns].assign(measured=below["measured_s"].map(format_time)).round(2)

# %%
both = {"plain_s": "plain roofline", "refined_s": "refined model", "measured_s": "measured"}
long = below.melt(["size"], list(both), "series", "duration_s").replace({"series": both})
plots.draw(
    plots.scaling,
    long.dropna(),
    title="An addition of all sizes",
    alt="The plain roofline falls in a straight line; the measured times stay at the floor.",
    source=gpulab.device.current(),
    size_label="elements",
)

# %% [markdown]
# To the left everything takes the same time. There, half the work costs as much as all of it, and
# only fewer kernels help.
#
# And this is only the time on the GPU. If the host waits for each kernel, its launch and its
# wake-up come on top:

# %%
waited = measure(workload("add").make(1024, "float32"), method="synchronized")
format_time(few.median_s), format_time(waited.median_s)

# %% [markdown]
# Lesson 02 was about that, and lesson 07 about what to do.
#
# ### Exercise: which bound?

# %%
exercises.ask("10.which-bound")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {
    "a": "compute",
    "b": "memory",
    "c": "launch",
    "d": "memory",
    "e": "memory",
    "f": "launch",
}
### END SOLUTION
exercises.check("10.which-bound", answer)

# %% [markdown]
# ## 6 Predicted and measured
#
# Now all operations of the catalogue, each at a small and at a large size, on the GPU in use. Two
# models predict each time:
#
# - the **plain** roofline: the larger of F/P and B/W, as in section 2;
# - the **refined** one, which also knows which kernels PyTorch launches, the floor, tiles and
#   waves, the L2, and how efficient each kind of kernel was on an H200. It is the model behind the
#   virtual GPU.
#
# Half of them take more than how many times the plain prediction?

# %%
middle = exercises.predict("Half take more than the plain prediction by", ..., unit="times")
middle

# %%
tasks = [
    task
    for name, listed in WORKLOADS.items()
    for task in tasks_of([name], [listed.sizes[0], listed.sizes[-2]])
]
everything = sweep(tasks, **quick)
print(everything)

# %%
here = roofline.table(everything, ceilings=roofs)
middle.compare(here["plain_ratio"].median())

# %%
plots.draw(
    plots.gaps,
    here,
    title="How much longer than predicted",
    alt="A row for each operation; over the plain prediction small sizes lie far to the right.",
    ax_size=(6.4, 7.4),
)

# %%
roofline.errors(here).round(3)

# %% [markdown]
# An error is the predicted time over the measured one, less one: -0.5 means that the prediction
# is half of the truth. The plain one is hardly ever too long, since it is a bound, and often far
# too short, since it is no forecast.
#
# If you run this without a GPU, the refined model predicts itself: here it *is* the GPU. Its
# figures mean something only against hardware.
#
# ### Recorded on an H200
#
# So here is hardware. This recording holds the whole catalogue, hot and cold, with the ceilings of
# the very GPU.

# %%
h200 = recordings.load("h200-sxm-2026-11")
print(h200)

# %%
h200_roofs = roofline.ceilings_of(h200)
h200_roofs

# %%
points = [p for p in h200.points if (p.task.cache, p.task.dtype) == ("cold", "float32")]
recorded = roofline.table(points)
roofline.errors(recorded).round(3)

# %%
plots.draw(
    plots.roofline,
    roofline.chart(points, h200_roofs),
    title="The catalogue",
    alt="Most operations stand in columns below the slope, since their intensity is the same at "
    "all sizes; products and convolutions lie to the right, below the flat parts.",
    ax_size=(7.2, 5.4),
)

# %% [markdown]
# Each operation has its name above its column. The columns go down from the slope: from large
# sizes to small ones. And this is where the predictions are off, operation by operation:

# %%
by_name = roofline.errors(recorded, by="workload")
by_name.pivot_table(index="workload", columns="model", values="median").round(2)

# %% [markdown]
# `docs/fidelity.md` has these errors for a thousand more calls, and says for which kinds the
# refined model is not good either.

# %% [markdown]
# ## 7 Where the plain roofline fails
#
# ### Small sizes
#
# Group the recorded times by what limits them:

# %%
recorded.groupby("bound")["plain_ratio"].describe(percentiles=[0.5])[["count", "50%", "max"]]

# %% [markdown]
# Where the floor is the limit, the plain roofline is off by any factor: it goes to zero with the
# size, and the time does not. It is nearest where memory is the limit. In between are kernels
# that the multiprocessors hold up with work that is no FLOP: indices, random numbers, atomics.
#
# ### Partial waves
#
# A product is cut into tiles, and each multiprocessor computes one tile at a time. An H200 has 132
# multiprocessors: 132 tiles take one round, or *wave*. What do 133 take?

# %%
wave = exercises.predict(
    "133 tiles take, against 132", ..., choices=("1 % more", "half as much again", "twice as long")
)
wave

# %%
wave.compare("twice as long")

# %% [markdown]
# In the second wave one multiprocessor works and 131 watch. So time should grow in steps, not in a
# straight line. (rows, 4096) times (4096, 4096), in half precision:

# %%
weights = torch.randn(4096, 4096, device="cuda", dtype=torch.half)
readings = []
for n_rows in range(256, 4097, 256):
    x = torch.randn(n_rows, 4096, device="cuda", dtype=torch.half)
    least_s = limit.compute_s(2 * n_rows * 4096**2, "float16")
    readings.append((n_rows, least_s, "plain roofline"))
    readings.append((n_rows, measure(partial(torch.mm, x, weights)).median_s, "measured"))
waves = pd.DataFrame(readings, columns=["size", "duration_s", "series"])
waves.tail(4)

# %%
plots.draw(
    steps,
    waves,
    title="More and more rows",
    alt="The measured times go up in steps, from the straight line of the roofline to above it.",
    source=gpulab.device.current(),
)

# %%
lines = waves.pivot_table(index="size", columns="series", values="duration_s")
over = lines["measured"] / lines["plain roofline"]
over.agg(["min", "max"]).map("{:.2f} times the plain prediction".format)

# %% [markdown]
# At the foot of a step the product is close to the roof, right above the step up to twice as far.
# With many waves the last one matters less. Batch sizes just above a step are a bad bargain.
#
# ### Softmax
#
# Rows of 4,096 numbers, in half precision, 134 MB in and as much out. It reads once, writes once,
# and has hardly any arithmetic. As good as a copy?

# %%
soft = exercises.predict("Softmax takes, over the plain prediction", ..., unit="times")
soft

# %%
scores = torch.randn(16384, 4096, device="cuda", dtype=torch.half)
copied = measure(scores.clone)
normalized = measure(partial(torch.softmax, scores, -1))
least_s = limit.memory_s(2 * scores.nbytes)
soft.compare(normalized.median_s / least_s)

# %%
rates = [2 * scores.nbytes / item.median_s for item in (copied, normalized)]
[format_rate(rate, "B") for rate in rates]

# %% [markdown]
# Same bytes, same intensity, and not the same time. A softmax needs the largest element before it
# can sum, and the sum before it can divide. A block of threads has to agree on both, and meanwhile
# it fetches nothing. *Recorded* on an H200: this one takes 212 µs, 3.8 times the plain prediction;
# 4,096 rows of 1,024 in single precision take 10.4 µs, 1.5 times.
#
# So for a row operation FLOPs and bytes do not tell enough. What remains is to measure good
# kernels of its kind, and that is what the refined model's efficiencies are.

# %% [markdown]
# ## 8 Three times too slow
#
# Now you know what a GPU could do, and your program takes three times as long. There are three
# usual reasons:
#
# - **too small**: the work does not fill the GPU, and the floor or a half-empty wave is what you
#   time;
# - **moves more**: more bytes cross than you counted, since intermediate results go to memory and
#   come back;
# - **slow kernel**: the library takes another kernel than the one that you counted on.
#
# Each is found by one experiment. Here are three programs.

# %%
exercises.ask("10.three-gaps")

# %% [markdown]
# First the gap itself, for each of them:


# %%
def gap(program):
    flops_s = limit.compute_s(program.flops, program.arithmetic)
    plain_s = max(flops_s, limit.memory_s(program.size_bytes))
    return measure(program.work).median_s / plain_s


gaps = pd.DataFrame({"as given": {letter: gap(slow_program(letter)) for letter in "abc"}})
gaps.round(1)

# %% [markdown]
# Now experiment: let them grow, round their sides, count their kernels (`gpulab.timeline` shows
# them). Which experiment closes which gap?

# %% tags=["exercise"]
### BEGIN SOLUTION
gaps["grown"] = [gap(slow_program(letter, grown=True)) for letter in "abc"]
gaps["rounded"] = [gap(slow_program(letter, rounded=True)) for letter in "abc"]
shown = [gpulab.timeline(slow_program(letter).work).to_frame() for letter in "abc"]
gaps["kernels"] = [int((frame["kind"] == "kernel").sum()) for frame in shown]
### END SOLUTION
gaps.round(1)

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {"a": "too small", "b": "moves more", "c": "slow kernel"}
### END SOLUTION
exercises.check("10.three-gaps", answer)

# %% [markdown]
# *Recorded* on an H200: five half-precision products with odd sides took 8 to 10 times what the
# plain roofline says, and ten whose rows begin at multiples of 16 bytes 1.3 times (the median).
# Other rows cannot be loaded in the widest pieces, so the library takes an older kernel.
#
# There are more reasons, and you have met them: a hot cache makes the ratio *smaller* than it
# should be (lesson 06), a low clock makes it larger (05), and so does a stopwatch that holds the
# launch (02).

# %% [markdown]
# ## What you take along
#
# - Count first: FLOPs, bytes, and their quotient. Below the ridge memory is the limit, above it
#   arithmetic is.
# - The roofline is a bound and not a forecast. Say which roof: data sheet, clocks, or measured.
# - The third bound is the floor. Small kernels meet it, and only fewer kernels help.
# - A gap has a reason, and one experiment tells which: grow it, count its kernels, round its
#   sides.
#
# Next: where does the time of a whole program go? That is lesson 11.

# %%
exercises.progress()
