# %% [markdown]
# # 04 Warm-up
#
# Why is the first run so slow, and when may I start?
#
# Every lesson so far ran its work a few times before it took a number. This one shows what those
# first calls pay for, how to see in the data when they are over, and how to make one number out of
# the calls that follow.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 The first call | how slow it is, and that every process pays again | 10 |
# | 2 What it pays for | the first-use costs, each seen apart | 20 |
# | 3 When it is over | to find the steady state in the data | 15 |
# | 4 One number out of many | mean, median, spread, and how sure the median is | 10 |
# | 5 Two humps | what it means when the samples fall into two groups | 10 |

# %%
import time
import warnings
from functools import partial

import numpy as np
import pandas as pd
import torch

import gpulab
from gpulab import exercises, live, plots, stats
from gpulab.exercises.lesson_04 import figures, first_use, in_a_new_process, traces
from gpulab.units import format_time

gpulab.__version__

# %%
GPU = "auto"  # a name such as "A100" gives the virtual GPU of that name
gpulab.use(GPU)

# %% [markdown]
# ## 1 The first call
#
# The function below makes a matrix, multiplies it by itself and waits for the sum: ten times, each
# with a stopwatch. It runs where nobody has used the GPU yet. On a real GPU that is a new process
# (starting it takes some seconds, which are not in the numbers). A virtual GPU is as good as new
# when it was just made.

# %%
first = exercises.predict("The first call takes how many times the second?", ..., unit="times")
first


# %%
def ten_products():
    times_s = []
    for _ in range(10):
        start = time.perf_counter()
        a = torch.ones(1024, 1024, device="cuda")
        (a @ a).sum().item()
        times_s.append(time.perf_counter() - start)
    return times_s


products_s = in_a_new_process(ten_products)
[format_time(seconds) for seconds in products_s[:4]]

# %%
first.compare(products_s[0] / products_s[1])


# %%
def loop(times_s, name):
    rows = {"iteration": range(len(times_s)), "duration_s": times_s, "series": name}
    return pd.DataFrame(rows)


draw_loops = partial(plots.draw, figures.iterations, source=gpulab.device.current())
draw_loops(
    loop(products_s, "product and sum"),
    title="Ten times the same product",
    alt="The first iteration lies thousands of times above the other nine, which are alike.",
)

# %% [markdown]
# The same line, the same data, the same GPU. What the first call does in addition is done *once in
# a process*: the second finds it done. A program that starts anew pays anew. So a mean over ten
# calls says nothing of the work:

# %%
mean_s = np.mean(products_s)
f"mean {format_time(mean_s)}, but nine of ten calls take {format_time(products_s[-1])}"

# %% [markdown]
# ## 2 What it pays for
#
# Now the costs one by one, in this kernel. **Each shows once.** If you run a cell again, nothing
# is slow any more: on a real GPU restart the kernel, on the virtual one run the next cell again,
# which makes a new one.

# %%
gpu = gpulab.use(GPU)
costs = {}


def once_s(work):
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


gpu

# %% [markdown]
# ### The context
#
# Nothing was asked of the GPU yet. The very first call is one that has nothing to do. How long
# does it take?

# %%
context = exercises.predict("How long does the first synchronize() take?", ..., unit="ms")
context

# %%
times_s = []
for _ in range(2):
    start = time.perf_counter()
    torch.cuda.synchronize()
    times_s.append(time.perf_counter() - start)
costs["context"] = times_s
[format_time(seconds) for seconds in times_s]

# %%
context.compare(costs["context"][0])

# %% [markdown]
# The first call of all makes the **context**: the driver prepares the GPU for this process, with
# page tables, a first heap and the queues. *Recorded* on an H200: 0.33 s. (On a real GPU a part of
# it may be missing above: choosing the GPU has asked the driver for its name already.)
#
# ### Memory
#
# Three tensors of 64 MB: the first, a second beside it, and one after the first was deleted. Which
# of them is the fastest?

# %%
memory = exercises.predict("Which is the fastest?", ..., choices=("first", "second", "third"))
memory

# %%
kept = []
new_tensor = partial(torch.empty, 1 << 24, device="cuda")
times_s = [once_s(lambda: kept.append(new_tensor())) for _ in range(2)]
kept.pop(0)
times_s.append(once_s(lambda: kept.append(new_tensor())))
costs["64 MB of memory"] = times_s[:2]
[format_time(seconds) for seconds in times_s]

# %%
memory.compare(["first", "second", "third"][int(np.argmin(times_s))])

# %% [markdown]
# The first asks the driver, and the driver sets up its own memory. The second asks the driver too.
# The third is given what PyTorch has kept: memory that you delete goes into a **cache**, not back
# to the driver. *Recorded* on an H200: 914 µs, 77 µs, 10 µs. (An empty wait, which is in all
# three, takes some microseconds.) A loop whose tensors grow goes to the driver again and again.
#
# ### One kernel
#
# The memory is there now. The exponential of a million numbers, twice; then the sine, twice. Both
# are short kernels that work in place.

# %%
sine = exercises.predict(
    "Is the first sine slow, after the exponential?", ..., choices=("slow", "fast")
)
sine

# %%
x = new_tensor()[: 1 << 20]
works = {"exp": x.exp_, "sin": x.sin_, "exp of half as many": x[: 1 << 19].exp_}
kernels_s = {name: [once_s(work) for _ in range(2)] for name, work in works.items()}
costs["a kernel"] = kernels_s["sin"]
pd.DataFrame(kernels_s, index=["first", "second"]).T.map(format_time)

# %%
sine.compare("slow" if kernels_s["sin"][0] > 3 * kernels_s["sin"][1] else "fast")

# %% [markdown]
# PyTorch has thousands of kernels. They are loaded **lazily**: each travels to the GPU when it is
# launched for the first time. (`CUDA_MODULE_LOADING=EAGER` loads them all with the context, which
# then takes longer.) The last row is fast at once: same kernel, another size.
#
# ### A library
#
# A product is not a kernel of PyTorch's own: it comes from cuBLAS. The library needs a **handle**
# with a work space, and picks one of hundreds of kernels. First in single precision, then in half.

# %%
half = exercises.predict(
    "After two products in float32, is the first in float16 slow?", ..., choices=("slow", "fast")
)
half

# %%
a = torch.empty(1024, 1024, device="cuda")
h = torch.empty(1024, 1024, device="cuda", dtype=torch.half)
if gpu.source == "measured":  # the virtual GPU charges the handle with the first product
    costs["cuBLAS handle"] = [once_s(torch.cuda.current_blas_handle) for _ in range(2)]
costs["product, float32"] = [once_s(lambda: a @ a) for _ in range(2)]
costs["product, float16"] = [once_s(lambda: h @ h) for _ in range(2)]
pd.DataFrame(costs, index=["first", "second"]).T.map(format_time)

# %%
first_s, second_s = costs["product, float16"]
half.compare("slow" if first_s > 3 * second_s else "fast")

# %% [markdown]
# *Recorded* on an H200: 106 ms against 0.14 ms in float32, then 76 ms against 0.11 ms in float16.
# Another type of number means other kernels. So warm up **with the shapes and types that you will
# time**, not with a small stand-in.
#
# ### More libraries
#
# Random numbers need the state of a generator, convolutions need cuDNN.

# %%
images = torch.empty(16, 64, 56, 56, device="cuda")
filters = torch.empty(64, 64, 3, 3, device="cuda")
convolve = partial(torch.nn.functional.conv2d, weight=filters, padding=1)
costs["random numbers"] = [once_s(lambda: torch.randn(1000, device="cuda")) for _ in range(2)]
costs["convolution"] = [once_s(lambda: convolve(images)) for _ in range(2)]
pd.DataFrame(costs, index=["first", "second"]).T.map(format_time).tail(2)

# %% [markdown]
# *Recorded* on an H200: 251 ms for the first convolution, 0.22 ms for the second.
#
# ### All of them
#
# Once more, where nobody has used the GPU yet: on a real GPU in a new process, which takes some
# seconds to start. Each row appears when its two calls are done.

# %%
live.series(
    first_use.measured(),
    figures.first_uses,
    n_expected=len(first_use.NAMES),
    title="First use and second use",
    alt="In every row the first use lies far right of the second, up to ten thousands of times.",
    source=gpu,
)

# %% [markdown]
# ### A search for the fastest way
#
# There are several ways to compute a convolution, and which is fastest depends on the shapes. A
# program can try them all once and keep the winner. Here is such a search, in small, with two
# ways.


# %%
def unfolded(images):
    columns = torch.nn.functional.unfold(images, 3, padding=1)
    return (filters.view(64, -1) @ columns).view(images.shape)


ways, chosen = (convolve, unfolded), {}


def searched(images):
    if images.shape not in chosen:  # a shape that was never seen: try every way
        trials_s = [min(once_s(partial(way, images)) for _ in range(3)) for way in ways]
        chosen[images.shape] = ways[int(np.argmin(trials_s))]
    return chosen[images.shape](images)


[format_time([once_s(partial(way, images)) for _ in range(2)][-1]) for way in ways]

# %% [markdown]
# Six calls: images of 56, 56, 64, 64, 56, 64 pixels. Which ones are slow?

# %%
slow = exercises.predict(
    "Which calls are slow?",
    ...,
    choices=("the first", "the first of each size", "each after another size"),
)
slow

# %%
sizes = (56, 56, 64, 64, 56, 64)
inputs = [torch.empty(16, 64, size, size, device="cuda") for size in sizes]
searched_s = [once_s(partial(searched, batch)) for batch in inputs]
pd.DataFrame({"pixels": sizes, "time": map(format_time, searched_s)})

# %%
is_slow = np.array(searched_s) > 3 * np.min(searched_s)
outcome = {1: "the first", 2: "the first of each size"}
slow.compare(outcome.get(int(is_slow.sum()), "each after another size"))

# %% [markdown]
# `torch.backends.cudnn.benchmark = True` makes cuDNN search like that, at the first convolution of
# every shape. It pays where shapes stay the same, and costs where they change all the time.
# Triton's autotuner is of the same kind. The virtual GPU has one way only, so nothing is slow
# there:

# %%
torch.backends.cudnn.benchmark = True
benchmark_s = [once_s(partial(convolve, batch)) for batch in inputs]
torch.backends.cudnn.benchmark = False
pd.DataFrame({"pixels": sizes, "time": map(format_time, benchmark_s)})

# %% [markdown]
# ### A compiler
#
# `torch.compile` writes a kernel for your function when it is first called: seconds, not
# milliseconds. It does so again when it meets an input that the first result does not fit. On the
# virtual GPU it only says that it did nothing.

# %%
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    polynomial = torch.compile(lambda x: x * x + 2 * x + 1)
    try:
        shown = [format_time(once_s(partial(polynomial, x))) for _ in range(3)]
    except RuntimeError as error:  # there is no compiler on this machine
        shown = str(error)[:200]
str(said[-1].message) if gpu.source == "virtual" else shown

# %% [markdown]
# So a compiled function needs its warm-up more than any other, and one for each shape.
#
# ### Exercise: name the cost

# %%
exercises.ask("04.name-the-cost")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {"a": "context", "b": "kernel", "c": "library", "d": "allocation", "e": "search"}
### END SOLUTION
exercises.check("04.name-the-cost", answer)

# %% [markdown]
# `exercises.hint("04.name-the-cost")` helps if you are stuck.

# %% [markdown]
# ## 3 When it is over
#
# Some tools warm up three times, some ten, some for 25 ms. How many does it take? Look.
#
# ### A cost that comes late
#
# In each iteration a program does one of eight operations, by chance, as one does that augments
# its images. None of the eight has run before. After how many iterations is everything loaded?

# %%
loaded = exercises.predict(
    "After how many iterations?", ..., choices=("1", "up to 8", "9 to 15", "more than 15")
)
loaded

# %%
z = new_tensor()
operations = [z.tan_, z.cos_, z.tanh_, z.sigmoid_, z.atan_, z.ceil_, z.erf_, z.floor_]
order = np.random.default_rng(9).integers(8, size=60)
random_s = [once_s(operations[number]) for number in order]
draw_loops(
    loop(random_s, "one of eight operations"),
    title="One of eight operations in each iteration",
    alt="Eight iterations are slow, the first ones close together and the last one far behind.",
)

# %%
last = np.flatnonzero(random_s > 1.5 * np.median(random_s)).max(initial=-1) + 1
limits = {1: "1", 8: "up to 8", 15: "9 to 15"}
loaded.compare(next((limits[n] for n in limits if last <= n), "more than 15"))

# %% [markdown]
# Neither three nor ten would have been enough to meet them all. In a real program such first uses
# hide in the branches that are rarely taken: the last batch that is smaller, the evaluation at the
# end of an epoch.
#
# ### A level that moves
#
# Now a large product in half precision, for some tenths of a second. The first call pays for what
# is new. From which iteration on is it steady?

# %%
steady = exercises.predict(
    "Steady after how many iterations?", ..., choices=("1", "up to 10", "not within 40")
)
steady

# %%
large = torch.randn(8192, 8192, device="cuda", dtype=torch.half)
heat_s = []
until_s, at_most = 0.4, 300
while sum(heat_s) < until_s and len(heat_s) < at_most:
    heat_s.append(once_s(lambda: large @ large))
draw_loops(
    loop(heat_s, "8192 x 8192 product, float16").iloc[1:],
    title="The same product, again and again",
    alt="Unless the GPU is small, the time climbs over the first iterations and then stays.",
)

# %%
n_slow = stats.steady_from(heat_s[:40])
limits = {1: "1", 10: "up to 10"}
steady.compare(next((limits[n] for n in limits if n_slow <= n), "not within 40"))

# %% [markdown]
# No first-use cost lasts that long. The work itself has become slower: the GPU reached its power
# limit and lowered its clock. *Recorded* on an H200: 1.43 ms, then 1.67 ms, within 0.1 s. Whoever
# starts after ten calls measures the way down. Lesson 05 is about that.
#
# ### Exercise: find the steady state
#
# Here are six loops, made for this exercise. By eye, where would you start in each?

# %%
plots.draw(
    figures.iterations,
    traces.to_frame(),
    title="From where on may the samples count?",
    alt="Six lines that begin high, or with peaks, and become level; one of them keeps growing.",
    source="made for this exercise",
    ax_size=(8, 5),
)

# %%
exercises.ask("04.steady-state")

# %% tags=["exercise"]
first_steady = ...


### BEGIN SOLUTION
def first_steady(samples_s):
    tail = np.array(samples_s[len(samples_s) // 2 :])
    level_s = np.median(tail)
    before, behind = np.array_split(tail, 2)
    if abs(np.median(behind) - np.median(before)) > 0.02 * level_s:
        return len(samples_s)
    inside = np.abs(np.array(samples_s) - level_s) < 0.03 * level_s
    rows = inside[:-2] & inside[1:-1] & inside[2:]
    return int(np.argmax(rows)) if rows.any() else len(samples_s)


### END SOLUTION
exercises.check("04.steady-state", first_steady)

# %% [markdown]
# ### Let the kit look
#
# `gpulab.stats.steady_from` is such a rule. It takes level and noise from the second half, and
# forgives a tenth of strays. Here it looks at the three loops of this lesson, beside three fixed
# counts. How far is the mean of what is left from the level at the end?

# %%
loops = {"product": products_s, "one of eight": random_s, "large product": heat_s}
rows = {}
for name, times_s in loops.items():
    level_s, found = np.median(times_s[len(times_s) // 2 :]), stats.steady_from(times_s)
    starts = {"from 0": 0, "from 3": 3, "from 10": 10, "from there": found}
    left = {key: times_s[n:] for key, n in starts.items()}
    errors = {key: np.mean(part) / level_s - 1 if part else np.nan for key, part in left.items()}
    rows[name] = {"steady from": found} | {key: f"{errors[key]:+.1%}" for key in errors}
pd.DataFrame(rows).T.replace("+nan%", "nothing left")

# %%
draw_loops(
    pd.concat(loop(times_s[:100], name) for name, times_s in loops.items()),
    title="The start that was found, ringed",
    alt="Each of the three lines has a ring where its level begins.",
    steady={name: stats.steady_from(times_s) for name, times_s in loops.items()},
)

# %% [markdown]
# Two things to note. In the loop of eight operations the last first use may come *after* the ring:
# one slow call among many is a stray to such a rule, and the median of section 4 takes care of it.
# (The mean does not: look at the table.) And of the first 40 large products the rule said "not
# steady yet", which is an answer, too. Then go on, or say so beside the number.
#
# `gpulab.measure` warms up by this rule before it keeps a sample, and tells how many calls it
# made:

# %%
gpulab.measure(lambda: a @ a, label="product").n_warmup

# %% [markdown]
# ## 4 One number out of many
#
# After the warm-up, samples still differ. Here a program works on batches of texts, and no two
# batches are of the same length. In two of 60 iterations Python is held up for 5 ms inside the
# stopwatch, as by its collector of garbage.

# %%
generator = np.random.default_rng(4)


def one_sample(iteration):
    n = int(np.clip(generator.normal(12 << 20, 1 << 20), 1, len(z)))

    def batch():
        z[:n].exp_()
        time.sleep(5e-3 if iteration in {17, 40} else 0)

    return once_s(batch)


samples_s = np.array([one_sample(iteration) for iteration in range(60)])
format_time(samples_s.min()), format_time(samples_s.max())

# %%
mean_guess = exercises.predict(
    "The mean of the 60 samples is how many times their median?", ..., unit="times"
)
mean_guess

# %%
mean_guess.compare(samples_s.mean() / np.median(samples_s))

# %%
undisturbed_s = np.delete(samples_s, [17, 40])
numbers = {
    "mean": np.mean,
    "median": np.median,
    "standard deviation": np.std,
    "robust spread": stats.robust_spread,
    "minimum": np.min,
}
both = {"all 60": samples_s, "without the two": undisturbed_s}
table = {name: [f(part) for f in numbers.values()] for name, part in both.items()}
pd.DataFrame(table, index=numbers).map(format_time)

# %% [markdown]
# Two strays moved the mean and the standard deviation a lot, the median and the robust spread (the
# median distance to the median, times 1.4826) next to nothing. Disturbances make calls longer,
# never shorter, so the error of the mean has a sign. The minimum is the luckiest call, and falls
# the longer you look.
#
# When is the mean right? When you ask for a **sum**: how long do 60 calls take, strays and all?

# %%
f"60 medians {format_time(60 * np.median(samples_s))}, really {format_time(samples_s.sum())}"

# %% [markdown]
# ### How sure is the median?
#
# Another 60 calls give another median. The **95 % confidence interval** says how far it may be
# off, from one run alone: it is made of two of the samples, and assumes no shape of their
# distribution.

# %%
low_s, high_s = stats.median_interval(samples_s)
[format_time(value_s) for value_s in (low_s, np.median(samples_s), high_s)]

# %% [markdown]
# Does it keep its promise? Take 500 small runs of 20 samples each out of a large one. In how
# many of them does the interval hold the median of the large run?

# %%
holds = exercises.predict("In how many per cent of the small runs?", ..., unit="%")
holds

# %%
many_s = np.array([one_sample(0) for _ in range(400)])
intervals = [stats.median_interval(generator.choice(many_s, 20)) for _ in range(500)]
middle_s = np.median(many_s)
n_held = sum(low_s <= middle_s <= high_s for low_s, high_s in intervals)
holds.compare(100 * n_held / len(intervals))

# %%
rows = {}
for n in (10, 25, 100, 400):
    low_s, high_s = stats.median_interval(many_s[:n])
    rows[n] = {"median": np.median(many_s[:n]), "width of the interval": high_s - low_s}
    rows[n]["robust spread"] = stats.robust_spread(many_s[:n])
pd.DataFrame(rows).T.map(format_time).rename_axis("samples")

# %% [markdown]
# More samples make the *interval* narrower, about half for four times as many. The *spread* stays:
# it belongs to the calls, not to your patience. And the interval knows nothing of what was wrong
# in all samples alike: a naive stopwatch has the narrowest of all.
#
# ### Exercise: one number

# %%
exercises.ask("04.one-number")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = exercises.readings("04.one-number")["duration_s"].median()
### END SOLUTION
exercises.check("04.one-number", answer)

# %% [markdown]
# ## 5 Two humps
#
# The addition once more, on a GPU that is busy with nothing else. Before three of ten calls, by
# chance, other data fill the cache. Where is the median?

# %%
where = exercises.predict(
    "Where is the median?", ..., choices=("at the fast calls", "between", "at the slow calls")
)
where

# %%
n = torch.cuda.get_device_properties().L2_cache_size // 16  # both tensors fill half of the cache
x, y = torch.empty(n, device="cuda"), torch.empty(n, device="cuda")
other = torch.empty(32 << 20, device="cuda")


def disturb(share):
    if generator.random() < share:
        other.sum()


measure = partial(gpulab.measure, lambda: torch.add(x, 1, out=y), cache="hot", n_samples=100)
mixed = measure(setup=partial(disturb, 0.3), label="other data before three of ten calls")
mixed

# %%
centres_s = stats.modes(mixed.samples_s)
[format_time(centre_s) for centre_s in centres_s]

# %%
places_s = {
    "at the fast calls": centres_s[0],
    "between": (centres_s[0] + centres_s[-1]) / 2,
    "at the slow calls": centres_s[-1],
}
where.compare(min(places_s, key=lambda place: abs(places_s[place] - mixed.median_s)))

# %% [markdown]
# A histogram with two humps is called **bimodal**: the work ran in two ways. The median lies in
# the larger hump, the mean in the gap, where there is no call at all. The interval is narrow and
# says nothing of the other hump. `gpulab.stats.modes` finds the humps, and `gpulab.measure` warns.
#
# With seven of ten calls cold instead of three, does the median change a little or much?

# %%
change = exercises.predict("How does the median change?", ..., choices=("a little", "it jumps"))
change

# %%
more = measure(setup=partial(disturb, 0.7), label="other data before seven of ten calls")
format_time(mixed.median_s), format_time(more.median_s)

# %%
width_s = centres_s[-1] - centres_s[0]
change.compare("it jumps" if abs(more.median_s - mixed.median_s) > width_s / 2 else "a little")

# %% [markdown]
# A median is robust against strays, not against a second way to run. Do not average it away: find
# out what differs. The *order* of the samples helps.
#
# ### Exercise: two histograms
#
# Two runs, with the levels of a virtual H200. First their histograms, then the same samples in the
# order taken.

# %%
runs = traces.two_runs()
plots.draw(
    figures.histograms,
    runs,
    title="Two runs, each with two humps",
    alt="Both histograms have two humps of unequal height with an empty gap between them.",
    source="levels of a virtual H200",
    ax_size=(8, 3),
)

# %%
plots.draw(
    figures.iterations,
    runs,
    title="The same samples in the order taken",
    alt="Run a goes up once and stays; run b goes up and down between two levels.",
    source="levels of a virtual H200",
    relative=True,
)

# %%
exercises.ask("04.two-humps")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {"a": ("clock", "two numbers"), "b": ("cache", "two numbers")}
### END SOLUTION
exercises.check("04.two-humps", answer)

# %% [markdown]
# ## What you take along
#
# - The first call pays for context, memory, kernels, libraries, searches and compilers: up to
#   thousands of times the work. Each comes back when its cause does.
# - Warm up with the shapes and types that you time. Not three times or ten: until the data say so.
# - Steady so far is not steady for ever: clocks fall later.
# - Report the median with its interval; the mean is for sums.
# - Two humps are two answers. Look at the order, and find the cause.
#
# Next: `05_fixed_clocks.ipynb`. The clock that fell.

# %%
exercises.progress()
