# %% [markdown]
# # 05 Fixed clocks
#
# Why does the same kernel take 15 % longer a second later?
#
# You have warmed up, you wait in the right places, you read events. Then you run the cell again
# and get another number. This lesson is about the clock of the GPU: who moves it, how you see it,
# and what you report when you may not hold it.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 A second later | how far and how fast the time of one kernel moves | 5 |
# | 2 Who slows it down | to read clock, power, temperature and reasons | 10 |
# | 3 Two traces | to tell a lowered clock from noise | 5 |
# | 4 Burst and settled | which of two honest numbers answers your question | 10 |
# | 5 Without rights | to read the clock with every sample, and discard by it | 10 |
# | 6 A against B | why the second one loses, and how it does not | 10 |
# | 7 Holding the clock | what a lock asks for, and which clock to choose | 10 |
# | 8 Data matters | why zeros are a bad test | 5 |
# | 9 Watching | what the tools show, and what GPU-Util is not | 5 |

# %%
import time
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import torch

import gpulab
from gpulab import clocks, exercises, live, plots
from gpulab.exercises.lesson_05 import asked_for, over_time
from gpulab.units import format_time

gpulab.use("auto")

# %% [markdown]
# One kernel goes through this lesson: a product of two large matrices in half precision, which
# uses the tensor cores and as much power as anything. `out=` keeps the allocator out of it.

# %%
a = torch.randn(8192, 8192, device="cuda", dtype=torch.half)
out = torch.empty_like(a)
product = partial(torch.mm, a, a, out=out)
for _ in range(3):
    product()
torch.cuda.synchronize()
out.shape


# %%
def timed(work, n=20):
    """Return the seconds of n calls in a row, each from a pair of events."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(n + 1)]
    for event in events[:-1]:
        event.record()
        work()
    events[-1].record()
    events[-1].synchronize()
    return [start.elapsed_time(end) / 1e3 for start, end in pairwise(events)]


def rest():
    time.sleep(1)


format_time(np.median(timed(product)))

# %% [markdown]
# ## 1 A second later
#
# The GPU rests for a second. Then it gets nothing but this product for another second, twenty at
# a time. The first twenty give one median, the last twenty another.

# %%
later = exercises.predict("How many times as long do the last twenty take?", ..., unit="times")
later

# %%
rest()
rows, begin = [], time.perf_counter()
while (now := time.perf_counter() - begin) < 1:
    rows.append((round(now, 3), np.median(timed(product))))
calls = pd.DataFrame(rows, columns=["time_s", "duration_s"])
plots.draw(
    partial(over_time, column="duration_s", label="time per call"),
    calls,
    title="One product, again and again for a second",
    alt="The time of a call rises at first and then stays.",
    source=gpulab.device.current(),
)

# %%
first_s, last_s = calls["duration_s"].iloc[[0, -1]]
format_time(first_s), format_time(last_s)

# %%
later.compare(last_s / first_s)

# %% [markdown]
# Nothing in the program has changed: same kernel, same data, and the warm-up is long over.
# *Recorded* on an H200: 1.43 ms in the first calls, 1.67 ms in the hundredth. No method of timing
# is at fault. The kernel really takes longer. (A GPU that may draw more than this product needs
# shows a flat line here. Then go on with the figures that are named as recorded.)
#
# ## 2 Who slows it down
#
# `live.load` calls a piece of work again and again, looks at the GPU now and then, and draws what
# it sees while the work runs. It asks the driver through NVML, which needs no rights. (On a real
# GPU it needs the package `nvidia-ml-py`; without it the picture stays empty and says why.)
#
# Three things could be at work. The chip is hot; or it draws more power than it may; or somebody
# has set a lower clock.

# %%
cause = exercises.predict(
    "What lowers the clock?", ..., choices=("heat", "power", "a setting", "nothing does")
)
cause

# %% [markdown]
# And if it is power: look at the first moment at which the clock has fallen. How much of the
# allowed power does the driver report there?

# %%
late = exercises.predict("Power, as a share of the limit?", ..., unit="%")
late

# %% [markdown]
# Now let it run. When you have seen enough, interrupt the kernel, or press Stop where that button
# appears: what was read by then is kept. `clocks.watch` gives the readings without the picture.

# %%
rest()
trace = live.load(product, duration_s=2, title="The GPU while products run")
trace

# %%
watched = trace.to_frame()
columns = ["time_s", "sm_mhz", "power_w", "temperature_c", "utilization", "reasons"]
watched[columns].iloc[:: max(1, len(watched) // 10)].round(2)

# %% [markdown]
# The clock falls within about a tenth of a second, as the times rose above. The shaded part is
# where the driver gives a reason. What is it?

# %%
regime = trace.regime
str(regime)

# %%
named = " ".join(regime.reasons)
causes = {"power": "power", "thermal": "heat", "clocks": "a setting"}
cause.compare(next((causes[word] for word in causes if word in named), "nothing does"))

# %% [markdown]
# *Recorded* on an H200: 1980 MHz falls to about 1440 within 0.1 s, with the reason *software power
# cap* (gpulab says `power cap`), power rises to 690 W of the 700 that are allowed, and the chip
# stays below 62 °C. At the highest clock this product would draw more, so the driver lowers the
# clock until it fits.
#
# The clock fell by 27 % there, but the time rose by 17 % only. So the first calls cannot have run
# at the clock that was read. The likely reason: inside the first calls something faster than the
# readings already held the power down.
#
# NVML's reasons, as gpulab words them:
#
# | reason | what holds the clock down | regime in gpulab |
# |---|---|---|
# | `power cap` | the power limit | settled |
# | `applications clocks` | somebody has set a clock | settled |
# | `thermal slowdown (software)`, `(hardware)` | heat | throttled |
# | `hardware slowdown`, `power brake` | the hardware protects itself | throttled |
# | `idle` | nothing to do | idle |
#
# People call all but the last *throttling*. The difference matters: the first two are how a GPU
# is meant to work; heat and `hardware slowdown` say that cooling or power supply need a look.
#
# ### What the driver tells late
#
# So power is the cause. In its panel above, the power rises in a straight line for about a second.
# Where was it when the clock fell?

# %%
has_fallen = watched["sm_mhz"] < 0.97 * watched["max_sm_mhz"]
first_fallen = watched[has_fallen].head(1)
late.compare((100 * first_fallen["power_w"] / first_fallen["power_limit_w"]).max())

# %% [markdown]
# The effect seems to come before its cause. It does not: the reported power is an average over the
# last second, so it needs a second to arrive. *Recorded* on an H200: the driver renews what it
# tells every 0.1 s, the reason is named 0.1 s after the clock has fallen, and it stays for up to
# 0.5 s after the work is done. Believe the clock first.
#
# ## 3 Two traces
#
# Two traces of the same product, one call every 22 ms, taken on a virtual H200. In both, some
# calls take 15 % longer than others.

# %%
traces = exercises.readings("05.two-traces")
plots.draw(
    partial(over_time, column="duration_s", label="time per call"),
    traces,
    title="Two traces of one product",
    alt="Trace a rises once and stays; trace b jumps up and down.",
)

# %% [markdown]
# The next cell shows the numbers behind it. `ask` says how to answer.

# %%
exercises.ask("05.two-traces")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {"a": ("power cap", "name the regime"), "b": ("noise", "more samples")}
### END SOLUTION
exercises.check("05.two-traces", answer)

# %% [markdown]
# Stuck? `exercises.hint("05.two-traces")` gives a hint, and one more each time.
#
# The clocks of both, in one picture:

# %%
plots.draw(
    over_time,
    traces,
    title="The same two traces: the clock",
    alt="The clock of trace a falls by a quarter and stays there; that of b is constant.",
)

# %% [markdown]
# Trace a is products back to back. Trace b is the same product with rests, while another stream
# adds large tensors now and then. One call of trace b, then, looks like this:

# %%
side = torch.cuda.Stream()
large = torch.zeros(1 << 27, device="cuda")


def disturbed():
    with torch.cuda.stream(side):
        large.add_(1)
    product()


rest()
shown = gpulab.timeline(disturbed)
shown.place

# %%
plots.draw(
    plots.timeline,
    shown,
    title="Noise: somebody else is on the GPU",
    alt="The product is launched at once, but starts only when the addition leaves room for it.",
    ax_size=(8, 3),
)

# %% [markdown]
# The kernel itself is as fast as in any burst. It waits for room on the GPU, and your first event
# was reached before that wait.

# %% [markdown]
# ## 4 Burst and settled
#
# A GPU that has just rested is in a **burst**: the highest clock. One that has worked hard for a
# while has **settled**: the clock that the power limit allows. Both are states of a healthy GPU.
# How long must it rest to be back in a burst?

# %%
back = exercises.predict(
    "How long must it rest?", ..., choices=("below 0.3 s", "some seconds", "a minute")
)
back

# %%
rows = []
for rest_s in (0.01, 0.03, 0.1, 0.3, 1.0):
    list(clocks.watch(product, duration_s=0.5))  # settle
    time.sleep(rest_s)
    rows.append((rest_s, np.median(timed(product, 3)), clocks.read().sm_mhz))
rested = pd.DataFrame(rows, columns=["rest_s", "duration_s", "sm_mhz"])
rested.assign(time=rested["duration_s"].map(format_time)).drop(columns="duration_s")

# %%
is_back = rested["duration_s"] < (first_s + last_s) / 2
quickly = rested.loc[is_back, "rest_s"].min() <= rested["rest_s"].median()
back.compare("below 0.3 s" if quickly else "some seconds")

# %% [markdown]
# *Recorded* on an H200: the clock was back at 1905 MHz with the first reading after the work, and
# at 1965 with the second. It is power, not heat, so nothing has to cool down.
#
# Now measure both regimes with `gpulab.measure`: ten calls after a rest, and six hundred. Each
# result names the clock it was read at, and below it what there is to doubt.

# %%
measure = partial(gpulab.measure, product, method="events", n_warmup=3, progress=False)
rest()
burst = measure(n_samples=10, label="10 calls: burst")
burst

# %%
rest()
settled = measure(n_samples=600, label="600 calls: settled")
settled

# %%
plots.draw(
    plots.compare_methods,
    [burst, settled],
    title="One product, two honest answers",
    alt="The settled time is longer than the one in a burst, and the intervals do not overlap.",
    ax_size=(6.4, 2.4),
)

# %% [markdown]
# Both intervals are narrow and both medians are right. They answer different questions: how long
# one call takes now and then, and how long it takes in a loop that runs for minutes. Their mean
# answers none.
#
# ### Exercise: which number

# %%
exercises.ask("05.burst-or-settled")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {"a": "burst", "b": "settled", "c": "settled", "d": "burst"}
### END SOLUTION
exercises.check("05.burst-or-settled", answer)

# %% [markdown]
# ## 5 Without rights
#
# On most course machines you may not hold the clock. You may read it, and that is enough to be
# honest: take a reading with every sample, and leave out the samples of another regime.

# %%
rest()
pairs = [(np.median(timed(product, 5)), clocks.read(parts=clocks.QUICK)) for _ in range(60)]
samples_s, seen = zip(*pairs, strict=True)
len(samples_s)

# %% [markdown]
# `clocks.flag` says of each sample whether its clock differs from the median clock by more than
# 3 %. (A settled clock trembles by 1 or 2 % anyway.)

# %%
share = exercises.predict("What share of the 60 samples is flagged?", ..., unit="%")
share

# %%
flags = np.array(clocks.flag(seen))
share.compare(100 * flags.mean())

# %%
frame = clocks.to_frame(seen)[["time_s", "sm_mhz"]].assign(
    duration_s=samples_s, series=np.where(flags, "flagged", "kept")
)
plots.draw(
    partial(over_time, column="duration_s", label="time per call"),
    frame,
    title="Samples by the clock they were taken at",
    alt="The first samples are flagged; those that follow lie on one level.",
    source=gpulab.device.current(),
)

# %% [markdown]
# What does it change?

# %%
kept_s = frame.loc[~flags, "duration_s"]
spread = pd.DataFrame({"all": frame["duration_s"].describe(), "kept": kept_s.describe()})
spread.loc[["min", "50%", "max"]].map(format_time)

# %% [markdown]
# The median hardly moves here, because most samples were settled; the range does. With fewer
# samples the median itself would be of both regimes.
#
# `gpulab.measure` reads the clock before the samples and with every batch. It keeps all samples,
# says in its findings what the clock did, and lists those of another regime in `flagged`.

# %%
rest()
mixed = gpulab.measure(product, method="events", n_warmup=3, n_samples=150)
mixed

# %%
[finding.code for finding in mixed.findings]

# %% [markdown]
# Two limits. The driver renews its answer every 0.1 s, so the reading beside a short sample may be
# older than the sample. And the settled clock of a real GPU is not constant: *recorded* on an
# H200, it dipped to between 1185 and 1335 MHz for 0.2 to 0.3 s about once a second. The virtual
# GPU has no dips, and its readings are newer.
#
# ### Exercise: which to discard
#
# Write the filter. It will be tried on samples with a slow one at the usual clock, a dip, and one
# sample without a reading. Which of them go?

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
# ## 6 A against B
#
# A is our product. B is the same with a shorter inner dimension: 7936 instead of 8192, so 3 % less
# to compute. Here is how most people compare the two: first A, then B, twenty calls each.

# %%
shorter = partial(torch.mm, a[:, :7936], a[:7936], out=out)
shorter()
torch.cuda.synchronize()
f"{7936 / 8192:.3f} of the work"

# %%
one_by_one = exercises.predict("What comes out for B / A?", ..., unit="times")
one_by_one

# %%
rest()
a_s = np.median(timed(product))
b_s = np.median(timed(shorter))
format_time(a_s), format_time(b_s)

# %%
one_by_one.compare(b_s / a_s)

# %% [markdown]
# B does less, and takes longer. Nothing is wrong with the events, the waits or the warm-up: while
# A was timed the clock was high, and when it was B's turn it had fallen.
#
# The same fault in its most common form: five candidates in a loop. What ranking do you get if all
# five are the *same* function?

# %%
winner = exercises.predict(
    "Which of five equal ones wins?", ..., choices=("the first", "the last", "none: all equal")
)
winner

# %%
rest()
five_s = pd.Series([np.median(timed(product)) for _ in range(5)], index=[*"12345"])
five_s.map(format_time)

# %%
ends = {"the first": five_s.iloc[0], "the last": five_s.iloc[-1]}
little = 0.02
is_even = five_s.max() / five_s.min() < 1 + little
winner.compare("none: all equal" if is_even else min(ends, key=ends.get))

# %% [markdown]
# ### In turns
#
# `gpulab.compare` samples both in turns, five of A, five of B, five of B, five of A, and divides
# each sample by its neighbour. The clock falls here too. What does it find?

# %%
in_turns = exercises.predict("What does compare find for B / A?", ..., unit="times")
in_turns

# %%
rest()
turns = gpulab.compare(product, shorter, labels=("A", "B"), method="events", n_samples=60)
turns.verdict()

# %%
in_turns.compare(turns.ratio)

# %% [markdown]
# Look at the samples: both move with the clock, and they move together.

# %%
plots.draw(
    plots.samples,
    [turns.first, turns.second],
    title="A and B in turns, while the clock falls",
    alt="The samples of both rise at first; those of B lie below those of A nearly everywhere.",
)

# %%
f"flagged: {len(turns.first.flagged)} of A, {len(turns.second.flagged)} of B"

# %% [markdown]
# `compare` reads the clock with every turn, so it can name the samples of another regime. It need
# not leave them out: the ratio of two neighbours holds in either.
#
# ### Exercise: why in turns

# %%
exercises.ask("05.in-turns")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = "c"
### END SOLUTION
exercises.check("05.in-turns", answer)

# %% [markdown]
# ## 7 Holding the clock
#
# With an administrator's rights the driver can be asked to keep one clock:
#
# | command | what it does |
# |---|---|
# | `sudo nvidia-smi -i 0 --lock-gpu-clocks=1410,1410` (`-lgc`) | asks GPU 0 for 1410 MHz |
# | `sudo nvidia-smi -i 0 --reset-gpu-clocks` (`-rgc`) | gives the clock free again |
# | `nvidia-smi -q -d SUPPORTED_CLOCKS` | lists the clocks that can be asked for |
#
# It concerns every program on that GPU, and it stays until somebody resets it. That is why this
# lesson locks nothing on hardware. In gpulab a lock is a `with` block: off unless you ask for it,
# undone on every way out, also when the process is killed, and it tells how to undo it by hand.
# You may try it on the virtual GPU.

# %%
allowed = exercises.predict(
    "clocks.lock(1410), as an ordinary user?", ..., choices=("locked", "refused")
)
allowed

# %%
is_virtual = gpulab.device.current().source == "virtual"
message = "not tried: this is a real GPU, and others may use it"
if is_virtual:
    try:
        with clocks.lock(1410) as held:
            message = str(held)
    except gpulab.errors.ClockLockError as error:
        message = str(error)
message

# %%
allowed.compare("refused")

# %% [markdown]
# The virtual GPU gives you the rights of an ordinary user, as most machines do. The message names
# the command for the administrator, and the one that undoes it.
#
# ### Which clock to ask for
#
# Suppose you have the rights. You ask for 1980, 1695 or 1200 MHz and run our product. A lock says
# "keep this clock"; the power limit is still there. Which of the three clocks does the GPU hold?

# %%
which = exercises.predict(
    "Which does it hold?", ..., choices=("all three", "1695 and 1200", "only 1200")
)
which

# %%
held = asked_for([1980, 1695, 1200])
plots.draw(
    over_time,
    held,
    title="A clock that is asked for, and what the power limit leaves of it",
    alt="Those asked for 1980 and 1695 MHz fall to the same clock; the one at 1200 MHz stays.",
)

# %%
held.groupby("asked_mhz")["sm_mhz"].agg(["first", "last"])

# %%
which.compare("only 1200")

# %% [markdown]
# (This is the model of the virtual H200 alone, whatever GPU you are on. No lock was ever measured
# on hardware for this lesson; what follows rests on the settled clocks that were.)
#
# A lock is an upper bound in practice: the GPU may still go below, for power and for heat. So the
# stable clock is one *well under* what the work settles at, not the highest. It also makes the
# kernel slower than any user will see it: a locked clock is for comparing versions, not for
# reporting speed.

# %% [markdown]
# ## 8 Data matters
#
# If power sets the clock, then whatever changes the power changes the time. A multiplier whose
# inputs do not change hardly switches. So: the same shape, the same kernel, but zeros.

# %%
zeros = exercises.predict(
    "On an H200, random numbers settle at 1440 MHz. Zeros settle ...?",
    ...,
    choices=("lower", "at the same clock", "higher"),
)
zeros

# %%
z = torch.zeros_like(a)
rows = []
for name, x in {"random numbers": a, "zeros": z}.items():
    rest()
    work = partial(torch.mm, x, x, out=out)
    looks = list(clocks.watch(work, duration_s=1))
    clock_mhz = np.median([look.sm_mhz for look in looks[-5:]])
    rows.append((name, clock_mhz, np.median(timed(work))))
data = pd.DataFrame(rows, columns=["data", "sm_mhz", "duration_s"]).set_index("data")
data.assign(time=data["duration_s"].map(format_time))[["sm_mhz", "time"]]

# %% [markdown]
# **On the virtual GPU the two rows are equal, and that is wrong.** Its model does not know the
# data: it computes power from the shape and the kind of arithmetic. On hardware the rows differ.
# *Recorded* on an H200, the same products of 8192 x 8192 in half precision:
#
# | data | settled clock |
# |---|---|
# | random numbers | 1440 MHz |
# | zeros | 1635 to 1650 MHz |

# %%
change = data.loc["zeros", "sm_mhz"] / data.loc["random numbers", "sm_mhz"]
trembling = 0.03
measured = "higher" if change > 1 + trembling else "at the same clock"
zeros.compare("higher" if is_virtual else measured)

# %% [markdown]
# `torch.zeros` and `torch.empty` are convenient test data, and they flatter. Use data like those
# that the program will see. `gpulab.measure` has a finding for it (`zero-result`).

# %% [markdown]
# ## 9 Watching
#
# Tools that show what you have just read, while your program runs in another terminal:
#
# | tool | what it shows |
# |---|---|
# | `nvidia-smi` | one look: power, limit, temperature, memory, GPU-Util, processes |
# | `nvidia-smi dmon` | one line a second: power, temperature, use, clocks |
# | `nvidia-smi -q -d PERFORMANCE` | the reasons why the clock is not higher |
# | `nvitop` | a live screen with processes and curves (`pip install nvitop`) |
#
# The number that everybody looks at is **GPU-Util**. In our readings it is `utilization`. Let the
# GPU run `torch.cuda._sleep`, a kernel of a *single thread* that counts cycles. An H200 holds
# 270,336 threads at a time. What is GPU-Util?

# %%
util = exercises.predict("GPU-Util for one thread?", ..., unit="%")
util

# %%
rest()
count = partial(torch.cuda._sleep, 10_000_000)
count()
alone = clocks.to_frame(clocks.watch(count, duration_s=1.5))
util.compare(alone["utilization"].iloc[-1])

# %%
both = {"one thread": alone, "products": watched}
last = pd.DataFrame({name: part.iloc[-1] for name, part in both.items()})
last.loc[["utilization", "power_w", "sm_mhz", "temperature_c"]]

# %% [markdown]
# The two look alike to GPU-Util. It is the share of recent time in which *any* kernel ran, not how
# much of the chip is used. Power tells them apart: a GPU that draws little does little.

# %%
exercises.ask("05.gpu-util")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = "b"
### END SOLUTION
exercises.check("05.gpu-util", answer)

# %% [markdown]
# ## What you take along
#
# - Heavy work lowers the clock within a tenth of a second. The power limit does it, not heat.
# - Times that move with the clock are no noise: more samples do not help.
# - Burst and settled are both honest. Name the one that you report.
# - Read the clock with every sample. Discard by the clock, never by the duration.
# - Compare A and B in turns.
# - A locked clock is stable only well below the settled one, and concerns everybody.
# - Zeros flatter. GPU-Util counts time, not work.
#
# Still open: where the data were when the kernel started. That is lesson 06.

# %%
exercises.progress()
