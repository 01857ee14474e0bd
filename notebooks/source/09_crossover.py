# %% [markdown]
# # 09 Crossover
#
# Is the GPU worth it? Two vectors of a million numbers are in the host's memory. Add them on the
# CPU. Or copy them to the GPU, add them there, and copy the sum back.

# %%
import time
from statistics import median

import pandas as pd
import torch

import gpulab
from gpulab import exercises, explorers, plots
from gpulab.core.units import format_ratio, format_time
from gpulab.exercises import lesson_09 as lab

x, y = torch.rand(2, 1 << 20)
gpulab.use("auto")

# %%
exercises.predict("09.copies")


# %%
def seconds(fn):
    times_s = []
    for _ in range(11):
        start = time.perf_counter()
        fn()
        times_s.append(time.perf_counter() - start)
    return median(times_s)


# %%
cpu_s = seconds(lambda: x + y)
gpu_s = seconds(lambda: (x.cuda() + y.cuda()).cpu())
print(f"CPU {format_time(cpu_s)}, through the GPU {format_time(gpu_s)}")
exercises.compare("09.copies", gpu_s / cpu_s)

# %% [markdown]
# ## Is the GPU that slow?
#
# `.cpu()` waits, so the stopwatch is right. NVIDIA's data sheet promises 4.8 TB/s for the memory
# of an H200, far more than a usual CPU has. Where does the time go? (Is the GPU faster in your
# notebook? Then other programs keep your CPU busy: run the cells above again.)

# %%
record = gpulab.timeline(lambda: (x.cuda() + y.cuda()).cpu())
kernel_s = sum(span.duration_s for span in record.spans if span.kind == "kernel")
finding = f"The addition takes {format_time(kernel_s)} of {format_time(record.duration_s)}"
plots.timeline(record, title=finding)

# %% [markdown]
# The rest is copies, and the host that waits for them. Now change one thing: the vectors are on
# the GPU already, and the sum stays there.

# %%
exercises.predict("09.there")

# %%
gpu_x, gpu_y = x.cuda(), y.cuda()


def add_there():
    gpu_x + gpu_y
    torch.cuda.synchronize()


there_s = seconds(add_there)
exercises.compare("09.there", there_s / cpu_s)

# %% [markdown]
# ## Exercise: which time?
#
# The same addition on the same GPU, and two opposite answers. There are even more times that you
# could take. Which one do you compare with the CPU's?

# %% tags=["exercise"]
exercises.ask("09.which-time")
### BEGIN SOLUTION
times = {"a": "until done", "b": "kernel alone", "c": "with copies", "d": "launch"}
exercises.check("09.which-time", times)
### END SOLUTION

# %% [markdown]
# Now take fewer numbers, and more. The data are in place on both sides, and each call is waited
# for.

# %%
sizes = [4**k for k in range(4, 13)]
cpu_times_s, gpu_times_s = [], []
for n in sizes:
    a, b = torch.rand(2, n)
    gpu_a, gpu_b = a.cuda(), b.cuda()
    cpu_times_s.append(seconds(lambda: a + b))
    gpu_times_s.append(seconds(lambda: (gpu_a + gpu_b, torch.cuda.synchronize())))
lab.draw_sides(sizes, cpu_times_s, gpu_times_s)

# %% [markdown]
# On the left the GPU's curve is flat. A small addition takes as long as its launch and the wait,
# whatever n is:

# %%
nothing_s = seconds(torch.cuda.synchronize)
print(f"a wait for nothing: {format_time(nothing_s)}")
print(f"an addition of {sizes[0]} numbers, and the wait: {format_time(gpu_times_s[0])}")

# %% [markdown]
# The CPU has nothing to launch, so it starts lower. The curves meet where the CPU needs as long as
# a launch and a wait. Two numbers are enough for a rough prediction: that fixed cost, and the
# CPU's time for one number.

# %%
cpu_per_number_s = cpu_s / len(x)
n_predicted = gpu_times_s[0] / cpu_per_number_s
print(f"they should meet at about n = {format_ratio(n_predicted, digits=2)}")

# %% [markdown]
# And with the copies, for the same sizes?

# %%
copied_s = []
for n in sizes:
    a, b = torch.rand(2, n)
    copied_s.append(seconds(lambda: (a.cuda() + b.cuda()).cpu()))
lab.draw_sides(sizes, cpu_times_s, copied_s)

# %% [markdown]
# For a single addition, three numbers cross the cable: two in, one out. **Compare what somebody
# waits for, and say how large the data are and where they are.**
#
# ## Another operation
#
# Multiply two n by n matrices, float32. These times were *recorded* on an H200 and the 16 cores
# beside it, with the data in place. Draw both curves before you look: first the CPU's, then the
# GPU's.

# %%
near = exercises.draw(
    "How long does a matmul take on each side?", ..., name="09.near", axes=lab.MATMUL_TIMES
)
near

# %%
recorded = gpulab.crossover("matmul", source="h200-sxm-2026-11")
sides = (recorded.cpu, recorded.gpu)
cpu_curve, gpu_curve = ((side.sizes, side.median_s) for side in sides)
near.compare({"CPU": cpu_curve, "GPU": gpu_curve}, source=sides)

# %% [markdown]
# In the explorer you can move along these curves, and add the copies. The times of the copies are
# *computed* from their bytes and the link. Under the crossing is its 95 % interval: the noise of
# the points beside it. It says nothing about other days and other machines.

# %%
explorer = explorers.crossover_explorer("matmul")
explorer

# %% [markdown]
# ## Exercise: how far does the cable move it?

# %% tags=["exercise"]
exercises.ask("09.read-off")
### BEGIN SOLUTION
exercises.check("09.read-off", {"n_pcie3": 678, "n_pcie5": 256, "n_nvlink": 243})
### END SOLUTION

# %% [markdown]
# ## A slower GPU
#
# A Tesla T4 is from 2018. Its data sheet promises an eighth of the H200's float32 peak. Put it
# beside the same CPU, with the data in place. (Its times are *computed*, with the launches of the
# recorded host.)

# %%
t4 = gpulab.crossover("matmul", gpu="T4", source="h200-sxm-2026-11", progress=False)
rows = {
    "H200": (recorded.crossing.size, recorded.gpu.fit.fixed_s),
    "T4": (t4.crossing.size, t4.gpu.fit.fixed_s),
}
faster = pd.DataFrame(rows, index=["crossing (n)", "fixed cost"]).T
faster["fixed cost"] = faster["fixed cost"].map(format_time)
faster.round(0).astype({"crossing (n)": int})

# %% [markdown]
# The *fixed cost* is what the smallest matmul takes: launch and wait. It is nearly the same for
# both GPUs, because it belongs to the host. Where the curves meet, it is most of the GPU's time.
# So the crossing says more about the host than about the GPU.
#
# ## Stay there
#
# You pay for the copies once if the data stay. Copy a million numbers in, take the exponential 20
# times, copy the result out, and wait.

# %%
exercises.predict("09.twenty")

# %%
host_in, host_out = torch.rand(1 << 20).pin_memory(), torch.empty(1 << 20).pin_memory()


def chain(k):
    z = host_in.to("cuda", non_blocking=True)
    for _ in range(k):
        z = torch.exp(z)
    host_out.copy_(z, non_blocking=True)
    torch.cuda.synchronize()


# %%
one_s, twenty_s = seconds(lambda: chain(1)), seconds(lambda: chain(20))
exercises.compare("09.twenty", twenty_s / one_s)

# %% [markdown]
# Each further operation costs one more kernel, and no copy. On the CPU, each one costs about the
# same again:


# %%
def chain_on_cpu(k):
    z = host_in
    for _ in range(k):
        z = torch.exp(z)
    return z


cpu_twenty_s = seconds(lambda: chain_on_cpu(20))
print(f"20 operations: CPU {format_time(cpu_twenty_s)}, through the GPU {format_time(twenty_s)}")

# %% [markdown]
# **Move the data once, and the whole computation with them.**
#
# ## What you take with you
#
# - Compare what somebody waits for: with the launch and the wait, and with the copies if the data
#   come from the host.
# - The curves meet where the CPU needs as long as a launch and a wait. A faster GPU hardly moves
#   that size.
# - Move the data once, and all operations with them.
#
# The GPU is ahead now. How far ahead could it be? Next: `10_roofline.ipynb`.

# %% [markdown]
# # Going further
#
# ## Three readings of one matmul
#
# By the methods of lessons 01 to 07, for a small and a large matmul:


# %%
def reading(method, n):
    a, b = torch.randn(2, n, n, device="cuda")
    return gpulab.measure(lambda: a @ b, method=method, cache="hot", n_samples=21).median_s


ways = ("naive", "synchronized", "calibrated")
table = pd.DataFrame({f"n = {n}": {way: reading(way, n) for way in ways} for n in (64, 2048)})
table.map(format_time)

# %%
small_s, large_s = table.loc["naive"]
exercises.claim("09.launch-is-flat", here=large_s / small_s)

# %% [markdown]
# - *Naive* is the launch alone. Nobody has a result after that time.
# - *Synchronized* is what a program waits if it needs the result at once: launch, kernel and wait.
#   `gpulab.crossover` compares it with the CPU's time.
# - *Calibrated* is the kernel alone: what one more operation costs if a full queue hides the
#   launches. With `method="calibrated"` all crossings move to smaller sizes.
#
# ## How well is a crossing known?
#
# The explorer writes a crossing with an interval of 95 % in brackets. It is narrow, because the
# recorded points are precise. But these are the points:

# %%
recorded.to_frame().query("64 <= size <= 512").pivot_table("median_s", "size", "on").map(
    format_time
)

# %% [markdown]
# Between n = 128 and n = 256 nothing was recorded. There the crossing comes from a straight line
# between two points, and the interval does not contain how far the curves bend away from it. This
# cell times more sizes, with one thread of your CPU. (Without a GPU the CPU's times are still
# measured; the GPU's are virtual.)

# %%
fine_sizes = [64, 80, 96, 112, 128, 144, 160, 192, 256, 512]
one_thread = {"n_threads": 1, "max_time_s": 0.1, "progress": False}
fine = gpulab.crossover("matmul", fine_sizes, **one_thread)
plots.crossover(fine, lines=False)

# %% [markdown]
# What would fewer sizes have said?

# %%
coarse = gpulab.crossover("matmul", [64, 128, 256, 512], **one_thread)
shorts = {"few sizes": lab.short(coarse.crossing), "many": lab.short(fine.crossing)}
pd.Series(shorts, name="crossing").to_frame()

# %% [markdown]
# If the two intervals do not overlap, that is no fault of the statistics. The interval contains
# the noise of the points beside the crossing. It leaves out
#
# - how the curves bend between two sizes,
# - other days: on another one an H200 crossed at n = 185 (*recorded* in November 2026),
# - other threads, clocks, versions, and everything else that belongs to a machine.
#
# If your curves cross more than once, other programs probably disturbed the CPU: run the cells
# again. And at the smallest size, n = 64?

# %%
exercises.claim("09.cpu-wins-small", here=fine.cpu.median_s[0] / fine.gpu.median_s[0])

# %% [markdown]
# ### Exercise: what it says

# %% tags=["exercise"]
exercises.ask("09.what-it-says")
### BEGIN SOLUTION
exercises.check("09.what-it-says", "b")
### END SOLUTION

# %% [markdown]
# ## Fixed cost and slope
#
# Both curves have the same shape: flat, then rising. The simplest formula for that is a line:
#
# $$ t = \text{fixed} + \text{slope} \cdot x $$
#
# For matmul x is the number of floating-point operations, 2n³; for other operations it is the
# bytes. The dotted lines are fitted to the recorded points. The fit counts *ratios*, since 5 µs
# matter at 10 µs and not at 10 ms.

# %%
plots.crossover(recorded)

# %%
cpu, gpu = recorded.cpu.fit, recorded.gpu.fit
fits = {"CPU": cpu, "GPU": gpu}
print(*(f"{name}: {fit}".replace("; ", ";\n     ") for name, fit in fits.items()), sep="\n")

# %% [markdown]
# The slope is written as its inverse, a rate. In brackets are intervals of 95 %. The "farthest
# point" is the recorded time that is farthest from its line. Four numbers are left of two curves.
# Where do two such lines meet?
#
# ### Exercise: the meeting point

# %% tags=["exercise"]
exercises.ask("09.meeting-point")
### BEGIN SOLUTION
per_byte = 1 / 40e9 - 1 / 4e12
meeting = {
    "n": 12e-6 / per_byte / 12,
    "n_fast_gpu": 12e-6 / (1 / 40e9 - 1 / 8e12) / 12,
    "n_slow_launch": 26e-6 / per_byte / 12,
}
exercises.check("09.meeting-point", meeting)
### END SOLUTION

# %% [markdown]
# Now the same for the recorded matmul. How close do four numbers come to the measured crossing?

# %%
exercises.predict("09.agree")

# %%
flops = (gpu.fixed_s - cpu.fixed_s) / (cpu.slope_s - gpu.slope_s)
n_meeting = (flops / 2) ** (1 / 3)
exercises.compare("09.agree", n_meeting / recorded.crossing.size)

# %% [markdown]
# A simple formula comes close, and it explains what matters: the *fixed costs* and the CPU's slope
# make the crossing. The GPU's slope hardly enters. Where the two answers differ a lot, the
# measured one is right: the CPU's curve is not a line, and "farthest point" says by how much.
#
# ## Eight operations
#
# Their sizes count different things (rows, elements, images), so compare them by bytes: inputs and
# results together.

# %%
exercises.predict("09.first")

# %%
EIGHT = ("matmul", "add", "exp", "sum", "sort", "fft", "conv3x3", "softmax")
eight = [gpulab.crossover(name, source="h200-sxm-2026-11") for name in EIGHT]
lab.draw_crossings(eight)

# %%
causes = lab.causes(record for record in eight if record.crossing.kind == "once")
exercises.compare("09.first", causes.index[0])

# %% [markdown]
# A triangle means that there is no crossing within the recorded sizes. If it points left, the GPU
# was faster at all of them, even for a single row or image.
#
# You may have read that operations with much arithmetic per byte cross first. Compare that with
# the table, and also with the rate at which the CPU works through the bytes.

# %%
causes.round(2)

# %% [markdown]
# The arithmetic per byte does not explain the order: the first and the last row break the rule.
# The CPU's rate does. The GPU's fixed cost is of the same size for all. An operation crosses where
# the CPU needs that long. So a slow rate per byte means few bytes.
#
# ## How many operations pay for the copies?

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
stays = lab.operations_needed(gpulab.crossover("exp", transfers="both", source="h200-sxm-2026-11"))
stays.assign(**stays[["cpu_s", "gpu_s", "transfers_s"]].map(format_time))

# %% [markdown]
# `<NA>` means that no number is enough: each launch costs more than the CPU's whole operation. For
# large tensors a few operations are enough.
#
# ## Transfers for all eight

# %%
moved = [gpulab.crossover(name, transfers="both", source="h200-sxm-2026-11") for name in EIGHT]
lab.draw_crossings(moved)

# %% [markdown]
# Matmul moves little: it has n³ operations for n² bytes, so the larger it is, the less the copies
# count. FFT crosses three times, joined by a dotted line. Look at it in the explorer: the CPU wins
# for the smallest batches, the GPU for small ones, the CPU again, and the GPU for good where the
# CPU's time jumps.

# %%
explorers.crossover_explorer("fft", transfers="both", size=700)

# %% [markdown]
# The jump may lie where the batch no longer fits into the CPU's caches. The recording cannot prove
# it.
#
# ## A single addition
#
# An addition has one operation for three numbers. With transfers from pinned memory, does the GPU
# ever get ahead?

# %%
exercises.predict("09.pays")

# %%
addition = gpulab.crossover("add", transfers="both", source="h200-sxm-2026-11")
plots.crossover(addition, lines=False)

# %%
exercises.compare(
    "09.pays", "never crosses" if addition.crossing.kind == "never" else "crosses later"
)

# %% [markdown]
# On the right the link limits the GPU's curve, and the memory limits the CPU's. Here are both
# rates at the largest size that both sides have, from the same recording. The higher one wins.

# %%
sides = {"CPU": addition.cpu, "GPU with copies": addition.gpu}
largest = max(set(addition.cpu.sizes) & set(addition.gpu.sizes))
rates = {
    name: 12 * largest / curve.median_s[curve.sizes.index(largest)] / 1e9
    for name, curve in sides.items()
}
pd.Series(rates, name="GB/s").round(1).to_frame()

# %% [markdown]
# Those inputs were pinned (lesson 08). From ordinary memory the copies are slower:
#
# ### Exercise: why it never pays

# %% tags=["exercise"]
exercises.ask("09.never-pays")
### BEGIN SOLUTION
exercises.check("09.never-pays", "c")
### END SOLUTION

# %% [markdown]
# ## Threads
#
# Half of a crossover is the CPU. What if it has one thread in place of 16?

# %%
exercises.predict("09.threads")

# %%
alone = gpulab.crossover("matmul", n_threads=1, source="h200-sxm-2026-11")
print(f"one thread: {alone.crossing}; 16 threads: {recorded.crossing}")
exercises.compare("09.threads", alone.crossing.size / recorded.crossing.size)

# %% [markdown]
# With one thread the GPU gets ahead earlier. Threads help larger matmuls more:

# %%
cores = pd.DataFrame({"16 threads": recorded.cpu.median_s}, index=recorded.cpu.sizes)
cores["1 thread"] = pd.Series(alone.cpu.median_s, index=alone.cpu.sizes)
slower = cores["1 thread"] / cores["16 threads"]
slower.rename("1 thread over 16").rename_axis("n").dropna().round(2).to_frame()

# %% [markdown]
# ## The slower GPU in the explorer

# %%
explorers.crossover_explorer("matmul", beside="computed:T4", size=180)

# %%
exercises.progress()
