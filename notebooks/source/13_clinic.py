# %% [markdown]
# # 13 The clinic
#
# Twelve programs are ill. What is wrong with each, and how do you mend it?
#
# Each patient shows a symptom in its cell: a wrong number, a wrong value, an error, or no end.
# Find the cause, write a mended program under it, and let the check prove it on works that you
# have not seen. The first eight are the classic mistakes with streams and events; the other four
# are just as common in published code.
#
# | section | what is wrong | minutes |
# |---|---|---|
# | 1 Wrong numbers | six programs that time something else | 20 |
# | 2 Wrong values | six programs without the order they need, one of them without an end | 25 |

# %%
import time

import torch

import gpulab
from gpulab import exercises, plots
from gpulab.exercises import lesson_13 as lab

gpulab.use("auto")

# %% [markdown]
# ## 1 Wrong numbers
#
# `lab.kernel(2)` is a kernel of about two milliseconds on an H200. Call it `work`.
#
# ### Patient 1: the clock that does not wait

# %% tags=["exercise"]
work = lab.kernel(2)
work()  # first use


def unwaited(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


unwaited(work)

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(work):
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


### END SOLUTION
exercises.check("13.unwaited", mended)

# %% [markdown]
# ### Patient 2: the clock that starts too early
#
# The GPU still has other work in its queue, as in any program.


# %% tags=["exercise"]
def backlog(work):
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


lab.kernel(10)()
backlog(work)

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(work):
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


### END SOLUTION
exercises.check("13.backlog", mended)

# %% [markdown]
# ### Patient 3: the events that are read too early


# %% tags=["exercise"]
def too_early(work):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    return start.elapsed_time(end) / 1e3


try:
    print(too_early(work))
except RuntimeError as error:
    print(f"RuntimeError: {error}")

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(work):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


### END SOLUTION
exercises.check("13.too-early", mended)

# %% [markdown]
# ### Patient 4: the first call
#
# Two readings of the same matmul. It has not run in this notebook before.


# %% tags=["exercise"]
def first_call(work):
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


a = torch.randn(2048, 2048, device="cuda")
first_call(lambda: a @ a), first_call(lambda: a @ a)

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(work):
    work()  # warm-up
    return first_call(work)


### END SOLUTION
exercises.check("13.first-call", mended)

# %% [markdown]
# ### Patient 5: a wait after each layer
#
# Twenty layers, a short kernel each. Look at the gaps between them.


# %% tags=["exercise"]
def each_layer(layers):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for layer in layers:
        layer()
        torch.cuda.synchronize()
    return time.perf_counter() - start


plots.timeline(gpulab.timeline(lambda: each_layer(lab.layers(6))))

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(layers):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for layer in layers:
        layer()
    torch.cuda.synchronize()
    return time.perf_counter() - start


### END SOLUTION
exercises.check("13.each-layer", mended)

# %% [markdown]
# ### Patient 6: the copy that does not overlap
#
# The copy has `non_blocking=True` and a stream of its own. It should run beside the kernel.


# %% tags=["exercise"]
def pageable(n_bytes, work):
    host = torch.empty(n_bytes, dtype=torch.uint8)
    on_gpu = torch.empty_like(host, device="cuda")
    copying = torch.cuda.Stream()
    torch.cuda.synchronize()
    start = time.perf_counter()
    with torch.cuda.stream(copying):
        on_gpu.copy_(host, non_blocking=True)
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


plots.timeline(gpulab.timeline(lambda: pageable(2**24, lab.kernel(0.5))))

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(n_bytes, work):
    host = torch.empty(n_bytes, dtype=torch.uint8, pin_memory=True)
    on_gpu = torch.empty_like(host, device="cuda")
    copying = torch.cuda.Stream()
    torch.cuda.synchronize()
    start = time.perf_counter()
    with torch.cuda.stream(copying):
        on_gpu.copy_(host, non_blocking=True)
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


### END SOLUTION
exercises.check("13.pageable", mended)

# %% [markdown]
# ## 2 Wrong values
#
# These programs are fast enough. Their results are wrong, and no error says so.
# `lab.slow_double(x)` is a long kernel and then `x * 2`.
#
# ### Patient 7: two streams in no order
#
# The sum of 0 to 999, doubled, is 999,000.


# %% tags=["exercise"]
def two_streams(x, double):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = double(x)
    return y.sum().item()


two_streams(lab.numbers(), lab.slow_double)

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(x, double):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = double(x)
    torch.cuda.current_stream().wait_stream(side)
    return y.sum().item()


### END SOLUTION
exercises.check("13.two-streams", mended)

# %% [markdown]
# ### Patient 8: memory that is given away too early
#
# `temporary` is deleted, and its memory goes to the next tensor of that size. The result should
# begin with 2, 4, 6.


# %% tags=["exercise"]
def freed(x, double):
    side, current = torch.cuda.Stream(), torch.cuda.current_stream()
    temporary = x + 1
    side.wait_stream(current)
    with torch.cuda.stream(side):
        result = double(temporary)
    del temporary
    other = torch.full_like(x, -1.0)  # somebody else's tensor
    current.wait_stream(side)
    return result + 0 * other


freed(lab.numbers(), lab.slow_double)[:3]

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(x, double):
    side, current = torch.cuda.Stream(), torch.cuda.current_stream()
    temporary = x + 1
    side.wait_stream(current)
    with torch.cuda.stream(side):
        result = double(temporary)
    temporary.record_stream(side)
    del temporary
    other = torch.full_like(x, -1.0)
    current.wait_stream(side)
    return result + 0 * other


### END SOLUTION
exercises.check("13.freed", mended)

# %% [markdown]
# ### Patient 9: a copy that is read too early
#
# The sum of 0 to 999 is 499,500. The GPU is busy when the copy is launched.


# %% tags=["exercise"]
def read_too_early(x):
    host = torch.zeros(x.shape, pin_memory=True)
    host.copy_(x, non_blocking=True)
    return host.sum().item()


x = lab.numbers()
lab.kernel(2)()
read_too_early(x)

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(x):
    host = torch.zeros(x.shape, pin_memory=True)
    host.copy_(x, non_blocking=True)
    torch.cuda.synchronize()
    return host.sum().item()


### END SOLUTION
exercises.check("13.read-too-early", mended)

# %% [markdown]
# ### Patient 10: a wait that comes too soon
#
# The current stream waits for the event `done`, as it should. The result should be 999,000.


# %% tags=["exercise"]
def wait_before_record(x, double):
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    side.wait_stream(torch.cuda.current_stream())
    torch.cuda.current_stream().wait_event(done)
    with torch.cuda.stream(side):
        y = double(x)
    done.record(side)
    return y.sum().item()


wait_before_record(lab.numbers(), lab.slow_double)

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(x, double):
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = double(x)
    done.record(side)
    torch.cuda.current_stream().wait_event(done)
    return y.sum().item()


### END SOLUTION
exercises.check("13.wait-before-record", mended)

# %% [markdown]
# ### Patient 11: a buffer that is refilled too early
#
# The numbers of batch k are all k + 1, so the first numbers should be 1, 2, 3, 4, 5.


# %% tags=["exercise"]
def refilled(batches):
    staging = torch.empty(batches[0].shape, pin_memory=True)
    uploaded = []
    for batch in batches:
        staging.copy_(batch)  # the host writes
        uploaded.append(staging.to("cuda", non_blocking=True))
    return torch.stack(uploaded)


lab.kernel(2)()
refilled(lab.batches())[:, 0]

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(batches):
    staging = torch.empty(batches[0].shape, pin_memory=True)
    uploaded, copied = [], torch.cuda.Event()
    for batch in batches:
        copied.synchronize()  # returns at once in the first round
        staging.copy_(batch)
        uploaded.append(staging.to("cuda", non_blocking=True))
        copied.record()
    return torch.stack(uploaded)


### END SOLUTION
exercises.check("13.refilled", mended)

# %% [markdown]
# ### Patient 12: the program that never ends
#
# While `first` runs, the program fills the time with other work: `fill()` launches a short kernel
# and pauses. `lab.cut_off` ends it after 500 polls of the event.


# %% tags=["exercise"]
def endless(first, fill):
    n_fillers, done = 0, torch.cuda.Event()
    first()
    done.record()
    while not done.query():
        fill()
        done.record()
        n_fillers += 1
    return n_fillers


lab.cut_off(endless, lab.kernel(2), lab.kernel(0.2))

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(first, fill):
    n_fillers, done = 0, torch.cuda.Event()
    first()
    done.record()
    while not done.query():
        fill()
        n_fillers += 1
    return n_fillers


### END SOLUTION
exercises.check("13.endless", mended)

# %% [markdown]
# ## What you take along
#
# - A time needs a wait on both sides, or two events that are completed.
# - A stream orders its own work and nothing else. Order between streams, and between host and GPU,
#   exists only where you ask for it.
# - A wait looks back: it waits for what was recorded before, never for what comes later.
# - Check the value before you trust the time.

# %%
exercises.progress("13")
