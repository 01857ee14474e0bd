# %% [markdown]
# # 13b The clinic, second part
#
# Five programs run work side by side. What is wrong with each, and how do you mend it?

# %%
import torch

import gpulab
from gpulab import exercises
from gpulab.exercises import lesson_13 as lab

gpulab.use("auto")

# %% [markdown]
# ## Patient 7: a sum
#
# `double(x)` runs in a stream of its own. `lab.numbers()` are the numbers 0 to 999 on the GPU.
# Twice their sum is 999,000. If nothing orders two operations on the same bytes, and one of them
# writes, they are a **race**. `gpulab.hazards()` watches a block and names the kinds of its
# races.


# %% tags=["exercise"]
def double(x):
    torch.cuda._sleep(40_000_000)  # a long kernel before
    return x * 2


def double_and_add(x, double):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = double(x)
    return y.sum().item()


exercises.predict("13b.patient-7")

# %%
with gpulab.hazards() as hazards:
    print(f"{double_and_add(lab.numbers(), double):,.0f} in place of 999,000")
kinds = [race.kind for race in hazards]
exercises.compare("13b.patient-7", kinds[0] if kinds else "no race")

# %% [markdown]
# No error and no warning. Who came first?

# %%
lab.first_reader(gpulab.timeline(lambda: double_and_add(lab.numbers(), double)))

# %% [markdown]
# Mend it. `mended(x, double)` returns the same sum, and `double` still runs in a stream of its
# own. The check runs `gpulab.hazards()` over it, so a right value is not enough.

# %% tags=["exercise"]
mended = ...  # copy the program, and change it


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
# **A stream orders its own work and nothing else.** The way there had its wait. The way back had
# none.
#
# ## Patient 8: a tensor for a moment
#
# This program has both waits. `lab.race` runs a program under `gpulab.hazards()` and returns the
# kind of the first race.


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


exercises.predict("13b.patient-8")

# %%
double_plus_one(lab.numbers(), double)[:3].tolist()  # in place of 2, 4, 6

# %%
exercises.compare("13b.patient-8", lab.race(lambda: double_plus_one(lab.numbers(), double)))

# %% tags=["exercise"]
mended = ...  # returns double(x + 1), computed in a stream of its own


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
# **Memory belongs to the stream in which it was allocated.** The allocator knows of another user
# only if you say so.
#
# ## Patient 9: a sum on the host
#
# The host adds up a copy of x. The sum of 0 to 999 is 499,500. The GPU is busy when the copy is
# launched.


# %% tags=["exercise"]
def add_on_host(x):
    host = torch.zeros(x.shape, pin_memory=True)
    host.copy_(x, non_blocking=True)
    return host.sum().item()


exercises.predict("13b.patient-9")

# %%
x = lab.numbers()
torch.cuda._sleep(40_000_000)
print(f"{add_on_host(x):,.0f} in place of 499,500")
exercises.compare("13b.patient-9", lab.race(lambda: add_on_host(lab.numbers())))

# %% tags=["exercise"]
mended = ...  # returns the sum of the host's copy


### BEGIN SOLUTION
def mended(x):
    host = torch.zeros(x.shape, pin_memory=True)
    host.copy_(x, non_blocking=True)
    torch.cuda.synchronize()
    return host.sum().item()


### END SOLUTION
exercises.check("13.read-too-early", mended)

# %% [markdown]
# ## Patient 10: one buffer for all batches
#
# All numbers of batch k are k + 1. So the uploaded batches should begin with 1, 2, 3, 4, 5.


# %% tags=["exercise"]
def upload(batches):
    staging = torch.empty(batches[0].shape, pin_memory=True)
    uploaded = []
    for batch in batches:
        staging.copy_(batch)  # the host writes
        uploaded.append(staging.to("cuda", non_blocking=True))
    return torch.stack(uploaded)


exercises.predict("13b.patient-10")

# %%
torch.cuda._sleep(40_000_000)
print(upload(lab.batches())[:, 0].tolist())
exercises.compare("13b.patient-10", lab.race(lambda: upload(lab.batches())))

# %% tags=["exercise"]
mended = ...  # returns all batches on the GPU, stacked


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
# **`non_blocking=True` means that nobody waits, neither for reading nor for writing.**
#
# ## Patient 11: a program that fills the time
#
# While `first` runs, the program does other work. `fill()` launches a kernel that is a tenth as
# long as `first`.


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


exercises.predict("13b.patient-11")

# %%
result = lab.cut_off(fill_up, lab.kernel(2), lab.kernel(0.2))
print(result)
exercises.compare("13b.patient-11", lab.how_often(result))

# %% tags=["exercise"]
mended = ...  # returns how many times fill() was launched while first() was not done


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
# **An event that is recorded again marks a new moment.**
#
# ## What you take with you
#
# - Order between streams, and between host and GPU, exists only where you ask for it.
# - A wait looks back: it waits for what was recorded before, never for what comes later.
# - Right values prove no order. `gpulab.hazards()` does not depend on luck.
#
# This was the last lesson. Ten published benchmarks with a flaw are in the folder `cases`.

# %% [markdown]
# # Going further
#
# ## Patient 12: a sum after an event
#
# Here the current stream waits for an event of the other one. The result should be 999,000.


# %% tags=["exercise"]
def add_after_event(x, double):
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    side.wait_stream(torch.cuda.current_stream())
    torch.cuda.current_stream().wait_event(done)
    with torch.cuda.stream(side):
        y = double(x)
    done.record(side)
    return y.sum().item()


exercises.predict("13b.patient-12")

# %%
print(f"{add_after_event(lab.numbers(), double):,.0f} in place of 999,000")
exercises.compare("13b.patient-12", lab.race(lambda: add_after_event(lab.numbers(), double)))

# %% tags=["exercise"]
mended = ...  # returns the sum of double(x)


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
# ## The whole report
#
# `gpulab.hazards()` knows more than the kind: both lines, and what is missing between them.

# %%
with gpulab.hazards() as hazards:
    add_after_event(lab.numbers(), double)
hazards

# %%
exercises.progress("13b")
