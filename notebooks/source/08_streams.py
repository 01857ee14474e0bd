# %% [markdown]
# # 08 Streams: order and overlap
#
# How do copies and kernels run at the same time, safely?
#
# A GPU can do several things at once: compute, copy in, copy out. It does so only if you put the
# work into several queues, and then nothing orders them but you. One wait too many costs the
# overlap. One wait too few costs the result, and no error says so. (The second half,
# `08b_stream_memory`, is about memory, backward and late errors.)
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 Queues and engines | what is ordered, what is not, and the default stream | 9 |
# | 2 Who waits for whom | five waits and one puzzle | 9 |
# | 3 Copies | what it takes to copy while a kernel runs | 9 |
# | 4 The double buffer | to find two races, fix them and keep the overlap | 18 |
# | *Going further* | *no overlap in spite of streams, naming a stream, two GPUs* | *25* |
#
# Begin with a toy: a copy and a kernel in one stream. Drag the copy into the other stream, and
# change its host memory, until it hides behind the kernel. Then let two kernels race.

# %%
import pandas as pd
import torch

import gpulab
from gpulab import animations, exercises
from gpulab.exercises import lesson_08 as lab
from gpulab.exercises import machines
from gpulab.exercises.lesson_08 import pipelines

gpulab.use("auto", max_value_bytes=48 << 20)  # of large tensors only the times matter
gpulab.explorers.machine_explorer("copy and kernel", challenge="hidden copy")

# %% [markdown]
# ## 1 Queues and engines
#
# A stream is a queue. `torch.cuda._sleep(n)` is a kernel that counts n clock cycles and leaves the
# rest of the GPU free. Two of them, each in a stream of its own: one after the other, or at once?

# %%
exercises.predict("08.two")

# %%
left, right = torch.cuda.Stream(), torch.cuda.Stream()


def sleep_in(*streams, n_cycles=1_000_000):
    for stream in streams:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(n_cycles)


same = gpulab.timeline(lambda: sleep_in(left, left))
apart = gpulab.timeline(lambda: sleep_in(left, right))
apart

# %%
exercises.compare("08.two", lab.how_they_ran(apart))

# %% [markdown]
# Inside a stream the order is the order of the launches; across streams there is none. (The lanes
# have the numbers that the driver gives to the streams; stream 0 is the default stream on the
# virtual GPU.)
#
# A launch never names a stream: the work goes into the *current* one. That is the default stream,
# until `with torch.cuda.stream(...)` makes another one current for the length of the block.
#
# You may have read that work in the default stream waits for all other streams, and they for it.
# Three sleeps: in `left`, in the default stream, in `right`.

# %%
exercises.predict("08.fence")

# %%
default = torch.cuda.default_stream()
three = gpulab.timeline(lambda: sleep_in(left, default, right))
three

# %%
exercises.compare("08.fence", lab.how_they_ran(three))

# %%
exercises.claim("08.no-fence", here=lab.share_of_serial(three))

# %% [markdown]
# The rule that you read is true for CUDA's *blocking* streams. PyTorch creates its side streams as
# non-blocking ones: the default stream does not wait for them, nor they for it. So the old rule
# doesn't save you here. If you need an order, you must ask for it.
#
# ### Engines
#
# Kernels need the multiprocessors. Copies need a copy engine; an H200 has three of them by its
# driver, other GPUs two to seven. How long do a copy in, a copy out and a kernel take, if each
# takes a third of a millisecond alone and all three are in streams of their own?

# %%
exercises.predict("08.engines")

# %%
N = 1 << 22  # 16 MiB of float32
host_in, host_out = torch.empty(2, N, pin_memory=True)
gpu_in, gpu_out = torch.empty(2, N, device="cuda")


def all_three():
    with torch.cuda.stream(left):
        gpu_in.copy_(host_in, non_blocking=True)
    with torch.cuda.stream(right):
        host_out.copy_(gpu_out, non_blocking=True)
    torch.cuda._sleep(600_000)


all_three()

# %%
shown = gpulab.timeline(all_three)
shown

# %%
exercises.compare("08.engines", shown.summary().devices[0].busy_s)

# %% [markdown]
# Both directions and the kernel run at once. Two copies in the *same* direction gain nothing from
# two streams, even with a free engine: they share one link.

# %% [markdown]
# ## 2 Who waits for whom
#
# Lesson 02 showed what the waits do to the host. Here is what they do to the queues. `left` works
# for some milliseconds, and a marker (an event) is recorded after that work. Which call blocks the
# host?

# %%
exercises.predict("08.blocks")

# %%
marker = torch.cuda.Event()
calls = {
    "query": marker.query,
    "wait_event": lambda: right.wait_event(marker),
    "wait_stream": lambda: right.wait_stream(left),
    "synchronize": marker.synchronize,
}


def some_work():
    sleep_in(left, n_cycles=10_000_000)
    marker.record(left)


host_s = lab.host_times(calls, before=some_work)
host_s

# %%
exercises.compare("08.blocks", host_s["host_s"].idxmax())

# %% [markdown]
# `query` asks and returns. `wait_event` and `wait_stream` put an entry into the queue of `right`:
# the GPU will wait there, and the host goes on. Only `synchronize` blocks the host.
#
# ### Exercise: the puzzle of the five waits
#
# You can synchronize with three things: the device, a stream, an event. Two calls order queues:
# `wait_event` and `wait_stream`. And `.item()` is a hidden wait. What does each of them order?

# %%
exercises.ask("08.five-waits")

# %% tags=["exercise"]
answer = {
    "torch.cuda.synchronize": (..., ...),
    "left.synchronize": (..., ...),
    "marker.synchronize": (..., ...),
    "right.wait_event": (..., ...),
    "right.wait_stream": (..., ...),
    "y.item": (..., ...),
}
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
# `exercises.hint("08.five-waits")` gives a hint, and one more each time. Rule of thumb: to *read*
# something on the host, use a call that blocks the host. To *order* streams, use one that doesn't.
#
# ## 3 Copies
#
# Ordinary host memory is *pageable*: the operating system may move it. A copy engine can read only
# memory that stays where it is, called *pinned*: `torch.empty(n, pin_memory=True)`. From pageable
# memory the driver copies in pieces through a pinned buffer of its own, and the host takes part.
#
# A copy of 16 MiB from pageable memory with `non_blocking=True`: when does the call return?

# %%
exercises.predict("08.returns")

# %%
pageable = torch.empty(N)
copies = {
    "pinned in": lambda: gpu_in.copy_(host_in, non_blocking=True),
    "pinned out": lambda: host_out.copy_(gpu_out, non_blocking=True),
    "pageable in": lambda: gpu_in.copy_(pageable, non_blocking=True),
    "pageable out": lambda: pageable.copy_(gpu_out, non_blocking=True),
}
times = lab.host_times(copies)
times.assign(**{"GB/s": 4 * N / times["done_s"] / 1e9}).round(6)

# %%
pageable_in = times.loc["pageable in"]
waited = pageable_in["host_s"] > 0.5 * pageable_in["done_s"]
exercises.compare("08.returns", "when the copy is done" if waited else "at once")

# %%
exercises.claim("08.pageable-blocks", here=pageable_in["host_s"] / pageable_in["done_s"])

# %% [markdown]
# `non_blocking=True` is a request, and pageable memory can't grant it. *Recorded* on an H200 for
# 256 MiB: a pinned copy moves 55 GB/s and blocks the host for 12 µs; a pageable one moves 23 GB/s
# in and 16 out, and blocks the host for 11.8 ms on the way in.
#
# ### Exercise: a copy during a kernel

# %%
exercises.ask("08.copy-overlap")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = "d"
### END SOLUTION
exercises.check("08.copy-overlap", answer)

# %% [markdown]
# Try it: neither change, each change alone, and both.


# %%
def copy_then_kernel(on_host, stream):
    with torch.cuda.stream(stream):
        gpu_in.copy_(on_host, non_blocking=True)
    torch.cuda._sleep(600_000)  # in the current stream


lines = {
    "neither": gpulab.timeline(lambda: copy_then_kernel(pageable, default)),
    "pinned": gpulab.timeline(lambda: copy_then_kernel(host_in, default)),
    "a second stream": gpulab.timeline(lambda: copy_then_kernel(pageable, left)),
    "both": gpulab.timeline(lambda: copy_then_kernel(host_in, left)),
}
pd.Series({name: lab.how_they_ran(line) for name, line in lines.items()})

# %%
lines["both"]

# %% [markdown]
# Each of the two reasons was enough to keep copy and kernel apart, and hid the other. If the copy
# is launched first, you need all three: pinned memory, `non_blocking=True`, and two streams. (A
# kernel that was launched before runs beside a slow copy from pageable memory, too.)

# %% [markdown]
# ## 4 The double buffer
#
# A program has 40 batches on the host. Each must be copied to the GPU and computed on. With two
# buffers, batch k + 1 can be copied while batch k is computed on. `pipelines.run` calls such a
# program with `slots`, `copying` (a stream), `fill(pinned, step)`, by which the host writes batch
# `step` into a pinned buffer, and `compute(on_device, step)`, which launches work on the current
# stream. Each of the two slots has a buffer `.pinned`, a buffer `.on_device`, and two events,
# `.copied` and `.computed`. Then it compares every result with the right one. First without
# overlap:


# %%
def one_at_a_time(slots, _copying, fill, compute, n_steps):
    for step in range(n_steps):
        slot = slots[0]
        fill(slot.pinned, step)
        slot.on_device.copy_(slot.pinned, non_blocking=True)
        compute(slot.on_device, step)
        torch.cuda.synchronize()


pipelines.run(one_at_a_time)

# %% [markdown]
# Right, and slow. The next listing is a common one: the copies have their own stream, and before
# `compute` the current stream waits for the copy. How many of the 40 steps compute on wrong data?

# %%
exercises.predict("08.wrong")


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
exercises.compare("08.wrong", listed.n_wrong)

# %%
exercises.claim("08.listing-is-wrong", here=listed.n_wrong)

# %% [markdown]
# It is fast, and nearly everything in it is wrong. No error, no warning: a training run would just
# learn a little worse.
#
# ### Find the races
#
# `gpulab.hazards()` follows which work touches which bytes, and what waits for what. It reports
# pairs of operations on the same bytes, one of them a write, that no wait orders. (Times inside
# the block mean nothing: watching takes time.)

# %%
with gpulab.hazards() as found:
    pipelines.run(as_listed, n_steps=6)
found

# %%
exercises.ask("08.find-the-races")

# %% tags=["exercise"]
answer = {"pinned": (..., ..., ...), "device": (..., ..., ...)}
### BEGIN SOLUTION
answer = {
    "pinned": ("fill", "copy", "host"),
    "device": ("copy", "compute", "copying"),
}
### END SOLUTION
exercises.check("08.find-the-races", answer)

# %% [markdown]
# The film shows the race on the device, with five batches that the host filled before.

# %%
animations.show("double_buffer")

# %% [markdown]
# Most people think of the race on the device only. Suppose you fix that one alone: the copy waits
# until the last `compute` on its buffer is done. How many steps are wrong now?

# %%
exercises.predict("08.half")


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


pipelines.run(device_wait_alone)

# %%
exercises.compare("08.half", pipelines.run(device_wait_alone).n_wrong)

# %% [markdown]
# The host runs far ahead: it refills both pinned buffers long before the first copy starts. One
# race hid the other, and a program with one race is as wrong as one with two. (*Recorded* on an
# H200: 38 of 40 steps wrong as listed, 37 with the device's wait alone.)
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
# Overlap can save at most the shorter of the two: all copying, or all computing. How much of that
# does each program save? Hatched bars computed on wrong data.

# %%
programs = [one_at_a_time, as_listed, device_wait_alone]
programs += [pipeline] if callable(pipeline) else []
lab.draw_overlap({program.__name__: pipelines.run(program) for program in programs})

# %% [markdown]
# The right waits cost next to nothing, because each of them waits for one event that lies two
# steps back.
#
# ## What you take along
#
# - Inside a stream everything is ordered, across streams nothing is. The default stream is no
#   fence.
# - `synchronize` and `.item()` block the host; `wait_event` and `wait_stream` block a stream.
# - A copy runs during a kernel if its memory is pinned, it is `non_blocking`, and it has a stream
#   of its own.
# - A writer waits for the last reader of its buffer: a stream by an event, the host by
#   `synchronize`.
# - Right values prove no order. `gpulab.hazards()` looks at the order itself.

# %%
exercises.progress()

# %% [markdown]
# # Going further
#
# What follows is not part of the 45 minutes.
#
# ## No overlap in spite of streams
#
# Two matmuls of 4096 x 4096, in two streams; nothing waits. Do they overlap?

# %%
exercises.predict("08.big")

# %%
a = torch.randn(4096, 4096, device="cuda", dtype=torch.half)
outs = [torch.empty_like(a) for _ in range(2)]


def two_matmuls():
    for stream, out in zip((left, right), outs, strict=True):
        with torch.cuda.stream(stream):
            torch.mm(a, a, out=out)


matmuls = gpulab.timeline(two_matmuls)
matmuls

# %%
exercises.compare("08.big", lab.how_they_ran(matmuls))

# %% [markdown]
# And two kernels on 1,024 elements each?

# %%
exercises.predict("08.tiny")

# %%
smalls = torch.zeros(2, 1024, device="cuda")


def two_small_kernels():
    for stream, x in zip((left, right), smalls, strict=True):
        with torch.cuda.stream(stream):
            x.add_(1)


kernels = gpulab.timeline(two_small_kernels)
kernels

# %%
exercises.compare("08.tiny", lab.how_they_ran(kernels))

# %% [markdown]
# ### Exercise: two reasons for a sequential trace

# %%
exercises.ask("08.two-reasons")

# %% tags=["exercise"]
answer = {"two matmuls": (..., ...), "two small kernels": (..., ...)}
### BEGIN SOLUTION
answer = {
    "two matmuls": ("the gpu is full", "nothing"),
    "two small kernels": ("the host is late", "fewer launches"),
}
### END SOLUTION
exercises.check("08.two-reasons", answer)

# %% [markdown]
# So streams pay for kernels of a middle size, and for copies during kernels. If two kernels do run
# at the same time, start the expensive one first: a short one fits beside it, and the other way
# round the long one is left alone at the end.
#
# ## More ways to name a stream
#
# `torch.cuda.set_stream(stream)` makes a stream current without a block, until you set another
# one. `torch.cuda.Stream(device=...)` creates a stream on a named GPU. And each GPU has a current
# stream of its own.

# %%
torch.cuda.set_stream(left)
inside = torch.cuda.current_stream() == left
torch.cuda.set_stream(torch.cuda.default_stream())
inside, torch.cuda.current_stream() == torch.cuda.default_stream()

# %%
torch.cuda.Stream(device="cuda:0", priority=-1)

# %% [markdown]
# Prefer the block: after an error, `set_stream` leaves the wrong stream current. The current
# stream also belongs to a thread: a new thread of your program begins with the default stream,
# whatever is current in the others. CUDA has one more kind, the *per-thread default stream*: C++
# code that is compiled with `--default-stream per-thread` has a default stream for each thread,
# and none of them is a fence. PyTorch isn't built that way, but an extension may be.
#
# ## Let the GPU answer the puzzle
#
# The puzzle of section 2, run. An event follows each kernel, so you can ask at `now()` which are
# done. Luck must not count: each line runs with a short c and with a long one, and the table lists
# only what is done both times.

# %%
lab.run_the_puzzle()

# %% [markdown]
# ## Two GPUs
#
# Every GPU has its own streams, its own current stream and its own allocator. If this machine has
# fewer than two, `machines.two_gpus()` lends you virtual ones for the length of a block. A sleep
# of half a millisecond on each of two GPUs, both in the default stream. At once?

# %%
exercises.predict("08.pair")


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
exercises.compare(
    "08.pair", "at once" if both.duration_s < 0.9 * alone_s else "one after the other"
)

# %% [markdown]
# Each GPU has a default stream of its own. A stream of one can wait for an event of the other;
# nothing else orders them. Here `cuda:1` fetches what a side stream of `cuda:0` computes, without
# a wait and with one. The right value is 5.


# %%
def fetched(*, wait):
    x, side = torch.zeros(1 << 16, device="cuda:0"), torch.cuda.Stream(0)
    side.wait_stream(torch.cuda.current_stream(0))
    with torch.cuda.stream(side):
        torch.cuda._sleep(1_000_000)
        x.fill_(5)
    if wait:
        torch.cuda.current_stream(1).wait_event(side.record_event())
    return x.to("cuda:1", non_blocking=True)[0].item()


with machines.two_gpus():
    got = {"without a wait": fetched(wait=False), "with one": fetched(wait=True)}
got

# %% [markdown]
# The copy waits for the *current* streams of both GPUs and for no side stream. It is the rule of
# this lesson once more: what no wait orders is not ordered.
