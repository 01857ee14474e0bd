# %% [markdown]
# # 08b Streams: memory, backward, errors
#
# Who may use memory that another stream still reads, and when do you learn of an error?
#
# The first half, `08_streams`, was about order and overlap. Here are the places where PyTorch
# orders streams for you, and where it doesn't. At the end you hold your own benchmark against
# `gpulab`'s.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 Memory that is still in use | `record_stream`, and whose memory it is | 10 |
# | 2 A loader that copies ahead | `DataLoader(pin_memory=True)` and prefetching | 10 |
# | 3 Backward and the optimizer | on which stream gradients are computed, and what waits | 10 |
# | 4 Errors that come late | why the traceback points at the wrong line | 6 |
# | 5 Your benchmark | `benchmark(fn)` against `gpulab.measure` and the driver's records | 9 |
# | *Going further* | *delayed free and fragmentation* | *10* |

# %%
import time
from statistics import median

import pandas as pd
import torch
from torch.utils.data import DataLoader, TensorDataset

import gpulab
from gpulab import exercises, plots
from gpulab.exercises import lesson_08 as lab

gpulab.use("auto")

# %% [markdown]
# ## 1 Memory that is still in use
#
# `del x` gives memory back at once: not to the GPU but to PyTorch's allocator, which has a pool
# for each stream. The next tensor of this size on *that* stream gets it. In one stream this is
# safe, as the new tensor's kernel comes after all that used the old one. It is not safe if another
# stream still reads the old one.

# %%
side, default = torch.cuda.Stream(), torch.cuda.default_stream()
side


# %%
def is_corrupted(before_del, n=1 << 16):
    x = torch.ones(n, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000)
        total = x.sum()
    before_del(x, total)
    del x
    other = torch.full((n,), 7.0, device="cuda")
    torch.cuda.synchronize()
    return (total.item(), other[0].item()) != (n, 7)


is_corrupted(lambda _x, _total: side.synchronize())

# %% [markdown]
# x is created on the default stream, read in `side` and dropped, and a new tensor is created. If
# the host waits for `side` before it drops x, the total is right, as you see. Now it waits for
# nothing. In how many of 20 trials is the total wrong?

# %%
exercises.predict("08b.dropped")


# %%
def n_corrupted(before_del):
    return sum(is_corrupted(before_del) for _ in range(20))


n_wrong = n_corrupted(lambda _x, _total: None)
exercises.compare("08b.dropped", n_wrong)

# %%
exercises.claim("08.dropped-too-early", here=n_wrong)

# %% [markdown]
# The stream was ordered rightly after the creation of x. The *memory* was not ordered after its
# last use. `gpulab.hazards()` sees that, too:

# %%
with gpulab.hazards() as found:
    n_corrupted(lambda _x, _total: None)
found

# %% [markdown]
# ### Exercise: who keeps the memory

# %%
exercises.ask("08.record-stream")

# %% tags=["exercise"]
answer = {"a": ..., "b": ..., "c": ..., "d": ..., "e": ..., "f": ...}
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
    "b": lambda x, _total: x.record_stream(side),
    "c": lambda _x, _total: torch.cuda.current_stream().wait_stream(side),
    "d": lambda _x, _total: side.wait_stream(torch.cuda.current_stream()),
    "e": lambda _x, total: total.record_stream(side),
    "f": lambda _x, _total: side.synchronize(),
}
pd.Series({name: n_corrupted(ending) for name, ending in endings.items()}, name="wrong of 20")

# %% [markdown]
# `record_stream` is the cheap way: nothing waits. The allocator only keeps the memory back until
# `side` has done what was in its queue at `del`.
#
# Memory belongs to the stream that was current when the tensor was *created*. It doesn't matter
# where it is dropped. A tensor is created in `side` and dropped under the default stream. Who gets
# its memory?

# %%
exercises.predict("08b.heir")


# %%
def address(stream):
    with torch.cuda.stream(stream):
        x = torch.empty(1 << 18, device="cuda")
    return x.data_ptr()  # x is dropped here, outside of the block


made_in_side = address(side)
asked = {"the default stream": address(default), "side": address(side)}
exercises.compare(
    "08b.heir", next((name for name, at in asked.items() if at == made_in_side), "nobody")
)

# %% [markdown]
# So a tensor that was created in a side stream and is used in the default stream needs the same
# care, the other way round: `x.record_stream(torch.cuda.default_stream())`. The next section needs
# that.

# %% [markdown]
# ## 2 A loader that copies ahead
#
# `DataLoader(..., pin_memory=True)` puts each batch into pinned memory, so that a `non_blocking`
# copy can run during a kernel. That alone brings nothing: copy and kernel are in one stream. (Here
# the main process pins. With `num_workers=4` other processes prepare the batches, and a thread
# pins.)

# %%
data = TensorDataset(torch.empty(96, 1 << 18))
loader = DataLoader(data, batch_size=8, pin_memory=True)


def compute(batch):
    torch.cuda._sleep(1_000_000)
    return batch.sum()


def one_by_one():
    for (batch,) in loader:
        compute(batch.to("cuda", non_blocking=True))


gpulab.timeline(one_by_one)

# %% [markdown]
# A *prefetcher* copies the next batch in a stream of its own while the GPU computes on this one.
# It needs two things that you know: the current stream waits for the copy, and `record_stream`,
# since the batch was created in the side stream.

# %%
copying = torch.cuda.Stream()
copying


# %%
def ahead(loader):
    ready = None
    for (batch,) in loader:
        with torch.cuda.stream(copying):
            coming = batch.to("cuda", non_blocking=True)
        if ready is not None:
            yield ready  # you compute on it while `coming` is copied
        torch.cuda.current_stream().wait_stream(copying)
        coming.record_stream(torch.cuda.current_stream())
        ready = coming
    yield ready


next(ahead(loader)).shape

# %%
exercises.predict("08b.saved")


# %%
def prefetched():
    for batch in ahead(loader):
        compute(batch)


times = lab.host_times({"one by one": one_by_one, "prefetched": prefetched})
ratio = times.loc["prefetched", "done_s"] / times.loc["one by one", "done_s"]
exercises.compare("08b.saved", ratio)

# %%
gpulab.timeline(prefetched)

# %%
exercises.claim("08.prefetch-is-faster", here=ratio)

# %% [markdown]
# The batch in pinned memory needs no care here: the allocator of pinned memory remembers the copy,
# and gives the memory to another batch only afterwards. (With buffers that you fill yourself, as
# in `08_streams`, nobody does that for you.) Is the order complete?

# %%
with gpulab.hazards() as found:
    prefetched()
found

# %% [markdown]
# ## 3 Backward and the optimizer
#
# The forward pass ran in a side stream. Then you call `loss.backward()` under the default stream.
# Where does the backward pass run?

# %%
exercises.predict("08b.where")

# %%
weight = torch.ones(4, device="cuda", requires_grad=True)
seen = []
with torch.cuda.stream(side):
    tripled = weight * 3
    tripled.register_hook(lambda _gradient: seen.append(torch.cuda.current_stream()))
    loss = tripled.sum()
loss.backward()
exercises.compare("08b.where", "the side stream" if seen == [side] else "the default stream")

# %% [markdown]
# Each operator runs backward on the stream on which it ran forward, whatever is current. That
# keeps the overlap of forward. But who may use the gradients?
#
# Here is a training step whose backward takes a few milliseconds. You choose the streams on which
# `backward()` and `step()` are called. The weight is 1 and its gradient 3, so with a learning rate
# of 1 the new weight must be -2. A step that reads the gradient too early finds the old one, zero,
# and leaves the weight at 1.

# %%
optimizer = torch.optim.SGD([weight], lr=1.0)


def forward():
    weight.data.fill_(1)
    optimizer.zero_grad(set_to_none=False)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        tripled = weight * 3
        tripled.register_hook(lambda _gradient: torch.cuda._sleep(4_000_000))
        loss = tripled.sum()
    torch.cuda.current_stream().wait_stream(side)
    return loss


forward()


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
    return round(weight[0].item())


train(default, default)

# %% [markdown]
# Both calls under the default stream, backward in `side`, no wait, and the weight is right. Now
# you call backward inside `with torch.cuda.stream(side)`, and the step outside. What is the
# weight?

# %%
exercises.predict("08b.outside")

# %%
new_weight = train(side, default)
exercises.compare("08b.outside", "1 (too early)" if new_weight > 0 else "-2 (right)")

# %%
exercises.claim("08.caller-waits", here=f"{train(default, default)} and {new_weight}")

# %% [markdown]
# At the end of backward one stream waits for all gradients: the one that was current when you
# *called* backward. Here that was `side`. (Up to PyTorch 1.9 the *default* stream waited, whatever
# was current, so this program was right then: PyTorch's notes on CUDA semantics. Old code may rely
# on it.)
#
# ### Exercise: what must wait before the step

# %%
exercises.ask("08.backward")

# %% tags=["exercise"]
answer = {"a": ..., "b": ..., "c": ..., "d": ...}
### BEGIN SOLUTION
answer = {
    "a": "none",
    "b": "default waits for side",
    "c": "third waits for default",
    "d": "none",
}
### END SOLUTION
exercises.check("08.backward", answer)

# %% [markdown]
# The usual program is case a, and it needs nothing: call backward and the optimizer under the same
# stream.
#
# ## 4 Errors that come late
#
# A kernel that fails does so long after its launch. This program looks up an index that doesn't
# exist. Which line raises? (The cell uses a virtual GPU of its own: on a real one the error would
# end the work of this notebook.)

# %%
exercises.predict("08b.raises")


# %%
def program(look=lambda: None):
    found = torch.zeros(4, device="cuda")[torch.tensor([7], device="cuda")]  # the look-up
    look()
    more = found + 1  # the addition
    look()
    return more.tolist()  # the wait


late = lab.line_that_raises(program)
late

# %%
exercises.compare("08b.raises", late["line"])

# %% [markdown]
# The host learns of it at the first call that waits, or at some later launch; the traceback points
# there, at an innocent line. (On hardware the error has another type, and its text says that it
# "might be asynchronously reported at some other API call".) To find the line, look after every
# launch:

# %%
lab.line_that_raises(program, look=torch.cuda.synchronize)

# %% [markdown]
# You need not write that into the program. With `CUDA_LAUNCH_BLOCKING=1` in the environment, as in
# `CUDA_LAUNCH_BLOCKING=1 python train.py`, every launch waits until its kernel is done, and the
# error comes at the line that caused it. Set it before the process first uses the GPU; a virtual
# GPU reads it when it is entered for the first time. It removes all overlap, and most races vanish
# with it: it finds wrong indices, and it hides missing waits. A program that is right *only* with
# it has a race. And never measure with it.
#
# ## 5 Your benchmark
#
# This is `benchmark(fn)` as you left it in lesson 07. It returns the seconds of one call and the
# clock.


# %%
def once_s(fn):
    torch.cuda.synchronize()
    start = time.perf_counter()
    fn()
    torch.cuda.synchronize()
    return time.perf_counter() - start


once_s(lambda: torch.cuda._sleep(1_000_000))


# %%
def warm_up(fn):
    last_s = []
    for _ in range(100):  # until three calls in a row agree
        last_s = [*last_s[-2:], once_s(fn)]
        if last_s[2:] and max(last_s) < 1.05 * min(last_s):
            break


warm_up(lambda: torch.cuda._sleep(1_000_000))

# %%
exercises.ask("08.benchmark")


# %% tags=["exercise"]
def benchmark(fn, n_samples=11):
    warm_up(fn)
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    rows = torch.zeros(2 * l2_bytes // 65536, 16384, device="cuda")
    sums = torch.zeros(len(rows), device="cuda")
    starts = [torch.cuda.Event(enable_timing=True) for _ in range(n_samples)]
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(n_samples)]
    host_s = 0.0
    for _ in range(2):  # the first round measures the host, the second one counts
        torch.cuda._sleep(int(2 * host_s * 2e9))
        begin = time.perf_counter()
        for start, end in zip(starts, ends, strict=True):
            torch.sum(rows, dim=1, out=sums)  # read twice the L2
            start.record()
            fn()
            end.record()
        host_s = time.perf_counter() - begin
        torch.cuda.synchronize()
    clock_mhz = torch.cuda.clock_rate()  # right after the last call
    times_ms = [start.elapsed_time(end) for start, end in zip(starts, ends, strict=True)]
    return median(times_ms) / 1e3, clock_mhz


answer = ...
### BEGIN SOLUTION
answer = benchmark
### END SOLUTION
exercises.check("08.benchmark", answer)

# %% [markdown]
# Change what the check names, if it names something, and answer with `answer = benchmark`. Then
# hold it against `gpulab.measure` and the driver's own records of the kernels, on work of your
# choice:

# %%
a, x = torch.randn(2048, 2048, device="cuda"), torch.randn(1 << 14, device="cuda")
works = {"matmul": lambda: a @ a, "one small kernel": lambda: x + 1, "copy": a.clone}
rows = []
for name, work in works.items():
    measured, recorded = gpulab.measure(work), gpulab.measure(work, method="profiler")
    rows.append((name, benchmark(work)[0], measured.median_s, recorded.median_s))
plots.bars(pd.DataFrame(rows, columns=["work", "yours_s", "measure_s", "records_s"]), x="work")

# %% [markdown]
# Yours reads a few microseconds more for the small kernel: the floor of a pair of events (lesson
# 03), which `gpulab.measure` subtracts. It is about 40 lines now. You know what each of them is
# for.
#
# ## What you take along
#
# - Memory that another stream reads: `record_stream` before it is dropped.
# - Pinned batches and a prefetcher can hide copies; the batch needs a wait and `record_stream`.
# - Gradients are ready for the stream that called `backward()`, and for no other.
# - An error comes at the first call that waits. `CUDA_LAUNCH_BLOCKING=1` finds its line.

# %%
exercises.progress()

# %% [markdown]
# # Going further
#
# What follows is not part of the 45 minutes.
#
# ## Delayed free
#
# `record_stream` costs something after all: memory. A loop creates 16 MiB, has `side` read them,
# and drops them, ten times. How much does the allocator reserve, with a wait for `side` and with
# `record_stream`?

# %%
exercises.predict("08b.more")


# %%
def slow_sum(x):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(500_000)
        return x.sum()


slow_sum(torch.ones(4, device="cuda"))


# %%
def reserved_mib(before_del):
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    for _ in range(10):
        x = torch.ones(1 << 22, device="cuda")
        slow_sum(x)
        before_del(x)
        del x
    return (torch.cuda.memory_reserved() - before) / 2**20


reserved_mib(lambda _x: side.synchronize())

# %%
waiting = reserved_mib(lambda _x: torch.cuda.current_stream().wait_stream(side))
recorded = reserved_mib(lambda x: x.record_stream(side))
exercises.compare("08b.more", recorded / waiting)

# %%
print(f"with a wait {waiting:.0f} MiB, with record_stream {recorded:.0f} MiB")

# %% [markdown]
# With the wait, the next round gets the same memory. With `record_stream` the host runs ahead, the
# allocator may not give the memory away yet, and takes more from the GPU. So a loop with
# `record_stream` and a host that is far ahead can run out of memory; a wait now and then, or a
# fixed pair of buffers, limits it.
#
# ## Fragmentation
#
# Free memory is not always usable memory. Allocate 64 tensors of 3 MiB and drop every second one.
# Then ask for 24 MiB, a quarter of what is free. Does the allocator have to take more from the
# GPU?

# %%
exercises.predict("08b.grows")

# %%
torch.cuda.synchronize()
torch.cuda.empty_cache()
kept = [torch.empty(3 << 18, device="cuda") for _ in range(64)]
del kept[::2]
free = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
before = torch.cuda.memory_reserved()
big = torch.empty(6 << 20, device="cuda")
print(f"free {free >> 20} MiB, taken {(torch.cuda.memory_reserved() - before) >> 20} MiB more")

# %%
exercises.compare("08b.grows", "yes" if torch.cuda.memory_reserved() > before else "no")

# %% [markdown]
# The free memory is in pieces of 3 MiB between tensors that are in use. In
# `torch.cuda.memory_stats()` it is `inactive_split_bytes`. Tensors of similar sizes, created once
# and kept, avoid it; `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` makes it rarer.
