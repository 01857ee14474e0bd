# %% [markdown]
# # 07 Sleep and graphs
#
# What if the GPU is faster than Python?
#
# Many kernels take less time than Python needs to launch the next one. Then the GPU waits for the
# host, and a pair of events reads that wait. This lesson has two cures. One is for measuring: let
# the GPU sleep until the host is ahead. The other is for the program itself: launch many kernels
# at once, as a graph.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 The gaps | to see on a timeline that the host sets the pace | 15 |
# | 2 A head start | how long a sleep is long enough | 15 |
# | 3 A wait inside | what no sleep can mend | 5 |
# | 4 A graph | capture, replay, and what many small kernels gain | 15 |
# | 5 What a graph holds | what raises in a capture, and what goes wrong without a word | 20 |
# | 6 Hot or cold | what the cache is like inside a graph | 5 |
# | 7 The whole ladder | every method on one kernel, and when its error matters | 15 |

# %%
import time
from functools import partial

import pandas as pd
import torch

import gpulab
from gpulab import exercises, live, plots
from gpulab.errors import NotCapturableError
from gpulab.exercises.lesson_07 import program
from gpulab.units import format_time

gpulab.use("auto")

# %%
a = torch.randn(2048, 2048, device="cuda")
x = torch.randn(2**14, device="cuda")
small = torch.zeros(1024, device="cuda")
for _ in range(3):
    product = a @ a
    small.add_(1)
    torch.cuda._sleep(1_000)
small.sum().item()

# %% [markdown]
# ## 1 The gaps
#
# On a large GPU the small addition takes one to three microseconds. Python launches eight of them
# in a row. From the first to the last, for what share of the time is the GPU busy?

# %%
busy_guess = exercises.predict("How busy is the GPU?", ..., unit="%")
busy_guess

# %%
additions = gpulab.timeline(lambda: [small.add_(1) for _ in range(8)])
additions

# %%
spans = additions.to_frame()
kernels = spans[spans["kind"] == "kernel"]
window_s = kernels["end_s"].max() - kernels["start_s"].min()
busy_guess.compare(100 * kernels["duration_s"].sum() / window_s)

# %% [markdown]
# The GPU is done with each addition before Python has launched the next. Then it stands still. The
# program is *launch-bound*: a GPU twice as fast would change nothing. The summary names the cause
# of every gap:

# %%
additions.summary()

# %% [markdown]
# On a real GPU the records themselves slow the launches down, on the host of one H200 from 7 to
# 15 µs. The gaps of a timeline are then wider than those of the program.
#
# ### The same with events
#
# Now a pair of events goes round each addition. What share of a pair's reading is the kernel?

# %%
share = exercises.predict("What share of the reading is the kernel?", ..., unit="%")
share

# %%
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))


def pair_of_events():
    start.record()
    small.add_(1)
    end.record()


gpulab.timeline(lambda: [pair_of_events() for _ in range(3)], n_warmup=3)

# %%
pair = gpulab.measure(lambda: small.add_(1), method="events", label="a pair of events")
share.compare(100 * kernels["duration_s"].median() / pair.median_s)

# %% [markdown]
# Between marker and kernel there is a gap, and between the kernel and the other marker. The pair
# reads both. It has measured Python, with the clock of the GPU.
#
# ### Where the GPU takes over
#
# The additions grow, from 2^10 to 2^24 elements, and 50 are launched in a row. From which size on
# does one more of them cost what the GPU needs, and no longer what Python needs?

# %%
takes_over = exercises.predict(
    "From which size on does the GPU set the pace?",
    ...,
    choices=("2^10", "2^16", "2^20", "2^22", "2^24"),
)
takes_over


# %%
def pace_s(tensor, n_calls=50):
    for _ in range(3):
        tensor.add_(1)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(n_calls):
        tensor.add_(1)
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / n_calls


exponents = [10, 12, 14, 16, 18, 20, 22, 24]
paces_s = [pace_s(torch.zeros(2**n, device="cuda")) for n in exponents]
pd.Series(paces_s, [f"2^{n}" for n in exponents], name="per call").map(format_time)

# %%
paces = pd.DataFrame({"elements, as a power of 2": exponents})
paces["time per call (µs)"] = [pace * 1e6 for pace in paces_s]
plots.draw(
    lambda frame, ax: frame.plot.line(
        0, 1, ax=ax, style="o-", legend=False, ylabel=frame.columns[1], ylim=(0, None)
    ),
    paces,
    title="A flat part that is Python's, and a rise that is the GPU's",
    alt="The time per call stays the same for small tensors and rises with the large ones.",
    source=gpulab.device.current(),
)

# %%
slower = [n for n, pace in zip(exponents, paces_s, strict=True) if pace > 1.15 * paces_s[0]]
takes_over.compare(f"2^{slower[0]}" if slower else "not yet")

# %% [markdown]
# On the flat part you read the launch, whatever the size. A kernel longer than its launch fills
# the queue by itself, and then neither sleep nor graph is needed.
#
# ### Exercise: who is the one that holds it up?
#
# Three programs, of which you see only the timelines. Look at all three.

# %%
gpulab.timeline(program("a"))

# %%
gpulab.timeline(program("b"))

# %%
gpulab.timeline(program("c"))

# %%
exercises.ask("07.gaps")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {"a": "wait", "b": "gpu", "c": "host"}
### END SOLUTION
exercises.check("07.gaps", answer)

# %% [markdown]
# ## 2 A head start
#
# `torch.cuda._sleep(n)` is a kernel that counts n clock cycles and does nothing else. The host
# launches it like any other kernel and goes on. How long does a million cycles take?

# %%
million = exercises.predict("How long is a sleep of 1,000,000 cycles?", ..., unit="ms")
million


# %%
def sleep_s(n_cycles):
    start.record()
    torch.cuda._sleep(n_cycles)
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


sleeps_s = [sleep_s(n) for n in (1_000_000, 1_000_000, 3_000_000)]
million.compare(sleeps_s[1])

# %% [markdown]
# *Recorded* on an H200: 0.51 ms. Two lengths give the cycles in a second without what the events
# add, and that is the clock of the GPU. It changes with the clock (lesson 05), so a sleep is no
# stopwatch.

# %%
cycles_per_s = 2_000_000 / (sleeps_s[2] - sleeps_s[1])
f"{cycles_per_s / 1e6:,.0f} MHz"


# %% [markdown]
# 40 samples go behind one sleep. After each, the host asks whether the GPU has reached its first
# event yet. If not, the host was **ahead**: all of the sample was in the queue in time.


# %%
def enqueued(work, pairs):
    ahead = []
    for start, end in pairs:
        start.record()
        work()
        end.record()
        ahead.append(not start.query())
    return ahead


add = partial(small.add_, 1)
torch.cuda._sleep(1_000_000)
enqueued(add, [(start, end)])


# %%
def samples_behind(duration_s, work, n_samples=40):
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in "se"] for _ in range(n_samples)]
    enqueued(add, pairs)  # the driver makes an event at its first record
    torch.cuda.synchronize()
    torch.cuda._sleep(int(duration_s * cycles_per_s))
    begin = time.perf_counter()
    ahead = enqueued(work, pairs)
    host_s = time.perf_counter() - begin
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1e3 for start, end in pairs], ahead, host_s


readings_s, ahead, host_s = samples_behind(0.2e-3, add)
format_time(host_s)

# %% [markdown]
# That is what the host needed for all 40. The sleep was of 0.2 ms. In how many of the samples was
# the host ahead?

# %%
ahead_guess = exercises.predict("In how many of 40?", ..., unit="times")
ahead_guess

# %%
ahead_guess.compare(sum(ahead))


# %%
def as_measurement(samples_s, label):
    gpu = gpulab.device.current()
    here = gpulab.device.conditions()
    return gpulab.Measurement(tuple(samples_s), "events", gpu.source, here, label=label)


plots.draw(
    plots.samples,
    [as_measurement(samples_behind(ms / 1e3, add)[0], f"{ms} ms") for ms in (0, 0.2, 2)],
    title="The same 40 samples behind three sleeps",
    alt="Behind no sleep all read long, behind the longest all read short; in between, a step.",
)

# %% [markdown]
# As long as the host is ahead, a pair reads kernel and floor. Where the GPU has caught up, it
# reads Python again. The step is where that happened. Nothing in the readings warns you: without
# the question to each event, the sleep of 0.2 ms would give a median of *something*.
#
# ### How long is long enough?

# %%
enough = exercises.predict("Which sleep puts the host ahead in all 40?", ..., unit="µs")
enough

# %%
sweep = pd.DataFrame({"sleep_s": [host_s * share / 10 for share in range(0, 31, 2)]})
sweep["sleep (µs)"] = sweep["sleep_s"] * 1e6
sweep["samples with the host ahead"] = [sum(samples_behind(s, add)[1]) for s in sweep["sleep_s"]]
sweep.iloc[::3, 1:].round(1)


# %%
def draw_sweep(frame, ax):
    frame.plot.line(1, 2, ax=ax, style="o-", legend=False, ylabel=frame.columns[2])
    return ax.axvline(host_s * 1e6, color="#D55E00", linestyle="--")


plots.draw(
    draw_sweep,
    sweep,
    title="Dashed: what the host needs for 40 samples",
    alt="The number of samples ahead rises with the sleep, and is 40 at the host's time.",
    source=gpulab.device.current(),
)

# %%
n_ahead = sweep["samples with the host ahead"]
enough.compare(sweep["sleep_s"][n_ahead == n_ahead.max()].min())

# %% [markdown]
# A sleep is long enough if it lasts **as long as the host needs for the whole batch**. (Somewhat
# less may do, for the GPU needs its time for the samples as well.) That is a time of the host, so
# no kernel's length tells it: measure it, and give some more. A longer sleep gives no better
# reading. You only wait for it.
#
# ### Longer than the queue
#
# About a thousand launches fit into the queue (lesson 01). Now 40 samples of 50 launches stand
# behind a sleep four times as long as the host needs for them. Is the host ahead in all 40?

# %%
all_ahead = exercises.predict("Is the host ahead in all?", ..., choices=("yes", "no"))
all_ahead


# %%
def fifty():
    for _ in range(50):
        small.add_(1)


_, _, host_s = samples_behind(0, fifty)
_, ahead, _ = samples_behind(4 * host_s, fifty)
f"ahead in {sum(ahead)} of 40"

# %%
all_ahead.compare("yes" if all(ahead) else "no")

# %% [markdown]
# When the queue is full, the next launch keeps the host until there is room: until the sleep is
# over. From then on both run, and the GPU catches up. The cure is a smaller batch, not a longer
# sleep.
#
# `method="saturated"` does all of this: it measures the host, sleeps 1.3 times as long, keeps
# the batch below the queue, asks every event, and throws away a sample in which the host was not
# ahead.

# %%
saturated = gpulab.measure(add, method="saturated", cache="hot", label="behind a sleep")
saturated

# %%
plots.draw(
    plots.compare_methods,
    [pair, saturated],
    title="The same addition, without and with a head start",
    alt="Behind a sleep the pair of events reads a good deal less than without one.",
    ax_size=(6.4, 2.4),
)

# %% [markdown]
# ### Exercise: long enough

# %%
exercises.ask("07.long-enough")

# %% tags=["exercise"]
head_start = ...


### BEGIN SOLUTION
def head_start(work):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(40):
        start.record()
        work()
        end.record()
    host_s = time.perf_counter() - begin
    torch.cuda.synchronize()
    return 2 * host_s * cycles_per_s


### END SOLUTION
exercises.check("07.long-enough", head_start)

# %% [markdown]
# ## 3 A wait inside
#
# This exercise is your prediction; answer it before you go on.

# %%
exercises.ask("07.sync-inside")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = "c"
### END SOLUTION
exercises.check("07.sync-inside", answer)


# %%
def read_back():
    return small.sum().item()


readings_s, ahead, host_s = samples_behind(10e-3, read_back)
f"ahead in {sum(ahead)} of 40; the host was kept for {format_time(host_s)}"

# %%
plots.draw(
    plots.samples,
    [
        as_measurement(readings_s, "behind a sleep"),
        as_measurement(samples_behind(0, read_back)[0], "without"),
    ],
    title="A function that waits inside",
    alt="With and without a sleep the readings are the same, but for the first sample at most.",
)

# %% [markdown]
# `item()` of the first sample waits for the sleep, with the host. What the GPU then finds in its
# queue is nothing. The host's time is now the sleep's: who would measure it again and sleep longer
# would chase it for ever.
#
# `gpulab.measure` looks for this before it begins: it calls the work once behind a sleep, and
# sees whether the GPU is awake when the call returns.

# %%
waits = gpulab.measure(read_back)
[f"{finding.code}: {finding.message}" for finding in waits.findings][:1]

# %% [markdown]
# ## 4 A graph
#
# A sleep gives you a right reading. It does not make the program faster: there the GPU still waits
# for Python. Ten relus on 16,384 elements are ten launches.


# %%
def ten_relus(tensor):
    for _ in range(10):
        tensor = torch.relu(tensor)
    return tensor


relus = partial(ten_relus, x)
eager = gpulab.measure(relus, method="events", label="ten launches")
eager

# %% [markdown]
# A **CUDA graph** holds the ten kernels with their arguments. While the block below runs, calls
# are written into the graph. Afterwards `replay()` sends all of them with one launch.

# %%
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    result = ten_relus(x)
graph.replay()
torch.equal(result, torch.relu(x))

# %% [markdown]
# How long does a replay of the ten kernels take?

# %%
replay_guess = exercises.predict("What does a pair of events round replay() read?", ..., unit="µs")
replay_guess

# %%
replayed = gpulab.measure(graph.replay, method="events", label="one replay")
replay_guess.compare(replayed)

# %%
gpulab.timeline(graph.replay)

# %%
busy = gpulab.measure(relus, method="profiler", cache="hot", label="kernels alone")
plots.draw(
    plots.compare_methods,
    [eager, replayed, busy],
    title="Ten relus on 16,384 elements",
    alt="A replay is much nearer to the time in which the kernels work than ten launches are.",
    ax_size=(6.4, 2.8),
)

# %% [markdown]
# *Recorded* on an H200: 74 to 80 µs by ten launches, 14 µs in a graph, and 10 µs in which the
# kernels are busy. The difference was Python. What remains in the graph are the pauses from kernel
# to kernel.
#
# ### Does the capture compute?
#
# A counter is increased ten times inside a capture. What does it say afterwards?

# %%
counted = exercises.predict("What does the counter say?", ..., choices=("0", "1", "10"))
counted

# %%
counter = torch.zeros(1, device="cuda")
counting = torch.cuda.CUDAGraph()
with torch.cuda.graph(counting):
    for _ in range(10):
        counter.add_(1)
counted.compare(f"{counter.item():.0f}")

# %%
counting.replay()
counting.replay()
counter.item()

# %% [markdown]
# A capture only writes down. Each replay then does all of it again.
#
# ### Many copies inside
#
# A replay is a launch, too, and events round it have their floor. To time one small kernel in a
# graph, put many copies of it in and divide. One copy reads some microseconds. What does each of a
# hundred copies read?

# %%
each_of_100 = exercises.predict("What is left for each of 100 copies?", ..., unit="µs")
each_of_100


# %%
def seconds_per_copy(n_copies):
    copies = torch.cuda.CUDAGraph()
    with torch.cuda.graph(copies):
        for _ in range(n_copies):
            small.add_(1)
    for _ in range(3):  # the last round counts: the first replay also uploads the graph
        start.record(), copies.replay(), end.record()
        end.synchronize()
    return start.elapsed_time(end) / 1e3 / n_copies


copies = pd.DataFrame({"size": [1, 3, 10, 30, 100, 300], "series": "per copy"})
copies["duration_s"] = copies["size"].map(seconds_per_copy)
each_of_100.compare(copies.set_index("size")["duration_s"][100])

# %%
plots.draw(
    partial(plots.scaling, size_label="copies in the graph"),
    copies,
    title="One small addition, n times in one graph",
    alt="The time per copy falls with the number of copies and becomes flat.",
    source=gpulab.device.current(),
)

# %% [markdown]
# Launch and floor are shared by all copies. What is left is the kernel, and the short pause from
# one kernel of the graph to the next. *Recorded* on an H200, with the host ahead: 3.0 µs with one
# copy, 1.07 with ten, 0.95 with a hundred.

# %% [markdown]
# ## 5 What a graph holds
#
# A graph holds kernels, their arguments and the addresses of their tensors. No Python, and nothing
# that needs an answer. Six functions; how many of them can be captured?

# %%
attempts = {
    "relu": lambda: torch.relu(x),
    "synchronize": lambda: (torch.relu(x), torch.cuda.synchronize()),
    "item": lambda: x.sum().item(),
    "x[x > 0]": lambda: x[x > 0],
    "cpu": lambda: torch.relu(x).cpu(),
    "zeros_like": lambda: torch.zeros_like(x) + x,
}
captured_guess = exercises.predict("How many of the six can be captured?", ..., unit="times")
captured_guess


# %%
def try_to_capture(work):
    try:
        gpulab.measure(work, method="graph", max_time_s=0.05)
    except NotCapturableError as error:
        return str(error).split(";")[0].removeprefix("the work cannot be captured into a ")
    return "captured"


outcomes = {name: try_to_capture(work) for name, work in attempts.items()}
outcomes

# %%
captured_guess.compare(list(outcomes.values()).count("captured"))

# %% [markdown]
# - **Waits** raise: nothing has been computed during the capture, so there is nothing to wait for.
#   `item()`, `print(tensor)`, `if tensor:` and `event.synchronize()` are waits.
# - **Shapes that depend on values** raise: the host would have to wait for the number of elements.
#   `torch.where` or `masked_fill` keep the shape.
# - **Copies from and to ordinary memory** raise; pinned memory (lesson 08) is allowed.
# - **New tensors** are allowed. They come from a pool that belongs to the graph, and lie in the
#   same place at every replay. What may not change is where a tensor lies.
#
# (`measure` also tidies up after a capture that failed. If you capture by hand on a real GPU and
# it fails, PyTorch may stay in a bad state: restart the kernel.)
#
# ### A number that changes
#
# Errors are the harmless case. What follows is captured without one. `factor` is 2 at the capture
# and 10 at the replay. What does the replay multiply 1 by?

# %%
by = exercises.predict("By what does the replay multiply?", ..., choices=("2", "10"))
by

# %%
factor, ones, scaling = 2, torch.ones(4, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(scaling):
    scaled = ones * factor
factor = 10
scaling.replay()
by.compare(f"{scaled[0].item():.0f}")

# %% [markdown]
# Python ran once, at the capture. Every number, `if`, loop count and `print` is what it was then.
#
# ### A new input
#
# The next batch comes in. Its values are 5, and the name `ones` is given to it. What does the
# replay multiply by 2?

# %%
reads = exercises.predict("Which values does the replay read?", ..., choices=("1", "5"))
reads

# %%
before = ones
ones = torch.full((4,), 5.0, device="cuda")
scaling.replay()
reads.compare(f"{scaled[0].item() / 2:.0f}")

# %% [markdown]
# The graph knows an address, not a name. So the input must stay where it is, and new values are
# copied into it. For a batch of another *shape* you need another graph, or you pad it.

# %%
before.copy_(ones)
scaling.replay()
scaled.tolist()

# %% [markdown]
# ### The result of the last replay
#
# You keep the result of one batch (10, 10, ...) and replay for the next, of 7. What do you have in
# your hand?

# %%
kept_guess = exercises.predict("What does the kept result say?", ..., choices=("10", "14"))
kept_guess

# %%
kept = scaled
before.fill_(7)
scaling.replay()
kept_guess.compare(f"{kept[0].item():.0f}")

# %% [markdown]
# The result has its place as well, and each replay overwrites it. Take a `clone()` if you keep it.
# The pool keeps this memory as long as the graph lives.
#
# ### The input is gone
#
# The pool holds what was made *inside*. The input was made outside. Now nobody holds it any more,
# and other tensors, of 9, are made. What does the replay multiply by 2?

# %%
gone_guess = exercises.predict(
    "Which values does the replay read?", ..., choices=("7", "9", "an error")
)
gone_guess

# %%
del before
others = [torch.full((4,), 9.0, device="cuda") for _ in range(50)]
scaling.replay()
gone_guess.compare(f"{scaled[0].item() / 2:.0f}")

# %% [markdown]
# Memory that is free goes to the next who asks (lesson 08 has more of this), and the graph still
# reads from there. Keep a name for every tensor that a graph reads, as long as you replay it.
#
# ### Exercise: put it into a graph

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
# ### Exercise: runs, raises or frozen?

# %%
exercises.ask("07.capturable")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
words = "runs raises frozen raises runs frozen raises runs"
answer = dict(zip("abcdefgh", words.split(), strict=True))
### END SOLUTION
exercises.check("07.capturable", answer)

# %% [markdown]
# ## 6 Hot or cold
#
# The copies in a graph follow one another on the same tensors. Two tensors of 8 MB are added. Does
# the graph read more or less than the calibrated events, which empty the cache before each sample?

# %%
cold_guess = exercises.predict("What does the graph read?", ..., choices=("more", "less"))
cold_guess

# %%
left, right = (torch.ones(2**21, device="cuda") for _ in range(2))
sum_of_two = partial(torch.add, left, right)
in_graph = gpulab.measure(sum_of_two, method="graph", label="graph")
calibrated = gpulab.measure(sum_of_two, label="calibrated, cold")
ratio = in_graph.median_s / calibrated.median_s
cold_guess.compare("less" if ratio < 1 else "more")

# %% [markdown]
# The kernel before has left the tensors in the L2 cache (lesson 06): a graph reads **hot**, unless
# the graph itself flushes. `cache="cold"` puts a flush in front of each copy *into* the graph, and
# the events, which are part of the graph as well, leave it out.

# %%
cold_graph = gpulab.measure(sum_of_two, method="graph", cache="cold", label="graph with a flush")
plots.draw(
    plots.compare_methods,
    [in_graph, cold_graph, calibrated],
    title="An addition of 8 MB tensors, hot and cold",
    alt="The graph with a flush agrees with the cold reading; the plain graph reads less.",
    ax_size=(6.4, 2.8),
)

# %% [markdown]
# Say which you mean. If your program replays the kernel on data that the kernel before has just
# written, hot is the right answer.

# %% [markdown]
# ## 7 The whole ladder
#
# Every method that you have met, on one kernel: a relu on a million elements. The referee is the
# driver's own record of each kernel. Which rung is furthest off? (`live.ladder` shows each rung as
# soon as it is there, and `gpulab.ladder` all of them in the end.)

# %%
worst_guess = exercises.predict(
    "Which rung is furthest off?",
    ...,
    choices=("naive", "synchronized", "events", "+ sleep", "calibrated", "graph"),
)
worst_guess

# %%
million_x = torch.randn(2**20, device="cuda")
climbed = live.ladder(partial(torch.relu, million_x), label="relu of 2^20 elements")
climbed

# %%
named = ["naive", "synchronized", "events", "+ sleep", "calibrated", "graph"]
errors = climbed.to_frame().set_index("rung")["error"]
worst_guess.compare(errors[named].abs().idxmax())

# %% [markdown]
# Read the picture from the top. Each rung takes one thing out of the number:
#
# | rung | what its number still holds or lacks | it matters |
# |---|---|---|
# | naive | only the launch, or the launch and a full queue | always, unless you ask for it |
# | synchronized | launch and wake-up, some 10 µs | below a millisecond or so |
# | events | the launch, where the GPU waits for it | if the kernel is shorter than its launch |
# | + warm-up | the first calls are out of it | if there are few samples |
# | + cache flush | the input comes from memory, not from L2 | if your program finds it cold |
# | + sleep | the floor of the events, about 3 µs | below about 100 µs |
# | calibrated | some 0.1 µs of doubt in the floor | below about a microsecond |
# | graph | no launch, and a hot cache | if your program launches one by one |
#
# Now the same for the large product. How far is the stopwatch with two waits off here?

# %%
off = exercises.predict(
    "How far is `synchronized` off, for the 2048 x 2048 product?", ..., unit="%"
)
off

# %%
product_climbed = gpulab.ladder(lambda: a @ a, label="product of 2048 x 2048", max_time_s=0.2)
product_errors = product_climbed.to_frame().set_index("rung")["error"]
off.compare(abs(100 * product_errors["synchronized"]))

# %%
both = pd.DataFrame({"relu (%)": errors, "product (%)": product_errors}, index=errors.index)
(100 * both).round(1)

# %% [markdown]
# The errors are nearly the same microseconds as before. Beside a long kernel they are nothing, and
# only the naive reading is still wrong. So the question is never which method is best. It is how
# large the error is beside what you want to tell apart.
#
# ### Exercise: which rung?

# %%
exercises.ask("07.which-rung")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
rungs = "naive synchronized events calibrated graph"
answer = dict(zip("abcde", rungs.split(), strict=True))
### END SOLUTION
exercises.check("07.which-rung", answer)

# %% [markdown]
# ## What you take along
#
# - If kernels are shorter than their launches, the host sets the pace, and events read Python.
# - A sleep is long enough if it outlasts the host's time for the whole batch. Ask the events.
# - A wait inside the work uses the sleep up. No length helps.
# - A graph launches many kernels at once. It holds addresses and numbers, not names and Python.
#   Keep its inputs, copy new values into them, clone what you keep.
# - What needs an answer raises in a capture; what only Python does is frozen without a word.
# - A method's error matters if it is large beside what you want to tell apart.
#
# Until now one kernel followed another. In lesson 08 they run at the same time.

# %%
exercises.progress()
