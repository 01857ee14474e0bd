# %% [markdown]
# # 09 Crossover
#
# From which size on is the GPU worth it?
#
# A GPU is faster than a CPU, but not for everything. Each call costs a launch and a wake-up, and
# the data must be on the GPU. In this lesson you find the size at which the GPU gets ahead, how
# well that size is known, and why it lies where it does.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 Look first | to read a crossover, and what transfers do to it | 8 |
# | 2 Which time | what to compare with the CPU | 7 |
# | 3 How well is it known | what the interval of a crossing contains, and what not | 8 |
# | 4 Fixed cost and slope | to predict a crossing from four numbers | 8 |
# | 5 Eight operations | what decides where an operation crosses | 5 |
# | 6 Staying there | how many operations it takes until the transfers pay | 9 |
# | *Going further* | *transfers for all eight, a single addition, threads, another GPU* | *25* |

# %%
import pandas as pd
import torch

import gpulab
from gpulab import exercises, plots
from gpulab.core.units import format_time
from gpulab.exercises import lesson_09 as lab
from gpulab.views.explorers import crossover_explorer

H200 = "h200-sxm-2026-11"  # a recording of one H200 and the 16 Xeon cores beside it
gpulab.use("auto")

# %% [markdown]
# Most figures of this lesson show the *recorded* times of that machine, so that everybody sees the
# same. Your own machine comes in sections 2, 3 and 6.
#
# ## 1 Look first
#
# Multiply two n by n matrices, float32; the data are in place on both sides. What is the smallest
# n for which the GPU is faster? Draw both curves before you look, first the CPU's, then the GPU's.

# %%
near = exercises.draw(
    "How long does a matmul take on each side?", ..., name="09.near", axes=lab.MATMUL_TIMES
)
near

# %%
explorer = crossover_explorer("matmul")
explorer

# %%
recorded = gpulab.crossover("matmul", source=H200)
near.compare(lab.curves_of(recorded), source=(recorded.cpu, recorded.gpu))

# %% [markdown]
# Read the figure from the left. Both axes are logarithmic. The GPU's curve is flat at first: a
# small matmul takes about as long as a launch and a wake-up, whatever n is. The CPU's curve starts
# far below it, and rises. The GPU gets ahead where the two meet.
#
# Drag the black handle along the curves: the line below the title says what both sides take there.
# Now add the copies of the transfers. (You can also choose by code, as in the next cell.)
#
# ### Exercise: read it off

# %%
exercises.ask("09.read-off")

# %%
explorer.choose(transfers="both", link="PCIe 4")  # the others are yours to find
print(explorer)

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {"n_pcie3": 678, "n_pcie5": 256, "n_nvlink": 243}
### END SOLUTION
exercises.check("09.read-off", answer)

# %% [markdown]
# The copies over a link are *computed* from their bytes: nobody measured that H200 behind another
# cable. A faster cable moves the crossing of matmul little. Try `add` in the explorer: an addition
# is all bytes, so its crossing follows the link.

# %% [markdown]
# ## 2 Which time
#
# The CPU's time is easy: a call returns when its result is there. A call on the GPU returns when
# it is launched. So which time do you compare? Here are three readings of a small and a large
# matmul, by the methods of lessons 01 to 07.

# %%
exercises.predict("09.three")


# %%
def reading(method, n):
    a, b = torch.randn(2, n, n, device="cuda")
    return gpulab.measure(lambda: a @ b, method=method, cache="hot", n_samples=21).median_s


table = pd.DataFrame(
    {
        n: {way: reading(way, n) for way in ("naive", "synchronized", "calibrated")}
        for n in (64, 2048)
    }
)
table.map(format_time)

# %%
growth = table[2048] / table[64]
exercises.compare("09.three", growth.sub(1).abs().idxmin())

# %%
exercises.claim("09.launch-is-flat", here=growth["naive"])

# %% [markdown]
# - *Naive* is the launch alone. Nobody has a result after that time, so it can't be one side of a
#   comparison. Compared with it, a CPU looks slow from small sizes on.
# - *Synchronized* is what a program waits if it needs the result at once: launch, kernel and
#   wake-up. This lesson compares it with the CPU's time, and so does `gpulab.crossover`.
# - *Calibrated* is the kernel alone: what one more operation costs if a full queue hides the
#   launches. With `method="calibrated"` all crossings move to smaller sizes.
#
# ### Exercise: which time

# %%
exercises.ask("09.which-time")

# %% tags=["exercise"]
answer = {"a": ..., "b": ..., "c": ..., "d": ...}
### BEGIN SOLUTION
answer = {"a": "until done", "b": "kernel alone", "c": "with copies", "d": "launch"}
### END SOLUTION
exercises.check("09.which-time", answer)

# %% [markdown]
# ## 3 How well is it known?
#
# The explorer wrote the crossing with an interval of 95 % in brackets. It looks narrow, because
# the recorded points are precise. But which points are these?

# %%
recorded.to_frame().query("64 <= size <= 512").pivot_table("median_s", "size", "on").map(
    format_time
)

# %% [markdown]
# Between n = 128 and n = 256 nothing was recorded. There the crossing comes from a straight line
# between two points, and the interval does not contain how far the curves bend away from it. So
# measure there. This cell times sizes near your own crossing, with one thread of your CPU.
# (Without a GPU the CPU's times are still measured; the GPU's are virtual.)

# %%
fine_sizes = [64, 80, 96, 112, 128, 144, 160, 192, 256, 512]
fine = gpulab.crossover("matmul", fine_sizes, n_threads=1, max_time_s=0.1, progress=False)
plots.draw_crossover(fine, lines=False)

# %% [markdown]
# What would the coarse sizes of the recording have said? The same times, without the sizes in
# between:

# %%
coarse = gpulab.crossover(
    "matmul", [64, 128, 256, 512], n_threads=1, max_time_s=0.1, progress=False
)
pd.Series({"few sizes": lab.short(coarse.crossing), "many": lab.short(fine.crossing)})

# %%
small = fine.cpu.median_s[0] / fine.gpu.median_s[0]
exercises.claim("09.cpu-wins-small", here=small)

# %% [markdown]
# If the two intervals don't overlap, that is no fault of the statistics. The interval contains the
# noise of the points beside the crossing. It leaves out
#
# - how the curves bend between two sizes,
# - other days: the same H200 crossed near n = 200 on another one (*recorded* in November 2026),
# - other threads, clocks, versions, and everything else that belongs to a machine.
#
# If your curves cross more than once, other programs probably disturbed the CPU: run the cells
# again.
#
# ### Exercise: what it says

# %%
exercises.ask("09.what-it-says")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = "b"
### END SOLUTION
exercises.check("09.what-it-says", answer)

# %% [markdown]
# ## 4 Fixed cost and slope
#
# Both curves have the same shape: flat, then rising. The simplest formula for that is a line:
#
# $$ t = \text{fixed} + \text{slope} \cdot x $$
#
# For matmul x is the number of floating-point operations, 2n³; for other operations it is the
# bytes. The dotted lines are fitted to the recorded points. The fit counts *ratios*, since 5 µs
# matter at 10 µs and not at 10 ms.

# %%
plots.draw_crossover(recorded)

# %%
cpu, gpu = recorded.cpu.fit, recorded.gpu.fit
print("CPU:", cpu, "\nGPU:", gpu)

# %% [markdown]
# The slope is written as its inverse, a rate. Four numbers are left of two curves. At which n do
# the two lines meet?
#
# ### Exercise: the meeting point
#
# First for two simple lines, by hand.

# %%
exercises.ask("09.meeting-point")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
per_byte = 1 / 40e9 - 1 / 4e12
answer = {
    "n": 12e-6 / per_byte / 12,
    "n_fast_gpu": 12e-6 / (1 / 40e9 - 1 / 8e12) / 12,
    "n_slow_launch": 26e-6 / per_byte / 12,
}
### END SOLUTION
exercises.check("09.meeting-point", answer)

# %% [markdown]
# Now the same for matmul. How close do four numbers come to the measured crossing?

# %%
exercises.predict("09.agree")

# %%
flops = (gpu.fixed_s - cpu.fixed_s) / (cpu.slope_s - gpu.slope_s)
n_predicted = (flops / 2) ** (1 / 3)
exercises.compare("09.agree", n_predicted / recorded.crossing.size)

# %% [markdown]
# (The explorer wrote the same as "from the fitted lines alone", with an interval from those of the
# four numbers.) Such a simple formula comes close, and it explains what matters: the *fixed costs*
# and the CPU's slope make the crossing. The GPU's slope hardly enters. A GPU twice as fast crosses
# at nearly the same n; a shorter launch would not. Where the two answers differ a lot, believe the
# measured one: the CPU's curve is no line, and "farthest point" says by how much.

# %% [markdown]
# ## 5 Eight operations
#
# Their sizes count different things (rows, elements, images), so compare them by bytes: inputs and
# results together.

# %%
EIGHT = ("matmul", "add", "exp", "sum", "sort", "fft", "conv3x3", "softmax")
exercises.predict("09.first")

# %%
eight = [gpulab.crossover(name, source=H200) for name in EIGHT]
lab.draw_crossings(eight)

# %%
found = [record for record in eight if record.crossing.kind == "once"]
exercises.compare("09.first", lab.causes(found).index[0])

# %% [markdown]
# A triangle means that there is no crossing within the recorded sizes. If it points left, the GPU
# was faster at all of them, even for a single row or image.
#
# Why this order? You may have read that operations with much arithmetic per byte cross first.
# Compare that with the table, and also with the rate at which the CPU works through the bytes.

# %%
lab.causes(found).round(2)

# %% [markdown]
# The arithmetic per byte doesn't explain the order: it doesn't rise or fall along the table. The
# CPU's rate does. The GPU's fixed cost is nearly the same for all, about 20 µs (*recorded* on the
# H200). An operation crosses where the CPU needs that long. So a slow rate per byte means few
# bytes, and a sum, which the CPU reads from its caches, gets far.

# %% [markdown]
# ## 6 Staying there
#
# A program that copies its data in, computes once, and copies the result out pays for the
# transfers with a single operation. Instead, the data can stay: copy in, compute twenty times,
# copy out. Each further operation costs the GPU its time without transfers, and the CPU its own.
#
# ### Exercise: how many

# %%
exercises.ask("09.how-many")

# %% tags=["exercise"]
n_needed = ...


### BEGIN SOLUTION
def n_needed(cpu_s, gpu_s, transfers_s):
    if cpu_s <= gpu_s:
        return None
    return int(transfers_s / (cpu_s - gpu_s)) + 1


### END SOLUTION
exercises.check("09.how-many", n_needed)

# %% [markdown]
# `lab.operations_needed` applies such a function to the recorded times of `torch.exp`, at every
# size.

# %%
stays = lab.operations_needed(gpulab.crossover("exp", transfers="both", source=H200))
stays.assign(**stays[["cpu_s", "gpu_s", "transfers_s"]].map(format_time))

# %% [markdown]
# `<NA>` means that no number is enough: each launch costs more than the CPU's whole operation. For
# large tensors a few operations are enough. The rule: **move the data once, and move the whole
# computation with them.**
#
# Test it on your machine. Take 2^20 elements, and run a chain of exponentials: copy in, compute,
# copy out, wait. How many times as long as one operation do twenty take?

# %%
exercises.predict("09.twenty")

# %%
n = 1 << 20
host_in, host_out = torch.rand(n).pin_memory(), torch.empty(n).pin_memory()


def chain(k):
    x = host_in.to("cuda", non_blocking=True)
    for _ in range(k):
        x = torch.exp(x)
    host_out.copy_(x, non_blocking=True)


one = gpulab.measure(lambda: chain(1), method="synchronized", n_samples=21)
many = gpulab.measure(lambda: chain(20), method="synchronized", n_samples=21)
print(one, many, sep="\n")

# %%
exercises.compare("09.twenty", many.median_s / one.median_s)

# %%
exercises.claim("09.staying-pays", here=many.median_s / one.median_s)

# %% [markdown]
# The chain is even better than the rule: its launches overlap with the copies and with each other,
# so one more operation costs less than one that you wait for. And the CPU? Twenty exponentials of
# this size take it twenty times the time in the table.

# %%
cpu_s = stays.loc[n, "cpu_s"]
beside = {"CPU, recorded": [cpu_s, 20 * cpu_s], "GPU, yours": [one.median_s, many.median_s]}
pd.DataFrame(beside, index=[1, 20]).map(format_time)

# %% [markdown]
# ## What you take along
#
# - Compare what somebody waits for: launch, kernel and wake-up, and the copies if the data come
#   from the host. Never the launch alone.
# - A crossing belongs to a machine: its CPU, its threads, its GPU, its link. Its interval contains
#   the noise of a few points, and no more.
# - Fixed cost and slope explain it. The launch decides small work, and the CPU's rate decides at
#   which size.
# - Move the data once, and the whole computation with them.
#
# Once the GPU is ahead, how fast could it be? That is lesson 10.

# %%
exercises.progress()

# %% [markdown]
# # Going further
#
# What follows is not part of the 45 minutes.
#
# ## Transfers for all eight
#
# With transfers, matmul crosses at how many times the n? And which of the eight can't be read off
# as one number?

# %%
exercises.predict("09.moves")

# %%
moved = [gpulab.crossover(name, transfers="both", source=H200) for name in EIGHT]
exercises.compare("09.moves", moved[0].crossing.size / moved[0].bare_crossing.size)

# %%
lab.draw_crossings(moved)

# %% [markdown]
# Matmul moves little: it has n³ operations for n² bytes, so the larger it is, the less the copies
# count. FFT crosses three times, joined by a dotted line. Look at it in the explorer: the GPU wins
# for small batches, then loses, then wins for good where the CPU's time jumps.

# %%
crossover_explorer("fft", transfers="both", size=700)

# %% [markdown]
# The jump lies where the batch no longer fits into the CPU's caches: compare the size with the
# caches of the CPU if you know them. (This is a likely reason; the recording can't prove it.)
#
# ## A single addition
#
# An addition has one operation for three numbers. With transfers from pinned memory, does the GPU
# ever get ahead?

# %%
exercises.predict("09.pays")

# %%
addition = gpulab.crossover("add", transfers="both", source=H200)
plots.draw_crossover(addition, lines=False)

# %%
exercises.compare(
    "09.pays", "never crosses" if addition.crossing.kind == "never" else "crosses later"
)

# %% [markdown]
# At the right end the link limits the GPU's curve, whatever happens between the copies, and the
# memory limits the CPU's. If one of these two rates is far higher, it wins. Here are the CPU's
# recorded rate, and yours over the link. (They may come from two machines, so a small difference
# decides nothing.)

# %%
x, y = torch.empty(2, 1 << 24, pin_memory=True)


def add_there():
    return (x.to("cuda", non_blocking=True) + y.to("cuda", non_blocking=True)).cpu()


there = gpulab.measure(add_there, method="synchronized", n_samples=7)
cpu_rate = 12 * addition.cpu.sizes[-1] / addition.cpu.median_s[-1]
print(f"CPU {cpu_rate / 1e9:.1f} GB/s (recorded)")
print(f"GPU with copies {12 * x.numel() / there.median_s / 1e9:.1f} GB/s ({there.source})")

# %% [markdown]
# Those inputs were pinned (lesson 08). From ordinary memory the copies are slower:
#
# ### Exercise: why it never pays

# %%
exercises.ask("09.never-pays")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = "c"
### END SOLUTION
exercises.check("09.never-pays", answer)

# %% [markdown]
# ## Threads
#
# Half of a crossover is the CPU. What if it has one thread in place of 16?

# %%
exercises.predict("09.threads")

# %%
alone = gpulab.crossover("matmul", n_threads=1, source=H200)
crossover_explorer("matmul", n_threads=1, size=118)

# %%
ratio = alone.crossing.size / recorded.crossing.size
change = round(ratio, 1)
exercises.compare(
    "09.threads", ("a smaller n", "the same n", "a larger n")[(change >= 1) + (change > 1)]
)

# %%
print(f"one thread: {alone.crossing}; 16 threads: {recorded.crossing}; ratio {ratio:.2f}")

# %% [markdown]
# With one thread the GPU gets ahead a third earlier. Threads help larger matmuls more:

# %%
cores = pd.DataFrame({"16 threads": recorded.cpu.median_s}, index=recorded.cpu.sizes)
cores["1 thread"] = pd.Series(alone.cpu.median_s, index=alone.cpu.sizes)
(cores["1 thread"] / cores["16 threads"]).rename("times slower with 1 thread").dropna().round(2)

# %% [markdown]
# ## Another GPU
#
# A Tesla T4 is from 2018, five years before the H200 was announced. Its data sheet gives it about
# an eighth of the H200's peak in float32. Beside the same CPU, where does matmul cross?

# %%
exercises.predict("09.older")

# %%
crossover_explorer("matmul", gpu="computed:T4", size=200)

# %%
t4 = gpulab.crossover("matmul", gpu="T4", source=H200, progress=False)
exercises.compare("09.older", t4.crossing.size / recorded.crossing.size)

# %% [markdown]
# The T4's times are *computed*, with the launches of the host beside the H200. At that size both
# GPUs spend most of their time on the launch, so the crossing stays near. A slower host would move
# it more than the slower GPU does.
