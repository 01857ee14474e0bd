# %% [markdown]
# # 08 Streams: order and overlap
#
# How do copies and kernels run at the same time, safely? A **stream** is a queue of the GPU. The
# copy of a batch has its own stream here, so that it can run beside kernels. All numbers of the
# batch are 1.

# %%
import time

import torch

import gpulab
from gpulab import animations, exercises, plots
from gpulab.core.units import format_time
from gpulab.exercises import lesson_08 as lab
from gpulab.exercises import machines

gpu = gpulab.use("auto", max_value_bytes=256 << 20)  # of large tensors only the times matter
batch = torch.ones(2**25).pin_memory()  # why pinned? Later in this lesson.
x = torch.zeros(2**25, device="cuda")
copying = torch.cuda.Stream()
gpu

# %%
exercises.predict("08.mean")

# %%
x.zero_().mean()  # zeros again; and once before: the first call is slow (lesson 04)
torch.cuda.synchronize()
with torch.cuda.stream(copying):
    x.copy_(batch, non_blocking=True)
mean = x.mean().item()
print(f"{mean:.3f}")
exercises.compare("08.mean", "exactly 1" if mean == 1 else "less than 1")

# %% [markdown]
# ## Is that possible?
#
# No error and no warning, and `.item()` waits for the GPU (lesson 01). Change one thing: wait
# for `copying` before the mean.

# %%
torch.cuda.synchronize()
x.zero_()
torch.cuda.synchronize()
with torch.cuda.stream(copying):
    x.copy_(batch, non_blocking=True)
torch.cuda.current_stream().wait_stream(copying)  # the only new line
x.mean().item()

# %% [markdown]
# ## Exercise: why was the mean wrong?

# %% tags=["exercise"]
exercises.ask("08.too-early")
### BEGIN SOLUTION
exercises.check("08.too-early", "c")
### END SOLUTION


# %%
def no_wait():
    with torch.cuda.stream(copying):
        x.copy_(batch, non_blocking=True)
    x.mean().item()


def wait_stream():
    with torch.cuda.stream(copying):
        x.copy_(batch, non_blocking=True)
    torch.cuda.current_stream().wait_stream(copying)
    x.mean().item()


# %%
programs = {"no wait": no_wait, "wait_stream": wait_stream}
plots.side_by_side({name: gpulab.timeline(fn, n_warmup=2) for name, fn in programs.items()})

# %% [markdown]
# Work goes into the *current* stream: inside the `with` block this is `copying`, outside it is
# the *default stream*. **Inside a stream, work runs in the order of the launches. Across streams
# there is no order, unless you ask for it.** (You may have read that the default stream waits
# for all others. PyTorch's streams are of another kind: "Going further" tests it.)
#
# `hazards` finds such pairs by their order, even if the values were right by luck. Keep it:

# %%
with gpulab.hazards() as hazards:
    no_wait()
hazards

# %% [markdown]
# ## Who waits?
#
# `copying.synchronize()` before the mean makes it right, too.

# %%
exercises.predict("08.blocks")


# %%
def blocked_s(wait):
    with torch.cuda.stream(copying):
        x.copy_(batch, non_blocking=True)
    begin_s = time.perf_counter()
    wait()
    waited_s = time.perf_counter() - begin_s
    torch.cuda.synchronize()
    return waited_s


# %%
stream_s = blocked_s(lambda: torch.cuda.current_stream().wait_stream(copying))
host_s = blocked_s(copying.synchronize)
print(f"wait_stream {stream_s * 1e6:.0f} µs, synchronize {host_s * 1e6:.0f} µs")
exercises.compare("08.blocks", "synchronize" if host_s > 3 * stream_s else "both")

# %% [markdown]
# `synchronize` blocks Python. `wait_stream` puts an entry into the current stream: the GPU waits
# there, and Python goes on. An *event* does the same for a part of a stream: `event.record()`,
# then `stream.wait_event(event)`. To order streams, use what does not block Python.
#
# ## A copy during a kernel
#
# Now the kernel does not need the batch. The batch is in ordinary memory, as `torch.ones`
# creates it. How do the two run?

# %%
exercises.predict("08.beside")


# %%
def copy_and_kernel(on_host):
    with torch.cuda.stream(copying):
        x.copy_(on_host, non_blocking=True)
    torch.cuda._sleep(4_800_000)  # a kernel about as long as the copy from pinned memory


# %%
memory = {"ordinary memory": torch.ones(2**25), "pinned memory": batch}
beside = {
    name: gpulab.timeline(lambda: copy_and_kernel(on_host), n_warmup=2)
    for name, on_host in memory.items()
}
plots.side_by_side(beside)

# %%
spans = beside["ordinary memory"].to_frame().set_index("kind")
is_beside = spans.loc["kernel", "start_s"].min() < spans.loc["copy", "end_s"].max()
exercises.compare("08.beside", "together" if is_beside else "sequentially")

# %% [markdown]
# A copy engine can read only memory that stays where it is: **pinned** memory. From ordinary
# memory the driver copies in pieces, and Python takes part until the end, whatever
# `non_blocking` says. *Recorded* on an H200 for 256 MiB: a pinned copy blocks Python for 12 µs,
# an ordinary one for 11.8 ms. **A copy runs during the next kernel if its memory is pinned, it
# is `non_blocking`, and it has a stream of its own.**
#
# ## The double buffer
#
# A program has 40 batches. With two buffers, batch k + 1 can be copied while batch k is computed
# on. `lab.pipelines.run` calls the program, and compares each result with the right one:
#
# ```
# host               fill(pinned, step)          writes batch `step` into pinned memory
# stream copying     on_device.copy_(pinned)     then the event `copied`
# current stream     compute(on_device, step)    then the event `computed`
# ```
#
# The next listing is a common one. On how many of the 40 steps does it compute with wrong data?

# %%
exercises.predict("08.wrong")


# %%
def as_listed(slots, copying, fill, compute, n_steps):
    for step in range(n_steps):
        slot = slots[step % 2]  # a pinned buffer, a buffer on the device, and two events
        fill(slot.pinned, step)
        with torch.cuda.stream(copying):
            slot.on_device.copy_(slot.pinned, non_blocking=True)
            slot.copied.record()
        torch.cuda.current_stream().wait_event(slot.copied)
        compute(slot.on_device, step)


exercises.compare("08.wrong", lab.pipelines.run(as_listed).n_wrong)

# %% [markdown]
# *Recorded* on an H200 and an H100: 38 of 40. `compute` waits for the copy, and nothing waits in
# the other direction. The film shows it with five batches.

# %%
animations.show("double_buffer")

# %%
with gpulab.hazards() as hazards:
    lab.pipelines.run(as_listed, n_steps=6)
hazards

# %% [markdown]
# ## Exercise: the double buffer, done right
#
# Two writers are too early. A writer must wait for the last reader of its buffer.

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
# Overlap can save at most the shorter of the two: all copying, or all computing. How much of it
# does each program save? (A hatched bar computed with wrong data.)

# %%
runs = {"as_listed": lab.pipelines.run(as_listed)}
if callable(pipeline):
    runs["pipeline"] = lab.pipelines.run(pipeline)
lab.draw_overlap(runs)

# %% [markdown]
# ## What you take with you
#
# - Inside a stream everything is ordered, across streams nothing is.
# - `synchronize` and `.item()` block Python; `wait_stream` and `wait_event` block a stream.
# - A writer waits for the last reader of its buffer. Right values prove no order: ask
#   `gpulab.hazards()`.
#
# A tensor that you drop gives its memory to the next one. What if another stream still reads it?
# Next: `08b_stream_memory.ipynb`.

# %% [markdown]
# # Going further
#
# Each part stands alone.
#
# ## The machine
#
# A toy: a copy and a kernel in one stream. Drag the copy into the other stream, and change its
# host memory, until it runs beside the kernel. Then let two kernels race.

# %%
gpulab.explorers.machine_explorer("copy and kernel", challenge="hidden copy")

# %% [markdown]
# ## Is the default stream a fence?
#
# You may have read that work in the default stream waits for all other streams, and they for it.
# Three sleeps: in `left`, in the default stream, in `right`.

# %%
exercises.predict("08.fence")

# %%
left, right, default = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.default_stream()


def sleep_in(*streams, n_cycles=1_000_000):
    for stream in streams:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(n_cycles)


three = gpulab.timeline(lambda: sleep_in(left, default, right))
plots.timeline(three, title=f"The three sleeps run {lab.how_they_ran(three)}")

# %%
exercises.compare("08.fence", lab.how_they_ran(three))

# %%
exercises.claim("08.no-fence", here=lab.share_of_serial(three))

# %% [markdown]
# The rule that you read is true for CUDA's *blocking* streams. PyTorch creates its side streams
# as non-blocking ones: the default stream does not wait for them, nor they for it. If you need
# an order, you must ask for it. (The lanes have the numbers that the driver gives to the
# streams.)
#
# ## Engines
#
# Kernels need the multiprocessors. Copies need a copy engine; an H200 has three of them by its
# driver, other GPUs two to seven. A copy in, a copy out and a kernel take a third of a
# millisecond each, alone. How long do they take in three streams?

# %%
exercises.predict("08.engines")

# %%
host_in, host_out = torch.empty(2, 1 << 22, pin_memory=True)  # 16 MiB each
gpu_in, gpu_out = torch.empty(2, 1 << 22, device="cuda")


def all_three():
    with torch.cuda.stream(left):
        gpu_in.copy_(host_in, non_blocking=True)
    with torch.cuda.stream(right):
        host_out.copy_(gpu_out, non_blocking=True)
    torch.cuda._sleep(600_000)


together = gpulab.timeline(all_three, n_warmup=1)
busy_s = together.summary().devices[0].busy_s
plots.timeline(together, title=f"Two copies and a kernel take {format_time(busy_s)} in all")

# %%
exercises.compare("08.engines", busy_s)

# %% [markdown]
# Both directions and the kernel run at once. Two copies in the *same* direction gain nothing
# from two streams, even with a free engine: they share one link.
#
# ## The puzzle of the five waits
#
# You can synchronize with three things: the device, a stream, an event. Two calls order queues:
# `wait_event` and `wait_stream`. And `.item()` is a hidden wait. What does each of them order?

# %% tags=["exercise"]
exercises.ask("08.five-waits")
### BEGIN SOLUTION
answer = {
    "torch.cuda.synchronize": ("abc", "after abc"),
    "left.synchronize": ("ab", "after abc"),
    "marker.synchronize": ("a", "after ac"),
    "right.wait_event": ("none", "after ac"),
    "right.wait_stream": ("none", "after abc"),
    "y.item": ("c", "after c"),
}
exercises.check("08.five-waits", answer)
### END SOLUTION

# %% [markdown]
# The same, run by the GPU. An event follows each kernel, so you can ask at `now()` which are
# done. Luck must not count: each line runs with a short c and with a long one, and the table
# lists only what is done both times.

# %%
lab.run_the_puzzle()

# %% [markdown]
# ## When a copy returns
#
# A copy of 16 MiB from ordinary memory, also called *pageable*, with `non_blocking=True`: when
# does the call return?

# %%
exercises.predict("08.returns")

# %%
pageable = torch.empty(1 << 22)
copies = {
    "pinned in": lambda: gpu_in.copy_(host_in, non_blocking=True),
    "pinned out": lambda: host_out.copy_(gpu_out, non_blocking=True),
    "pageable in": lambda: gpu_in.copy_(pageable, non_blocking=True),
    "pageable out": lambda: pageable.copy_(gpu_out, non_blocking=True),
}
times = lab.host_times(copies)
columns = {"host_s": "returns after", "done_s": "done after"}
table = times[[*columns]].map(format_time).rename(columns=columns)
table.assign(**{"GB/s": (4 * (1 << 22) / times["done_s"] / 1e9).round(1)})

# %%
waited = times.loc["pageable in", "host_s"] > 0.5 * times.loc["pageable in", "done_s"]
exercises.compare("08.returns", "when the copy is done" if waited else "at once")

# %% [markdown]
# *Recorded* on an H200 for 256 MiB: a pinned copy moves 55 GB/s; a pageable one moves 23 GB/s in
# and 16 out. One more program, to be sure: what does it take here?

# %% tags=["exercise"]
exercises.ask("08.copy-overlap")
### BEGIN SOLUTION
exercises.check("08.copy-overlap", "d")
### END SOLUTION

# %% [markdown]
# Try it: neither change, each change alone, and both.


# %%
def copy_then_kernel(on_host, stream):
    with torch.cuda.stream(stream):
        gpu_in.copy_(on_host, non_blocking=True)
    torch.cuda._sleep(600_000)  # in the current stream


four = {
    "neither": gpulab.timeline(lambda: copy_then_kernel(pageable, default)),
    "pinned": gpulab.timeline(lambda: copy_then_kernel(host_in, default)),
    "a second stream": gpulab.timeline(lambda: copy_then_kernel(pageable, left)),
    "both": gpulab.timeline(lambda: copy_then_kernel(host_in, left)),
}
plots.side_by_side(four)

# %% [markdown]
# Each of the two reasons was enough to keep copy and kernel apart, and hid the other. That is so
# if the copy is launched first. A kernel that was launched before runs beside a slow copy from
# pageable memory, too.
#
# ## Half of a double buffer
#
# The report on the common listing names two races. For each of the two buffers: what writes too
# early, what still reads, and what must wait?

# %% tags=["exercise"]
exercises.ask("08.find-the-races")
### BEGIN SOLUTION
answer = {"pinned": ("fill", "copy", "host"), "device": ("copy", "compute", "copying")}
exercises.check("08.find-the-races", answer)
### END SOLUTION

# %% [markdown]
# Most people think of the race on the device only. Suppose you fix that one alone: the copy
# waits until the last `compute` on its buffer is done. How many steps are wrong now?

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


exercises.compare("08.half", lab.pipelines.run(device_wait_alone).n_wrong)

# %% [markdown]
# The host runs far ahead: it refills both pinned buffers long before the first copy starts. One
# race hid the other, and a program with one race is as wrong as one with two. (*Recorded* on an
# H200: 37 of 40 steps with the device's wait alone.)
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
plots.timeline(matmuls, title=f"The two matmuls run {lab.how_they_ran(matmuls)}")

# %%
exercises.compare("08.big", lab.how_they_ran(matmuls))

# %% [markdown]
# And two kernels on 1,024 elements each?

# %%
exercises.predict("08.tiny")

# %%
smalls = torch.zeros(2, 1024, device="cuda")


def two_small_kernels():
    for stream, small in zip((left, right), smalls, strict=True):
        with torch.cuda.stream(stream):
            small.add_(1)


kernels = gpulab.timeline(two_small_kernels)
plots.timeline(kernels, title=f"The two small kernels run {lab.how_they_ran(kernels)}")

# %%
exercises.compare("08.tiny", lab.how_they_ran(kernels))

# %% tags=["exercise"]
exercises.ask("08.two-reasons")
### BEGIN SOLUTION
answer = {
    "two matmuls": ("the gpu is full", "nothing"),
    "two small kernels": ("the host is late", "fewer launches"),
}
exercises.check("08.two-reasons", answer)
### END SOLUTION

# %% [markdown]
# So streams pay for kernels of a middle size, and for copies during kernels. If two kernels do
# run at the same time, start the expensive one first: a short one fits beside it, and the other
# way round the long one is left alone at the end.
#
# ## More ways to name a stream
#
# `torch.cuda.set_stream(stream)` makes a stream current without a block, until you set another
# one. `torch.cuda.Stream(device=...)` creates a stream on a named GPU. And each GPU has a
# current stream of its own.

# %%
torch.cuda.set_stream(left)
inside = torch.cuda.current_stream() == left
torch.cuda.set_stream(torch.cuda.default_stream())
is_back = torch.cuda.current_stream() == torch.cuda.default_stream()
print(f"left was current: {inside}, and now the default stream is again: {is_back}")

# %%
torch.cuda.Stream(device="cuda:0", priority=-1)

# %% [markdown]
# Prefer the block: after an error, `set_stream` leaves the wrong stream current. The current
# stream also belongs to a thread: a new thread of your program begins with the default stream,
# whatever is current in the others. CUDA has one more kind, the *per-thread default stream*: C++
# code that is compiled with `--default-stream per-thread` has a default stream for each thread,
# and none of them is a fence. PyTorch isn't built that way, but an extension may be.
#
# ## Two GPUs
#
# Every GPU has its own streams, its own current stream and its own allocator. If this machine
# has fewer than two, `machines.two_gpus()` lends you virtual ones for the length of a block. A
# sleep of half a millisecond on each of two GPUs, both in the default stream.

# %%
exercises.predict("08.pair")


# %%
def sleep_on_both():
    for index in range(2):
        with torch.cuda.device(index):
            torch.cuda._sleep(1_000_000)


with machines.two_gpus():
    both = gpulab.timeline(sleep_on_both)
alone_s = sum(share.busy_s for share in both.summary().devices)
how = "together" if both.duration_s < 0.9 * alone_s else "sequentially"
plots.timeline(both, title=f"Each on its own GPU, the sleeps run {how}")

# %%
exercises.compare("08.pair", how)

# %% [markdown]
# Each GPU has a default stream of its own. A stream of one can wait for an event of the other;
# nothing else orders them. Here `cuda:1` fetches what a side stream of `cuda:0` computes,
# without a wait and with one. The right value is 5.


# %%
def fetched(*, wait):
    source, side = torch.zeros(1 << 16, device="cuda:0"), torch.cuda.Stream(0)
    side.wait_stream(torch.cuda.current_stream(0))
    with torch.cuda.stream(side):
        torch.cuda._sleep(1_000_000)
        source.fill_(5)
    if wait:
        torch.cuda.current_stream(1).wait_event(side.record_event())
    return source.to("cuda:1", non_blocking=True)[0].item()


with machines.two_gpus():
    got = fetched(wait=False), fetched(wait=True)
print("without a wait {:.0f}, with one {:.0f}".format(*got))

# %% [markdown]
# The copy waits for the *current* streams of both GPUs and for no side stream. It is the rule of
# this lesson once more: what no wait orders is not ordered.

# %%
exercises.progress()
