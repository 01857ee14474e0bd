# %% [markdown]
# # 04 Warm-up
#
# Why is the first run so slow, and when may I start?
#
# Each lesson so far ran its work a few times before it took a number. Now you find out what those
# first calls pay for, how to see in the data when they are over, and how to make one number out of
# the calls that follow.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 The first call | how slow it is, and that each process pays again | 6 |
# | 2 What it pays for | the first-use costs, one at a time | 14 |
# | 3 When it is over | to find the steady state in the data | 13 |
# | 4 One number out of many | mean, median, spread, and how sure the median is | 8 |
# | 5 Your own benchmark | `benchmark(fn)` learns to warm up | 4 |
# | *Going further* | algorithm search, compilers, the interval's promise, two humps | extra, 40 |

# %%
import statistics
import time

import numpy as np
import pandas as pd
import torch
from IPython.display import display

import gpulab
from gpulab import exercises, stats
from gpulab.core.units import format_time
from gpulab.exercises import lesson_04 as lab

GPU = "auto"  # "A100" chooses a virtual A100
gpulab.use(GPU, max_value_bytes=16 << 20)  # of large tensors only the times matter

# %% [markdown]
# ## 1 The first call
#
# The function below makes a matrix, multiplies it by itself and waits for the sum. It does that
# ten times and times each call. It runs where nobody has used the GPU before. On a real GPU that
# is a new process, which needs some seconds to start. (They are not in the numbers.) A virtual GPU
# is new when it is made.
#
# Draw the ten times before you measure them: each call gets a point.

# %%
first = exercises.draw(
    "How long does each of the ten calls take?", ..., name="04.first", axes=lab.TEN_CALLS
)
first


# %%
def ten_matmuls():
    times_s = []
    for _ in range(10):
        start = time.perf_counter()
        a = torch.ones(1024, 1024, device="cuda")
        (a @ a).sum().item()
        times_s.append(time.perf_counter() - start)
    return times_s


matmuls_s = lab.in_a_new_process(ten_matmuls)
first.compare(matmuls_s)

# %% [markdown]
# The line of Python is the same, and so are the data. The first call also does things that are
# done *once in a process*, and the second call finds them done. A new process pays again. So the
# mean over ten calls is not a time of the work:

# %%
print("mean", format_time(np.mean(matmuls_s)), "and last call", format_time(matmuls_s[-1]))
exercises.claim("04.first-call", here=matmuls_s[0] / matmuls_s[-1])

# %% [markdown]
# ## 2 What it pays for
#
# Now one cost at a time, in this kernel. **Each shows once in a process.** If you run the cells a
# second time on a real GPU, nothing is slow any more: restart the kernel to see the costs again.
# On the virtual GPU the next cell makes a new GPU, so there they come back.

# %%
gpulab.use(GPU, max_value_bytes=16 << 20)


def once_s(work):
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


gpulab.device.current()

# %% [markdown]
# ### The context
#
# Nobody has asked anything of this GPU yet. The very first call waits, although there is nothing
# to wait for.

# %%
exercises.predict("04.context")

# %%
context_s = []
for _ in range(2):
    start = time.perf_counter()
    torch.cuda.synchronize()
    context_s.append(time.perf_counter() - start)
exercises.compare("04.context", context_s[0])

# %%
exercises.claim("04.context", here=context_s[0])

# %% [markdown]
# The first call makes the **context**: the driver prepares the GPU for this process. (On a real
# GPU you may see only a part of it, because choosing the GPU has asked the driver for its name.)
#
# ### Memory
#
# Three tensors of the same size: a first, a second beside it, and a third after you have deleted
# the first. Which of the three is the fastest to make?

# %%
exercises.predict("04.memory")

# %%
kept, memory_s = [], {}
for name in ("first", "second", "third"):
    if name == "third":
        del kept[0]
    memory_s[name] = once_s(lambda: kept.append(torch.empty(1 << 24, device="cuda")))
display(pd.Series(memory_s).map(format_time).rename("time").to_frame())
exercises.compare("04.memory", min(memory_s, key=memory_s.get))

# %% [markdown]
# PyTorch asks the driver for the first and for the second. It does not give deleted memory back:
# it keeps it in a **cache**, and the third tensor comes from there. *Recorded* on an H200: 914 µs,
# 77 µs, 10 µs. If your tensors keep growing, PyTorch asks the driver again and again.
#
# ### One kernel
#
# The memory is there now. You take the exponential of a million numbers, twice, and then the sine,
# twice. Both work in place.

# %%
exercises.predict("04.sine")

# %%
x = kept[0][: 1 << 20]
works = {"exp": x.exp_, "sin": x.sin_, "exp of half as many": x[: 1 << 19].exp_}
kernels_s = {name: [once_s(work) for _ in range(2)] for name, work in works.items()}
display(pd.DataFrame(kernels_s, index=["first", "second"]).T.map(format_time))
exercises.compare("04.sine", "slow" if kernels_s["sin"][0] > 3 * kernels_s["sin"][1] else "fast")

# %%
exercises.claim("04.a-new-kernel", here=kernels_s["sin"][0] / kernels_s["sin"][1])

# %% [markdown]
# PyTorch has thousands of kernels and loads them **lazily**: each one when you launch it for the
# first time. (`CUDA_MODULE_LOADING=EAGER` loads all of them with the context, which then takes
# longer.) The last row uses a kernel that is loaded, so another size is fast at once.
#
# ### A library
#
# A matmul uses the library cuBLAS. It needs a **handle** with a workspace, and it chooses one of
# hundreds of kernels. First in single precision, then in half.

# %%
exercises.predict("04.half")

# %%
a = torch.empty(1024, 1024, device="cuda")
h = torch.empty(1024, 1024, device="cuda", dtype=torch.half)
library_s = {
    "matmul, float32": [once_s(lambda: a @ a) for _ in range(2)],
    "matmul, float16": [once_s(lambda: h @ h) for _ in range(2)],
}
display(pd.DataFrame(library_s, index=["first", "second"]).T.map(format_time))
first_s, second_s = library_s["matmul, float16"]
exercises.compare("04.half", "slow" if first_s > 3 * second_s else "fast")

# %%
exercises.claim("04.another-type", here=first_s / second_s)

# %% [markdown]
# Another type of number needs other kernels. So warm up **with the shapes and types that you will
# time**, not with a small stand-in. *Recorded* on an H200: the first matmul took 106 ms in float32
# and then 76 ms in float16, and the first convolution 251 ms.
#
# Two more costs come with certain programs. A library may **search**: it tries several algorithms
# at the first call of each new shape and keeps the fastest. And `torch.compile` writes new kernels
# at the first call. Both are in *Going further*.
#
# ### Exercise: name the cost

# %%
exercises.ask("04.name-the-cost")

# %% tags=["exercise"]
answer = {"a": ..., "b": ..., "c": ..., "d": ..., "e": ...}
### BEGIN SOLUTION
answer = {"a": "context", "b": "kernel", "c": "library", "d": "allocation", "e": "search"}
### END SOLUTION
exercises.check("04.name-the-cost", answer)

# %% [markdown]
# If you are stuck, `exercises.hint("04.name-the-cost")` helps.
#
# ## 3 When it is over
#
# Some tools warm up three times, some ten times. How many times is enough?
#
# ### A cost that comes late
#
# In each iteration a program chooses one of eight operations at random, as data augmentation does.
# None of the eight has run before. After how many iterations is everything loaded?

# %%
exercises.predict("04.loaded")

# %%
z = torch.empty(1 << 24, device="cuda")
operations = [z.tan_, z.cos_, z.tanh_, z.sigmoid_, z.atan_, z.ceil_, z.erf_, z.floor_]
order = np.random.default_rng(9).integers(8, size=60)
random_s = [once_s(operations[number]) for number in order]
display(lab.draw_iterations({"one of eight operations": random_s}))
slow_calls = np.flatnonzero(random_s > 1.5 * np.median(random_s))
exercises.compare("04.loaded", slow_calls.max(initial=0) + 1)

# %% [markdown]
# Three calls are not enough here, and ten are not either. In a real program such first uses hide
# in rare branches: a last batch that is smaller, the evaluation at the end of an epoch. (If no
# call is slow, this kernel had used all eight before.)
#
# ### A level that moves
#
# Now a large matmul in half precision, for some tenths of a second. The first call pays for what
# is new. When is it steady?

# %%
exercises.predict("04.steady")

# %%
large = torch.randn(8192, 8192, device="cuda", dtype=torch.half)
heat_s, until_s, at_most = [], 0.4, 300
while sum(heat_s) < until_s and len(heat_s) < at_most:
    heat_s.append(once_s(lambda: large @ large))
exercises.compare("04.steady", stats.steady_from(heat_s))

# %%
display(lab.draw_iterations({"8192 x 8192 matmul, float16": heat_s[1:]}))
exercises.claim("04.the-level-moves", here=np.median(heat_s[-20:]) / np.median(heat_s[1:6]))

# %% [markdown]
# No first-use cost lasts that long. The work itself became slower: the GPU reached its power limit
# and lowered its clock. *Recorded* on an H200: from 1.43 ms to 1.67 ms within 0.1 s. After only
# ten calls you measure a falling clock. Lesson 05 is about that.
#
# ### Exercise: find the steady state
#
# These six loops were made for this exercise. Where would you start in each of them?

# %%
lab.draw_iterations(lab.traces.to_frame(), source="made for this exercise")

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
# ### Let gpulab look
#
# `gpulab.stats.steady_from` is such a rule. It takes the level and the noise from the second half,
# and it forgives a tenth of outliers. How far is the mean of the remaining calls from the level at
# the end, if you start at 0, at 3, at 10, or where the rule says?

# %%
loops = {"matmul and sum": matmuls_s, "one of eight": random_s, "large matmul": heat_s}
rows = {}
for name, times_s in loops.items():
    found = stats.steady_from(times_s)
    level_s = statistics.median(times_s[len(times_s) // 2 :])
    starts = {"from 0": 0, "from 3": 3, "from 10": 10, "from the rule's": found}
    means_s = {key: np.mean(times_s[n:]) if times_s[n:] else np.nan for key, n in starts.items()}
    rows[name] = {key: f"{mean_s / level_s - 1:+.1%}" for key, mean_s in means_s.items()}
    rows[name]["the rule starts at"] = found
pd.DataFrame(rows).T.replace("+nan%", "nothing left")

# %% [markdown]
# Some first uses among the eight operations may come *after* the start that the rule finds: it
# takes one slow call among many for an outlier, and the median of section 4 ignores it. If a loop
# ends too early, the rule returns the number of its calls: "not steady yet". That is an answer
# too. Go on, or say so beside the number.
#
# `gpulab.measure` warms up by this rule, and reports how many calls it made:

# %%
gpulab.measure(lambda: a @ a, label="matmul").n_warmup

# %% [markdown]
# ## 4 One number out of many
#
# After the warm-up the samples still differ. Here a program works on batches of texts, and each
# batch has another length. (Its work is a kernel that counts clock cycles.) In two of the 60
# calls Python is also held up for some milliseconds, as its garbage collector may do.

# %%
generator = np.random.default_rng(4)


def one_sample(n_cycles, pause_s=0.0):
    return once_s(lambda: (torch.cuda._sleep(int(n_cycles)), time.sleep(pause_s)))


sizes = generator.normal(60_000, 6_000, 60)
pauses_s = np.where(np.isin(np.arange(60), (17, 40)), 5e-3, 0)
samples_s = np.array([one_sample(*sample) for sample in zip(sizes, pauses_s, strict=True)])
format_time(samples_s.min()), format_time(samples_s.max())

# %%
exercises.predict("04.mean")

# %%
numbers = {"mean": np.mean, "median": np.median, "minimum": np.min}
numbers |= {"standard deviation": np.std, "robust spread": stats.robust_spread}
both = {"all 60": samples_s, "without the two": np.delete(samples_s, (17, 40))}
table = {name: [number(part) for number in numbers.values()] for name, part in both.items()}
display(pd.DataFrame(table, index=numbers).map(format_time))
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

# %% [markdown]
# ### How sure is the median?
#
# Another 60 calls have another median. The **95 % confidence interval** says how far off yours may
# be. It consists of two of the samples and assumes no shape of their distribution. It does assume
# that the samples are *independent*, and from one distribution. Samples that drift are not.

# %%
low_s, high_s = stats.median_interval(samples_s)
[format_time(value_s) for value_s in (low_s, np.median(samples_s), high_s)]

# %% [markdown]
# More samples make the interval narrower. They do not change the *spread*, which belongs to the
# calls. And the interval knows nothing of an error that is in all samples: a stopwatch without a
# wait has the narrowest interval of all.
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
# ## 5 Your own benchmark
#
# This is `benchmark(fn)` from lesson 03:


# %%
def benchmark(fn, n_samples=11):
    starts = [torch.cuda.Event(enable_timing=True) for _ in range(n_samples)]
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(n_samples)]
    for start, end in zip(starts, ends, strict=True):
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    times_ms = [start.elapsed_time(end) for start, end in zip(starts, ends, strict=True)]
    return statistics.median(times_ms) / 1e3


exercises.ask("04.benchmark")

# %% tags=["exercise"]
benchmark = ...


### BEGIN SOLUTION
def benchmark(fn, n_samples=11):
    last_s = []
    for _ in range(100):  # warm up until three calls in a row agree
        last_s = [*last_s[-2:], once_s(fn)]
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
    return statistics.median(times_ms) / 1e3


### END SOLUTION
exercises.check("04.benchmark", benchmark)

# %% [markdown]
# ## What you take with you
#
# - The first call pays for context, memory, kernels, libraries, searches and compilers. Each cost
#   comes back when its cause does.
# - Warm up with the shapes and types that you time. Do not count to three or to ten: warm up until
#   the data are steady.
# - A level that is steady now may move later, because the clock falls.
# - Report the median with its interval. The interval assumes independent samples. The mean is for
#   sums.
#
# Next: `05_fixed_clocks.ipynb`. Why the clock falls.

# %% [markdown]
# # Going further
#
# ## All costs side by side
#
# Once more from the start: on a real GPU in a new process, on a new virtual GPU otherwise. Each
# row appears when its two calls are done.

# %%
lab.draw_first_uses()

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
chosen = {}


def searched(images):
    if images.shape not in chosen:
        ways = (direct, unfolded)
        chosen[images.shape] = min(ways, key=lambda way: once_s(lambda: way(images)))
    return chosen[images.shape](images)


sizes = (56, 56, 64, 64, 56, 64)
inputs = [torch.empty(16, 64, size, size, device="cuda") for size in sizes]
[format_time(once_s(lambda way=way: way(inputs[0]))) for way in (direct, unfolded)]

# %%
exercises.predict("04.slow")

# %%
searched_s = [once_s(lambda images=images: searched(images)) for images in inputs]
display(pd.DataFrame({"pixels": sizes, "time": map(format_time, searched_s)}))
n_slow = int((np.array(searched_s) > 3 * np.min(searched_s)).sum())
outcomes = {1: "the first", 2: "the first of each size"}
exercises.compare("04.slow", outcomes.get(n_slow, "each after another size"))

# %% [markdown]
# `torch.backends.cudnn.benchmark = True` makes cuDNN search like that. It pays off if your shapes
# stay the same, and costs time if they keep changing. Triton's autotuner works the same way. The
# virtual GPU has one algorithm only, so look at the recorded column:

# %%
torch.backends.cudnn.benchmark = True
new_size = torch.empty(16, 64, 48, 48, device="cuda")
benchmark_s = [once_s(lambda: direct(new_size)) for _ in range(2)]
torch.backends.cudnn.benchmark = False
exercises.claim("04.cudnn-searches", here=benchmark_s[0] / benchmark_s[1])

# %% [markdown]
# ## A compiler
#
# `torch.compile` writes a kernel for your function at the first call, and again when an input does
# not fit the first result. On the virtual GPU it does nothing, and warns. So a compiled function
# needs its warm-up more than any other, and one for each shape.


# %%
import warnings  # noqa: E402  # only here

warnings.filterwarnings("ignore", message="torch.compile did nothing")


def polynomial(values):
    return values * values + 2 * values + 1


polynomial(x)  # so that the kernels of PyTorch itself are loaded
compiled = torch.compile(polynomial)
try:
    slower = once_s(lambda: compiled(x)) / once_s(lambda: compiled(x))  # first over second
except RuntimeError as error:  # there is no compiler on this machine
    print(str(error)[:200])
    slower = None
exercises.claim("04.compile-first", here=slower)

# %% [markdown]
# ## Does the interval keep its promise?
#
# 95 % of all intervals should contain the true median. Take one long run of batches whose lengths
# are independent. Cut it into groups of 20 calls in the order taken. In how many percent of the
# groups does the interval contain the median of the whole run?

# %%
exercises.predict("04.holds")

# %%
sizes = np.random.default_rng(0).normal(60_000, 6_000, 1000)
long_s = np.array([one_sample(n) for n in sizes])


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
wandering_s = np.array([one_sample(n) for n in np.sort(sizes)[ranks]])
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
exercises.compare(
    "04.where", min(places_s, key=lambda place: abs(places_s[place] - mixed.median_s))
)

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
runs = lab.traces.two_runs()
display(lab.draw_histograms(runs, source="levels of a virtual H200"))
lab.draw_iterations(runs, source="levels of a virtual H200", relative=True)

# %%
exercises.ask("04.two-humps")

# %% tags=["exercise"]
answer = {"a": (..., ...), "b": (..., ...)}
### BEGIN SOLUTION
answer = {"a": ("clock", "two numbers"), "b": ("cache", "two numbers")}
### END SOLUTION
exercises.check("04.two-humps", answer)

# %%
exercises.progress()
