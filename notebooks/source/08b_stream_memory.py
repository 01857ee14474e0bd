# %% [markdown]
# # 08b Streams: memory
#
# How can a sum of ones be wrong? This function makes 65,536 ones, and adds them up on a second
# stream that is still busy. (`line` is empty for now.)

# %%
import time
from statistics import median

import pandas as pd
import torch

import gpulab
from gpulab import exercises
from gpulab.exercises import lesson_08 as lab

gpulab.use("auto")


# %%
side = torch.cuda.Stream()


def sum_of_ones(line):
    x = torch.ones(65536, device="cuda")
    side.wait_stream(torch.cuda.current_stream())  # first the ones, then the sum
    with torch.cuda.stream(side):
        torch.cuda._sleep(2_000_000)
        total = x.sum()
    line(x, total)
    return total


# %%
exercises.predict("08b.dropped")


# %%
def sums(line):
    totals = []
    for _ in range(20):
        total = sum_of_ones(line)
        torch.full((65536,), 7.0, device="cuda")
        torch.cuda.synchronize()
        totals.append(int(total))
    return totals


without = sums(lambda x, total: None)
print(without[-3:])
exercises.compare("08b.dropped", without.count(65536))

# %% [markdown]
# ## Where does the number come from?
#
# Divide it by the number of elements:

# %%
without[-1] / 65536

# %% [markdown]
# `side` has added up sevens, which the loop makes after each call. (*Recorded* with such a loop:
# 19 of 20 sums were wrong on an H200, 20 of 20 on an H100.) Where are the sevens?

# %%
x = torch.ones(65536, device="cuda")
address = x.data_ptr()
del x
sevens = torch.full((65536,), 7.0, device="cuda")
print(f"the ones were at {address:#x}, the sevens are at {sevens.data_ptr():#x}")

# %% [markdown]
# Now change one thing. A list keeps each x, so that Python does not drop it when the function
# returns. How many of the 20 sums are right?

# %%
kept = []
sums(lambda x, total: kept.append(x)).count(65536)

# %% [markdown]
# ## Exercise: what helps?
#
# A list that keeps all tensors fills the memory. Which of these lines makes the sum safe? Answer
# first, then try them.

# %% tags=["exercise"]
exercises.ask("08.record-stream")
### BEGIN SOLUTION
right = {
    "a": "corrupted",
    "b": "safe",
    "c": "safe",
    "d": "corrupted",
    "e": "corrupted",
    "f": "safe",
}
exercises.check("08.record-stream", right)
### END SOLUTION

# %%
default = torch.cuda.default_stream()
lines = {
    "a": lambda x, total: None,
    "b": lambda x, total: x.record_stream(side),
    "c": lambda x, total: default.wait_stream(side),
    "d": lambda x, total: side.wait_stream(default),
    "e": lambda x, total: total.record_stream(side),
    "f": lambda x, total: side.synchronize(),
}
n_right = {name: sums(line).count(65536) for name, line in lines.items()}
pd.Series(n_right, name="right sums of 20").to_frame().T


# %% [markdown]
# Here is what happens in case a:


# %%
def one_call():
    sum_of_ones(lines["a"])
    torch.full((65536,), 7.0, device="cuda")


lab.draw_reuse(gpulab.timeline(one_call))

# %% [markdown]
# When the function returns, Python drops x. PyTorch's allocator takes the memory back at once, and
# gives it to the next tensor on the stream *on which x was created*. On one stream that is safe,
# because its work runs in order. The allocator does not know that `side` reads x. **If another
# stream reads a tensor, call `x.record_stream(stream)` before you drop it.** Nothing waits then:
# the memory stays reserved until that stream has done its work.
#
# A right value proves nothing here, since it may be luck. `gpulab.hazards()` checks the order
# itself:

# %%
with gpulab.hazards() as hazards:
    one_call()
hazards

# %% [markdown]
# ## The other way round
#
# At work you meet this in a *prefetcher*: it copies the next batch on a stream of its own, while
# the GPU computes on this one. Batch i contains the number i, so its mean is i.

# %%
batches = [torch.full((1 << 21,), float(i)).pin_memory() for i in range(20)]
copying = torch.cuda.Stream()


def ahead():
    ready = None
    for batch in batches:
        with torch.cuda.stream(copying):
            coming = batch.to("cuda", non_blocking=True)
        if ready is not None:
            yield ready  # you compute on it while `coming` is copied
        torch.cuda.current_stream().wait_stream(copying)
        ready = coming
    yield ready


# %%
exercises.predict("08b.ahead")

# %%
weights = torch.randn(2048, 2048, device="cuda")


def means(loader):
    batch_means = []
    for batch in loader:
        weights @ weights  # stands for your model
        batch_means.append(batch.mean())
    return [round(mean.item()) for mean in batch_means]


# %%
ahead_means = means(ahead())
print(ahead_means)
exercises.compare("08b.ahead", sum(mean == i for i, mean in enumerate(ahead_means)))

# %% [markdown]
# The wait for the copy is there. But each batch was created on `copying`, and the default stream
# reads it: the same fault, with the streams exchanged. `copying` fills the memory with a later
# batch. One line makes it safe:


# %%
def safe(loader):
    for batch in loader:
        batch.record_stream(torch.cuda.current_stream())
        yield batch


with gpulab.hazards() as hazards:
    print(means(safe(ahead())))
hazards

# %% [markdown]
# Is it worth the care? Compare with a loop that copies and computes in one stream.

# %%
exercises.predict("08b.saved")


# %%
def one_by_one():
    for batch in batches:
        yield batch.to("cuda", non_blocking=True)


def seconds(load):
    start = time.perf_counter()
    means(load())  # waits for each mean at the end
    return time.perf_counter() - start


# %%
plain_s = median(seconds(one_by_one) for _ in range(5))
ahead_s = median(seconds(lambda: safe(ahead())) for _ in range(5))
exercises.compare("08b.saved", ahead_s / plain_s)

# %% [markdown]
# ## A trap: errors that come late
#
# An error is late, too: a kernel fails long after its launch. This program looks up an index that
# does not exist. (The cell uses a virtual GPU of its own, because on a real one the error would
# end the work of this notebook.)


# %%
def program(look=lambda: None):
    looked_up = torch.zeros(4, device="cuda")[torch.tensor([7], device="cuda")]  # the look-up
    look()
    more = looked_up + 1  # the addition
    look()
    return more.tolist()  # the wait


# %%
exercises.predict("08b.raises")

# %%
late = lab.line_that_raises(program)
print(late["error"])
exercises.compare("08b.raises", late["line"])

# %% [markdown]
# The host learns of the error at the first call that waits, or at some later launch. The traceback
# points there, at an innocent line. (On hardware the message says that it "might be asynchronously
# reported at some other API call".) To find the line, wait after each one:

# %%
print("It is", lab.line_that_raises(program, look=torch.cuda.synchronize)["line"])

# %% [markdown]
# `CUDA_LAUNCH_BLOCKING=1 python train.py` does that for the whole program: each launch waits until
# its kernel is done. It finds wrong indices, and it hides races. Never measure with it.

# %% [markdown]
# ## Your own benchmark
#
# Does your `benchmark(fn)` agree with `gpulab.measure`, for a large matmul, a sum of 64 MiB and
# ten small kernels?

# %% tags=["exercise"]
exercises.continue_from("08.benchmark")


### BEGIN SOLUTION
def once_s(fn):
    torch.cuda.synchronize()
    start = time.perf_counter()
    fn()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def warm_up(fn):
    last_s = []
    for _ in range(100):  # until three calls in a row agree
        last_s = [*last_s[-2:], once_s(fn)]
        if last_s[2:] and max(last_s) < 1.05 * min(last_s):
            break


def benchmark(fn, n_samples=11):
    warm_up(fn)
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    rows = torch.zeros(2 * l2_bytes // 65536, 16384, device="cuda")
    row_sums = torch.zeros(len(rows), device="cuda")
    starts = [torch.cuda.Event(enable_timing=True) for _ in range(n_samples)]
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(n_samples)]
    host_s = 0.0
    for _ in range(2):  # the first round measures the host, the second one counts
        torch.cuda._sleep(int(2 * host_s * 2e9))
        begin = time.perf_counter()
        for start, end in zip(starts, ends, strict=True):
            torch.sum(rows, dim=1, out=row_sums)  # read twice the L2
            start.record()
            fn()
            end.record()
        host_s = time.perf_counter() - begin
        torch.cuda.synchronize()
    clock_mhz = torch.cuda.clock_rate()  # right after the last call
    times_ms = [start.elapsed_time(end) for start, end in zip(starts, ends, strict=True)]
    return median(times_ms) / 1e3, clock_mhz


exercises.check("08.benchmark", benchmark)
### END SOLUTION

# %% [markdown]
# ## What you take with you
#
# - PyTorch gives memory back to the stream on which the tensor was created, at once.
# - If another stream reads a tensor: `record_stream`, before it is dropped.
# - A prefetcher needs a wait *and* `record_stream`.
# - An error comes at a call that waits. `CUDA_LAUNCH_BLOCKING=1` finds its line.
#
# You can time the GPU now. Is it worth using one at all? Next: `09_crossover.ipynb`.


# %% [markdown]
# # Going further
#
# ## Whose memory is it?
#
# Memory belongs to the stream that was current when the tensor was *created*. It does not matter
# where it is dropped:


# %%
def address_on(stream):
    with torch.cuda.stream(stream):
        x = torch.empty(1 << 18, device="cuda")
    return x.data_ptr()  # x is dropped here, outside of the block


made_on_side = address_on(side)
heirs = {"the default stream": default, "side": side}
gets_it = {name: address_on(heir) == made_on_side for name, heir in heirs.items()}
pd.Series(gets_it, name="gets this memory").to_frame()

# %% [markdown]
# ## A loader that pins
#
# `DataLoader(..., pin_memory=True)` puts each batch into pinned memory. That alone saves nothing:
# copy and kernel are still in one stream. (Here the main process pins. With `num_workers=4` other
# processes prepare the batches, and a thread pins.) *Recorded*: with a prefetcher this loop took
# 0.79 times as long on an H100, and 0.78 times on an H200. Pinning and launches cost time on the
# host, so on a slow host there may be nothing left to save.

# %%
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.empty(96, 1 << 18))
loader = DataLoader(data, batch_size=8, pin_memory=True)


def train_on(batches):
    for batch in batches:
        torch.cuda._sleep(1_000_000)
        batch.sum()
    torch.cuda.synchronize()


def from_loader():
    for (batch,) in loader:
        yield batch.to("cuda", non_blocking=True)


# %%
def loader_ahead():
    ready = None
    for (batch,) in loader:
        with torch.cuda.stream(copying):
            coming = batch.to("cuda", non_blocking=True)
        if ready is not None:
            yield ready
        torch.cuda.current_stream().wait_stream(copying)
        coming.record_stream(torch.cuda.current_stream())
        ready = coming
    yield ready


# %%
def loop_s(load):
    start = time.perf_counter()
    train_on(load())
    return time.perf_counter() - start


# %%
loops_s = {
    load.__name__: median(loop_s(load) for _ in range(5)) for load in (from_loader, loader_ahead)
}
ratio = loops_s["loader_ahead"] / loops_s["from_loader"]
exercises.claim("08.prefetch-is-faster", here=ratio)

# %% [markdown]
# The batch in pinned memory needs no care: the allocator of pinned memory remembers the copy, and
# gives the memory to another batch only afterwards. (With buffers that you fill yourself, as in
# `08_streams`, nobody does that for you.)
#
# ## Backward and the optimizer
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


forward().item()


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

# %% tags=["exercise"]
exercises.ask("08.backward")
### BEGIN SOLUTION
waits = {
    "a": "none",
    "b": "default waits for side",
    "c": "third waits for default",
    "d": "none",
}
exercises.check("08.backward", waits)
### END SOLUTION


# %% [markdown]
# The usual program is case a, and it needs nothing: call backward and the optimizer under the same
# stream.
#
# ## Delayed free
#
# `record_stream` costs something after all: the **delayed free** of memory. A loop creates 16 MiB,
# has `side` read them, and drops them, ten times. How much does the allocator reserve, with a wait
# for `side` and with `record_stream`?

# %%
exercises.predict("08b.more")


# %%
def slow_sum(x):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(500_000)
        return x.sum()


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
# Then ask for 24 MiB, much less than is free. Does the allocator have to take more from the
# GPU?

# %%
exercises.predict("08b.grows")

# %%
torch.cuda.synchronize()
torch.cuda.empty_cache()
pieces = [torch.empty(3 << 18, device="cuda") for _ in range(64)]
del pieces[::2]
free = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
before = torch.cuda.memory_reserved()
big = torch.empty(6 << 20, device="cuda")
print(f"free {free >> 20} MiB, taken {(torch.cuda.memory_reserved() - before) >> 20} MiB more")

# %%
exercises.compare("08b.grows", "yes" if torch.cuda.memory_reserved() > before else "no")

# %% [markdown]
# The free memory is in pieces of 3 MiB between tensors that are in use. This **fragmentation** is
# `inactive_split_bytes` in `torch.cuda.memory_stats()`. Tensors of similar sizes, created once and
# kept, avoid it; `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` makes it rarer.

# %%
exercises.progress()
