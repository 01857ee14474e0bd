# %% [markdown]
# # 06 Cache flush
#
# Is my data already in the L2 cache?
#
# A benchmark runs the same kernel again and again on the same data. A program hardly ever does.
# Between the multiprocessors and the memory of a GPU lies a cache, the L2, and it remembers. This
# lesson is about what it remembers, how to make it forget, and what forgetting can leave behind.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 The staircase | to see a cache in a curve of times | 10 |
# | 2 Hot and cold | the same kernel, two honest times | 10 |
# | 3 Fresh inputs | why they are not enough | 5 |
# | 4 How much to flush | twice the L2, and why not less | 10 |
# | 5 What a flush leaves behind | why the usual flush makes kernels look slow | 15 |
# | 6 Rotation | the other way to be cold, and what it asks | 10 |
# | 7 Two halves | why hot is not wholly hot | 10 |
# | 8 When hot is right | to choose a state, and to name it | 5 |

# %%
from functools import partial
from itertools import cycle

import pandas as pd
import torch
from torch.nn.functional import linear

import gpulab
from gpulab import exercises, live, plots
from gpulab.exercises.lesson_06 import staircase
from gpulab.timing import flusher
from gpulab.units import format_time

measure = partial(gpulab.measure, n_samples=21, progress=False)
gpulab.use("auto")

# %% [markdown]
# The driver tells how large the L2 is. (1 MiB is 1,048,576 bytes.)

# %%
MIB = 2**20
l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
f"{l2_bytes / MIB:.0f} MiB"

# %% [markdown]
# An H200 has 60 MiB, an A100 has 40. The cache keeps what was read or written last, in lines of
# 128 bytes, until other lines need the room.

# %% [markdown]
# ## 1 The staircase
#
# Take additions of all sizes: two tensors are read, a third is written. Together they are the
# *working set*. The smallest is a sixteenth of the L2, the largest four times as large.

# %%
shares = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 2 / 3, 5 / 6, 1, 2, 4)
additions = {}
for share in shares:
    n = int(share * l2_bytes) // 12  # three tensors, four bytes each
    a, b, out = (torch.randn(n, device="cuda") for _ in range(3))
    additions[share * l2_bytes / MIB] = partial(torch.add, a, b, out=out)
[f"{size:.3g} MiB" for size in additions]

# %% [markdown]
# Each is repeated, and nothing else runs in between. Twice the bytes need twice the time, so the
# time *per megabyte* should be the same for all of them. Is it?

# %%
steps = exercises.predict(
    "From a quarter of the L2 to four times the L2, the time per megabyte",
    ...,
    choices=("stays the same", "falls", "rises"),
)
steps


# %%
def per_megabyte(series, **options):
    for size_mib, addition in additions.items():
        reading = measure(addition, **options)
        value = reading.median_s * 1e6 / (size_mib * MIB / 1e6)
        yield {"size_mib": size_mib, "value": value, "series": series}


per_megabyte.__name__

# %% [markdown]
# `live.series` draws each result as soon as it is there.

# %%
shown = live.series(
    per_megabyte("hot", cache="hot"),
    staircase,
    n_expected=len(additions),
    title="A repeated addition",
    alt="The time per megabyte falls, steps up below the size of the L2, and then stays.",
    value_label="time per MB (µs)",
    l2_mib=l2_bytes / MIB,
)
shown

# %%
hot_steps = shown.to_frame()
hot_steps.round(3)

# %%
per_mb = hot_steps["value"].set_axis([*shares])
steps.compare("rises" if per_mb[4] > 1.1 * per_mb[1 / 4] else "stays the same")

# %% [markdown]
# Read it from the left. Very small kernels are dear, since each has to start, however few its
# bytes. Then comes the first stair: all three tensors are still in the cache from the run before.
# Then the curve steps up: what the run needs next has just been pushed out. From there on every
# byte comes from memory.
#
# *Recorded* on an H200: 30 MiB take 5.3 µs and 60 MiB 15.3 µs. Twice the bytes, 2.9 times the
# time. And the step lies well *below* the size of the cache; section 7 says why.

# %% [markdown]
# ## 2 Hot and cold
#
# The kernel of this lesson is a linear layer, 4096 wide, on one row: what a language model does
# for every word it writes. Its weights have 33.6 MB, about half the L2 of an H200. (If your L2 is
# smaller, choose a smaller `WIDTH`.)

# %%
WIDTH = 4096
layer = torch.nn.Linear(WIDTH, WIDTH, bias=False, device="cuda", dtype=torch.half)
layer.requires_grad_(requires_grad=False)
x = torch.randn(1, WIDTH, device="cuda", dtype=torch.half)
f"{layer.weight.nbytes / 1e6:.1f} MB of weights, {x.nbytes / 1e3:.1f} kB of input"

# %% [markdown]
# `cache="hot"` repeats the layer and nothing else. `cache="cold"` has the L2 filled with other
# data ahead of each sample, outside of the timed interval.

# %%
colder = exercises.predict("Cold, it takes how many times as long?", ..., unit="times")
colder

# %%
hot = measure(lambda: layer(x), cache="hot", label="hot")
cold = measure(lambda: layer(x), cache="cold", label="cold")
plots.draw(
    plots.compare_methods,
    [hot, cold],
    title="One kernel, two states of the cache",
    alt="The cold layer takes longer than the hot one.",
    ax_size=(6.4, 2.2),
)

# %%
colder.compare(cold.median_s / hot.median_s)

# %% [markdown]
# Same kernel, same numbers, same clock. Both times are right; they answer different questions.
# *Recorded* on an H200, with weights of 30.5 MB: 9.3 µs hot and 11.7 µs cold. By the counters of
# the hardware, 0.1 MB came from memory in the first case and 30.5 in the second. (An earlier
# recording, 4096 wide and with a bias, has 9.7 µs hot and 16.1 µs cold. Section 5 says what else
# can be in such a number.)
#
# ### Where the two meet
#
# Now the additions of section 1 once more, but cold. Where does the cold curve join the hot one?

# %%
meet = exercises.predict(
    "The two curves meet",
    ...,
    choices=("below half of the L2", "near its size, or a little below", "above its size"),
)
meet

# %%
cold_steps = pd.DataFrame(per_megabyte("cold", cache="cold"))
both_steps = pd.concat([hot_steps, cold_steps])
draw_steps = partial(plots.draw, staircase, l2_mib=l2_bytes / MIB, source=gpulab.device.current())
draw_steps(
    both_steps,
    title="The gap between the curves is the cache",
    alt="The cold curve lies above the hot one and they meet near the size of the L2.",
    value_label="time per MB (µs)",
)

# %%
table = both_steps.pivot_table(index="size_mib", columns="series", values="value")
table["cold / hot"] = table["cold"] / table["hot"]
table.round(3)

# %%
SAME = 1.05  # as near as the two curves have to come
joined = table.index[table["cold / hot"] < SAME].min() * MIB / l2_bytes
meet.compare(meet.choices[sum(joined > limit for limit in (1 / 2, 1))])

# %% [markdown]
# Right of that point a repeated kernel is cold without any flush. There is nothing to choose, and
# a benchmark of large tensors is honest by accident. Left of it you have to say which one you
# mean: the ratio is in the last column.

# %% [markdown]
# ## 3 Fresh inputs
#
# "I give my layer a new input each time, so it cannot be cached." Sixteen rows are taken in turns,
# and nothing is flushed. Is the layer hot or cold?

# %%
fresh_guess = exercises.predict(
    "With a fresh row in each call the layer is", ..., choices=("hot", "cold")
)
fresh_guess

# %%
rows16 = [(torch.randn(1, WIDTH, device="cuda", dtype=torch.half),) for _ in range(16)]
fresh = measure(layer, inputs=rows16, cache="hot", label="fresh rows")
plots.draw(
    plots.compare_methods,
    [hot, fresh, cold],
    title="Fresh inputs",
    alt="With fresh rows the layer takes as long as the hot one.",
    ax_size=(6.4, 2.6),
)

# %%
midway_s = (hot.median_s + cold.median_s) / 2
fresh_guess.compare("hot" if fresh.median_s < midway_s else "cold")

# %% [markdown]
# The row has 8 kB. What the layer reads are its weights, and they stayed where they were. Fresh
# inputs help only where the inputs are what is large.
#
# (`cache="hot"` says no more than that `gpulab` flushes nothing. What your own code does to the
# cache is up to you, as in the next section.)

# %% [markdown]
# ## 4 How much to flush
#
# You can flush by yourself: read a buffer, so that it takes the room of what was there. `setup=`
# runs ahead of each sample and is not timed. The work is a smaller layer here, with 8 MiB of
# weights, which is easy to keep. How large must the buffer be before the layer is cold?

# %%
small_weights = [torch.randn(1024, 4096, device="cuda", dtype=torch.half) for _ in range(16)]
row = torch.randn(1, 4096, device="cuda", dtype=torch.half)
small_layer = partial(linear, row, small_weights[0])
f"{small_weights[0].nbytes / MIB:.0f} MiB"

# %%
enough = exercises.predict(
    "Cold behind a buffer of how many times the L2, at least?",
    ...,
    choices=("1/16", "1/8", "1/4", "1/2", "1", "2"),
)
enough

# %%
parts = {"1/16": 1 / 16, "1/8": 1 / 8, "1/4": 1 / 4, "1/2": 1 / 2, "1": 1, "2": 2}
flushed = {}
for name, share in parts.items():
    rows = torch.zeros(int(share * l2_bytes) // 65536, 16384, device="cuda")
    read = partial(torch.sum, rows, dim=1, out=torch.zeros(len(rows), device="cuda"))
    flushed[name] = measure(small_layer, setup=read, cache="hot").median_s
pd.Series(flushed, name="behind a buffer of that many L2").map(format_time)

# %%
sizes_mib = [share * l2_bytes / MIB for share in parts.values()]
times_us = [time_s * 1e6 for time_s in flushed.values()]
draw_steps(
    pd.DataFrame({"size_mib": sizes_mib, "value": times_us, "series": "layer of 8 MiB"}),
    title="Behind a buffer that was read",
    alt="The layer's time steps up once the buffer has taken the room of its weights.",
    value_label="time per call (µs)",
    size_label="size of the buffer (MiB)",
)

# %%
halfway_s = (flushed["1/16"] + flushed["2"]) / 2
slow = [name for name, time_s in flushed.items() if time_s > halfway_s]
enough.compare(slow[0] if slow else "1/16")

# %% [markdown]
# The time alone says: once the buffer and the weights no longer fit together. But the cache of
# the virtual GPU drops exactly what was unused for longest, and a real one does so only roughly.
# Counters see the rest. *Recorded* on an H200, over 14 kernels:
#
# | read ahead of the kernel | takes | still in the L2, at most | written back meanwhile |
# |---|---|---|---|
# | 1 times the L2 | 23 µs | 2.4 % | 7.9 MB |
# | 1.5 times | 31 µs | 0.3 % | 2.7 MB |
# | 2 times | 39 µs | 0.2 % | 2.5 MB |
# | 4 times | 71 µs | 0.0 % | 2.6 MB |
#
# (The last column is for a kernel that scales 30 MiB in place: 2.5 MB of its new results go back
# in any case, and the rest are old ones.) One L2 is not enough, from 1.5 on nothing changes.
# **Take twice the L2**: the rest is a margin. `gpulab.measure` does just that.

# %% [markdown]
# ## 5 What a flush leaves behind
#
# Look into a benchmark tool for how it flushes. Most *write*: Triton's `do_bench`, NVBench and
# Inductor, among others, fill a large buffer with zeros ahead of each sample. 120 MiB push the
# weights out, be they read or written. So the layer takes the same time behind either. Does it?

# %%
writing = exercises.predict(
    "Behind a flush that writes, the layer takes",
    ...,
    choices=("less", "as long", "longer"),
)
writing

# %%
dirty = measure(lambda: layer(x), flush="write", label="cold, written")
clean = measure(lambda: layer(x), flush="read", label="cold, read")
plots.draw(
    plots.compare_methods,
    [hot, clean, dirty],
    title="Two ways to empty a cache",
    alt="The layer takes longer behind a flush that writes than behind one that reads.",
    ax_size=(6.4, 2.6),
)

# %%
ratio = dirty.median_s / clean.median_s
writing.compare("as long" if abs(ratio - 1) < SAME - 1 else "longer" if ratio > 1 else "less")

# %% [markdown]
# Both are cold. What differs is the state of what lies in the cache instead. The L2 is a
# *write-back* cache: what a kernel writes stays there at first, marked *dirty*, and goes to memory
# when its line is needed for something else. Behind the zeros, about half of the cache is dirty.
# The layer needs that room, and waits until zeros that are not its own have been written to
# memory.
#
# What moved while the kernel ran, *recorded* on an H200 by counters (weights of 30.5 MB):

# %%
moved = exercises.readings("06.choose-a-flush").set_index("run_ahead")
moved["kernel"] = moved["kernel_s"].map(format_time)
moved.loc[[*moved.index[:3]], ["kernel", "from_memory_mb", "to_memory_mb"]]

# %% [markdown]
# After either flush 30.5 MB come from memory: fully cold. But after the write flush 10.4 MB also
# go there, from a layer whose own result has 8 kB. So the standard recipe overstates cold kernels.
#
# ### Where it happens
#
# The timeline of flush, layer, flush, layer: first the flush that reads, then the one that writes.

# %%
read_flush, write_flush = flusher("read"), flusher("write")
turns = (read_flush, partial(layer, x), write_flush, partial(layer, x))
record = gpulab.timeline(lambda: [turn() for turn in turns])
plots.draw_timeline(record)

# %%
kernels = record.to_frame().query("kind == 'kernel'")
kernels.set_index("name")["duration_s"].map(format_time)

# %% [markdown]
# No sample holds the flush: it has ended when the layer begins. What it leaves to be done is in
# the sample all the same. Compare the second layer with the first.
#
# ### Does it help to wait?
#
# Perhaps the cache writes its zeros back when it has nothing else to do. Give it about a
# millisecond between the flush and the layer.

# %%
pause = exercises.predict(
    "After the pause the layer takes", ..., choices=("as behind a read", "as behind a write")
)
pause


# %%
def write_and_pause():
    write_flush()
    torch.cuda._sleep(2_000_000)  # cycles


paused = measure(
    lambda: layer(x), setup=write_and_pause, cache="hot", label="written, then a pause"
)
format_time(clean.median_s), format_time(dirty.median_s), format_time(paused.median_s)

# %%
nearer_write = paused.median_s > (clean.median_s + dirty.median_s) / 2
pause.compare("as behind a write" if nearer_write else "as behind a read")

# %% [markdown]
# A dirty line waits until somebody needs its room, however long that takes. *Recorded* on an H200:
# 14.4 µs without the pause, 14.3 with it.
#
# ### Who pays?
#
# Three kernels of 30 MiB or so. Which of them loses most to a flush that writes?

# %%
loser = exercises.predict("Who loses most?", ..., choices=("a fill", "a sum", "a matrix product"))
loser

# %%
big = torch.randn(30 * MIB // 4, device="cuda")
total = torch.zeros((), device="cuda")
square = torch.randn(2304, 2304, device="cuda", dtype=torch.half)
works = {
    "a fill": lambda: big.fill_(1.5),
    "a sum": lambda: torch.sum(big, 0, out=total),
    "a matrix product": lambda: square @ square,
}
list(works)

# %%
longer = {}
for name, work in works.items():
    after_read, after_write = measure(work, flush="read"), measure(work, flush="write")
    longer[name] = after_write.median_s / after_read.median_s - 1
pd.Series(longer, name="longer after a write flush").map("{:+.0%}".format)

# %%
loser.compare(max(longer, key=longer.get))

# %% [markdown]
# Kernels that read and do little else pay in full. One that only writes puts its bytes into the
# cache and leaves the traffic behind it; one that computes hides it. *Recorded* on an H200 at
# 30 MiB: fill +1 %, sum +21 %, matrix product 0 %, linear layer +24 %. So the flush does not just
# make everything slower. It changes who wins.
#
# ### Exercise: choose a flush, and defend it

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
# Stuck? `exercises.hint("06.choose-a-flush")` gives a hint, and one more each time.
#
# When you compare with a tool that writes, write too: `flush="write"`. The measurement says so:

# %%
dirty.findings

# %% [markdown]
# ## 6 Rotation
#
# There is a way without any flush: let the work push its own data out. With enough sets of
# tensors, taken in turns, each set has left the cache before it comes again. But not everything
# that looks like rotation is. This exercise is your prediction; answer it before you go on.

# %%
exercises.ask("06.which-is-cold")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {"a": "hot", "b": "hot", "c": "cold", "d": "hot", "e": "hot"}
### END SOLUTION
exercises.check("06.which-is-cold", answer)

# %% [markdown]
# Now measure the five. (They are made for an L2 of 60 MiB, as is the key. On a GPU with a smaller
# one, more of them are cold.)

# %%
many, weight, next_weight = small_weights, small_weights[0].clone(), cycle(small_weights)
loops = {
    "a": {"inputs": [(torch.randn_like(row), weight) for _ in range(16)]},
    "b": {"inputs": [(row, w) for w in many[:2]]},
    "c": {"inputs": [(row, w) for w in many]},
    "d": {"inputs": [(row, w) for w in [weight] * 16]},
    "e": {"inputs": [(row, weight)], "setup": lambda: weight.copy_(next(next_weight))},
}
list(loops)

# %%
marks = [measure(linear, cache="hot", label=name, **how) for name, how in loops.items()]
marks += [measure(small_layer, cache="cold", label="flushed")]
plots.draw(
    plots.compare_methods,
    marks,
    title="Five loops, and the layer behind a flush",
    alt="Only loop c takes as long as the layer behind a flush.",
    ax_size=(6.4, 3.6),
)

# %% [markdown]
# What counts is the number of other bytes between two uses of the same memory. Fresh rows are
# too few bytes, two matrices are too few, sixteen names for one matrix are one matrix, and a
# copy makes hot what it writes.
#
# ### Cold, and clean?
#
# Rotation is cold. What it leaves to be written back depends on the kernel: the layer writes 2 kB,
# so behind other layers the cache is clean. A softmax writes as much as it reads. Six sets of
# input and output, 30 MiB each, are taken in turns. What does it cost, beside a read flush?

# %%
who_pays = exercises.predict(
    "In rotation the softmax takes", ..., choices=("as after reading", "as after writing")
)
who_pays

# %%
sets = [[torch.randn(3840, 1024, device="cuda") for _ in range(2)] for _ in range(6)]


def softmax(source, result):
    return torch.softmax(source, 1, out=result)


first = partial(softmax, *sets[0])
states = [measure(first, flush=kind, label=f"{kind} flush") for kind in ("read", "write")]
states += [measure(softmax, inputs=sets, cache="hot", label="rotation")]
[format_time(state.median_s) for state in states]

# %%
plots.draw(
    plots.compare_methods,
    states,
    title="A softmax of 30 MiB",
    alt="In rotation it takes about as long as behind a flush that writes.",
    ax_size=(6.4, 2.6),
)

# %%
after_read_s, after_write_s, rotated_s = (state.median_s for state in states)
nearer_write = rotated_s > (after_read_s + after_write_s) / 2
who_pays.compare("as after writing" if nearer_write else "as after reading")

# %% [markdown]
# Each softmax finds the results of the one before it dirty, and pays for them; its own are paid
# for by the next. *Recorded* on an H200: 10.4 µs after a read flush, 11.7 after a write flush,
# 11.7 in rotation. For the linear layer: 11.7, 14.4 and 11.6.
#
# So there are three questions, and they are not the same:
#
# | question | ahead of each sample |
# |---|---|
# | How long does this kernel take by itself, cold? | read twice the L2 |
# | What does it add to a program of such kernels? | rotate inputs *and* outputs |
# | What would the usual tool say? | write zeros |

# %% [markdown]
# ## 7 Two halves
#
# Back to the step of section 1, which came too early. A linear layer with weights of 46.1 MB is
# repeated on an H200. Its L2 holds 62.9 MB. How much of its data still comes from memory?

# %%
share_guess = exercises.predict("How much of it comes from memory?", ..., unit="%")
share_guess

# %%
counted = exercises.readings("06.staircase")
counted["from_memory"] = 100 * counted["hot_mb"] / counted["cold_mb"]
at_45 = counted.query("work == 'linear layer' and working_set_mib == 45").squeeze()
f"{at_45['hot_mb']} of {at_45['cold_mb']} MB"

# %%
share_guess.compare(at_45["from_memory"])

# %%
names = {"working_set_mib": "size_mib", "from_memory": "value", "work": "series"}
plots.draw(
    staircase,
    counted.rename(columns=names),
    title="Repeated kernels, by hardware counters",
    alt="Hardly anything comes from memory up to 36 MiB, and nearly everything from 52 MiB on.",
    value_label="share that comes from memory (%)",
    l2_mib=60,
)

# %% [markdown]
# From 52 MiB on hardly anything is found, in a cache of 60. The reason is that the L2 of an H200
# is two halves. A multiprocessor asks the half it is next to. If the memory behind a line
# belongs to the other half, that one is asked in turn, **and the near half keeps a copy**.
# Counters see the requests that cross over:

# %%
crossing = counted.query("work == 'sum'").set_index("working_set_mib")["hot_crossing"]
crossing.map("{:.0%}".format)

# %%
plots.draw(
    staircase,
    counted.rename(columns=names).assign(value=100 * counted["hot_crossing"]),
    title="Requests that go on to the other half",
    alt="Next to nothing crosses while the kernel is hot, and half of it when it is cold.",
    value_label="share of requests that cross (%)",
    l2_mib=60,
)

# %% [markdown]
# Cold, half of everything crosses: half of the memory is far. Hot, next to nothing does,
# although the addresses are the same: far lines now lie in both halves. A line that is read from
# one side takes one and a half places on average, so 60 MiB hold 40 MiB of them. That is where
# the misses begin. The oldest lines leave first, so a kernel that reads in the same order each
# time soon finds nothing at all.
#
# What follows: **a benchmark is not hot because its data are smaller than the L2.** (The virtual
# GPU has the same effect in a simpler form, and its step comes a little earlier.)
#
# ### Exercise: read the staircase

# %%
exercises.ask("06.staircase")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {"hot up to": "36", "cold from": "52", "l2 size": "60"}
### END SOLUTION
exercises.check("06.staircase", answer)

# %% [markdown]
# ## 8 When hot is right
#
# Cold is not the honest state and hot the flattering one. The right state is the one in which your
# program finds the cache. An activation runs right behind the product that has just written its
# input. In which state does it find that input?

# %%
behind = exercises.predict("Behind the product, the activation is", ..., choices=("hot", "cold"))
behind

# %%
left, right = (torch.randn(2048, 2048, device="cuda", dtype=torch.half) for _ in range(2))
hidden = torch.empty_like(left)
relu = partial(torch.relu_, hidden)
product = partial(torch.mm, left, right, out=hidden)
chained = measure(relu, setup=product, cache="hot", label="behind the product")
states = [measure(relu, cache=state, label=state) for state in ("hot", "cold")]
[format_time(reading.median_s) for reading in (chained, *states)]

# %%
plots.draw(
    plots.compare_methods,
    [states[0], chained, states[1]],
    title="An activation on 8 MiB",
    alt="Behind the product the activation takes about as long as the hot one.",
    ax_size=(6.4, 2.6),
)

# %%
midway_s = (states[0].median_s + states[1].median_s) / 2
behind.compare("hot" if chained.median_s < midway_s else "cold")

# %% [markdown]
# Hot is right where data pass from one kernel straight to the next, and where a loop stays in
# one small place. Cold is right where much else runs in between: the layers of a large model, a
# step of training. And hot is not always the faster one: *recorded* on an H200, a softmax of 60
# MiB takes 18.3 µs when repeated and 16.0 in a clean cache, because each run writes the last
# one's results back.
#
# ### Always say which
#
# A time without the state of the cache is half a result. A measurement carries it:

# %%
pd.DataFrame(
    [(m.label, m.conditions.cache, format_time(m.median_s)) for m in (hot, clean, dirty)],
    columns=["label", "cache", "time"],
)

# %% [markdown]
# Know what a tool does when you do not ask. In `gpulab` the plain methods (`naive`,
# `synchronized`, `events`) and `graph` are hot, as in a loop of your own; `saturated`,
# `calibrated` and the profiler's are cold unless you say otherwise.
#
# ### Exercise: hot or cold

# %%
exercises.ask("06.hot-or-cold")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {"a": "cold", "b": "hot", "c": "hot", "d": "cold", "e": "rotated"}
### END SOLUTION
exercises.check("06.hot-or-cold", answer)

# %% [markdown]
# ## What you take along
#
# - A repeated kernel finds its data in the L2, up to a size well below that of the cache.
# - Fresh inputs do not help where the weights are what is large.
# - Flush by reading twice the L2: cold and clean. A flush that writes is as cold, and the kernel
#   pays for its zeros.
# - Rotation is cold too. It asks another question: what a kernel adds to a program.
# - No state is the honest one. Choose the one of your program, and say which it was.
#
# Still open: what if the GPU is done before Python has launched the next kernel? That is lesson
# 07.

# %%
exercises.progress()
