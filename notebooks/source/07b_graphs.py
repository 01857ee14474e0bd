# %% [markdown]
# # 07b Graphs
#
# What does a graph repeat? A **CUDA graph** records kernels once; `replay()` launches all of
# them at once. This one doubles a batch of ones. Then comes a batch of fives.

# %%
import textwrap
from functools import partial

import pandas as pd
import torch

import gpulab
from gpulab import exercises, live, plots
from gpulab.exercises import lesson_07 as lab

gpu = gpulab.use("auto", max_value_bytes=24 << 20)  # of large tensors only the times matter
ones, fives = torch.ones(4, device="cuda"), torch.full((4,), 5.0, device="cuda")
ones * 2  # once before: the first call is slow (lesson 04)
gpu

# %%
exercises.predict("07b.reads")

# %%
ones.fill_(1)
batch, graph = ones, torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    doubled = batch * 2

batch = fives
graph.replay()
is_new = torch.equal(doubled, fives * 2)
exercises.compare("07b.reads", "fives, doubled" if is_new else "ones, doubled")

# %% [markdown]
# ## Is that right?
#
# Compare a replay with the function itself, on new values. Keep this check: no error says that a
# graph computes something else.

# %%
print(doubled.tolist(), "by the graph")
print((batch * 2).tolist(), "by Python")

# %% [markdown]
# ## A number in place of a tensor
#
# The next graph multiplies by `factor`, a number of Python. It is 2 at the capture and 10 at the
# replay.

# %%
exercises.predict("07b.by")

# %%
factor, scaling = 2, torch.cuda.CUDAGraph()
with torch.cuda.graph(scaling):
    scaled = torch.ones(4, device="cuda") * factor

factor = 10
scaling.replay()
exercises.compare("07b.by", f"by {scaled[0].item():.0f}")

# %% [markdown]
# ## Exercise: what does a graph contain?

# %% tags=["exercise"]
exercises.ask("07.contains")
### BEGIN SOLUTION
exercises.check("07.contains", "b")
### END SOLUTION

# %% [markdown]
# Test it. Where does the graph read, and where are the fives?

# %%
print(f"ones  {ones.data_ptr():#x}  the graph reads here")
print(f"batch {batch.data_ptr():#x}")

# %%
ones.copy_(fives)  # new values, old address
graph.replay()
doubled.tolist()

# %% [markdown]
# ## The capture
#
# Inside the `with` block Python runs once, and nothing is computed. The graph gets each kernel
# with its numbers and the addresses of its tensors. It contains no names, no `if` and no
# `print`. What needs a value, such as `.item()`, fails there. **A replay repeats the kernels
# with the numbers and addresses of the capture: copy new values into the captured tensors.** A
# batch of another *shape* needs another graph.
#
# ## Whose result?
#
# You keep the result of a batch of fives. Then you replay for the next batch, of sevens.

# %%
exercises.predict("07b.kept")

# %%
ones.fill_(5)
graph.replay()
kept = doubled
ones.fill_(7)
graph.replay()
is_kept = torch.equal(kept, fives * 2)
exercises.compare("07b.kept", "fives, doubled" if is_kept else "sevens, doubled")

# %%
ones.fill_(5)
graph.replay()
kept = doubled.clone()  # a tensor of its own
ones.fill_(7)
graph.replay()
print(f"kept {kept[0].item():.0f}, last {doubled[0].item():.0f}")

# %% [markdown]
# The result has a fixed address, too, and each replay overwrites it. **`clone()` what you
# keep.**
#
# ## What it is for
#
# Ten relus on a small tensor, launched one by one, as in lesson 07:


# %%
def relus(tensor, n_calls=10):
    for _ in range(n_calls):
        tensor = torch.relu(tensor)
    return tensor


x = torch.randn(2**14, device="cuda")
ten_launches = gpulab.measure(lambda: relus(x), method="events")
print(f"{ten_launches.median_s * 1e6:.1f} µs")

# %%
exercises.predict("07b.replay")

# %%
ten = torch.cuda.CUDAGraph()
with torch.cuda.graph(ten):
    result = relus(x)

one_replay = gpulab.measure(ten.replay, method="events")
exercises.compare("07b.replay", one_replay)

# %%
plots.side_by_side(
    {
        "ten launches": gpulab.timeline(lambda: relus(x), n_warmup=3),
        "one replay": gpulab.timeline(ten.replay, n_warmup=3),
    }
)

# %% [markdown]
# The kernels are the same. With ten launches the GPU waits for Python between them; in a replay
# they follow each other. *Recorded*: a replay takes 0.13 times as long as ten launches on an
# H200, and 0.17 times on an H100. (The virtual GPU shows less gain.) A graph of long kernels
# gains little: there the GPU never waits.
#
# ## Exercise: for any batch

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
# ## What you take with you
#
# - A graph launches many kernels at once. It pays if Python sets the pace.
# - It contains addresses and numbers, not names and Python. No error says so.
# - Copy new values in, and `clone()` the result that you keep.
#
# Until now one kernel followed another. How do two run at the same time? Next:
# `08_streams.ipynb`.

# %% [markdown]
# # Going further
#
# Each part stands alone.
#
# ## Who owns the input
#
# The memory of the graph contains what was made *inside*. The input was made outside. Now the
# program drops it and creates other tensors, of nines. What does the replay read?

# %%
exercises.predict("07b.gone")

# %%
source, doubling = torch.full((4,), 7.0, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(doubling):
    twice = source * 2

del source
others = [torch.full((4,), 9.0, device="cuda") for _ in range(50)]
doubling.replay()
is_other = torch.equal(twice, others[0] * 2)
exercises.compare("07b.gone", "nines" if is_other else "sevens")

# %% [markdown]
# The allocator gives free memory to the next tensor (more in lesson 08b), and the graph still
# reads there. Keep a name for every tensor that a graph reads, as long as you replay it.
#
# ## What can be captured
#
# Does the capture compute? The next one increases a counter ten times.

# %%
exercises.predict("07b.counted")

# %%
counter, counting = torch.zeros(1, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(counting):
    for _ in range(10):
        counter.add_(1)
exercises.compare("07b.counted", counter.item())

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
exercises.predict("07b.captured")

# %%
outcomes = {name: lab.try_to_capture(work) for name, work in attempts.items()}
exercises.compare("07b.captured", sum(outcome == "captured" for outcome in outcomes.values()))

# %%
lines = (textwrap.fill(f"{name}: {outcome}", 90) for name, outcome in outcomes.items())
print(*lines, sep="\n")

# %% tags=["exercise"]
exercises.ask("07.capturable")
### BEGIN SOLUTION
words = "runs raises frozen raises runs frozen raises runs"
exercises.check("07.capturable", dict(zip("abcdefgh", words.split(), strict=True)))
### END SOLUTION

# %% [markdown]
# - **Waits** fail: during the capture nothing is computed, so there is nothing to wait for.
#   `item()`, `print(tensor)`, `if tensor:` and `event.synchronize()` are waits.
# - **Shapes that depend on values** fail: the host would have to wait for the number of
#   elements. `torch.where` and `masked_fill` keep the shape.
# - **Copies from and to pageable memory** fail; pinned memory (lesson 08) works.
# - **New tensors** work. Their memory belongs to the graph, and each replay uses the same
#   addresses.

# %% [markdown]
# ## Copies and caches
#
# A replay is a launch, too, and events round it have their fixed offset. To time one small
# kernel in a graph, put many copies of it inside and divide. What does each of a hundred copies
# read?

# %%
exercises.predict("07b.each-of-100")

# %%
tiny = torch.zeros(1024, device="cuda")
start, end = (torch.cuda.Event(enable_timing=True) for _ in "se")


def seconds_per_copy(n_copies):
    copies = torch.cuda.CUDAGraph()
    with torch.cuda.graph(copies):
        for _ in range(n_copies):
            tiny.add_(1)
    for _ in range(3):  # the last round counts: the first replay also uploads the graph
        start.record(), copies.replay(), end.record()
        end.synchronize()
    return start.elapsed_time(end) / 1e3 / n_copies


# %%
each_s = {n: seconds_per_copy(n) for n in (1, 3, 10, 30, 100, 300)}
exercises.compare("07b.each-of-100", each_s[100])

# %%
pd.Series(each_s, name="µs for each copy").mul(1e6).round(2).rename_axis("copies").to_frame()

# %% [markdown]
# All copies share the launch and the offset. What remains is the kernel and the short pause to
# the next one.
#
# The copies run one after the other on the same tensors. For an addition of two tensors of 8 MB,
# does the graph read more or less than calibrated events, which empty the cache before each
# sample?

# %%
exercises.predict("07b.cold")

# %%
add_8_mb = partial(torch.add, *torch.ones(2, 2**21, device="cuda"))
in_graph = gpulab.measure(add_8_mb, method="graph", label="graph")
calibrated = gpulab.measure(add_8_mb, label="calibrated, cold")
exercises.compare("07b.cold", "less" if in_graph.median_s < calibrated.median_s else "more")

# %%
cold_graph = gpulab.measure(add_8_mb, method="graph", cache="cold", label="graph with a flush")
plots.compare_methods([in_graph, cold_graph, calibrated])

# %% [markdown]
# The copy before leaves its tensors in the L2 cache (lesson 06), so a graph reads **hot** unless
# the graph itself flushes. `cache="cold"` puts a flush in front of each copy *inside* the graph,
# and events inside the graph leave the flush out. Report which one you mean.
#
# ## The whole ladder
#
# Each method of lessons 01 to 07b is a rung, judged by the driver's own records of each kernel.
# The first work is thirty small relus. Which rung is farthest off?

# %%
exercises.predict("07b.worst")

# %%
climbed = live.ladder(lambda: relus(x, n_calls=30), label="thirty small relus")
climbed

# %%
errors = climbed.to_frame().set_index("rung")["error"]
asked = ["naive", "synchronized", "events", "+ sleep", "calibrated", "graph"]
exercises.compare("07b.worst", errors[asked].abs().idxmax())

# %% [markdown]
# Here *events* read Python, and *+ sleep* repairs that. Look at *+ cache flush*: it reads less
# than *events*, although it makes the kernels slower. The flush keeps the GPU busy before the
# first event, and meanwhile the host gets ahead: a head start by accident.
#
# A rung can only repair a fault that the work has. So climb with two more works: a sum over 24
# MiB and a large matmul. Make two predictions first.

# %%
exercises.predict("07b.sum")

# %%
exercises.predict("07b.off")

# %%
a = torch.randn(2048, 2048, device="cuda")
big, total = torch.randn(24 * 2**18, device="cuda"), torch.zeros((), device="cuda")
works = {"sum": partial(torch.sum, big, 0, out=total), "matmul": partial(torch.mm, a, a)}
ladders = {name: gpulab.ladder(work, label=name, max_time_s=0.1) for name, work in works.items()}
sum_us = 1e6 * ladders["sum"].to_frame().set_index("rung")["median_s"]
steps_us = sum_us.diff().abs()[["+ warm-up", "+ cache flush", "+ sleep"]]
exercises.compare("07b.sum", steps_us.idxmax().split()[-1])

# %%
matmul_errors = ladders["matmul"].to_frame().set_index("rung")["error"]
exercises.compare("07b.off", 100 * abs(matmul_errors["synchronized"]))

# %%
ladders["relus"] = climbed
frames = {name: one.to_frame().set_index("rung") for name, one in ladders.items()}
pd.DataFrame({f"{name}, µs": 1e6 * frame["median_s"] for name, frame in frames.items()}).round(1)

# %%
errors = pd.DataFrame({f"{name}, error %": 100 * one["error"] for name, one in frames.items()})
errors.round(1) + 0.0  # plus zero, so that no -0.0 is left

# %% [markdown]
# *+ warm-up* changes nothing in these three: the rungs before it have called the work already.
# It repairs a *first* call. Here are five samples of an operator that this lesson has not used
# yet, without a warm-up:

# %%
fresh = gpulab.measure(lambda: torch.cumsum(x, 0), method="events", n_warmup=0, n_samples=5)
pd.Series(fresh.samples_s, name="µs").mul(1e6).round(1).to_frame()

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
# The sum finds its input in the cache, so the flush changes it. It is longer than its launch,
# unless the host is slow, so the sleep does not. The matmul has none of these faults: except for
# *naive*, which reads the launch alone, its errors are similar in microseconds, and small next to
# a long kernel. So do not ask which method is best. Ask how large its error is, compared with the
# difference that you want to see.

# %% tags=["exercise"]
exercises.ask("07.which-rung")
### BEGIN SOLUTION
rungs = "naive synchronized events calibrated graph"
exercises.check("07.which-rung", dict(zip("abcde", rungs.split(), strict=True)))
### END SOLUTION

# %%
exercises.progress()
