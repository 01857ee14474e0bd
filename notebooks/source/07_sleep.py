# %% [markdown]
# # 07 Sleep
#
# How long do ten small kernels take? Ten times `relu`, on 16 thousand numbers. Then the same on
# one million numbers: 64 times as many.

# %%
import time
from statistics import median

import pandas as pd
import torch
from IPython.display import display

import gpulab
from gpulab import exercises, plots
from gpulab.exercises import lesson_07 as lab

gpu = gpulab.use("auto", max_value_bytes=24 << 20)  # of large tensors only the times matter
x, large_x = torch.randn(2**14, device="cuda"), torch.randn(2**20, device="cuda")
gpu

# %%
exercises.predict("07.size")


# %%
def relus(tensor, n_calls=10):
    for _ in range(n_calls):
        tensor = torch.relu(tensor)
    return tensor


def pair_s(fn, n_pairs=21):
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in "se"] for _ in range(n_pairs)]
    for start, end in pairs:
        start.record(), fn(), end.record()
    torch.cuda.synchronize()
    return median(start.elapsed_time(end) for start, end in pairs) / 1e3


# %%
small_s, large_s = pair_s(lambda: relus(x)), pair_s(lambda: relus(large_x))
print(f"{small_s * 1e6:.1f} µs and {large_s * 1e6:.1f} µs")
exercises.compare("07.size", large_s / small_s)

# %% [markdown]
# ## Is that possible?
#
# Ask the driver how long the ten kernels take (lesson 03).

# %%
small = gpulab.measure(lambda: relus(x), method="profiler", cache="hot")
large = gpulab.measure(lambda: relus(large_x), method="profiler", cache="hot")
print(f"small {small.median_s * 1e6:.1f} µs, large {large.median_s * 1e6:.1f} µs")
print(f"The kernels are {100 * small.median_s / small_s:.0f} % of the small reading.")

# %% [markdown]
# The kernels do take longer for more numbers. The pairs of events did not see it: most of what
# they read is not the kernels. *Recorded* on an H200: a pair reads 80 µs for ten relus, and
# their kernels take 10 µs.
#
# ## Twice the calls
#
# Change one thing: call `relu` twenty times, on the small tensor.

# %%
twenty_s = pair_s(lambda: relus(x, n_calls=20))
print(f"{twenty_s / small_s:.2f} times as long as ten calls")

# %% [markdown]
# ## Exercise: what takes the time?

# %% tags=["exercise"]
exercises.ask("07.pace")
### BEGIN SOLUTION
exercises.check("07.pace", "b")
### END SOLUTION

# %% [markdown]
# Now look at the ten calls.

# %%
plots.timeline(gpulab.timeline(lambda: relus(x), n_warmup=3), names=["relu"] * 10)

# %% [markdown]
# The GPU ends each kernel before Python has launched the next one, and then it has nothing to
# do. Such a program is **launch-bound**: a GPU twice as fast would change nothing. **If kernels
# are shorter than their launches, Python sets the pace, and events read Python.** (The recording
# itself slows the launches of a real GPU. So gaps in a timeline are wider than in the program.)
#
# ## A head start
#
# `torch.cuda._sleep(n)` is a kernel that counts n clock cycles and does nothing else. Python
# launches it and goes on at once. Let the GPU sleep, and record five pairs meanwhile. What do
# they read?

# %%
exercises.predict("07.slept")


# %%
def pairs_after_sleep(fn, n_pairs, n_cycles):
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in "se"] for _ in range(n_pairs)]
    torch.cuda._sleep(n_cycles)
    begin_s = time.perf_counter()
    for start, end in pairs:
        start.record(), fn(), end.record()
    host_s = time.perf_counter() - begin_s
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1e3 for start, end in pairs], host_s


# %%
five_s, five_host_s = pairs_after_sleep(lambda: relus(x), n_pairs=5, n_cycles=20_000_000)
exercises.compare("07.slept", median(five_s))

# %% [markdown]
# The same kernels, without Python between them. The rest is the floor of the pair and the short
# pauses from kernel to kernel.
#
# Five pairs are few. Record 40 of them, and let the GPU sleep three times as long as Python needed
# for the five. *Recorded* on an H200: 1,000,000 cycles take 0.51 ms.

# %%
n_cycles = int(3 * five_host_s * 2e9)  # 2e9 cycles take about a second
short_s, host_s = pairs_after_sleep(lambda: relus(x), n_pairs=40, n_cycles=n_cycles)
plots.readings_in_order(
    {"reading": short_s}, what="pair", before="Python is ahead", after="the GPU waits for Python"
)

# %% [markdown]
# While Python is ahead, a pair reads the GPU. Then the GPU catches up, and a pair reads Python
# again. Nothing warns you. How long must the sleep be for all 40?

# %%
exercises.predict("07.enough")

# %%
exercises.compare("07.enough", host_s)

# %%
n_cycles = int(1.3 * host_s * 2e9)  # 2e9 cycles take at least a second below 2 GHz
long_s, _ = pairs_after_sleep(lambda: relus(x), n_pairs=40, n_cycles=n_cycles)
print(f"{n_cycles:,} cycles")
plots.readings_in_order({"reading": long_s}, what="pair")

# %% [markdown]
# **The sleep must last as long as Python needs for the whole batch.** That is a time of the
# host. No kernel's length gives it, so measure it and add a margin. A longer sleep does not
# improve the reading.
#
# ## A wait inside
#
# Now the timed function ends with `.item()`. This exercise is your guess.

# %% tags=["exercise"]
exercises.ask("07.sync-inside")
### BEGIN SOLUTION
exercises.check("07.sync-inside", "c")
### END SOLUTION

# %%
slept_s, _ = pairs_after_sleep(lambda: x.sum().item(), n_pairs=40, n_cycles=20_000_000)
awake_s, _ = pairs_after_sleep(lambda: x.sum().item(), n_pairs=40, n_cycles=1)
print(f"{median(slept_s) * 1e6:.1f} µs after a sleep, {median(awake_s) * 1e6:.1f} µs without one")

# %% [markdown]
# `.item()` in the first pair blocks Python until the sleep is over. Then the queue is empty and
# stays empty. A longer sleep only blocks Python longer. Take the wait out of the function, or
# use the stopwatch.
#
# ## Your own benchmark
#
# Your `benchmark(fn)` from lesson 06 reads Python if `fn` launches short kernels. Give Python a
# head start for all samples.

# %% tags=["exercise"]
exercises.continue_from("07.benchmark")  # puts your last version here: run it, then change it


### BEGIN SOLUTION
def benchmark(fn, n_samples=11):
    last_s = []
    for _ in range(100):  # warm up until three calls in a row agree
        torch.cuda.synchronize()
        begin_s = time.perf_counter()
        fn()
        torch.cuda.synchronize()
        last_s = [*last_s[-2:], time.perf_counter() - begin_s]
        if last_s[2:] and max(last_s) < 1.05 * min(last_s):
            break
    n_bytes = 2 * torch.cuda.get_device_properties(0).L2_cache_size
    ahead = torch.zeros(n_bytes // 65536, 16384, device="cuda")
    sums = torch.zeros(len(ahead), device="cuda")
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in "se"] for _ in range(n_samples)]
    host_s = 0.0
    for _ in range(2):  # the first round measures the host, the second one counts
        torch.cuda._sleep(int(2 * host_s * 2e9))
        begin_s = time.perf_counter()
        for start, end in pairs:
            torch.sum(ahead, dim=1, out=sums)  # read twice the L2
            start.record()
            fn()
            end.record()
        host_s = time.perf_counter() - begin_s
        torch.cuda.synchronize()
    clock_mhz = torch.cuda.clock_rate()  # right after the last call
    return median(start.elapsed_time(end) for start, end in pairs) / 1e3, clock_mhz


exercises.check("07.benchmark", benchmark)
### END SOLUTION

# %% [markdown]
# ## What you take with you
#
# - If kernels are shorter than their launches, events read Python.
# - A sleep before the batch gives Python a head start. It must last as long as Python needs for
#   all of it.
# - A wait inside the function uses up the sleep. No length helps.
#
# Now the reading is right, and the program is as slow as before. How do you launch ten kernels
# at once? Next: `07b_graphs.ipynb`.

# %% [markdown]
# # Going further
#
# Each part stands alone.
#
# ## The machine
#
# A toy: ten small kernels in a row. The host takes longer to launch one than the GPU takes to
# run it. Drop a sleep in before the kernels, then use a graph (lesson 07b) in their place. When
# do "your events" read the kernels, and when the launches?

# %%
gpulab.explorers.machine_explorer("small kernels")

# %% [markdown]
# ## Three programs
#
# What sets the pace of each?

# %%
records = {letter: gpulab.timeline(lab.program(letter)) for letter in "abc"}
display(*[plots.timeline(record, title=letter) for letter, record in records.items()])

# %% tags=["exercise"]
exercises.ask("07.gaps")
### BEGIN SOLUTION
exercises.check("07.gaps", {"a": "wait", "b": "gpu", "c": "host"})
### END SOLUTION

# %% [markdown]
# ## Ask the events
#
# Nothing in the readings says whether Python was ahead. Ask: after each sample, has the GPU
# already reached the first event? If not, the whole sample was in the queue in time, and Python
# was **ahead**. First, how long is a million cycles here?

# %%
exercises.predict("07.million")


# %%
def sleep_s(n_cycles):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in "se")
    start.record(), torch.cuda._sleep(n_cycles), end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


one_s, three_s = sleep_s(1_000_000), sleep_s(3_000_000)
cycles_per_s = 2_000_000 / (three_s - one_s)  # the difference leaves out what the events add
exercises.compare("07.million", one_s)

# %% [markdown]
# The cycles per second are the clock of the GPU. That clock changes (lesson 05), so a sleep is
# no stopwatch. In CUDA C++ you can write such a kernel yourself, with `clock64()` in a loop.
# (`__nanosleep(ns)` sleeps for about so long, and at most for a millisecond.)


# %%
def samples_after(duration_s, work, n_samples=40):
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in "se"] for _ in range(n_samples)]
    torch.cuda._sleep(int(duration_s * cycles_per_s))
    begin_s, ahead = time.perf_counter(), 0
    for start, end in pairs:
        start.record(), work(), end.record()
        ahead += not start.query()
    host_s = time.perf_counter() - begin_s
    torch.cuda.synchronize()
    return ahead, host_s


# %%
tiny = torch.zeros(1024, device="cuda")
tiny.add_(1)
_, add_host_s = samples_after(0, lambda: tiny.add_(1))
print(f"Python needs {add_host_s * 1e6:.0f} µs for 40 samples of one addition.")

# %% [markdown]
# In how many of the 40 is Python ahead, if the GPU sleeps for half of that time?

# %%
exercises.predict("07.ahead")

# %%
ahead, _ = samples_after(add_host_s / 2, lambda: tiny.add_(1))
exercises.compare("07.ahead", ahead)

# %%
tenths = range(0, 21, 2)
sweep = pd.DataFrame({"sleep_us": [add_host_s * 1e5 * tenth for tenth in tenths]})
sweep["samples ahead"] = [
    samples_after(add_host_s * tenth / 10, lambda: tiny.add_(1))[0] for tenth in tenths
]
sleep_us, n_ahead = sweep.loc[sweep["samples ahead"].idxmax()]
finding = f"After a sleep of {sleep_us:.0f} µs Python is ahead in {n_ahead:.0f} of 40"
plots.line(sweep, x="sleep_us", y="samples ahead", title=finding)

# %% [markdown]
# A little less than the time of the whole batch can do, because the GPU needs time for the
# samples, too. `method="saturated"` does all of this: it measures the host, sleeps 1.3 times as
# long, asks every event, and discards a sample in which the host was not ahead.

# %%
exercises.ask("07.long-enough")

# %% tags=["exercise"]
head_start = ...


### BEGIN SOLUTION
def head_start(work):
    _, host_s = samples_after(0, work)
    return 2 * host_s * cycles_per_s


### END SOLUTION
exercises.check("07.long-enough", head_start)

# %% [markdown]
# ## When you need no head start
#
# Additions from 2^10 to 2^24 elements, 50 of each in a row. From which size on does one more
# addition cost GPU time, and no longer Python time?

# %%
exercises.predict("07.takes-over")


# %%
def pace_s(tensor, n_calls=50):
    tensor.add_(1)
    torch.cuda.synchronize()
    begin_s = time.perf_counter()
    for _ in range(n_calls):
        tensor.add_(1)
    torch.cuda.synchronize()
    return (time.perf_counter() - begin_s) / n_calls


paces = pd.DataFrame({"exponent": [10, 12, 14, 16, 18, 20, 22, 24]})
tensors = [torch.zeros(2**n, device="cuda") for n in paces["exponent"]]
paces["time_us"] = [1e6 * median(pace_s(tensor) for _ in range(5)) for tensor in tensors]
paces.round(2)

# %%
slower = paces["exponent"][paces["time_us"] > 1.15 * paces["time_us"][0]]
first = f"2^{slower.min()}" if len(slower) else "not yet"
plots.line(
    paces, x="exponent", y="time_us", title=f"From {first} elements on the GPU sets the pace"
)

# %%
exercises.compare("07.takes-over", first)

# %% [markdown]
# On the flat part you read the launch, whatever the size. A kernel that is longer than its
# launch fills the queue by itself. Then you need neither sleep nor graph.
#
# The oldest recipe puts an *expensive kernel first*: one large matmul before the batch. Is it
# enough for 40 samples of one addition?

# %%
exercises.predict("07.first")

# %%
a = torch.randn(2048, 2048, device="cuda")
a @ a  # once before
torch.cuda.synchronize()
a @ a
after_matmul, _ = samples_after(0, lambda: tiny.add_(1))
exercises.compare("07.first", after_matmul)

# %% [markdown]
# If one is not enough, put several before the batch. It works, but the length of a matmul
# depends on the GPU, and it warms the chip.
#
# ## A full queue
#
# About a thousand launches fit into the queue (lesson 01). Take 40 samples of 50 launches each,
# after a sleep four times as long as the host needs for them. Is the host ahead in all 40?

# %%
exercises.predict("07.all-ahead")


# %%
def fifty():
    for _ in range(50):
        tiny.add_(1)


n_samples = 40
_, fifty_host_s = samples_after(0, fifty, n_samples)
n_ahead, _ = samples_after(4 * fifty_host_s, fifty, n_samples)
exercises.compare("07.all-ahead", "yes" if n_ahead == n_samples else "no")

# %%
exercises.claim("07.full-queue", here=n_ahead)

# %% [markdown]
# When the queue is full, the next launch blocks until there is room, that is, until the sleep is
# over. From then on both run, and the GPU catches up. The remedy is a smaller batch, not a
# longer sleep.

# %%
exercises.progress()
