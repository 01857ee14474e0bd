# %% [markdown]
# # 05 Fixed clocks
#
# Why does the same kernel not take the same time a second later?
#
# You warm up, you wait in the right places, you read events. Then you run the cell again and get
# another number. This lesson is about the clock of the GPU: what changes it, how you read it, and
# what you report when you cannot hold it still.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 A second later | how far the time of one kernel moves | 5 |
# | 2 What lowers the clock | to read clock, power, temperature and reasons | 10 |
# | 3 Burst and settled | which of two honest numbers answers your question | 10 |
# | 4 A against B | how to compare two programs fairly | 8 |
# | 5 Holding the clock | what a lock needs, and which clock to choose | 7 |
# | 6 Your benchmark | to report the clock with the time | 5 |
# | Going further (extra) | clock or noise? · without rights · data matters · watching | 25 |

# %%
import time
from itertools import pairwise
from statistics import median

import numpy as np
import pandas as pd
import torch

import gpulab
from gpulab import clocks, exercises, live, plots
from gpulab.exercises import lesson_05 as lab

# %load_ext gpulab
gpulab.use("auto")

# %% [markdown]
# The whole lesson uses one kernel: a matmul of two large matrices in half precision. It runs on
# the tensor cores and draws a lot of power. `out=` reuses the same memory for each result, so that
# the allocator plays no part.

# %%
a = torch.randn(8192, 8192, device="cuda", dtype=torch.half)
out = torch.empty_like(a)


def matmul():
    return torch.mm(a, a, out=out)


matmul().shape


# %%
def timed(work, n=20):
    """Return the seconds of n calls in a row, each between two events."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(n + 1)]
    for event in events[:-1]:
        event.record()
        work()
    events[-1].record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1e3 for start, end in pairwise(events)]


timed(matmul, n=3)

# %% [markdown]
# ## 1 A second later
#
# The GPU rests for one second. Then it runs this matmul for one second, in groups of twenty.
# Compare the median of the last group with the median of the first.

# %%
exercises.predict("05.later")

# %%
time.sleep(1)
rows, begin = [], time.perf_counter()
while (now := time.perf_counter() - begin) < 1:
    rows.append((now, np.median(timed(matmul))))
calls = pd.DataFrame(rows, columns=["time_s", "duration_s"])
lab.plot_over_time(calls, "duration_s", "time per call", title="One matmul for a second")

# %%
first_s, last_s = calls["duration_s"].iloc[[0, -1]]
exercises.compare("05.later", last_s / first_s)

# %% [markdown]
# Nothing in the program has changed: the same kernel, the same data, and the warm-up is over.
# *Recorded* on an H200: 1.43 ms in the first calls, 1.67 ms in the hundredth. The method of timing
# is not at fault. The kernel really takes longer.

# %%
exercises.claim("05.slower-later", here=last_s / first_s)

# %% [markdown]
# ## 2 What lowers the clock
#
# `live.load` runs a function again and again, reads the GPU several times a second through NVML,
# the driver's monitoring library, and draws the readings while the work runs. NVML needs no
# special rights. (On a real GPU it needs the package `nvidia-ml-py`.)
#
# Three things could lower the clock: the chip is hot, it draws more power than it may, or somebody
# has set a lower clock.

# %%
exercises.predict("05.cause")

# %% [markdown]
# Whatever the cause is, look at the moment when the clock has just fallen. How much power does the
# driver report then, as a share of the limit?

# %%
exercises.predict("05.late")

# %%
time.sleep(1)
trace = live.load(matmul, duration_s=2, title="The GPU under load")
trace

# %% [markdown]
# The shaded part marks the readings in which the driver names a reason for the lower clock.

# %%
exercises.compare("05.cause", lab.cause_of(trace.regime))

# %% [markdown]
# *Recorded* on an H200: the clock falls from 1980 MHz to about 1440 within 0.1 s, with the reason
# *software power cap* (gpulab writes `power cap`). Power rises to 690 W of the 700 W that are
# allowed, and the chip stays below 62 °C. At its highest clock this matmul would draw more than it
# may, so the driver lowers the clock until the power fits.
#
# Now the power in the first reading after the clock fell:

# %%
readings = trace.to_frame()
fallen = readings[readings["sm_mhz"] < 0.97 * readings["max_sm_mhz"]].head(1)
exercises.compare("05.late", (100 * fallen["power_w"] / fallen["power_limit_w"]).max())

# %%
readings[["time_s", "sm_mhz", "power_w", "temperature_c", "reasons"]].iloc[::2].round(2)

# %% [markdown]
# The clock falls long before the reported power reaches the limit. That is an effect of the
# reading: on an H200 the driver reports the *average power over the last second*, so the number
# needs a second to catch up. (NVML's documentation says so for Ampere and newer, except GA100. On
# GA100, the chip of the A100, and on older GPUs it reports the power of that moment.) *Recorded*
# on an H200: the driver renews its readings every 0.1 s, names the reason 0.1 s after the clock
# has fallen, and keeps naming it for up to 0.5 s after the work is done. Trust the clock first.
#
# | reason in gpulab | what lowers the clock | regime in gpulab |
# |---|---|---|
# | `power cap` | the power limit | settled |
# | `applications clocks` | somebody has set a clock | settled |
# | `thermal slowdown (software)`, `(hardware)` | heat | throttled |
# | `hardware slowdown`, `power brake` | the hardware protects itself | throttled |
# | `idle` | nothing to do | idle |
#
# People call all but the last one *throttling*. The difference matters. The first two are normal
# operation. Heat and `hardware slowdown` mean that you should check cooling and power supply.
#
# ## 3 Burst and settled
#
# After a rest the GPU runs at its highest clock: a **burst**. After steady heavy work it runs at
# the clock that the power limit allows: it has **settled**. Both are normal. How long must the GPU
# rest to be back at burst speed?

# %%
exercises.predict("05.back")

# %%
rows = []
for rest_s in (0.01, 0.03, 0.1, 0.3, 1.0):
    list(clocks.watch(matmul, duration_s=0.5))  # half a second of work: settled
    time.sleep(rest_s)
    rows.append((rest_s, 1e3 * median(timed(matmul, 3)), clocks.read().sm_mhz))
rested = pd.DataFrame(rows, columns=["rest_s", "time_ms", "sm_mhz"])
rested

# %%
is_back = rested["time_ms"] / 1e3 < (first_s + last_s) / 2
needed_s = rested.loc[is_back, "rest_s"].min()
SOON_S = 0.3
exercises.compare("05.back", "below 0.3 s" if needed_s < SOON_S else "some seconds")

# %%
exercises.claim("05.rest-restores", here=needed_s)

# %% [markdown]
# *Recorded* on an H200: the first reading after the work showed 1905 MHz again, the second 1965.
# The limit is power, not heat, so nothing has to cool down.
#
# Measure both regimes: ten calls after a rest, and six hundred. Each result names its clock.

# %%
time.sleep(1)
clocks.try_read()

# %%
# %%cudatime --method events --hot --warmup 3 -r 10
matmul()

# %%
# %%cudatime --method events --hot --warmup 3 -r 600
matmul()

# %% [markdown]
# Both medians are right and both intervals are narrow. They answer different questions: how long
# one call takes after a rest, and how long it takes in a loop that runs for minutes. Their mean
# answers no question. Name the regime that you report.

# %%
exercises.ask("05.burst-or-settled")

# %% tags=["exercise"]
answer = {"a": ..., "b": ..., "c": ..., "d": ...}
### BEGIN SOLUTION
answer = {"a": "burst", "b": "settled", "c": "settled", "d": "burst"}
### END SOLUTION
exercises.check("05.burst-or-settled", answer)

# %% [markdown]
# Stuck? `exercises.hint("05.burst-or-settled")` gives a hint, and one more each time.
#
# ## 4 A against B
#
# A is the matmul. B is the same with a shorter inner dimension, 7936 instead of 8192: B computes 3
# % less. Many people compare two programs like this: first A, forty calls, then B, forty calls.


# %%
def shorter():
    return torch.mm(a[:, :7936], a[:7936], out=out)


shorter().shape

# %%
exercises.predict("05.in-sequence")

# %%
time.sleep(1)
a_s = median(timed(matmul, 40))
b_s = median(timed(shorter, 40))
exercises.compare("05.in-sequence", b_s / a_s)

# %% [markdown]
# B computes less. If it seems to take longer, then not because of the events, the waits or the
# warm-up: the clock was high while A ran, and lower when it was B's turn. Any loop over candidates
# has this fault: five copies of the *same* function would get five different times.
#
# `gpulab.compare` samples both in turns: five of A, five of B, five of B, five of A, and divides
# each sample of B by the sample of A next to it. The clock falls during this comparison, too.

# %%
exercises.predict("05.in-turns")

# %%
time.sleep(1)
turns = gpulab.compare(matmul, shorter, labels=("A", "B"), method="events", n_samples=60)
exercises.compare("05.in-turns", turns.ratio)

# %%
plots.samples([turns.first, turns.second], title="A and B in turns")

# %%
exercises.claim("05.sequence-misleads", here=(b_s / a_s) / turns.ratio)

# %%
exercises.ask("05.in-turns")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = "c"
### END SOLUTION
exercises.check("05.in-turns", answer)

# %% [markdown]
# ## 5 Holding the clock
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
print(asked.message)
exercises.compare("05.allowed", asked.outcome)

# %% [markdown]
# The message names the command for an administrator, and the one that undoes it.
#
# Suppose that you have the rights. You ask for a clock of 1980, 1695 or 1200 (in MHz) and run the
# matmul. The lock asks for a clock; the power limit still applies. Which of the three does the GPU
# keep?

# %%
exercises.predict("05.which")

# %%
held = lab.asked_for([1980, 1695, 1200])  # computed by the model of a virtual H200
lab.plot_over_time(held, "sm_mhz", "clock (MHz)", title="Three locked clocks under load")

# %%
exercises.compare("05.which", lab.kept_clocks(held))

# %% [markdown]
# This is the model of the virtual H200, whatever GPU you use. Nobody has locked a clock on real
# hardware for this lesson; the model rests on the settled clocks that were recorded.
#
# In practice a lock sets an upper bound: power and heat may still push the clock below it. So
# choose a clock *well below* the settled one. A locked clock also makes the kernel slower than
# users will see it. Use it to compare versions, not to report speed.
#
# ## 6 Your benchmark
#
# This is your `benchmark(fn)` from lesson 04. It warms up, reads events, and returns the median.
# It does not know at which clock it ran. Let it return two values, `seconds, clock_mhz`:
# `torch.cuda.clock_rate()` returns the clock of the multiprocessors in MHz, through NVML.


# %%
def once_s(fn):
    torch.cuda.synchronize()
    start = time.perf_counter()
    fn()
    torch.cuda.synchronize()
    return time.perf_counter() - start


once_s(matmul)


# %% tags=["exercise"]
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
    return median(times_ms) / 1e3


benchmark(matmul)

# %%
exercises.ask("05.benchmark")

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
    clock_mhz = torch.cuda.clock_rate()  # right after the last call
    times_ms = [start.elapsed_time(end) for start, end in zip(starts, ends, strict=True)]
    return median(times_ms) / 1e3, clock_mhz


### END SOLUTION
exercises.check("05.benchmark", benchmark)

# %% [markdown]
# ## What you take along
#
# - Heavy work lowers the clock within a tenth of a second. The cause is the power limit, not heat.
# - Burst and settled are both honest. Name the one that you report, and its clock.
# - Compare A and B in turns, never one after the other.
# - A locked clock is stable only well below the settled one, and it affects everybody.
#
# Still open: where the data were when the kernel started. That is lesson 06.

# %%
exercises.progress()

# %% [markdown]
# # Going further
#
# Four extras. Each stands alone.
#
# | extra | what you will learn | minutes |
# |---|---|---|
# | A Clock or noise? | to distinguish a lower clock from noise | 5 |
# | B Without rights | to read the clock with every sample, and discard by it | 10 |
# | C Data matters | which test data to use | 5 |
# | D Watching | what the tools show, and what GPU-Util means | 5 |
#
# ## A Clock or noise?
#
# Here are two traces of the same matmul from a virtual H200. In both, some calls take clearly
# longer than others.

# %%
traces = exercises.readings("05.two-traces")
lab.plot_over_time(traces, "duration_s", "time per call", title="Two traces of one matmul")

# %%
exercises.ask("05.two-traces")

# %% tags=["exercise"]
answer = {"a": (..., ...), "b": (..., ...)}
### BEGIN SOLUTION
answer = {"a": ("power cap", "name the regime"), "b": ("noise", "more samples")}
### END SOLUTION
exercises.check("05.two-traces", answer)

# %% [markdown]
# Trace a comes from matmuls without pauses. In trace b the GPU rests between calls, while another
# stream now and then adds large tensors. One disturbed call of trace b looks like this:

# %%
side = torch.cuda.Stream()
large = torch.zeros(1 << 27, device="cuda")


def disturbed():
    with torch.cuda.stream(side):
        large.add_(1)
    matmul()


gpulab.timeline(disturbed)

# %% [markdown]
# The matmul itself is as fast as in any burst. It waits for the addition to make room, and the
# first event has already been recorded when that wait begins.
#
# ## B Without rights
#
# On most shared machines you may not lock the clock. You may read it: take a reading with every
# sample, and leave out the samples from another regime. `clocks.flag` marks each sample whose
# clock differs from the median clock by more than its `tolerance`.

# %%
exercises.predict("05.share")

# %%
time.sleep(1)
rows = [(median(timed(matmul, 5)), clocks.read(parts=clocks.QUICK)) for _ in range(60)]
samples_s, seen = zip(*rows, strict=True)
flags = np.array(clocks.flag(seen))
exercises.compare("05.share", 100 * flags.mean())

# %%
frame = clocks.to_frame(seen).assign(
    duration_s=samples_s, series=np.where(flags, "flagged", "kept")
)
lab.plot_over_time(frame, "duration_s", "time per call", title="Samples, by clock")

# %%
kept_s = frame.loc[~flags, "duration_s"]
both_ms = pd.DataFrame({"all": frame["duration_s"], "kept": kept_s}) * 1e3
both_ms.describe().loc[["count", "min", "50%", "max"]].round(3)  # in ms

# %% [markdown]
# Compare the range and the median of the two columns. With fewer samples the median would mix both
# regimes, too. `gpulab.measure` reads the clock with every batch. It keeps all samples, lists
# those of another regime in `flagged`, and says what the clock did.

# %%
time.sleep(1)
clocks.try_read()

# %%
# %%cudatime --method events --hot --warmup 3 -r 150
matmul()

# %% [markdown]
# This method has two limits. The driver renews its readings every 0.1 s, so a reading can be older
# than a short sample. And a settled clock is not constant: *recorded* on an H200, it dipped to
# between 1185 and 1335 MHz for 0.2 to 0.3 s about once a second. The virtual GPU has no dips.
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
# ## C Data matters
#
# Power sets the clock, so whatever changes the power changes the time. A multiplier whose inputs
# stay the same switches few transistors. Take the same shape and the same kernel, but zeros. An
# H200 was recorded with both.

# %%
exercises.predict("05.zeros")

# %%
recorded = lab.recorded_settled_clocks()
exercises.compare("05.zeros", lab.compared_clocks(recorded))

# %%
recorded

# %% [markdown]
# Zeros draw less power, so the power limit allows them a higher clock. Now the same on your GPU:

# %%
rows = {}
for name, x in {"random numbers": a, "zeros": torch.zeros_like(a)}.items():
    time.sleep(1)
    looks = list(clocks.watch(lambda x=x: torch.mm(x, x, out=out), duration_s=1))
    rows[name] = median(look.sm_mhz for look in looks[-5:])
exercises.claim("05.zeros-settle-higher", here=rows["zeros"] / rows["random numbers"])

# %% [markdown]
# **The virtual GPU shows no difference, and there it is wrong.** Its model computes power from
# shape and arithmetic; it does not look at the data. `torch.zeros` and `torch.empty` are
# convenient test data, but they make a kernel look faster than it is. Use data like those in your
# program. `gpulab.measure` has a finding for it, `zero-result`.
#
# ## D Watching
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
# | `v` | violations: share of time below full clock, for power or heat |
# | `m` | memory in use |
# | `e` | ECC errors and PCIe replays |
# | `t` | PCIe traffic |
#
# Rules of thumb, found in no documentation: GPU-Util above 90 % means that the GPU is rarely
# without work; below 50 % it often waits for the host or for data. *Memory-Util* is the share of
# time in which memory was read or written, not how full it is. Many GPUs lower the clock for heat
# from about 83 °C on; `nvidia-smi -q -d TEMPERATURE` lists the limits of yours.
#
# The number that everybody reads is **GPU-Util**; our readings call it `utilization`. Let the GPU
# run `torch.cuda._sleep`, a kernel of a *single thread* that counts cycles. An H200 can hold
# 270,336 threads at a time. (The share of those places that a kernel fills is its *occupancy*.)
# What is GPU-Util?

# %%
exercises.predict("05.util")

# %%
time.sleep(1)
watched = clocks.watch(lambda: torch.cuda._sleep(10_000_000), duration_s=1.5)
alone = clocks.to_frame(watched)
exercises.compare("05.util", alone["utilization"].iloc[-1])

# %%
last = pd.DataFrame({"one thread": alone.iloc[-1], "matmuls": readings.iloc[-1]})
last.loc[["utilization", "power_w", "sm_mhz", "temperature_c"]]

# %% [markdown]
# GPU-Util cannot distinguish the two. It is the share of recent time in which *any* kernel ran,
# not how much of the chip was used. Power does distinguish them: a GPU that draws little power
# does little work.

# %%
exercises.ask("05.gpu-util")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = "b"
### END SOLUTION
exercises.check("05.gpu-util", answer)

# %%
exercises.progress()
