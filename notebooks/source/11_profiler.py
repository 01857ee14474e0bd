# %% [markdown]
# # 11 Profiler
#
# Where does the time of a whole program go? PyTorch's profiler records each operator on the host,
# and each kernel and copy on the GPU. The program is one training step.

# %%
import html

import pandas as pd
import torch
from IPython.display import HTML
from torch.profiler import profile, record_function

import gpulab
from gpulab import exercises, plots
from gpulab.exercises import lesson_11 as lab
from gpulab.tracing import read_trace

gpulab.use("auto", max_value_bytes=40 << 20)  # of large tensors only the times matter

# %%
layers = (torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 10))
model = torch.nn.Sequential(*layers).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(256, 1024)


def step():
    with record_function("forward"):  # gives this part a name
        output = model(batch.cuda())
        loss = output.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


# %%
exercises.predict("11.column")

# %%
for _ in range(2):  # the second profile counts
    with profile() as seen:
        step()
seen.export_chrome_trace("step.json")
trace = read_trace("step.json")
worked_us = sum(1e6 * span.duration_s for span in trace.spans if span.kind in ("kernel", "copy"))
column_us = sum(row.self_device_time_total for row in seen.key_averages())
print(f"the GPU worked for {worked_us:.0f} µs; the column adds up to {column_us:.0f} µs")
exercises.compare("11.column", 100 * column_us / worked_us)

# %% [markdown]
# ## Which rows say it twice?
#
# The GPU cannot work longer than it worked. Here are five of the profiler's columns, for the rows
# with the most time on the GPU.


# %%
def table(seen):
    rows = seen.key_averages()
    columns = {
        "on": ["GPU" if row.device_type.name == "CUDA" else "host" for row in rows],
        "calls": [row.count for row in rows],
        "CPU total (µs)": [row.cpu_time_total for row in rows],
        "self CPU (µs)": [row.self_cpu_time_total for row in rows],
        "self GPU (µs)": [row.self_device_time_total for row in rows],
    }
    return pd.DataFrame(columns, index=[row.key[:40] for row in rows])


# %%
table(seen).nlargest(9, "self GPU (µs)").round(1)

# %% [markdown]
# The first row is no kernel. Take one thing out: the line `with record_function("forward")`.


# %%
def step_without_a_name():
    output = model(batch.cuda())
    loss = output.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


with profile() as unnamed:
    step_without_a_name()
without_us = table(unnamed)["self GPU (µs)"].sum()
print(f"with the name {column_us:.0f} µs, without {without_us:.0f} µs")

# %% [markdown]
# An *annotation* has a row of its own on the GPU. Its time goes from the start of its first kernel
# to the end of its last one, with all gaps. The optimizer annotates itself, too. (The profiler
# also takes memory for its records. That time is in the CPU total of the operator around it, and
# in a row of its own, `Activity Buffer Request`.)
#
# The other rows are of two kinds. A row on the *host* is an operator: `aten::addmm` is a matmul
# plus a bias, `aten::mm` a matmul. It repeats the time of the kernels that it launched. A row on
# the *GPU* is a kernel or a copy. Without the annotations, those rows add up to what the GPU did:

# %%
on_gpu = table(unnamed).query("on == 'GPU'")["self GPU (µs)"]
kernels_us = on_gpu[~on_gpu.index.str.startswith("Optimizer")].sum()
print(f"{kernels_us:.0f} µs")

# %% [markdown]
# ## Exercise: read a row

# %% tags=["exercise"]
exercises.ask("11.columns")
### BEGIN SOLUTION
exercises.check("11.columns", "c")
### END SOLUTION

# %% [markdown]
# *Self* is the time of a row without the rows that it calls, *total* is with them. So totals count
# the same time again and again: `forward` contains `aten::linear`, which contains `aten::addmm`,
# which contains the launch. **Sort by self to find where the time goes. Read the total of a part
# that you named. Add up rows of one kind only.**
#
# This is how PyTorch prints it. (In older versions the key to sort by is `self_cuda_time_total`.)

# %%
full = seen.key_averages().table(sort_by="self_device_time_total", max_name_column_width=22)
style = "white-space: pre; overflow-x: auto; font-size: 10px"
summary = "<summary>PyTorch's table with all columns</summary>"
HTML(f"<details>{summary}<pre style='{style}'>{html.escape(full)}</pre></details>")

# %% [markdown]
# ## Is the GPU busy?
#
# The table says for how long the GPU worked. It has no order in time.

# %%
exercises.predict("11.idle")

# %%
idle_percent = 100 - 1e-4 * worked_us / trace.duration_s
exercises.compare("11.idle", idle_percent)

# %% [markdown]
# The *trace* has the order: each launch, kernel and copy with its start and its end.

# %%
trace

# %% [markdown]
# Look for the gaps between the kernels, and for the call of the host that ends each gap. The same
# file opens at [ui.perfetto.dev](https://ui.perfetto.dev), which shows the operators, too: drag it
# onto the page. The page works in your browser and sends the file nowhere.
#
# ## Exercise: what limits a program?
#
# A program can wait for its kernels, for copies, for launches, or for memory. Four programs are
# ready. First ask whether the GPU is busy, then look at the longest rows.


# %%
def profiled(program):
    for _ in range(2):
        with profile() as seen:
            program()
    return seen


# %%
letter = "a"  # then "b", "c" and "d"
print(gpulab.timeline(lab.program(letter)).summary().finding)
seen_program = profiled(lab.program(letter))
table(seen_program).nlargest(4, "self GPU (µs)").round(1)

# %%
table(seen_program).nlargest(4, "self CPU (µs)").round(1)

# %% tags=["exercise"]
exercises.ask("11.bound")
### BEGIN SOLUTION
limits = {"a": "launch", "b": "allocation", "c": "compute", "d": "copy"}
exercises.check("11.bound", limits)
### END SOLUTION

# %% [markdown]
# Each has its own cure. *Compute*: a better kernel, half precision, less work. *Copy*: pinned
# memory, overlap (lesson 08), fewer bytes. *Launch*: CUDA graphs (07), fusion, larger batches.
# *Allocation*: keep tensors, and do not call `empty_cache()` in a loop.
#
# ## Two limits of the table
#
# **It costs time.** The profiler makes launches slower, and leaves the kernels as they are.
# So a profiled program looks more launch-bound than it is. Find the place with the profiler. Then
# take it out and measure.
#
# **It names no function of yours.** `with_stack=True` records the functions of Python around each
# operator, with the line at which each begins. Here are yours. (In place of a file a cell has a
# number.)


# %%
def predicted():
    return model(batch.cuda())


def loss_of(output):
    return output.square().mean()


# %%
verbose = torch._C._profiler._ExperimentalConfig(verbose=True)  # newer versions need it
with profile(with_stack=True, experimental_config=verbose) as with_functions:
    loss_of(predicted())
called_in = {
    event.name: line.rpartition("/")[2]  # without the folder
    for event in reversed(with_functions.events())
    for line in event.stack
    if line.endswith((": predicted", ": loss_of"))
}
names = ["aten::addmm", "aten::relu", "aten::square", "aten::mean"]
rows = {name: called_in.get(name, "none of the two") for name in names}
pd.Series(rows, name="file(line): function").to_frame()

# %% [markdown]
# ## What you take with you
#
# - Rows on the host repeat the time of their kernels, and annotations repeat it once more.
# - Sort by self, read total. Look at the GPU first: is it busy?
# - The profiler finds the place. Measure without it.
#
# A profiler sees one program for a short time. What do you see of a GPU for hours? Next:
# `11b_monitoring.ipynb`.


# %% [markdown]
# # Going further
#
# ## The rows of the backward pass
#
# The backward pass of each linear layer has up to two matmuls, one for the gradient of the weights
# and one for that of the input. Its operators stand in rows such as `AddmmBackward0`, which are
# the nodes of autograd.
#
# ## All totals together
#
# Add up the CPU totals of all rows on the host, and compare the sum with the time of the step.
# (This step begins with its first operator. So it is longer than that of the trace: the memory for
# the profiler's records is in it, too.)

# %%
exercises.predict("11.total")

# %%
host_events = [event for event in seen.events() if event.device_type.name == "CPU"]
begin_us = min(event.time_range.start for event in host_events)
step_us = max(event.time_range.end for event in host_events) - begin_us
self_us = sum(event.self_cpu_time_total for event in host_events)
total_us = sum(event.cpu_time_total for event in host_events)
sums = {"the step": step_us, "sum of self": self_us, "sum of total": total_us}
pd.Series(sums, name="µs").round(0).to_frame()

# %%
exercises.compare("11.total", total_us / step_us)

# %%
exercises.claim("11.totals-overlap", here=total_us / step_us)

# %% [markdown]
# ## The cost of looking
#
# How much longer does a step take while it is profiled? *Recorded*: 22 % on an H200, 18 % on
# an H100. It depends on the host. The virtual GPU charges the recorder's cost for each launch,
# and nothing for noting an operator.

# %%
exercises.predict("11.slower")


# %%
import time


def seconds_per_step(n_steps=20):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(n_steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / n_steps


plain_s = seconds_per_step()
with profile():
    profiled_s = seconds_per_step()
exercises.compare("11.slower", profiled_s / plain_s)

# %%
exercises.claim("11.profiler-costs", here=100 * (profiled_s / plain_s - 1))

# %% [markdown]
# And how idle is the GPU in this step?

# %%
exercises.claim("11.step-partly-idle", here=idle_percent)

# %% [markdown]
# Once loaded, the recorder may stay loaded. Then a step without the profiler is slow as well, and
# the two times differ little.
#
# ## A recorded trace
#
# A trace needs no GPU to be read. This one was *recorded* on an H200, from a step of a smaller
# model on a busy host:

# %%
plots.timeline(lab.h200_trace())

# %%
saved = lab.save_h200_trace("h200-step.json.gz")  # the same, with its operators
print(f"{saved} opens in Perfetto")

# %% [markdown]
# ### Exercise: prove an overlap
#
# Two streams do not prove that a copy and a kernel ran at the same time. The times do.

# %%
exercises.readings("11.overlap")

# %% tags=["exercise"]
exercises.ask("11.overlap")
### BEGIN SOLUTION
exercises.check("11.overlap", {"overlap_us": 35, "saved_us": 35})
### END SOLUTION

# %% [markdown]
# ## An overlap of your own
#
# A matmul on one stream, a copy from pinned memory on another. Does the copy run beside the
# matmul? For what share of its time?

# %%
exercises.predict("11.share")

# %%
side, pinned = torch.cuda.Stream(), torch.empty(1 << 22, pin_memory=True)
big, received = torch.randn(4096, 4096, device="cuda"), torch.empty(1 << 22, device="cuda")


def both():
    torch.mm(big, big)
    with torch.cuda.stream(side):
        received.copy_(pinned, non_blocking=True)


both()
torch.cuda.synchronize()  # so that the profile contains all that runs during it
with profile() as overlapped:
    both()
overlapped.export_chrome_trace("overlap.json")

# %%
spans = read_trace("overlap.json").spans
copy = next(span for span in spans if span.kind == "copy")
beside_s = sum(
    max(0, min(copy.end_s, span.end_s) - max(copy.start_s, span.start_s))
    for span in spans
    if span.kind == "kernel"
)
exercises.compare("11.share", 100 * beside_s / copy.duration_s)

# %%
exercises.claim("11.pinned-copy-overlaps", here=100 * beside_s / copy.duration_s)

# %% [markdown]
# Do the same with memory that is not pinned, and with both on one stream. Then you have proven
# what lesson 08 says, on your machine.
#
# ## Memory
#
# `profile_memory=True` adds columns for the memory that each operator takes and frees;
# `record_shapes=True` groups by the shapes of the inputs.

# %%
with profile(profile_memory=True, record_shapes=True) as with_memory:
    step()
by_shape = with_memory.key_averages(group_by_input_shape=True)
taken = [
    (row.key, str(row.input_shapes), row.count, row.self_device_memory_usage / 2**20)
    for row in by_shape
    if row.key.startswith("aten::")
]
taken = pd.DataFrame(taken, columns=["row", "shapes", "calls", "self GPU memory (MiB)"])
taken.nlargest(6, "self GPU memory (MiB)").round(2)

# %% [markdown]
# ## A long run
#
# Nobody wants a trace of an hour. A *schedule* records a few steps: it waits, warms up (the
# profiler's own first use is expensive), records, and starts again. Call `profiler.step()` at the
# end of each step of your loop.

# %% tags=["exercise"]
exercises.ask("11.schedule")
### BEGIN SOLUTION
exercises.check("11.schedule", {"2", "3", "6", "7"})
### END SOLUTION

# %% [markdown]
# Now run it. `on_trace_ready` is called at the end of each cycle, with the profiler as its
# argument. `acc_events=True` keeps the events of earlier cycles, so the second list has both.

# %%
from torch.profiler import schedule

ready = []
cycles = schedule(wait=1, warmup=1, active=2, repeat=2)
keep = {"acc_events": True, "on_trace_ready": lambda done: ready.append(list(done.events()))}
with profile(schedule=cycles, **keep) as profiler:
    for _ in range(10):
        step()
        profiler.step()
steps = [[each for each in events if each.name.startswith("ProfilerStep")] for events in ready]
[sum(each.device_type.name == "CPU" for each in recorded_steps) for recorded_steps in steps]

# %% [markdown]
# ## Nsight Systems
#
# PyTorch's profiler sees one Python process. NVIDIA's *Nsight Systems* sees the whole machine:
# every process, the driver, the network, the CPU's threads. It starts your program for you:
#
#     nsys profile --trace=cuda,nvtx,osrt -o report python train.py
#
# Mark the parts of your program with NVTX ranges, and they appear in its timeline:

# %%
with torch.cuda.nvtx.range("forward"):
    output = model(batch.cuda())
output.shape

# %%
exercises.progress()
