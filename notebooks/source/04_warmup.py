# %% [markdown]
# # 04 Warm-up
#
# How long does a small step of a program take?

# %%
import random
import time
from statistics import mean, median

import pandas as pd
import torch
from IPython.display import display

import gpulab
from gpulab import exercises, plots
from gpulab.exercises import lesson_04 as lab

gpulab.use("auto")  # your GPU, or a virtual one

# %% [markdown]
# The step makes a matrix, multiplies it by itself, and waits for the sum. It runs ten times: draw
# how long each of the ten steps takes.


# %%
def step():
    m = torch.ones(1024, 1024, device="cuda")
    return (m @ m).sum().item()


ten_steps = exercises.draw(
    "How long does each of the ten steps take?", ..., name="04.first", axes=lab.TEN_CALLS
)
ten_steps

# %%
step_s = []
for _ in range(10):
    start = time.perf_counter()
    step()
    step_s.append(time.perf_counter() - start)
ten_steps.compare(step_s)

# %% [markdown]
# ## Is the mean a time?
#
# Many programs report the mean of ten calls.

# %%
print(f"mean {mean(step_s) * 1e3:.3f} ms")
print(" ".join(f"{each * 1e3:.3f}" for each in step_s), "ms")

# %% [markdown]
# No step took the mean. Keep this check: look at each call, in the order made, before you make one
# number of many. (Is no step slow? Then this kernel had used the GPU before. Restart the kernel.)
#
# ## Is it over now?
#
# The matmul has run ten times. Now change one thing: the type of the numbers.


# %%
def seconds(fn):
    torch.cuda.synchronize()
    start = time.perf_counter()
    fn()
    torch.cuda.synchronize()
    return time.perf_counter() - start


h = torch.ones(1024, 1024, device="cuda").half()
exercises.predict("04.half")

# %%
half_s = [seconds(lambda: h @ h) for _ in range(3)]
print(" then ".join(f"{each * 1e3:.3f} ms" for each in half_s))
exercises.compare("04.half", "slow" if half_s[0] > 3 * half_s[1] else "fast")

# %% [markdown]
# Now another operation, and after that another size:

# %%
x = torch.ones(1 << 20, device="cuda")
works = {"exp": x.exp_, "sin": x.sin_, "exp of half as many": x[: 1 << 19].exp_}
three_us = {name: [1e6 * seconds(work) for _ in range(3)] for name, work in works.items()}
pd.DataFrame(three_us, index=["first (µs)", "second", "third"]).T.round()

# %% [markdown]
# And memory: a tensor of 64 MB, a second beside it, and a third after you have deleted the first.

# %%
kept = []
exercises.predict("04.memory")

# %%
memory_s = {}
for name in ("first", "second", "third"):
    if name == "third":
        del kept[0]
    memory_s[name] = seconds(lambda: kept.append(torch.empty(1 << 24, device="cuda")))
    print(f"{name:6} {memory_s[name] * 1e6:5.0f} µs")
exercises.compare("04.memory", min(memory_s, key=memory_s.get))

# %% [markdown]
# ## Exercise: what was paid?
#
# Five things are made once and then kept:
#
# - `context`: the driver prepares the GPU for this process.
# - `library`: a library such as cuBLAS prepares itself, and its kernels for one type.
# - `kernel`: the GPU loads the code of one kernel.
# - `allocation`: PyTorch asks the driver for memory.
# - `search`: a library tries several algorithms for a new shape.

# %% tags=["exercise"]
exercises.ask("04.name-the-cost")
### BEGIN SOLUTION
exercises.check(
    "04.name-the-cost",
    {"a": "context", "b": "kernel", "c": "library", "d": "allocation", "e": "search"},
)
### END SOLUTION

# %% [markdown]
# Only the first of two equal calls is slow. Each cost comes back with what is new: a process, a
# type, an operation, more memory, a shape. So a small stand-in does not warm up the work that you
# time.
#
# *Recorded* on an H200: the context took 334 ms, the first matmul 106 ms, the first in half
# precision 76 ms, the first convolution 251 ms. A tensor of 64 MB took 77 µs from the driver, and
# 10 µs from PyTorch's cache, in which deleted memory stays.
#
# ## How many calls are enough?
#
# Some tools warm up three times, some ten times. Here a program chooses one of eight operations
# in each call, as data augmentation does. None of the eight has run before.

# %%
z = torch.ones(1 << 20, device="cuda")
eight = [z.tan_, z.cos_, z.tanh_, z.sigmoid_, z.atan_, z.ceil_, z.erf_, z.floor_]
chosen = random.Random(6).choices(eight, k=60)
exercises.predict("04.loaded")

# %%
random_s = [seconds(operation) for operation in chosen]
slow = [call for call, each in enumerate(random_s, start=1) if each > 5 * median(random_s)]
exercises.compare("04.loaded", max(slow, default=0))

# %%
calls = pd.DataFrame({"call": range(1, 61), "duration_s": random_s})
title = f"Call {slow[-1]} of 60 is still slow" if slow else "No call is slow"
plots.scatter(calls, log="y", title=title)

# %% [markdown]
# What does the mean say if you leave out the first 3, 10 or 40 calls?

# %%
means_us = {f"without the first {n}": 1e6 * mean(random_s[n:]) for n in (0, 3, 10, 40)}
pd.Series(means_us, name="mean (µs)").round(1).to_frame()

# %% [markdown]
# Each slow call that you leave in moves the mean. In a real program such first uses hide in rare
# branches: a last batch that is smaller, the evaluation at the end of an epoch.
#
# ## Exercise: where do you begin?
#
# Six loops, each relative to its own end. A triangle is a call far above the picture.

# %% tags=["exercise"]
display(lab.draw_loops(named=False))
exercises.ask("04.where-to-begin")
### BEGIN SOLUTION
exercises.check(
    "04.where-to-begin",
    {
        "a": "after 1",
        "b": "after 5",
        "c": "after 30",
        "d": "after 5",
        "e": "after 10",
        "f": "never",
    },
)
### END SOLUTION

# %% [markdown]
# No fixed number fits all six. **Warm up with the types and shapes that you time, until the times
# are steady.** Set a limit, because some work never is.
#
# ## Your own benchmark
#
# Your `benchmark(fn)` from lesson 03 counts its first calls like all others. Let it call `fn`
# until the time is steady, and only then take the samples.

# %% tags=["exercise"]
exercises.continue_from("04.benchmark")  # puts your last version here: run it, then change it


### BEGIN SOLUTION
def benchmark(fn, n_samples=11):
    last_s = []
    for _ in range(100):  # warm up until three calls in a row agree
        torch.cuda.synchronize()
        start = time.perf_counter()
        fn()
        torch.cuda.synchronize()
        last_s = [*last_s[-2:], time.perf_counter() - start]
        if last_s[2:] and max(last_s) < 1.05 * min(last_s):
            break
    starts = [torch.cuda.Event(enable_timing=True) for _ in range(n_samples)]
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(n_samples)]
    for start, end in zip(starts, ends, strict=True):
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    times_ms = [start.elapsed_time(end) for start, end in zip(starts, ends, strict=True)]
    return median(times_ms) / 1e3


exercises.check("04.benchmark", benchmark)
### END SOLUTION

# %% [markdown]
# ## What you take with you
#
# - A first call pays for what is made once. Each cost comes back with something new.
# - Warm up with the real types and shapes: not three or ten times, but until it is steady.
# - Look at each call before you compute a mean.
#
# Your benchmark begins when the times are steady. Is that enough to compare two programs? Next:
# `05_fixed_clocks.ipynb`.

# %% [markdown]
# # Going further
#
# ## All costs side by side
#
# Once more from the start: on a real GPU in a new process, on a new virtual GPU otherwise. Each
# row appears when its two calls are done.

# %%
import numpy as np

from gpulab import stats
from gpulab.core.units import format_time

lab.draw_first_uses()

# %% [markdown]
# ## A kernel
#
# PyTorch has thousands of kernels. Two that have not run in this notebook:

# %%
exercises.predict("04.sine")

# %%
log_s = [seconds(x.log1p_) for _ in range(2)]
sinh_s = [seconds(x.sinh_) for _ in range(2)]
print("log1p", *map(format_time, log_s), "sinh", *map(format_time, sinh_s))
exercises.compare("04.sine", "slow" if sinh_s[0] > 3 * sinh_s[1] else "fast")

# %% [markdown]
# PyTorch loads kernels **lazily**: each one when you launch it for the first time.
# (`CUDA_MODULE_LOADING=EAGER` loads all of them with the context, which then takes longer.)

# %% [markdown]
# ## A search for the fastest algorithm
#
# There are several ways to compute a convolution. Which is the fastest depends on the shapes. Here
# is a small search with two ways: it tries both at each shape that it has not seen.

# %%
filters = torch.empty(64, 64, 3, 3, device="cuda")


def direct(images):
    return torch.nn.functional.conv2d(images, filters, padding=1)


def unfolded(images):
    columns = torch.nn.functional.unfold(images, 3, padding=1)
    return (filters.view(64, -1) @ columns).view(images.shape)


unfolded(torch.empty(16, 64, 56, 56, device="cuda")).shape

# %%
chosen_way = {}


def searched(images):
    if images.shape not in chosen_way:
        ways = (direct, unfolded)
        chosen_way[images.shape] = min(ways, key=lambda way: seconds(lambda: way(images)))
    return chosen_way[images.shape](images)


sizes = (56, 56, 64, 64, 56, 64)
inputs = [torch.empty(16, 64, size, size, device="cuda") for size in sizes]
print(*(format_time(seconds(lambda way=way: way(inputs[0]))) for way in (direct, unfolded)))

# %%
exercises.predict("04.slow")

# %%
searched_s = [seconds(lambda images=images: searched(images)) for images in inputs]
fastest_s = pd.Series(searched_s).groupby(list(sizes)).min()  # of each size
slow_calls = [n for n, s in enumerate(searched_s, start=1) if s > 3 * fastest_s[sizes[n - 1]]]
print("slow calls:", slow_calls, "of", *map(format_time, searched_s))
outcomes = {1: "the first", 2: "the first of each size"}
exercises.compare("04.slow", outcomes.get(len(slow_calls), "each after another size"))

# %% [markdown]
# `torch.backends.cudnn.benchmark = True` makes cuDNN search like that. It pays off if your shapes
# stay the same, and costs time if they keep changing. Triton's autotuner works the same way. The
# virtual GPU has one algorithm only, so look at the recorded columns:

# %%
torch.backends.cudnn.benchmark = True
new_size = torch.empty(16, 64, 48, 48, device="cuda")
benchmark_s = [seconds(lambda: direct(new_size)) for _ in range(2)]
torch.backends.cudnn.benchmark = False
exercises.claim("04.cudnn-searches", here=benchmark_s[0] / benchmark_s[1])

# %% [markdown]
# ## Compilers
#
# `torch.compile` writes a kernel for your function at the first call, and again when an input does
# not fit the first result. So a compiled function needs its warm-up more than any other, and one
# for each shape. On the virtual GPU it does nothing, and warns: look at the recorded columns.


# %%
import warnings

warnings.filterwarnings("ignore", message="torch.compile did nothing")


def polynomial(values):
    return values * values + 2 * values + 1


polynomial(x)  # so that the kernels of PyTorch itself are loaded
compiled = torch.compile(polynomial)
try:
    slower = seconds(lambda: compiled(x)) / seconds(lambda: compiled(x))  # first over second
except RuntimeError as error:  # there is no compiler on this machine
    print(str(error)[:200])
    slower = None
exercises.claim("04.compile-first", here=slower)

# %% [markdown]
# Two older compilers cost a first call, too:
#
# - **The JIT fuser.** A function from `torch.jit.script` is only watched in its first calls. Then
#   PyTorch joins its operators into one kernel and compiles it. So the *second* or third call is
#   slow, and one call is no warm-up.
# - **PTX to SASS.** A program contains machine code (*SASS*) for some kinds of GPU, and a text for
#   all others (*PTX*). If the machine code for your GPU is missing, the driver translates the PTX
#   when it loads the kernel. By CUDA's documentation it keeps the result on disk
#   (`~/.nv/ComputeCache`). So you pay once after each installation and each new driver, and not in
#   each process.
#
# ## Write the rule
#
# The six loops again, with their names. Write the rule that finds where each of them is steady.

# %%
lab.draw_loops(named=True)

# %%
exercises.ask("04.steady-state")

# %% tags=["exercise"]
first_steady = ...


### BEGIN SOLUTION
def first_steady(samples_s):
    tail = np.array(samples_s[len(samples_s) // 2 :])
    level_s = np.median(tail)
    earlier, later = np.array_split(tail, 2)
    if abs(np.median(later) - np.median(earlier)) > 0.02 * level_s:
        return len(samples_s)
    inside = np.abs(np.array(samples_s) - level_s) < 0.03 * level_s
    rows = inside[:-2] & inside[1:-1] & inside[2:]
    return int(np.argmax(rows)) if rows.any() else len(samples_s)


### END SOLUTION
exercises.check("04.steady-state", first_steady)

# %% [markdown]
# `gpulab.stats.steady_from` is such a rule. It takes the level and the noise from the second half,
# and it forgives a tenth of outliers. If a loop ends too early, it returns the number of its
# calls: "not steady yet". That is an answer too.

# %%
print("ten steps, steady from", stats.steady_from(step_s))
print("one of eight, steady from", stats.steady_from(random_s))

# %% [markdown]
# For the eight operations the rule may find no start at all (60 is the number of calls), because
# they do not take the same time. And a first use may come *after* a start: the rule takes one slow
# call among many for an outlier. `gpulab.measure` warms up by this rule, and reports how many
# calls it made:

# %%
gpulab.measure(lambda: h @ h, label="matmul").n_warmup

# %% [markdown]
# ## One number out of many
#
# After the warm-up the samples still differ. Here a program works on batches of texts, and each
# batch has another length. (Its work is a kernel that counts clock cycles.) In two of the 60
# calls Python is also held up for some milliseconds, as its garbage collector may do.

# %%
generator = np.random.default_rng(4)


def one_sample(n_cycles, pause_s=0.0):
    return seconds(lambda: (torch.cuda._sleep(int(n_cycles)), time.sleep(pause_s)))


lengths = generator.normal(60_000, 6_000, 60)
pauses_s = np.where(np.isin(np.arange(60), (17, 40)), 5e-3, 0)
samples_s = np.array([one_sample(*sample) for sample in zip(lengths, pauses_s, strict=True)])
print("from", format_time(samples_s.min()), "to", format_time(samples_s.max()))

# %%
exercises.predict("04.mean")

# %%
numbers = {"mean": np.mean, "median": np.median, "minimum": np.min}
numbers |= {"standard deviation": np.std, "robust spread": stats.robust_spread}
both = {"all 60": samples_s, "without the two": np.delete(samples_s, (17, 40))}
table = {name: [number(part) for number in numbers.values()] for name, part in both.items()}
print(pd.DataFrame(table, index=list(numbers)).map(format_time))
exercises.compare("04.mean", samples_s.mean() / np.median(samples_s))

# %% [markdown]
# Two outliers moved the mean and the standard deviation a lot. The median and the robust spread
# (the median distance from the median, times 1.4826) hardly moved. Most disturbances make a call
# longer, so the mean is usually too high. Some make it shorter: a clock that is high for a moment,
# or data that happen to be in the cache. The minimum is the luckiest call, and it falls the longer
# you look.
#
# When is the mean right? When you ask for a *sum*: how long do all 60 calls take together?

# %%
print("60 medians", format_time(60 * np.median(samples_s)))
print("60 means  ", format_time(60 * samples_s.mean()))
print("the sum   ", format_time(samples_s.sum()))

# %% tags=["exercise"]
exercises.ask("04.one-number")
### BEGIN SOLUTION
exercises.check("04.one-number", exercises.readings("04.one-number")["duration_s"].median())
### END SOLUTION

# %% [markdown]
# ## How sure is the median?
#
# Another 60 calls have another median. The **95 % confidence interval** says how far off yours may
# be. It consists of two of the samples and assumes no shape of their distribution. It does assume
# that the samples are *independent*, and from one distribution. Samples that drift are not.

# %%
low_s, high_s = stats.median_interval(samples_s)
print(
    "median",
    format_time(np.median(samples_s)),
    "interval",
    format_time(low_s),
    format_time(high_s),
)

# %% [markdown]
# More samples make the interval narrower. They do not change the *spread*, which belongs to the
# calls. And the interval knows nothing of an error that is in all samples: a stopwatch without a
# wait has the narrowest interval of all.
#
# ### Does the interval keep its promise?
#
# 95 % of all intervals should contain the true median. Take one long run of batches whose lengths
# are independent. Cut it into groups of 20 calls in the order taken. In what percentage of the
# groups does the interval contain the median of the whole run?

# %%
exercises.predict("04.holds")

# %%
lengths = np.random.default_rng(0).normal(60_000, 6_000, 1000)
long_s = np.array([one_sample(n) for n in lengths])


def percent_held(run_s):
    intervals = [stats.median_interval(group) for group in np.split(run_s, len(run_s) // 20)]
    middle_s = np.median(run_s)
    return 100 * np.mean([low_s <= middle_s <= high_s for low_s, high_s in intervals])


exercises.compare("04.holds", percent_held(long_s))

# %% [markdown]
# Now the length of a batch wanders: each is close to the one before. The lengths are the same
# ones, only sorted into waves. So the samples are no longer independent.

# %%
exercises.predict("04.wander")

# %%
ranks = np.argsort(np.argsort(np.sin(np.arange(1000) / 40)))
wandering_s = np.array([one_sample(n) for n in np.sort(lengths)[ranks]])
exercises.compare("04.wander", percent_held(wandering_s))

# %%
exercises.claim("04.intervals-need-independence", here=percent_held(wandering_s))

# %% [markdown]
# The arithmetic of the interval is right. Its promise needs independent samples, and no formula
# can see from 20 samples that they are not. So look at the samples in the order taken. (Drawing
# the 20 at random from the run would hide the problem: it makes them independent.)
#
# How does the interval change with the number of samples?

# %%
rows = {}
for n in (10, 25, 100, 400):
    low_s, high_s = stats.median_interval(long_s[:n])
    rows[n] = {"median": np.median(long_s[:n]), "width of the interval": high_s - low_s}
    rows[n]["robust spread"] = stats.robust_spread(long_s[:n])
pd.DataFrame(rows).T.map(format_time).rename_axis("samples")

# %% [markdown]
# ## Two humps
#
# An addition, on a GPU that does nothing else. Before three of ten calls, chosen at random, other
# data fill the cache. Where is the median?

# %%
exercises.predict("04.where")

# %%
n = torch.cuda.get_device_properties().L2_cache_size // 16  # both tensors fill half of the cache
source, target = torch.empty(n, device="cuda"), torch.empty(n, device="cuda")
other = torch.empty(32 << 20, device="cuda")


def measured(share):
    def disturb():
        if generator.random() < share:
            other.sum()

    add = lambda: torch.add(source, 1, out=target)  # noqa: E731
    return gpulab.measure(add, setup=disturb, cache="hot", n_samples=100)


mixed = measured(0.3)
mixed

# %%
fast_s, slow_s = np.quantile(mixed.samples_s, [0.05, 0.95])
places_s = {"at the fast calls": fast_s, "at the slow calls": slow_s}
places_s["between"] = (fast_s + slow_s) / 2
nearest = min(places_s, key=lambda place: abs(places_s[place] - mixed.median_s))
exercises.compare("04.where", nearest)

# %% [markdown]
# A histogram with two humps is called **bimodal**: the work ran in two ways. The median is in the
# larger hump. The mean is in the gap, where no call is. The interval is narrow and says nothing of
# the other hump. `gpulab.stats.modes` finds the humps, and `gpulab.measure` reports them.
#
# Now seven of ten calls are cold, not three.

# %%
exercises.predict("04.change")

# %%
more = measured(0.7)
print(format_time(mixed.median_s), format_time(more.median_s))
is_close = np.isclose(more.median_s, mixed.median_s, rtol=0.1)
exercises.compare("04.change", "by less than a tenth" if is_close else "by more than a tenth")

# %% [markdown]
# A median resists outliers, but not a second way to run. Do not average it away. Find out what
# differs: the *order* of the samples helps.
#
# ### Exercise: two histograms
#
# Two runs, with the levels of a virtual H200. First their histograms, then the same samples in the
# order taken.

# %%
display(*lab.draw_runs())

# %% tags=["exercise"]
exercises.ask("04.two-humps")
### BEGIN SOLUTION
exercises.check("04.two-humps", {"a": ("clock", "two numbers"), "b": ("cache", "two numbers")})
### END SOLUTION

# %% [markdown]
# ## The context alone
#
# The function waits twice, on a GPU that nobody has asked anything. (On a real GPU it runs in a
# new process, which needs some seconds to start. They are not in the number.)


# %%
def two_waits():
    waits_s = []
    for _ in range(2):
        start = time.perf_counter()
        torch.cuda.synchronize()
        waits_s.append(time.perf_counter() - start)
    return waits_s


context_s = lab.in_a_new_process(two_waits)
print(f"first {1e3 * context_s[0]:.0f} ms, second {1e6 * context_s[1]:.1f} µs")

# %% [markdown]
# The first call makes the context, although there is nothing to wait for. How long that takes
# depends on the driver and on what it has loaded: *recorded* on one H200 in two processes were
# 334 ms and 113 ms.

# %%
exercises.progress()
