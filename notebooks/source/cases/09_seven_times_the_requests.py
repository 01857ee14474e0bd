# %% [markdown]
# # Case 09: Seven times the requests
#
# How can a server answer seven times as many requests? *15 minutes. It helps to know lesson 07b.*
#
# > **"CUDA graphs: 7 times the requests per second"** (a conference slide by Omar)
# >
# > Our model has many small kernels, so we capture it once and replay it for each request: 7 times
# > as fast as launching, with three changed lines. In the demo all answers looked alike, but the
# > demo questions were alike, too.

# %%
import time

import torch

import gpulab
from gpulab import exercises
from gpulab.exercises import cases

gpulab.use("auto")


# %% [markdown]
# The program on the slide. It returns the seconds for each request, and the answers:


# %% tags=["exercise"]
def serve(model, requests):
    x, outputs = requests[0], []
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for x in requests:
        graph.replay()
        outputs.append(y)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / len(requests), outputs


# %% [markdown]
# The numbers in the six requests differ, and so should the answers.

# %%
exercises.predict("case-09.wrong")

# %%
model, requests = cases.small_model(), cases.requests()
seconds, outputs = serve(model, requests)
expected = [model(request) for request in requests]  # without a graph
n_wrong = sum(not torch.equal(got, want) for got, want in zip(outputs, expected, strict=True))
exercises.compare("case-09.wrong", n_wrong)

# %%
exercises.claim("case-09.wrong-answers", here=n_wrong)

# %% [markdown]
# The graph does run all its kernels, again and again. These are the addresses of the six requests,
# and of the six answers:

# %%
print("requests", *(f"{request.data_ptr():x}" for request in requests))
print("answers ", *(f"{output.data_ptr():x}" for output in outputs))

# %% tags=["exercise"]
exercises.ask("case-09.flaw")
### BEGIN SOLUTION
exercises.check("case-09.flaw", "d")
### END SOLUTION

# %%
exercises.ask("case-09.mend")

# %% tags=["exercise"]
mended = ...


### BEGIN SOLUTION
def mended(model, requests):
    static, outputs = requests[0].clone(), []
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(static)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for x in requests:
        static.copy_(x)
        graph.replay()
        outputs.append(y.clone())
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / len(requests), outputs


### END SOLUTION
exercises.check("case-09.mend", mended)

# %%
print(
    f"{mended(model, requests)[0] * 1e6:.1f} µs" if callable(mended) else "mend the program first"
)

# %% [markdown]
# **What happened.** A graph notes addresses. `for x in requests` gives the *name* x to another
# tensor; the graph still reads the memory of the first request. And it writes to the same output
# each time, so the list held six times the same tensor.
#
# **The habit.** Copy the input into the tensor of the capture, and copy the output out. Both
# copies belong into the time. Compare the answers with those of the plain model first.
#
# *The same in real life:* a serving system added [tests with poisoned
# inputs](https://github.com/NVIDIA/TensorRT-LLM/pull/18207), because an input that was not passed
# kept its old values in a graph.
