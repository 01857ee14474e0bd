# %% [markdown]
# # 09 Crossover
#
# From which size on is the GPU worth it?
#
# A GPU is faster than a CPU, but not at everything. Each call costs it a launch and a wake-up,
# and the data must be there. This lesson finds the size from which on it wins, for eight
# operations, with an interval, and says why the crossing lies where it does.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 Which time | what is compared with the CPU, and what is not | 10 |
# | 2 One operation | two curves, their crossing, and how well it is known | 10 |
# | 3 Fixed cost and slope | to predict a crossing from four numbers | 15 |
# | 4 Eight operations | where each of them crosses | 10 |
# | 5 Transfers | what the copies do to the crossing | 15 |
# | 6 Another link | which part of it is the cable's | 5 |
# | 7 Staying there | how many operations it takes until the copies pay | 15 |
# | 8 Other machines | why a crossing belongs to a machine | 10 |

# %%
from dataclasses import replace
from functools import partial

import pandas as pd
import torch

import gpulab
from gpulab import exercises, plots, recordings, scaling, sweeps, workloads
from gpulab.exercises.lesson_09 import crossings, crossings_of, n_needed, nearest, short
from gpulab.plots import draw_crossover
from gpulab.units import format_time

here = gpulab.use("auto")
here

# %% [markdown]
# A crossover has two sides, and the CPU's times must be real ones. Without a GPU this lesson takes
# both sides from a recording of one machine, and says *recorded* everywhere. With a GPU it
# measures yours now, CPU and GPU, which takes about a minute.

# %%
EIGHT = ("matmul", "add", "exp", "sum", "sort", "fft", "conv3x3", "softmax")
both_sides = {"on": ("cpu", "gpu"), "caches": ("hot",), "methods": ("synchronized",)}
each_way = partial(sweeps.tasks_of, transfers=("none", "both"), **both_sides)
tasks = [*each_way(EIGHT), *each_way(("sort", "fft", "softmax"), sizes=(1, 2, 4))]
tasks += [replace(task, n_threads=1) for task in each_way(["matmul"]) if task.on == "cpu"]
tasks = [task for task in tasks if task.size < workloads.workload(task.workload).sizes[-1]]
f"{len(tasks)} points: each is one operation at one size on one side"

# %%
recorded = here.source == "virtual"
times = recordings.load("h200-sxm-2026-11") if recorded else sweeps.sweep(tasks, max_time_s=0.05)
crossover = partial(gpulab.crossover, source=times)
print(times)

# %% [markdown]
# ## 1 Which time
#
# The CPU's time is easy: a call returns when its result is there. A call on the GPU returns when
# it is launched. So what is compared? Here are three readings of a small product and of a large
# one, by the methods of lessons 01 to 07.

# %%
three = exercises.predict(
    "Which of the three says the same for both products?",
    ...,
    choices=("naive", "synchronized", "calibrated"),
)
three


# %%
def reading(method, n):
    a, b = (torch.randn(n, n, device="cuda") for _ in range(2))
    options = {"cache": "hot", "n_samples": 21, "progress": False}
    return gpulab.measure(lambda: a @ b, method=method, **options).median_s


table = pd.DataFrame(
    {f"n = {n}": {way: reading(way, n) for way in three.choices} for n in (64, 2048)}
)
table.map(format_time)

# %%
growth = table["n = 2048"] / table["n = 64"]
three.compare(str((growth - 1).abs().idxmin()))

# %% [markdown]
# - *Naive* is the launch alone. Nobody has a result in that time, so it is no side of a
#   comparison. Against it a CPU looks slow from small sizes on, whatever the GPU does.
# - *Synchronized* is what a program waits that needs the result at once: launch, kernel and
#   wake-up. This lesson compares it with the CPU's time, and so does `gpulab.crossover`.
# - *Calibrated* is the kernel alone: what one more operation costs where a full queue hides the
#   launches. With it, all crossings lie lower (`method="calibrated"`).
#
# ### Exercise: which time

# %%
exercises.ask("09.which-time")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {"a": "until done", "b": "kernel alone", "c": "with copies", "d": "launch"}
### END SOLUTION
exercises.check("09.which-time", answer)

# %% [markdown]
# ## 2 One operation
#
# A product of two n by n matrices, float32, data in place on both sides. From which n on is the
# GPU faster?

# %%
near = exercises.predict(
    "From about which n on is the GPU faster?", ..., choices=("20", "200", "2,000", "20,000")
)
near

# %%
product = crossover("matmul")
draw_crossover(product, lines=False)

# %%
near.compare(nearest(near.choices, product.crossing))

# %% [markdown]
# Read the figure from the left. Both axes are logarithmic. The GPU's curve is flat at first: so
# long the launch and the wake-up are nearly all of it. The CPU's curve is far below, and rises.
# Where they meet, the GPU gets ahead, and stays there.

# %%
print(product)

# %% [markdown]
# The brackets are a 95 % interval. Each point of both curves has one of its own, and they move the
# place where the curves may meet. It holds no more than that: between two sizes the curves are
# taken as straight in the figure, and more sizes near the crossing would make that surer.
#
# On one H200 with 16 cores, on another day, matrix products crossed near n = 200.

# %% [markdown]
# ## 3 Fixed cost and slope
#
# Both curves have the same shape: flat, then rising. So try the simplest formula for it, a line:
#
# $$ t = \text{fixed} + \text{slope} \cdot x $$
#
# Here x is the number of operations (FLOPs) of a product, 2n³; for others it is the bytes. The
# dashed lines are fitted so that the *ratios* to the points are as near to 1 as can be, since 5 µs
# matter at 10 µs and not at 10 ms.

# %%
draw_crossover(product)

# %%
cpu, gpu = product.cpu.fit, product.gpu.fit
print("CPU:", cpu, "\nGPU:", gpu)

# %% [markdown]
# The slope is written as its inverse, a rate. All brackets are 95 % intervals. Four numbers are
# left of the two curves. At which n do the two lines meet?
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
# Now for the product. Where the lines meet, `cpu.fixed_s + cpu.slope_s * x` is
# `gpu.fixed_s + gpu.slope_s * x`, and x is 2n³. How near will it come to the measured crossing?

# %%
agree = exercises.predict(
    "The lines meet at how many times the measured crossing?", ..., unit="times"
)
agree

# %%
flops = (gpu.fixed_s - cpu.fixed_s) / (cpu.slope_s - gpu.slope_s)
n_predicted = (max(flops, 0) / 2) ** (1 / 3)
pd.Series({"from four numbers": n_predicted, "measured": product.crossing.size}, name="n").round()

# %%
agree.compare(n_predicted / product.crossing.size if product.crossing.size else ...)

# %% [markdown]
# `product.predicted` is the same with an interval, from the intervals of the four numbers:

# %%
print("from the lines:", product.predicted)
print("measured:      ", product.crossing)

# %% [markdown]
# Why does such a crude formula come so near? And why not nearer? The line is least right for the
# CPU: small products do not use all cores, large ones leave its caches. "Farthest point" tells how
# far. Where the two answers are far apart, believe the measured one.
#
# What the four numbers mean is worth more than the sum: the *fixed costs* and the CPU's slope
# make the crossing. The GPU's slope hardly enters. A GPU twice as fast crosses at the same
# size; a shorter launch would not.

# %% [markdown]
# ## 4 Eight operations
#
# The same for all eight. Sizes count different things (rows, elements, images), so they are
# compared by their bytes: inputs and results together.

# %%
first = exercises.predict("Which one crosses at the fewest bytes?", ..., choices=EIGHT)
first

# %%
bare = crossings_of(crossover(name) for name in EIGHT)
bare[["operation", "text"]]

# %%
draw = partial(plots.draw, crossings, source=product.origin)
draw(
    bare,
    title="From where on is the GPU faster?",
    alt="Operations with much arithmetic for each byte cross first, plain sums last.",
)

# %%
found = bare[bare["size_kib"].notna()]
first.compare(found.loc[found["size_kib"].idxmin(), "operation"])

# %% [markdown]
# A triangle means: no crossing within the sizes, and shows where they end. One that points left
# says that the GPU was faster at all of them, even for a single row or image; one that points
# right, at none.
#
# The fixed costs of the eight are nearly the same. What sets them apart is what the CPU needs for
# a byte: sorting and convolutions keep it busy for long, so it falls behind early; a sum reads its
# bytes once, at the rate of caches, so it stays ahead until there are millions of them.
#
# ### Do the lines say the same?


# %%
def beside(name):
    record = crossover(name)
    return {"measured": short(record.crossing), "from the lines": short(record.predicted)}


pd.DataFrame({name: beside(name) for name in EIGHT}).T

# %%
worst = max((crossover(name) for name in EIGHT), key=lambda record: record.cpu.fit.worst)
draw_crossover(worst)

# %% [markdown]
# This is the one whose CPU curve is the least of a line. Follow it: each bend has a reason. More
# threads begin to help; a cache is full; memory for a large result has to be asked of the system.
# A line cuts through all that. It explains the crossing; it does not replace the measurement.

# %% [markdown]
# ## 5 Transfers
#
# So far the data were in place. Now they are on the host: the inputs are copied in and the result
# is copied out, from and to pinned memory (lesson 08), within the GPU's time.

# %%
moves = exercises.predict(
    "With transfers the product crosses at how many times the n?", ..., unit="times"
)
moves

# %%
moved = crossover("matmul", transfers="both")
draw_crossover(moved, lines=False)

# %%
sizes = (moved.crossing.size, moved.bare_crossing.size)
moves.compare(sizes[0] / sizes[1] if all(sizes) else ...)

# %% [markdown]
# Not so much: a product has n³ operations for n² bytes, so the larger it is, the less the copies
# count. An addition has one operation for three numbers.

# %%
pays = exercises.predict(
    "And a single addition, with transfers?",
    ...,
    choices=("crosses later", "never crosses"),
)
pays

# %%
addition = crossover("add", transfers="both")
draw_crossover(addition, lines=False)

# %%
print(addition)
pays.compare("never crosses" if addition.crossing.kind == "never" else "crosses later")

# %% [markdown]
# Look at the right end, where all three lines run side by side. There it is rates against rates:

# %%
n = min(addition.cpu.sizes[-1], addition.gpu.sizes[-1])
at_end = {
    curve.name: workloads.workload("add").bytes(n, "float32") / curve.median_s[index] / 1e9
    for curve in (addition.cpu, addition.gpu, addition.bare)
    for index in [curve.sizes.index(n)]
}
pd.Series(at_end, name=f"GB/s at n = {n:,}").round(1)

# %% [markdown]
# The GPU with transfers is held up by the link, whatever happens in between. Is its rate above the
# CPU's, the GPU wins by that ratio at most; is it below, it never does. Two machines may differ
# here: the CPU's rate depends on its memory, and on whether the result needs new pages. And the
# link's rate depends on how you copy: these were pinned. Here is the usual way.
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
# ### All eight

# %%
records = [crossover(name, transfers="both") for name in EIGHT]
both = crossings_of(records)
draw(
    both,
    title="With and without transfers",
    alt="Transfers move every crossing to the right; some operations have none any more.",
    ax_size=(6.8, 4.6),
)

# %%
both.pivot_table(index="operation", columns="series", values="text", aggfunc="first", sort=False)

# %% [markdown]
# The less arithmetic an operation has for each byte, the further its crossing moves. Sort, product
# and convolution hardly mind.

# %% [markdown]
# ## 6 Another link
#
# Your link may be another one. Its copies can be computed: a fixed cost for each copy, and the
# bytes at the rate of the link. The label says *computed*, since nobody measured them.

# %%
link_matters = exercises.predict(
    "With NVLink in place of PCIe 5, seven times the rate, the product's n falls",
    ...,
    choices=("by less than a fifth", "to about a half", "to about a seventh"),
)
link_matters

# %%
by_link = {link: crossover("matmul", transfers="both", link=link) for link in scaling.LINKS}
pd.Series({link: short(record.crossing) for link, record in by_link.items()}, name="product")

# %%
slow, fast = (by_link[link].crossing.size for link in ("PCIe 5", "NVLink"))
share = fast / slow if slow and fast else 1.0
link_matters.compare(link_matters.choices[sum(share < limit for limit in (0.8, 0.3))])

# %% [markdown]
# Small copies are made of fixed costs, and no cable makes these shorter. Where the crossing lies
# among small copies, a faster link moves it little. For the addition it is another matter:

# %%
added = {link: crossover("add", transfers="both", link=link) for link in scaling.LINKS}
pd.Series({link: short(record.crossing) for link, record in added.items()}, name="addition")

# %% [markdown]
# It is all bytes. So it needs a link that is faster than the CPU is with its own memory.

# %% [markdown]
# ## 7 Staying there
#
# Who copies in, adds once, and copies out has seen the worst of a GPU. The data may stay: copy
# in, compute twenty times, copy out. Each further operation costs the GPU its bare time and the
# CPU its own. From how many on do the transfers pay?
#
# ### Exercise: how many

# %%
exercises.ask("09.how-many")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION


def answer(cpu_s, gpu_s, transfers_s):
    if cpu_s <= gpu_s:
        return None
    return int(transfers_s / (cpu_s - gpu_s)) + 1


### END SOLUTION
exercises.check("09.how-many", answer)

# %% [markdown]
# `gpulab.exercises.lesson_09.n_needed` is that function. Take exponentials, at every size.

# %%
chain = crossover("exp", transfers="both")
common = sorted(set(chain.cpu.sizes) & set(chain.gpu.sizes) & set(chain.bare.sizes))
rows = []
for n in common:
    cpu_s, there_s, gpu_s = (
        curve.median_s[curve.sizes.index(n)] for curve in (chain.cpu, chain.gpu, chain.bare)
    )
    rows.append((n, cpu_s, gpu_s, there_s - gpu_s, n_needed(cpu_s, gpu_s, there_s - gpu_s)))
stays = pd.DataFrame(rows, columns=["elements", "CPU", "GPU", "transfers", "operations"])
stays = stays.set_index("elements").astype({"operations": "Int64"})
stays.assign(**stays[["CPU", "GPU", "transfers"]].map(format_time))

# %% [markdown]
# `<NA>`: no number is enough, as each launch costs more than the CPU's whole operation. For large
# tensors a handful will do. That is the rule to take along: **move the data once, and move the
# whole computation with them.**
#
# Is it true? Take a size for which the table has a small number, and run a chain of one and of
# twenty: copy in, compute, copy out, wait.

# %%
few = stays.index[stays["operations"].between(1, 20)]
n = int(few[0] if len(few) else common[-1])
k_needed = stays["operations"][n]
f"{n:,} elements: the table says {k_needed} operations"

# %%
twenty = exercises.predict("Who is faster with 20 exponentials?", ..., choices=("CPU", "GPU"))
twenty

# %%
host_in, host_out = (torch.rand(n).pin_memory() for _ in range(2))


def there_and_back(k):
    x = host_in.to("cuda", non_blocking=True)
    for _ in range(k):
        x = torch.exp(x)
    host_out.copy_(x, non_blocking=True)


how = {"method": "synchronized", "n_samples": 21, "progress": False}
chains = {k: gpulab.measure(partial(there_and_back, k), **how) for k in (1, 20)}
print(*chains.values(), sep="\n")

# %%
pd.DataFrame(
    {
        k: {"CPU": format_time(k * stays["CPU"][n]), "GPU": format_time(chains[k].median_s)}
        for k in chains
    }
)

# %%
twenty.compare("GPU" if chains[20].median_s < 20 * stays["CPU"][n] else "CPU")

# %% [markdown]
# (Without a GPU of your own the GPU's times of this chain are virtual and the CPU's recorded; the
# heading of each table or figure says what it holds.) The chain is even better than the rule: its
# launches hide behind the copies and behind each other, so a further operation costs less than
# one that is waited for.

# %% [markdown]
# ## 8 Other machines
#
# Half of a crossover is the CPU. The same products with one thread in place of all:

# %%
threads = exercises.predict(
    "With one thread of the CPU, the product crosses at",
    ...,
    choices=("a smaller n", "the same n", "a larger n"),
)
threads

# %%
alone = crossover("matmul", n_threads=1)
pair = (alone.crossing.size or 0.0, product.crossing.size or 0.0)
pd.Series({"one thread": short(alone.crossing), "all": short(product.crossing)})

# %%
same = abs(pair[0] - pair[1]) < 0.03 * pair[1]
threads.compare("the same n" if same else threads.choices[2 * (pair[0] > pair[1])])

# %%
cores = pd.DataFrame({"all threads": product.cpu.median_s}, index=product.cpu.sizes)
cores["one thread"] = pd.Series(alone.cpu.median_s, index=alone.cpu.sizes)
(cores["one thread"] / cores["all threads"]).rename("times slower with one thread").round(2)

# %% [markdown]
# Threads help large products and not small ones. Where the crossing lies among the small ones,
# it moves little. And the other half? `gpu=` takes a GPU from its data sheet: a Tesla T4, seven
# years older than an H200, is computed beside the same CPU.

# %%
older = exercises.predict(
    "With a T4 in place of the H200, the product crosses at how many times the n?",
    ...,
    unit="times",
)
older

# %%
t4 = crossover("matmul", gpu="T4", progress=False)
draw_crossover(t4, lines=False)

# %%
older.compare(t4.crossing.size / product.crossing.size if all(pair) and t4.crossing.size else ...)

# %% [markdown]
# Its peak is an eighth of an H200's, and yet the crossing stays near: at that size both GPUs
# mostly launch. (Its launches are taken to cost what they cost beside an H200. A slower host would
# move the crossing more than the slower GPU does.)
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
# ## What you take along
#
# - Compare what somebody waits for: launch, kernel and wake-up; the copies too, if the data come
#   from the host. Never the launch alone.
# - A crossing has an interval, and belongs to a machine: its CPU, its threads, its GPU, its link.
# - Fixed cost and slope explain it. Small work is decided by the launch, not by the GPU's speed.
# - With transfers an operation with little arithmetic for each byte crosses late or never.
# - Move the data once, and the whole computation with them.
#
# To try other operations, links and GPUs with a slider: `gpulab.explorers.crossover_explorer()`.
# Still open: once the GPU is ahead, how fast could it be at all? That is lesson 10.

# %%
exercises.progress()
