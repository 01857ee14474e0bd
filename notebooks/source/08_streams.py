# %% [markdown]
# # 08 Streams
#
# How do copies and kernels run at the same time, safely?
#
# A GPU can do several things at once: compute, copy in, copy out. It does so only if you put the
# work into several queues, and then nothing orders them but you. A wait too many costs the
# overlap; a wait too few costs the result, and nobody tells you.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 Queues and engines | what is ordered, what is not, and the default stream | 10 |
# | 2 Who waits for whom | five waits and one puzzle | 15 |
# | 3 Copies | what it takes to copy beside a kernel | 15 |
# | 4 Still one after the other | two reasons that streams do not help | 10 |
# | 5 The double buffer | to find two races, mend them and keep the overlap | 25 |
# | 6 Memory that is still in use | `record_stream`, and whose memory it is | 10 |
# | 7 Backward and the optimizer | on which stream gradients are made, and who waits | 10 |
# | 8 Two GPUs | streams and events across devices | 5 |
# | 9 Errors that come late | why the traceback points at the wrong line | 5 |

# %%
import time
from functools import partial

import pandas as pd
import torch

import gpulab
from gpulab import exercises, live
from gpulab.exercises import machines
from gpulab.exercises.lesson_08 import overlap, pipelines
from gpulab.units import format_time

gpulab.use("auto")

# %% [markdown]
# ## 1 Queues and engines
#
# A stream is a queue. `torch.cuda._sleep(n)` is a kernel that counts n clock cycles and leaves
# the rest of the GPU free. Two of them, each in a stream of its own: one after the other, or at
# once?

# %%
two = exercises.predict(
    "Two sleeps in two streams?", ..., choices=("one after the other", "at once")
)
two

# %%
left, right = torch.cuda.Stream(), torch.cuda.Stream()


def sleep_in(*streams, n_cycles=1_000_000):
    for stream in streams:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(n_cycles)


gpulab.timeline(lambda: (sleep_in(left, right), sleep_in(left, left)))

# %%
two.compare("at once")

# %% [markdown]
# The first two run at once, in two streams. The last two are in one stream, so they take turns.
# Inside a stream the order is the order of the launches; across streams there is none.
#
# ### The current stream
#
# Who launches never names a stream: work goes into the *current* one. It is the default stream
# until `with torch.cuda.stream(...)` makes another one current, for the length of the block.

# %%
streams = [torch.cuda.current_stream()]
with torch.cuda.stream(left):
    streams.append(torch.cuda.current_stream())
streams.append(torch.cuda.current_stream())
[stream == torch.cuda.default_stream() for stream in streams]

# %% [markdown]
# ### Does the default stream stop the others?
#
# You may have read that work in the default stream waits for all other streams, and they for it.
# Three sleeps: in `left`, in the default stream, in `right`.

# %%
fence = exercises.predict("How do the three run?", ..., choices=("one after the other", "at once"))
fence

# %%
shown = gpulab.timeline(partial(sleep_in, left, torch.cuda.default_stream(), right))
shown

# %%
share = shown.summary().devices[0]
three_s = sum(stream.busy_s for stream in share.streams)
fence.compare("at once" if share.busy_s < 0.6 * three_s else "one after the other")

# %% [markdown]
# That rule is true of CUDA's *blocking* streams. The side streams of PyTorch are made
# non-blocking: the default stream does not fence them, and they do not fence it. So the old rule
# saves you from nothing here. If you need an order, you must say so.
#
# ### Three engines
#
# Kernels need the multiprocessors. Copies need one of the copy engines, and there is one for each
# direction. How long do a copy in, a copy out and a kernel take, if each takes 0.3 ms alone and
# all three are in streams of their own?

# %%
engines = exercises.predict("How long do all three take?", ..., unit="ms")
engines

# %%
N = 1 << 22  # 16 MiB of float32
host_in, host_out = (torch.empty(N, pin_memory=True) for _ in range(2))
gpu_in, gpu_out = (torch.empty(N, device="cuda") for _ in range(2))


def all_three():
    with torch.cuda.stream(left):
        gpu_in.copy_(host_in, non_blocking=True)
    with torch.cuda.stream(right):
        host_out.copy_(gpu_out, non_blocking=True)
    torch.cuda._sleep(600_000)


shown = gpulab.timeline(all_three)
shown

# %%
engines.compare(shown.summary().devices[0].busy_s)

# %% [markdown]
# Both directions and the kernel run at once. The summary above names the engines that were busy:
# this is all that there is to overlap. Two copies in the same direction take turns, whatever their
# streams.

# %% [markdown]
# ## 2 Who waits for whom
#
# Lesson 02 showed the waits from the host's side. Here is what they do to the queues. `left` works
# for some milliseconds, with a marker behind it. Which of these calls keeps the host?

# %%
keeps = exercises.predict(
    "Which one keeps the host?",
    ...,
    choices=("query", "wait_event", "wait_stream", "synchronize"),
)
keeps

# %%
marker = torch.cuda.Event()
calls = {
    "query": marker.query,
    "wait_event": partial(right.wait_event, marker),
    "wait_stream": partial(right.wait_stream, left),
    "synchronize": marker.synchronize,
}
list(calls)

# %%
rows = []
for _ in range(2):  # the second round is kept: first calls are slow
    sleep_in(left, n_cycles=10_000_000)
    marker.record(left)
    for name, call in calls.items():
        start = time.perf_counter()
        result = call()
        rows.append((name, time.perf_counter() - start, result))
host = pd.DataFrame(rows[-4:], columns=["call", "host_s", "returns"])
host.assign(host=host["host_s"].map(format_time))[["call", "host", "returns"]]

# %%
keeps.compare(host.loc[host["host_s"].idxmax(), "call"])

# %% [markdown]
# `query` asks and returns. `wait_event` and `wait_stream` put an entry into the queue of `right`:
# the GPU will wait there, the host goes on. Only `synchronize` keeps the host.
#
# ### Exercise: the puzzle of the five waits
#
# The device, a stream, an event: three to synchronize with. `wait_event` and `wait_stream`: two
# that order queues. And `.item()`, which is a hidden one of the first kind. What does each of them
# put in order?

# %%
exercises.ask("08.five-waits")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {
    "torch.cuda.synchronize": ("abc", "after abc"),
    "left.synchronize": ("ab", "after abc"),
    "marker.synchronize": ("a", "after ac"),
    "right.wait_event": ("none", "after ac"),
    "right.wait_stream": ("none", "after abc"),
    "y.item": ("c", "after c"),
}
### END SOLUTION
exercises.check("08.five-waits", answer)

# %% [markdown]
# `exercises.hint("08.five-waits")` gives a hint, and one more each time.
#
# ### Let the GPU answer
#
# The same program, run. Each kernel is followed by an event, so you can ask at `now()` which are
# done. What is done by luck must not count: so each line runs twice, once with a short c and once
# with a long one, and only what is done both times is listed.

# %%
values = torch.ones(8, device="cuda")
LINES = {
    "torch.cuda.synchronize()": torch.cuda.synchronize,
    "left.synchronize()": left.synchronize,
    "marker.synchronize()": marker.synchronize,
    "right.wait_event(marker)": partial(right.wait_event, marker),
    "right.wait_stream(left)": partial(right.wait_stream, left),
    "y.item()": lambda: values.sum().item(),
}
list(LINES)


# %%
def kernel(stream, n_cycles):
    sleep_in(stream, n_cycles=n_cycles)
    return stream.record_event(torch.cuda.Event(enable_timing=True))


kernel(left, 1).query()


# %%
def trial(line, c_cycles):
    done = {"a": kernel(left, 2_000_000)}
    marker.record(left)
    done |= {"b": kernel(left, 2_000_000), "c": kernel(right, c_cycles)}
    with torch.cuda.stream(right):
        line()
    at_now = {name for name, event in done.items() if event.query()}
    d = kernel(right, 1)  # d is over as soon as it starts
    torch.cuda.synchronize()
    return at_now, {name for name, event in done.items() if event.elapsed_time(d) > 0}


trial(torch.cuda.synchronize, 1)

# %%
rows = []
for name, line in LINES.items():
    pairs = zip(trial(line, 400_000), trial(line, 20_000_000), strict=True)
    rows.append([name, *("".join(sorted(short & long)) or "none" for short, long in pairs)])
pd.DataFrame(rows, columns=["LINE", "done at now()", "done before d"]).set_index("LINE")

# %% [markdown]
# Compare it with your table. To *read* something on the host, use one that keeps the host. To
# *order* streams, use one that does not.

# %% [markdown]
# ## 3 Copies
#
# ### Pinned and pageable memory
#
# Ordinary host memory is *pageable*: the operating system may move it. A copy engine can read only
# memory that stays where it is, called *pinned*: `torch.empty(n, pin_memory=True)`. From pageable
# memory the driver copies in pieces through a pinned buffer of its own, and the host takes part.
#
# A copy of 16 MiB with `non_blocking=True` from pageable memory: when does the call return?

# %%
returns = exercises.predict(
    "When does the call return?", ..., choices=("at once", "when the copy is done")
)
returns

# %%
pageable = torch.empty(N)
ways = [
    ("pinned", "in", partial(gpu_in.copy_, host_in, non_blocking=True)),
    ("pinned", "out", partial(host_out.copy_, gpu_in, non_blocking=True)),
    ("pageable", "in", partial(gpu_in.copy_, pageable, non_blocking=True)),
    ("pageable", "out", partial(pageable.copy_, gpu_in, non_blocking=True)),
]
len(ways)

# %%
rows = []
for memory, way, copy in [*ways, *ways]:  # the second round is kept
    torch.cuda.synchronize()
    start = time.perf_counter()
    copy()
    returned = time.perf_counter()
    torch.cuda.synchronize()
    rows.append((memory, way, returned - start, time.perf_counter() - start))
len(rows)

# %%
copies = pd.DataFrame(rows[4:], columns=["memory", "way", "host_s", "copy_s"])
copies["GB/s"] = (4 * N / copies["copy_s"] / 1e9).round(1)
copies.assign(host=copies["host_s"].map(format_time)).drop(columns=["host_s", "copy_s"])

# %%
waited = copies.set_index(["memory", "way"]).loc[("pageable", "in")]
returns.compare("when the copy is done" if waited.host_s > 0.8 * waited.copy_s else "at once")

# %% [markdown]
# `non_blocking=True` is a request, and pageable memory cannot grant it. *Recorded* on an H200 for
# 256 MiB: a pinned copy moves 55 GB/s and keeps the host for 12 µs; a pageable one moves 23 GB/s
# in and 16 out, and keeps the host for 11.8 ms on the way in.
#
# ### Beside a kernel
#
# A copy and behind it a kernel that does not need what is copied: two lines of a program. Say
# first what it takes to run both at once; then see it.

# %%
exercises.ask("08.copy-overlap")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = "d"
### END SOLUTION
exercises.check("08.copy-overlap", answer)


# %%
def copy_then_kernel(on_host, stream):
    with torch.cuda.stream(stream):
        gpu_in.copy_(on_host, non_blocking=True)
    torch.cuda._sleep(600_000)  # in the current stream


default = torch.cuda.default_stream()
gpulab.timeline(partial(copy_then_kernel, pageable, default))

# %% [markdown]
# Neither change is made: first the copy, then the kernel. Now each change alone, and both.

# %%
variants = {
    "pinned alone": (host_in, default),
    "a second stream alone": (pageable, left),
    "both": (host_in, left),
}
shown = {name: gpulab.timeline(partial(copy_then_kernel, *how)) for name, how in variants.items()}
shares = {name: line.summary().devices[0] for name, line in shown.items()}
saved = {name: sum(part.busy_s for part in s.engines) - s.busy_s for name, s in shares.items()}
pd.Series(saved, name="saved by overlap (ms)").mul(1e3).round(2)

# %%
shown["both"]

# %% [markdown]
# Two reasons kept the trace sequential, and each of them hid the other. You need all three:
# pinned memory, `non_blocking=True`, and two streams.
#
# With pageable memory in a second stream, a kernel that was launched *before* the copy does run
# beside it. But the host stands in the copy, so nothing that comes after it can start.

# %% [markdown]
# ## 4 Still one after the other
#
# Two products of 4096 x 4096 matrices, in two streams, nothing waits. Do they overlap? (A small
# kernel goes before some products, to prepare them.)

# %%
big = exercises.predict("How much do they overlap?", ..., choices=("fully", "hardly at all"))
big

# %%
a = torch.randn(4096, 4096, device="cuda", dtype=torch.half)
outs = [torch.empty_like(a) for _ in range(2)]
HALF = 0.5


def two_products():
    for stream, out in zip((left, right), outs, strict=True):
        with torch.cuda.stream(stream):
            torch.mm(a, a, out=out)


products = gpulab.timeline(two_products)
products

# %%
share = products.summary().devices[0].overlap_achieved
big.compare("fully" if share > HALF else "hardly at all")

# %% [markdown]
# And two kernels on 1,024 elements each?

# %%
tiny = exercises.predict("How much do they overlap?", ..., choices=("fully", "hardly at all"))
tiny

# %%
smalls = [torch.zeros(1024, device="cuda") for _ in range(2)]


def two_small_kernels():
    for stream, x in zip((left, right), smalls, strict=True):
        with torch.cuda.stream(stream):
            x.add_(1)


kernels = gpulab.timeline(two_small_kernels)
kernels

# %%
share = kernels.summary().devices[0].overlap_achieved
tiny.compare("fully" if share > HALF else "hardly at all")

# %% [markdown]
# ### Exercise: two reasons for a sequential trace

# %%
exercises.ask("08.two-reasons")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {
    "two products": ("the gpu is full", "nothing"),
    "two small kernels": ("the host is late", "fewer launches"),
}
### END SOLUTION
exercises.check("08.two-reasons", answer)

# %% [markdown]
# So streams pay for kernels of a middle size, and for copies beside kernels. That is where we go
# now.

# %% [markdown]
# ## 5 The double buffer
#
# A program has 40 batches on the host. Each must be brought to the GPU and computed on. With two
# buffers, batch k + 1 can be copied while batch k is computed on. `pipelines.run` calls such a
# program with:
#
# - `slots`: two of them, each with a buffer `.pinned`, a buffer `.on_device`, and two events,
#   `.copied` and `.computed`
# - `copying`: a stream for the copies
# - `fill(pinned, step)`: the host writes batch `step` into a pinned buffer
# - `compute(on_device, step)`: launches the work on the current stream.
#
# It then compares every result with what it should be. First without any overlap:


# %%
def one_at_a_time(slots, _copying, fill, compute, n_steps):
    for step in range(n_steps):
        slot = slots[0]
        fill(slot.pinned, step)
        slot.on_device.copy_(slot.pinned, non_blocking=True)
        compute(slot.on_device, step)
        torch.cuda.synchronize()


serial = pipelines.run(one_at_a_time)
serial

# %% [markdown]
# Right, and slow. Below is the listing that you find in many places: the copies have their own
# stream, and before `compute` the current stream waits for the copy. How many of the 40 steps
# compute on wrong data?

# %%
wrong = exercises.predict("How often is a result wrong?", ..., unit="times")
wrong


# %%
def as_listed(slots, copying, fill, compute, n_steps):
    for step in range(n_steps):
        slot = slots[step % 2]
        fill(slot.pinned, step)
        with torch.cuda.stream(copying):
            slot.on_device.copy_(slot.pinned, non_blocking=True)
            slot.copied.record()
        torch.cuda.current_stream().wait_event(slot.copied)
        compute(slot.on_device, step)


listed = pipelines.run(as_listed)
listed

# %%
wrong.compare(listed.n_wrong)

# %% [markdown]
# It is fast, and nearly everything in it is wrong. No error, no warning; on an H200 a program of
# this kind had 38 wrong steps of 40 (*recorded*). A training run would just learn a little worse.
#
# ### Find the races
#
# `gpulab.hazards()` follows who touches which bytes, and who waits for whom. It reports two
# operations on the same bytes, one of them a write, that no wait puts in order. (Times inside the
# block mean nothing: watching takes time.)

# %%
with gpulab.hazards() as found:
    pipelines.run(as_listed, n_steps=6)
found

# %%
exercises.ask("08.find-the-races")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {
    "pinned": ("fill", "copy", "host"),
    "device": ("copy", "compute", "copying"),
}
### END SOLUTION
exercises.check("08.find-the-races", answer)

# %% [markdown]
# ### Mend one of them
#
# The race on the device is the one that everybody thinks of. Suppose you mend it alone: the copy
# waits until the last computing on its buffer is done. How many steps are wrong now?

# %%
half = exercises.predict("How often is a result wrong?", ..., unit="times")
half


# %%
def device_wait_alone(slots, copying, fill, compute, n_steps):
    for step in range(n_steps):
        slot = slots[step % 2]
        fill(slot.pinned, step)
        copying.wait_event(slot.computed)
        with torch.cuda.stream(copying):
            slot.on_device.copy_(slot.pinned, non_blocking=True)
            slot.copied.record()
        torch.cuda.current_stream().wait_event(slot.copied)
        compute(slot.on_device, step)
        slot.computed.record()


device_wait_alone.__name__

# %%
mended = pipelines.run(device_wait_alone)
mended

# %%
half.compare(mended.n_wrong)

# %% [markdown]
# Hardly better (*recorded* on an H200: 37 of 40). The host runs far ahead: it refills both pinned
# buffers long before the first copy starts. One race hid the other, and a program with one race is
# as wrong as one with two.
#
# ### Exercise: the double buffer, done right

# %%
exercises.ask("08.double-buffer")

# %% tags=["exercise"]
pipeline = ...


### BEGIN SOLUTION
def pipeline(slots, copying, fill, compute, n_steps):
    for step in range(n_steps):
        slot = slots[step % 2]
        slot.copied.synchronize()
        fill(slot.pinned, step)
        copying.wait_event(slot.computed)
        with torch.cuda.stream(copying):
            slot.on_device.copy_(slot.pinned, non_blocking=True)
            slot.copied.record()
        torch.cuda.current_stream().wait_event(slot.copied)
        compute(slot.on_device, step)
        slot.computed.record()


### END SOLUTION
exercises.check("08.double-buffer", pipeline)

# %% [markdown]
# ### What it brings
#
# Overlap can save at most the shorter of the two: all copying, or all computing (but for the first
# batch, which has nothing to hide behind). How much of that does each program save? They run once
# more, and each bar appears when its program is done.

# %%
programs = {
    "one at a time": one_at_a_time,
    "as listed": as_listed,
    "device wait alone": device_wait_alone,
}
programs |= {"yours": pipeline} if callable(pipeline) else {}
columns = ["duration_s", "hidden_s", "possible_s", "n_wrong"]


def savings():
    for name, program in programs.items():
        done = pipelines.run(program)
        yield {"program": name} | {column: getattr(done, column) for column in columns}


list(programs)

# %%
shown = live.series(
    savings(),
    overlap,
    n_expected=len(programs),
    title="Overlap achieved against possible",
    alt="One at a time saves nothing; the others save nearly all that is possible.",
    ax_size=(8, 2.6),
)
shown

# %%
results = shown.to_frame()
speed_up = results["duration_s"].iloc[0] / results["duration_s"]
results[["program", "n_wrong"]].assign(speed_up=speed_up.round(2))

# %% [markdown]
# The waits that make it right cost next to nothing, because each of them waits for one event that
# lies two steps back. You can see it in the lanes of your program, or of the faulty one if you
# have none yet.

# %%
pipelines.timeline_of(pipeline if callable(pipeline) else as_listed)

# %% [markdown]
# ## 6 Memory that is still in use
#
# `del x` gives memory back at once: not to the GPU but to PyTorch's allocator, which keeps a pool
# for each stream. The next tensor of this size on *that* stream gets it. In one stream this is
# safe, as the new tensor's kernel comes after all that used the old one. A tensor that another
# stream still reads is another matter.


# %%
def is_corrupted(before_del, n=1 << 16, filled=7.0):
    x = torch.ones(n, device="cuda")
    left.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(left):
        torch.cuda._sleep(200_000)
        total = x.sum()
    before_del(x, total)
    del x
    other = torch.full((n,), filled, device="cuda")
    torch.cuda.synchronize()
    return total.item() != n or other[0].item() != filled


is_corrupted(lambda _x, _total: left.synchronize())

# %% [markdown]
# x is made on the default stream, read in `left`, dropped, and a new tensor is made. If the host
# waits for `left` before it drops x, the total is right, as you see. Now it waits for nothing. In
# how many of 20 trials is the total wrong?

# %%
dropped = exercises.predict("In how many of 20 trials?", ..., unit="times")
dropped


# %%
def n_corrupted(before_del):
    return sum(is_corrupted(before_del) for _ in range(20))


n_wrong = n_corrupted(lambda _x, _total: None)
n_wrong

# %%
dropped.compare(n_wrong)

# %% [markdown]
# *Recorded* on an H200: 19 of 20. The stream was ordered rightly behind the making of x; the
# memory was not ordered behind its last use. The checker sees that, too:

# %%
with gpulab.hazards() as found:
    n_corrupted(lambda _x, _total: None)
found

# %% [markdown]
# ### Exercise: who keeps the memory

# %%
exercises.ask("08.record-stream")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {
    "a": "corrupted",
    "b": "safe",
    "c": "safe",
    "d": "corrupted",
    "e": "corrupted",
    "f": "safe",
}
### END SOLUTION
exercises.check("08.record-stream", answer)

# %%
endings = {
    "a": lambda _x, _total: None,
    "b": lambda x, _total: x.record_stream(left),
    "c": lambda _x, _total: torch.cuda.current_stream().wait_stream(left),
    "d": lambda _x, _total: left.wait_stream(torch.cuda.current_stream()),
    "e": lambda _x, total: total.record_stream(left),
    "f": lambda _x, _total: left.synchronize(),
}
pd.Series({name: n_corrupted(ending) for name, ending in endings.items()}, name="wrong of 20")

# %% [markdown]
# `record_stream` is the cheap way: nobody waits, the memory is only kept back until `left` has
# done what was in its queue at `del`.
#
# ### Freed on another stream
#
# Memory belongs to the stream that was current when the tensor was *made*. Where it is dropped
# does not matter. A tensor is made in `left` and dropped under the default stream. Who gets its
# memory?

# %%
heir = exercises.predict(
    "Who gets the memory?", ..., choices=("the default stream", "left", "the first to ask")
)
heir


# %%
def address(stream):
    with torch.cuda.stream(stream):
        x = torch.empty(1 << 18, device="cuda")
    return x.data_ptr()  # x is dropped here, outside of the block


made_in_left = address(left)
asked = {"the default stream": address(default), "left": address(left)}
pd.Series({name: where == made_in_left for name, where in asked.items()}, name="got the memory")

# %%
heir.compare(next(name for name, where in asked.items() if where == made_in_left))

# %% [markdown]
# So a tensor that was made in a side stream and is used in the default stream needs the same care,
# the other way round: `x.record_stream(torch.cuda.default_stream())`. That is what a batch is
# which a copy stream has made with `.to("cuda")`.

# %% [markdown]
# ## 7 Backward and the optimizer
#
# The forward pass ran in a side stream. Then `loss.backward()` is called under the default stream.
# Where does the backward pass run?

# %%
where = exercises.predict(
    "Where does backward run?", ..., choices=("the default stream", "the side stream")
)
where

# %%
weight = torch.ones(4, device="cuda", requires_grad=True)
seen = []
with torch.cuda.stream(left):
    product = weight * 3
    product.register_hook(lambda _gradient: seen.append(torch.cuda.current_stream()))
    loss = product.sum()
loss.backward()
ran_in_left = seen == [left]
ran_in_left

# %%
where.compare("the side stream" if ran_in_left else "the default stream")

# %% [markdown]
# Each operator goes back on the stream on which it went forward, whatever is current. That keeps
# the overlap of forward. But who may use the gradients?
#
# Here is a training step whose backward takes a few milliseconds, with the three calls on streams
# of your choice. The weight is 1 and its gradient 3, so with a learning rate of 1 the new weight
# must be -2. A step that reads the gradient too early finds the old one, zero, and leaves it at 1.

# %%
optimizer = torch.optim.SGD([weight], lr=1.0)


def forward():
    weight.data.fill_(1)
    optimizer.zero_grad(set_to_none=False)
    left.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(left):
        product = weight * 3
        product.register_hook(lambda _gradient: torch.cuda._sleep(4_000_000))
        loss = product.sum()
    torch.cuda.current_stream().wait_stream(left)
    return loss


forward().shape


# %%
def train(backward_on, step_on, wait=lambda: None):
    loss = forward()
    torch.cuda.synchronize()
    with torch.cuda.stream(backward_on):
        loss.backward()
    wait()
    with torch.cuda.stream(step_on):
        optimizer.step()
    torch.cuda.synchronize()
    return weight[0].item()


train(default, default)

# %% [markdown]
# Both calls under the default stream, backward in `left`, no wait, and the weight is right. Now
# backward is called inside `with torch.cuda.stream(left)`, and the step stays outside. What is the
# weight?

# %%
outside = exercises.predict("The new weight?", ..., choices=("-2 (right)", "1 (too early)"))
outside

# %%
new_weight = train(left, default)
outside.compare("1 (too early)" if new_weight > 0 else "-2 (right)")

# %% [markdown]
# At the end of backward one stream is made to wait for all gradients: the one that was current
# when you *called* it. Here that was `left`.
#
# ### Exercise: what must be waited for before the step

# %%
exercises.ask("08.backward")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {
    "a": "none",
    "b": "default waits for side",
    "c": "third waits for default",
    "d": "none",
}
### END SOLUTION
exercises.check("08.backward", answer)

# %%
cases = {
    "a": (default, default),
    "b": (left, default),
    "b with a wait": (left, default, partial(default.wait_stream, left)),
    "c": (default, right),
    "c with a wait": (default, right, partial(right.wait_stream, default)),
    "d": (left, left),
}
pd.Series({name: train(*case) for name, case in cases.items()}, name="new weight")

# %% [markdown]
# The usual program is case a, and it needs nothing: call backward and the optimizer under the same
# stream, and the order is kept. The checker agrees about b:

# %%
with gpulab.hazards() as found:
    train(left, default)
found

# %% [markdown]
# ## 8 Two GPUs
#
# Every GPU has its own streams, its own current stream and its own allocator. If this machine has
# fewer than two, `machines.two_gpus()` lends you virtual ones for the length of a block.
#
# A sleep of half a millisecond on each of two GPUs, both in the default stream. At once?

# %%
pair = exercises.predict(
    "Two GPUs, default streams?", ..., choices=("one after the other", "at once")
)
pair


# %%
def sleep_on_both():
    for index in range(2):
        with torch.cuda.device(index):
            torch.cuda._sleep(1_000_000)


with machines.two_gpus():
    both = gpulab.timeline(sleep_on_both)
both

# %%
alone_s = sum(share.busy_s for share in both.summary().devices)
pair.compare("at once" if both.duration_s < 0.9 * alone_s else "one after the other")


# %% [markdown]
# Each GPU has a default stream of its own. An event of one can be waited for by a stream of the
# other: nothing else orders them. Here `cuda:1` fetches what a side stream of `cuda:0` computes,
# without a wait and with one. What should be fetched is 5.


# %%
def fetched(*, wait):
    x, side = torch.zeros(1 << 16, device="cuda:0"), torch.cuda.Stream(0)
    side.wait_stream(torch.cuda.current_stream(0))
    with torch.cuda.stream(side):
        torch.cuda._sleep(1_000_000)
        x.fill_(5)
    with torch.cuda.device(1):
        if wait:
            torch.cuda.current_stream(1).wait_event(side.record_event())
        there = x.to("cuda:1", non_blocking=True)
    return there[0].item()


fetched.__name__

# %%
with machines.two_gpus():
    got = {wait: fetched(wait=wait) for wait in (False, True)}
got

# %% [markdown]
# The copy waits for the *current* streams of both GPUs and for no side stream. It is the rule of
# this lesson once more: what no wait orders is not ordered.

# %% [markdown]
# ## 9 Errors that come late
#
# A kernel that fails does so long after its launch. This one looks up an index that does not
# exist. Which line raises? (The cell uses a virtual GPU of its own: on a real one the error would
# end the work of this notebook.)

# %%
raises = exercises.predict(
    "Which line raises?", ..., choices=("the look-up", "the addition", "the wait")
)
raises


# %%
program = {
    "the look-up": lambda _: torch.zeros(4, device="cuda")[torch.tensor([7], device="cuda")],
    "the addition": lambda x: x + 1,
    "the wait": lambda x: x.tolist(),
}
list(program)


# %%
def failing_line(after_each=lambda: None):
    result = None
    for line, step in program.items():
        try:
            result = step(result)
            after_each()
        except (IndexError, RuntimeError) as error:
            return line, f"{type(error).__name__}: {error}"
    return "no line", ""


with machines.throwaway_gpu():
    late = failing_line()
late

# %%
raises.compare(late[0])

# %% [markdown]
# The host learns of it at the first call that waits, or at some later launch; the traceback points
# there, at an innocent line. (On hardware the error has another type, and its text says that it
# "might be asynchronously reported at some other API call".) The cure is to look after every
# launch:

# %%
with machines.throwaway_gpu():
    early = failing_line(after_each=torch.cuda.synchronize)
early

# %% [markdown]
# You need not write that into the program. With `CUDA_LAUNCH_BLOCKING=1` in the environment, as in
# `CUDA_LAUNCH_BLOCKING=1 python train.py`, every launch waits until its kernel is done, and the
# error comes at the line that made it. Three things to know:
#
# - It must be set before the process first uses the GPU.
# - It takes away all that this lesson is about: nothing overlaps, and most races vanish. So it
#   finds wrong indices, and it hides missing waits. A program that is right *only* with it has a
#   race.
# - Never measure with it.
#
# ## What you take along
#
# - Inside a stream everything is ordered, across streams nothing is. The default stream is no
#   fence.
# - `synchronize` and `.item()` keep the host; `wait_event` and `wait_stream` keep a stream.
# - A copy runs beside a kernel if its memory is pinned, it is `non_blocking`, and it has a stream
#   of its own. Kernels overlap only if there is room and they arrive in time.
# - Whoever writes into a buffer waits for its last reader: a stream by an event, the host by
#   `synchronize`.
# - Memory that another stream reads: `record_stream` before it is dropped.
# - Gradients are ready for the stream that called `backward()`, and for no other.
# - Right values prove no order. `gpulab.hazards()` looks at the order itself.

# %%
exercises.progress()
