# %% [markdown]
# # 11 Profiler
#
# Where does the time of a whole program go?
#
# So far you timed one piece of work that you chose. A program has hundreds of them, and the slow
# one is often not the one you suspect. A *profiler* records every operator on the host and every
# kernel and copy on the GPU, while the program runs. This lesson is about reading its tables and
# its traces, and about what it changes.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 A table of operators | to record a step, and to sort its table | 8 |
# | 2 Self and total | what each column counts | 7 |
# | 3 The cost of looking | how much the profiler slows a program | 5 |
# | 4 What limits a program | to tell four kinds of programs apart | 12 |
# | 5 The trace | when things happened: gaps and overlap | 8 |
# | 6 A long run | to record a few steps of many | 5 |
# | Going further (extra) | an overlap of your own · memory · TensorBoard · Nsight Systems | 20 |

# %%
import time

import pandas as pd
import torch
from torch.profiler import profile, record_function, schedule

import gpulab
from gpulab import exercises, plots
from gpulab.exercises import lesson_11 as lab
from gpulab.tracing import read_trace

gpulab.use("auto", max_value_bytes=40 << 20)  # of large tensors only the times matter

# %% [markdown]
# The program is one training step of a small model. Each batch comes from the host.

# %%
model = torch.nn.Sequential(
    torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 10)
).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(256, 1024)
sum(weights.numel() for weights in model.parameters())


# %%
def step():
    with record_function("forward"):
        loss = model(batch.cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for _ in range(3):  # warm-up, as in lesson 04
    step()
torch.cuda.synchronize()

# %% [markdown]
# ## 1 A table of operators
#
# PyTorch's operators have names such as `aten::mm` (a matmul) and `aten::addmm` (a matmul plus a
# bias). Which of these keeps the GPU busy for the longest time in one step?

# %%
exercises.predict("11.busiest")

# %%
with profile() as recorded:
    step()
recorded.export_chrome_trace("step.json")  # for section 5
rows = recorded.key_averages()
print(rows.table(sort_by="self_device_time_total", row_limit=10, max_name_column_width=28))

# %% [markdown]
# `profile()` records the host and the GPU, and waits for the GPU at its end. `key_averages()` adds
# up all calls of the same name. The table has rows of two kinds: *operators and calls* of the host
# (`aten::mm`, `cudaLaunchKernel`), and *kernels and copies* of the GPU (`mm`, `Memcpy HtoD`). An
# operator's "CUDA" columns repeat the time of the kernels that it launched, so do not add up all
# rows of one column. In older versions of PyTorch, and in many articles, the key to sort by is
# `self_cuda_time_total`. `activities=` chooses what is recorded: the host, the GPU, or both.

# %%
names = {"aten::_to_copy": "the copy", "aten::copy_": "the copy"}
operators = [row for row in rows if row.key.startswith("aten::")]
longest = max(operators, key=lambda row: row.self_device_time_total)
exercises.compare("11.busiest", names.get(longest.key, longest.key))

# %% [markdown]
# The backward pass of each linear layer has up to two matmuls, one for the gradient of the weights
# and one for that of the input. Its operators stand in rows such as `AddmmBackward0`, which are
# the nodes of autograd.
#
# ## 2 Self and total
#
# "Self" is the time of an operator without the operators that it calls. "Total" is with them. Add
# up *CPU total* over all rows of the host. Does the sum exceed the time of the step?

# %%
exercises.predict("11.total")

# %%
on_host = [event for event in recorded.events() if event.device_type.name == "CPU"]
begin_us = min(event.time_range.start for event in on_host)
step_us = max(event.time_range.end for event in on_host) - begin_us
self_us = sum(event.self_cpu_time_total for event in on_host)
total_us = sum(event.cpu_time_total for event in on_host)
pd.Series({"the step": step_us, "sum of self": self_us, "sum of total": total_us}, name="µs")

# %%
exercises.compare("11.total", total_us / step_us)

# %%
exercises.claim("11.totals-overlap", here=total_us / step_us)

# %% [markdown]
# Totals count the same microsecond several times: in `forward`, in `aten::addmm` inside it, and in
# `cudaLaunchKernel` inside that. Self times count each microsecond once. So sort by *self* to find
# where time is spent, and read *total* to see what a whole part of your program costs. You name
# such a part with `record_function`:

# %%
forward = next(event for event in on_host if event.name == "forward")
torch_calls = [child.name for child in forward.cpu_children]
pd.Series({"total": forward.cpu_time_total, "self": forward.self_cpu_time_total}, name="µs")

# %%
torch_calls

# %% [markdown]
# ### Exercise: read a row

# %%
exercises.ask("11.columns")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = "c"
### END SOLUTION
exercises.check("11.columns", answer)

# %% [markdown]
# ## 3 The cost of looking
#
# The profiler notes each operator, and the driver notes each launch. Both take time on the host.
# How many times as long does a step take while it is profiled?

# %%
exercises.predict("11.slower")


# %%
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
# *Recorded* on an H200: a launch takes 14.5 µs while the driver's recorder is loaded, and 9.9 µs
# without it. The kernels themselves take the same time. So the profiler makes a program look more
# launch-bound than it is. (Once loaded, the recorder may stay loaded. Then a step without the
# profiler is slow as well, and the two times differ little.) Use it to find *where* time goes. To
# report *how much*, take the profiler out and measure.
#
# The virtual GPU charges the same cost for each launch, and nothing for noting an operator.
#
# ## 4 What limits a program
#
# A GPU program can wait for its kernels, for copies, for launches, or for memory. The first
# question is always: is the GPU busy? Four programs are ready for you. Profile each of them.

# %%
exercises.ask("11.bound")

# %%
letter = "a"  # then "b", "c" and "d"
program = lab.program(letter)
program()  # warm-up
with profile() as seen:
    program()
print(seen.key_averages().table(sort_by="self_device_time_total", row_limit=6))

# %% [markdown]
# Compare the time on the device with the time of the program. If the device is mostly idle, sort
# by the host. The row `Activity Buffer Request` is the profiler's own: in a profile without
# warm-up, the first launch waits until the driver's recorder has its memory.


# %%
def device_share(seen):
    ranges = [event.time_range for event in seen.events()]
    length_us = max(span.end for span in ranges) - min(span.start for span in ranges)
    on_device = [event for event in seen.events() if event.device_type.name == "CUDA"]
    work = [event.time_range for event in on_device if not event.is_user_annotation]
    return sum(span.elapsed_us() for span in work) / length_us


f"program {letter}: the GPU is busy for {device_share(seen):.0%} of the time"

# %%
print(seen.key_averages().table(sort_by="self_cpu_time_total", row_limit=6))

# %% tags=["exercise"]
answer = {"a": ..., "b": ..., "c": ..., "d": ...}
### BEGIN SOLUTION
answer = {"a": "launch", "b": "allocation", "c": "compute", "d": "copy"}
### END SOLUTION
exercises.check("11.bound", answer)

# %% [markdown]
# Each kind has its own cure. Compute: a better kernel, half precision, less work. Copy: pinned
# memory, overlap (lesson 08), fewer bytes. Launch: CUDA graphs (lesson 07), fusion, larger
# batches. Allocation: keep tensors and let PyTorch's allocator cache them; do not call
# `empty_cache()` in a loop.
#
# ## 5 The trace
#
# A table has no order in time. The *trace* has: each operator, launch, kernel and copy, with its
# start and its end. Section 1 wrote the trace of the step into a file at once, because PyTorch
# loses the times of a profile when the next one begins. For how long does the GPU do nothing?

# %%
exercises.predict("11.idle")

# %%
trace = read_trace("step.json")
trace

# %%
busy_s = sum(span.duration_s for span in trace.spans if span.kind in ("kernel", "copy"))
idle_percent = 100 * (1 - busy_s / trace.duration_s)
exercises.compare("11.idle", idle_percent)

# %%
exercises.claim("11.step-partly-idle", here=100 - idle_percent)

# %% [markdown]
# `step.json` also opens at [ui.perfetto.dev](https://ui.perfetto.dev): drag the file onto the
# page. The page works inside your browser and sends the file nowhere. It shows the operators, too.
# Press W and S to zoom, A and D to move, and click a kernel to follow the arrow to its launch.
#
# A trace needs no GPU to be read. This one was *recorded* on an H200, from a step of a smaller
# model on a busy host:

# %%
plots.timeline(lab.h200_trace())

# %%
lab.save_h200_trace("h200-step.json.gz")  # the same, with its operators, for Perfetto

# %% [markdown]
# Look for the gaps between the kernels, and for the call of the host that ends each gap.
#
# ### Exercise: prove an overlap
#
# Two streams do not prove that a copy and a kernel ran at the same time. The times do.

# %%
exercises.ask("11.overlap")

# %%
exercises.readings("11.overlap")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {"overlap_us": 35, "saved_us": 35}
### END SOLUTION
exercises.check("11.overlap", answer)

# %% [markdown]
# ## 6 A long run
#
# Nobody wants a trace of an hour. A *schedule* records a few steps: it waits, warms up (the
# profiler's own first use is expensive), records, and starts again. Call `profiler.step()` at the
# end of each step of your loop.

# %%
exercises.ask("11.schedule")

# %% tags=["exercise"]
answer = ...
### BEGIN SOLUTION
answer = {"2", "3", "6", "7"}
### END SOLUTION
exercises.check("11.schedule", answer)

# %% [markdown]
# Now run it. `on_trace_ready` is called at the end of each cycle, with the profiler as its
# argument. `acc_events=True` keeps the events of earlier cycles, so the second list has both.

# %%
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
# ## Summary
#
# - Sort by *self* to find where time goes; read *total* for a whole part.
# - Look at the device first. If it is busy, look at kernels and copies; if it is idle, look at the
#   host.
# - Only times that intersect prove an overlap.
# - The profiler slows the launches. Find the place with it, then measure without it.
#
# A profiler sees one program for a short time. What a monitor shows of a GPU for hours is in
# `11b_monitoring`.
#
# # Going further
#
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
print(by_shape.table(sort_by="self_device_memory_usage", row_limit=6, max_shapes_column_width=40))

# %% [markdown]
# ## TensorBoard and Nsight Systems
#
# `on_trace_ready=torch.profiler.tensorboard_trace_handler("logs")` writes one file per cycle, in
# the same format. `tensorboard --logdir logs` shows it with the plugin `torch-tb-profiler`, and
# Perfetto opens it, too.
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
