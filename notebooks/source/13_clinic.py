# %% [markdown]
# # 13 The clinic
#
# Twelve programs are ill. What is wrong with each, and how do you mend it?
#
# Read each program and say what it will show before you run it: a wrong number, a wrong value, an
# error, or no end. Then look at the symptom, write a mended program under it, and let the check
# prove it on works that you have not seen. The first eight are the classic mistakes with streams
# and events; the other four are just as common in published code.
#
# | section | what is wrong | minutes |
# |---|---|---|
# | 1 Wrong numbers | six programs that time something else | 20 |
# | 2 Wrong values | six programs without the order they need | 25 |

# %%
import time

import torch
from IPython.display import display

import gpulab
from gpulab import exercises, plots
from gpulab.exercises import lesson_13 as lab

gpulab.use("auto")

# %% [markdown]
# ## 1 Wrong numbers
#
# Call `lab.kernel(2)` your `work`: one kernel of some milliseconds. The cell shows what it takes.

# %%
work = lab.kernel(2)
true = gpulab.measure(work)
true

# %% [markdown]
# ### Patient 1: a stopwatch


# %% tags=["exercise"]
def stopwatch(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


exercises.predict("13.patient-1")

# %%
print(f"{stopwatch(work) * 1e3:.4f} ms")
torch.cuda.synchronize()
exercises.compare("13.patient-1", 100 * stopwatch(work) / true.median_s)

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
# ### Patient 2: a stopwatch in a busy program
#
# The GPU still has a kernel of `lab.kernel(10)` in its queue: five times your work.


# %% tags=["exercise"]
def in_a_program(work):
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


exercises.predict("13.patient-2")

# %%
torch.cuda.synchronize()
lab.kernel(10)()
exercises.compare("13.patient-2", in_a_program(work) / true.median_s)

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
# ### Patient 3: two events


# %% tags=["exercise"]
def by_events(work):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    return start.elapsed_time(end) / 1e3


exercises.predict("13.patient-3")

# %%
try:
    came = "the kernel's time" if by_events(work) > true.median_s / 2 else "almost zero"
except RuntimeError as error:
    print(f"RuntimeError: {error}")
    came = "none"
exercises.compare("13.patient-3", came)

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
# ### Patient 4: two readings
#
# Two readings of a matmul, one after the other. No matmul has run in this notebook before.


# %% tags=["exercise"]
def one_call(work):
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


exercises.predict("13.patient-4")

# %%
a = torch.randn(2048, 2048, device="cuda")
readings = one_call(lambda: a @ a), one_call(lambda: a @ a)
print(*(f"{reading * 1e3:.3f} ms" for reading in readings))
exercises.compare("13.patient-4", readings[0] / readings[1])

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(work):
    work()  # warm-up
    return one_call(work)


### END SOLUTION
exercises.check("13.first-call", mended)

# %% [markdown]
# ### Patient 5: a model with short layers
#
# `lab.layers(6)` are six layers, a short kernel each (`lab.kernel(0.03)`).


# %% tags=["exercise"]
def one_pass(layers):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for layer in layers:
        layer()
        torch.cuda.synchronize()
    return time.perf_counter() - start


exercises.predict("13.patient-5")

# %%
seen = gpulab.timeline(lambda: one_pass(lab.layers(6)))
display(plots.timeline(seen))
summary = seen.summary()
exercises.compare("13.patient-5", 100 * (1 - summary.devices[0].busy_s / summary.window_s))

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
# ### Patient 6: a copy and a kernel
#
# The copy has `non_blocking=True` and a stream of its own, and takes longer than the kernel.


# %% tags=["exercise"]
def copy_and_work(n_bytes, work):
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


exercises.predict("13.patient-6")

# %%
seen = gpulab.timeline(lambda: copy_and_work(2**24, lab.kernel(0.5)))
display(plots.timeline(seen))
exercises.compare("13.patient-6", 100 * seen.summary().devices[0].overlap_achieved)

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
# These programs are fast enough. Their results are wrong, and no error says so. In most of them
# two operations touch the same bytes, and nothing orders them: a race. Which kind of race is it?
# `lab.race` runs a program and says what `gpulab.hazards()` finds first in it. The cells make the
# inputs inside, so that it also sees who writes them.
#
# `lab.slow_double(x)` is a long kernel and then `x * 2`.

# %%
lab.RACES

# %% [markdown]
# ### Patient 7: a sum after another stream
#
# The sum of 0 to 999, doubled, is 999,000.


# %% tags=["exercise"]
def double_and_add(x, double):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = double(x)
    return y.sum().item()


exercises.predict("13.patient-7")

# %%
print(double_and_add(lab.numbers(), lab.slow_double))
exercises.compare("13.patient-7", lab.race(lambda: double_and_add(lab.numbers(), lab.slow_double)))

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
# ### Patient 8: a tensor for a moment
#
# The result should begin with 2, 4, 6.


# %% tags=["exercise"]
def double_plus_one(x, double):
    side, current = torch.cuda.Stream(), torch.cuda.current_stream()
    temporary = x + 1
    side.wait_stream(current)
    with torch.cuda.stream(side):
        result = double(temporary)
    del temporary
    other = torch.full_like(x, -1.0)  # somebody else's tensor
    current.wait_stream(side)
    return result + 0 * other


exercises.predict("13.patient-8")

# %%
print(double_plus_one(lab.numbers(), lab.slow_double)[:3])
exercises.compare(
    "13.patient-8", lab.race(lambda: double_plus_one(lab.numbers(), lab.slow_double))
)

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
# ### Patient 9: a sum on the host
#
# The sum of 0 to 999 is 499,500. The GPU is busy when the copy is launched.


# %% tags=["exercise"]
def add_on_host(x):
    host = torch.zeros(x.shape, pin_memory=True)
    host.copy_(x, non_blocking=True)
    return host.sum().item()


exercises.predict("13.patient-9")

# %%
x = lab.numbers()
lab.kernel(2)()
print(add_on_host(x))
exercises.compare("13.patient-9", lab.race(lambda: add_on_host(lab.numbers())))

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
# ### Patient 10: a sum after an event
#
# The current stream waits for the event `done`, as it should. The result should be 999,000.


# %% tags=["exercise"]
def add_after_event(x, double):
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    side.wait_stream(torch.cuda.current_stream())
    torch.cuda.current_stream().wait_event(done)
    with torch.cuda.stream(side):
        y = double(x)
    done.record(side)
    return y.sum().item()


exercises.predict("13.patient-10")

# %%
print(add_after_event(lab.numbers(), lab.slow_double))
exercises.compare(
    "13.patient-10", lab.race(lambda: add_after_event(lab.numbers(), lab.slow_double))
)

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
# ### Patient 11: one buffer for all batches
#
# The numbers of batch k are all k + 1, so the first numbers should be 1, 2, 3, 4, 5.


# %% tags=["exercise"]
def upload(batches):
    staging = torch.empty(batches[0].shape, pin_memory=True)
    uploaded = []
    for batch in batches:
        staging.copy_(batch)  # the host writes
        uploaded.append(staging.to("cuda", non_blocking=True))
    return torch.stack(uploaded)


exercises.predict("13.patient-11")

# %%
lab.kernel(2)()
print(upload(lab.batches())[:, 0].tolist())
exercises.compare("13.patient-11", lab.race(lambda: upload(lab.batches())))

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
# ### Patient 12: a program that fills the time
#
# While `first` runs, the program fills the time with other work. `fill()` launches a kernel that
# is a tenth as long as `first`.


# %% tags=["exercise"]
def fill_up(first, fill):
    n_fillers, done = 0, torch.cuda.Event()
    first()
    done.record()
    while not done.query():
        fill()
        done.record()
        n_fillers += 1
    return n_fillers


exercises.predict("13.patient-12")

# %%
came = lab.cut_off(fill_up, lab.kernel(2), lab.kernel(0.2))
print(came)
counted = "about ten times" if came else "never"
exercises.compare("13.patient-12", "without end" if isinstance(came, str) else counted)

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
