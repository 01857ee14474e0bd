# %% [markdown]
# # 05 Fixed clocks
#
# B computes 3 % less than A. How much time does it save?

# %%
import textwrap
import time
from itertools import pairwise
from statistics import median

import torch

import gpulab
from gpulab import clocks, exercises, live
from gpulab.exercises import lesson_05 as lab

gpu = gpulab.use("auto")  # your GPU, or a virtual one
x = torch.randn(8192, 8192, device="cuda", dtype=torch.half)
out = torch.empty_like(x)
gpu


# %%
def a():  # 8192 columns times 8192 rows
    torch.mm(x, x, out=out)


def b():  # 7936 of the columns times 7936 of the rows
    torch.mm(x[:, :7936], x[:7936], out=out)


start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
for program in (b, a, a):  # the first call of each is slow (lesson 04)
    start.record()
    program()
    end.record()
torch.cuda.synchronize()
n = round(60 / start.elapsed_time(end))  # calls in 60 ms
n


# %%
def back_to_back(first, second, n):
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2 * n + 1)]
    time.sleep(1)  # the GPU rests
    events[0].record()
    for call, event in enumerate(events[1:]):
        (first if call < n else second)()
        event.record()
    torch.cuda.synchronize()
    times_ms = [start.elapsed_time(end) for start, end in pairwise(events)]
    return times_ms[:n], times_ms[n:]


exercises.predict("05.in-sequence")

# %%
a_ms, b_ms = back_to_back(a, b, n)
exercises.compare("05.in-sequence", median(b_ms) / median(a_ms))

# %% [markdown]
# B computes less, so it cannot take longer. Yet both were warmed up, each call is between two
# events, and nothing else runs on the GPU.
#
# ## The other way round
#
# A check to keep: swap the order. First B, then A.

# %%
print(f"A took {median(a_ms):.3f} ms, and B {median(b_ms):.3f} ms.")
exercises.predict("05.swapped")

# %%
b_first_ms, a_second_ms = back_to_back(b, a, n)
exercises.compare("05.swapped", median(b_first_ms) / median(a_second_ms))

# %% [markdown]
# The same two programs in another order have another ratio. The two ratios cannot both be right.
#
# ## Exercise: what explains both?

# %% tags=["exercise"]
exercises.ask("05.second-is-slower")
### BEGIN SOLUTION
exercises.check("05.second-is-slower", "b")
### END SOLUTION

# %% [markdown]
# Here is each call, in both orders:

# %%
lab.draw_orders({"A first": (a_ms, b_ms), "B first": (a_second_ms, b_first_ms)})

# %% [markdown]
# ## What slows the GPU down?
#
# The multiprocessors of a GPU work at a clock, and the driver may lower it: for heat, for power,
# or because somebody has set a lower one. NVML, the driver's monitoring library, reads all three.
# It needs no special rights.

# %%
exercises.predict("05.cause")

# %% [markdown]
# Whatever the cause is, think of the first reading in which the clock has fallen. How much power
# does the driver report then, as a share of the limit?

# %%
exercises.predict("05.late")

# %%
time.sleep(1)
load = live.load(a, duration_s=1.5)
load

# %%
seen = load.to_frame()
print(seen[["time_s", "sm_mhz", "temperature_c", "reasons"]].iloc[[0, 1, 2, -1]].round(1))
exercises.compare("05.cause", lab.cause_of(load.regime))

# %%
fallen = seen[seen["sm_mhz"] < 0.97 * seen["max_sm_mhz"]].head(1)
exercises.compare("05.late", (100 * fallen["power_w"] / fallen["power_limit_w"]).max())

# %% [markdown]
# At its highest clock this matmul would draw more power than the GPU is allowed to. So the driver
# lowers the clock until the power fits. On most GPUs the *reported* power is an average over the
# last second, and needs that second to arrive. Trust the clock first.
#
# *Recorded* on an H200: 1980 MHz falls to about 1440 within 0.1 s, with the reason *software power
# cap* (here `power cap`). The power arrives at 690 W of 700, and the chip stays below 62 °C.
#
# ## How much slower?
#
# Now run A after A, eight times as many calls.

# %%
high_mhz, low_mhz = seen["sm_mhz"].iloc[[0, -1]]
print(f"If all of it followed the clock: {100 * (high_mhz / low_mhz - 1):.0f} % longer")
exercises.predict("05.follows")

# %%
first_ms, later_ms = back_to_back(a, a, 8 * n)
burst_ms, settled_ms = min(first_ms), median(later_ms)
print(f"the fastest call {burst_ms:.2f} ms, the later ones {settled_ms:.2f} ms")
exercises.compare("05.follows", 100 * (settled_ms / burst_ms - 1))

# %%
seen[["sm_mhz", "memory_mhz"]].iloc[[0, -1]]

# %% [markdown]
# Not everything follows that clock: the memory has a clock of its own.
#
# So there are two honest numbers: after a rest a **burst**, and under steady work **settled**.
# Both are normal operation, and no call takes their mean.

# %% tags=["exercise"]
exercises.ask("05.burst-or-settled")
### BEGIN SOLUTION
exercises.check(
    "05.burst-or-settled", {"a": "burst", "b": "settled", "c": "settled", "d": "burst"}
)
### END SOLUTION

# %% [markdown]
# ## A against B, fairly
#
# `gpulab.compare` runs both in turns, A B B A, and divides each sample of B by its neighbour of A.
# The clock falls here, too.

# %%
time.sleep(1)
turns = gpulab.compare(a, b, labels=("A", "B"), method="events", n_samples=60)
print(f"B / A = {turns.ratio:.3f}")

# %% [markdown]
# Neighbours meet the same clock, so it cancels. **Compare in turns, and report the clock with the
# time.**
#
# ## Your own benchmark
#
# Your `benchmark(fn)` does not know at which clock it ran. Let it return two values, `seconds,
# clock_mhz`: `torch.cuda.clock_rate()` returns the clock in MHz, through NVML.

# %% tags=["exercise"]
exercises.continue_from("05.benchmark")  # puts your last version here: run it, then change it


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
    clock_mhz = torch.cuda.clock_rate()  # right after the last call
    times_ms = [start.elapsed_time(end) for start, end in zip(starts, ends, strict=True)]
    return median(times_ms) / 1e3, clock_mhz


exercises.check("05.benchmark", benchmark)
### END SOLUTION

# %% [markdown]
# ## What you take with you
#
# - Heavy work lowers the clock within a tenth of a second. The cause is power, not heat.
# - Compare A and B in turns. If you cannot, swap the order and look again.
# - Burst and settled are both honest. Name the one that you report, and its clock.
#
# Still open: where were the data when the kernel started? Next: `06_cache_flush.ipynb`.

# %% [markdown]
# # Going further
#
# ## How long must it rest?
#
# A heavily used GPU runs at its settled clock. How long must it rest to be back at the speed of a
# burst?

# %%
import numpy as np
import pandas as pd

from gpulab import plots


def timed_s(work, n=20):
    """Return the seconds of n calls in a row, each between two events."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(n + 1)]
    for event in events[:-1]:
        event.record()
        work()
    events[-1].record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1e3 for start, end in pairwise(events)]


# %%
exercises.predict("05.back")

# %%
rows = []
for rest_s in (0.01, 0.03, 0.1, 0.3, 1.0):
    list(clocks.watch(a, duration_s=0.5))  # half a second of work: settled
    time.sleep(rest_s)
    rows.append((rest_s, 1e3 * median(timed_s(a, 3)), clocks.read().sm_mhz))
rested = pd.DataFrame(rows, columns=["rest_s", "time_ms", "sm_mhz"])
rested.round(2)

# %%
is_back = rested["time_ms"] < (burst_ms + settled_ms) / 2
exercises.compare("05.back", "below 0.3 s" if is_back[:3].any() else "some seconds")

# %% [markdown]
# *Recorded* on an H200: the first reading after the work showed 1905 MHz again, the second 1965.
# The limit is power, not heat, so nothing has to cool down. (Rows with different clocks may have
# the same time: at the highest clocks something else than the multiprocessors sets the pace.)
#
# ## Why turns work

# %%
ratio = turns.second.median_s / turns.first.median_s
title = f"In turns, B takes {ratio:.3g} times as long as A"
plots.samples([turns.first, turns.second], title=title)

# %% tags=["exercise"]
exercises.ask("05.in-turns")
### BEGIN SOLUTION
exercises.check("05.in-turns", "c")
### END SOLUTION

# %% [markdown]
# ## The driver's reasons
#
# | reason in gpulab | what lowers the clock | regime in gpulab |
# |---|---|---|
# | `power cap` | the power limit | settled |
# | `applications clocks` | somebody has set a clock | settled |
# | `thermal slowdown (software)`, `(hardware)` | heat | throttled |
# | `hardware slowdown`, `power brake` | the hardware protects itself | throttled |
# | `idle` | nothing to do | idle |
#
# People call all but the last one *throttling*, and so does the finding `throttled` of gpulab. The
# difference matters. The first two are normal
# operation. Heat and `hardware slowdown` mean that you should check cooling and power supply.
#
# While the reason is `power cap`, the reported power may be *below* the limit. It is an average
# over the last second, and the driver lowers the clock for what the GPU draws at this moment.
# (NVML's documentation says so for Ampere and newer GPUs, except GA100, the chip of the A100. That
# one and older GPUs report the power of the moment.) *Recorded* on an H200: the driver renews its
# readings every 0.1 s. It names the reason 0.1 s after the clock has fallen, and still names it
# 0.3 s after the work is done.
#
# ## Holding the clock
#
# An administrator can ask the driver to keep one clock. These are the commands, for GPU 0:
#
# ```sh
# sudo nvidia-smi -i 0 -pm 1                          # persistence mode: the driver stays loaded
# nvidia-smi -i 0 -q -d SUPPORTED_CLOCKS              # which clocks this GPU has
# sudo nvidia-smi -i 0 --lock-gpu-clocks=1410,1410    # -lgc: keep the multiprocessors at 1410 MHz
# sudo nvidia-smi -i 0 --lock-memory-clocks=3201,3201 # -lmc: keep the memory at 3201 MHz
# python my_benchmark.py
# sudo nvidia-smi -i 0 --reset-memory-clocks          # -rmc: unlock the memory
# sudo nvidia-smi -i 0 --reset-gpu-clocks             # -rgc: unlock the multiprocessors
# ```
#
# - Without *persistence mode* the driver unloads when the last program ends, and forgets the lock.
# - The *memory clock* has its own lock. Kernels that wait for memory depend on it. (The value
#   above is that of an H200; take yours from the list.)
# - A lock affects every program on that GPU, and it stays until somebody resets it.
#
# For that last reason no cell of this lesson runs these commands. In Python `with
# clocks.lock(1410):` does the same for one block. It undoes the lock however the block ends, even
# if the process is killed. The next cell asks the *virtual* GPU for it, never a real one.

# %%
exercises.predict("05.allowed")

# %%
asked = lab.lock_virtual_gpu(1410)
print(textwrap.fill(asked.message, 90))
exercises.compare("05.allowed", asked.outcome)

# %% [markdown]
# The message names the command for an administrator, and the one that undoes it.
#
# Suppose that you have the rights. You ask for a clock of 1980, 1695 or 1200 (in MHz) and run the
# matmul. The lock asks for a clock; the power limit still applies. (This is the model of the
# virtual H200, whatever GPU you use. Nobody has locked a clock on real hardware for this lesson.)

# %%
exercises.predict("05.which")

# %%
held = lab.asked_for([1980, 1695, 1200])  # computed by the model of a virtual H200
last_mhz = held.groupby("asked_mhz")["sm_mhz"].last()
kept = [str(asked_mhz) for asked_mhz, mhz in last_mhz.items() if mhz == asked_mhz]
exercises.compare("05.which", f"only {' and '.join(kept)}")

# %%
title = f"Under load the GPU keeps only {' and '.join(kept)} MHz"
lab.plot_over_time(held, "sm_mhz", "clock (MHz)", title=title)

# %% [markdown]
# In practice a lock sets an upper bound: power and heat may still push the clock below it. So
# choose a clock *well below* the settled one. A locked clock also makes the kernel slower than
# users will see it. Use it to compare versions, not to report speed.
#
# ## Clock or noise?
#
# Here are two traces of the same matmul from a virtual H200. In both, some calls take clearly
# longer than others.

# %%
traces = exercises.readings("05.two-traces")
lab.plot_over_time(traces, "duration_s", "time per call", title="Two traces of one matmul")

# %% tags=["exercise"]
exercises.ask("05.two-traces")
### BEGIN SOLUTION
exercises.check(
    "05.two-traces", {"a": ("power cap", "name the regime"), "b": ("noise", "more samples")}
)
### END SOLUTION

# %% [markdown]
# Trace a comes from matmuls without pauses. In trace b the GPU rests between calls, while another
# stream now and then adds large tensors. One disturbed call of trace b looks like this:

# %%
side = torch.cuda.Stream()
large = torch.zeros(1 << 27, device="cuda")


def disturbed():
    with torch.cuda.stream(side):
        large.add_(1)
    a()


gpulab.timeline(disturbed)

# %% [markdown]
# The matmul itself is as fast as in any burst. It waits for the addition to make room, and the
# first event has already been recorded when that wait begins.
#
# ## Without rights
#
# On most shared machines you may not lock the clock. You may read it: take a reading with every
# sample, and leave out the samples from another regime. `clocks.flag` marks each sample whose
# clock differs from the median clock by more than its `tolerance`.

# %%
exercises.predict("05.share")

# %%
time.sleep(1)
rows = [(median(timed_s(a, 5)), clocks.read(parts=clocks.QUICK)) for _ in range(60)]
samples_s, looks = zip(*rows, strict=True)
flags = np.array(clocks.flag(looks))
exercises.compare("05.share", 100 * flags.mean())

# %%
frame = clocks.to_frame(looks).assign(
    duration_s=samples_s, series=np.where(flags, "flagged", "kept")
)
finding = f"{flags.sum()} of 60 samples are from another clock"
lab.plot_over_time(frame, "duration_s", "time per call", title=finding)

# %%
kept_s = frame.loc[~flags, "duration_s"]
both_ms = pd.DataFrame({"all": frame["duration_s"], "kept": kept_s}) * 1e3
both_ms.agg(["count", "min", "median", "max"]).round(3)  # in ms

# %% [markdown]
# Compare the range and the median of the two columns. With fewer samples the median would mix both
# regimes, too. `gpulab.measure` reads the clock with every batch. It keeps all samples, lists
# those of another regime in `flagged`, and says what the clock did.

# %%
time.sleep(1)
gpulab.measure(a, method="events", cache="hot", n_samples=150)

# %% [markdown]
# This method has two limits. The driver renews its readings every 0.1 s, so a reading can be older
# than a short sample. And a settled clock is not constant: *recorded* on an H200 at about
# 1440 MHz, it dipped to 1125 MHz and, a second later, to 1335. The virtual GPU has no dips.
#
# Write the filter. The check runs it on samples that include a slow one at the usual clock, a dip,
# and one sample without a reading.

# %%
exercises.ask("05.which-to-discard")

# %% tags=["exercise"]
keep = ...


### BEGIN SOLUTION
def keep(samples_s, readings):
    flags = clocks.flag(readings)
    return [sample_s for sample_s, other in zip(samples_s, flags, strict=True) if not other]


### END SOLUTION
exercises.check("05.which-to-discard", keep)

# %% [markdown]
# ## Data matters
#
# Power sets the clock, so whatever changes the power changes the time. A multiplier whose inputs
# stay the same switches few transistors. Take the same shape and the same kernel, but zeros. An
# H200 was recorded with both.

# %%
exercises.predict("05.zeros")

# %%
settled = pd.DataFrame({"random numbers": (1440, 1455), "zeros": (1635, 1650)})
print(settled.set_axis(["lowest (MHz)", "highest (MHz)"]))
is_higher = settled["zeros"].min() > settled["random numbers"].max()
exercises.compare("05.zeros", "a higher clock" if is_higher else "the same clock")

# %% [markdown]
# Zeros draw less power, so the power limit allows them a higher clock. Now the same on your GPU.
# **The virtual GPU shows no difference, and there it is wrong**: its model computes power from
# shape and arithmetic, and does not look at the data.

# %%
rows = {}
for name, values in {"random numbers": x, "zeros": torch.zeros_like(x)}.items():
    time.sleep(1)
    looks = list(clocks.watch(lambda v=values: torch.mm(v, v, out=out), duration_s=1))
    rows[name] = median(look.sm_mhz for look in looks[-5:])
exercises.claim("05.zeros-settle-higher", here=rows["zeros"] / rows["random numbers"])

# %% [markdown]
# `torch.zeros` and `torch.empty` are convenient test data, but they make a kernel look faster than
# it is. Use data like those in your program. `gpulab.measure` has a finding for it, `zero-result`.
#
# ## Watching
#
# These tools show the same readings while your program runs in another terminal:
#
# | command | what it shows |
# |---|---|
# | `nvidia-smi` | one look: power, limit, temperature, memory, GPU-Util, processes |
# | `watch -n 1 nvidia-smi` | the same, renewed every second |
# | `nvidia-smi dmon -s pucvmet` | one line a second, with the groups below |
# | `nvidia-smi -q -d PERFORMANCE` | the reasons for a lower clock |
# | `nvitop` | a live screen with processes and curves (`pip install nvitop`) |
#
# | letter of `-s` | group of columns |
# |---|---|
# | `p` | power and temperature |
# | `u` | utilization of multiprocessors, memory, encoder, decoder |
# | `c` | clocks of multiprocessors and memory |
# | `v` | violations: `pviol` and `tviol` (below) |
# | `m` | memory in use |
# | `e` | ECC errors and PCIe replays |
# | `t` | PCIe traffic |
#
# `pviol` is the percent of the time in which power lowered the clock. `tviol` is no percentage: by
# the documentation of `nvidia-smi` it is a boolean, 1 if heat lowered the clock and 0 otherwise.
#
# Rules of thumb, found in no documentation: GPU-Util above 90 % means that the GPU is rarely
# without work; below 50 % it often waits for the host or for data. *Memory-Util* is the share of
# time in which memory was read or written, not how full it is. Many GPUs lower the clock for heat
# from about 83 °C on; `nvidia-smi -q -d TEMPERATURE` lists the limits of yours.
#
# The number that everybody reads is **GPU-Util**; our readings call it `utilization`. Let the GPU
# run `torch.cuda._sleep`, a kernel of a *single thread* that counts cycles. An H200 can hold
# 270,336 threads at a time. (The share of those places that a kernel fills is its *occupancy*.)

# %%
exercises.predict("05.util")

# %%
time.sleep(1)
watched = clocks.watch(lambda: torch.cuda._sleep(10_000_000), duration_s=1.5)
alone = clocks.to_frame(watched)
exercises.compare("05.util", alone["utilization"].iloc[-1])

# %%
last = pd.DataFrame({"one thread": alone.iloc[-1], "matmuls": seen.iloc[-1]})
last.loc[["utilization", "power_w", "sm_mhz", "temperature_c"]]

# %% [markdown]
# GPU-Util cannot distinguish the two. It is the share of recent time in which *any* kernel ran,
# not how much of the chip was used. Power does distinguish them: a GPU that draws little power
# does little work.

# %% tags=["exercise"]
exercises.ask("05.gpu-util")
### BEGIN SOLUTION
exercises.check("05.gpu-util", "b")
### END SOLUTION

# %%
exercises.progress()
