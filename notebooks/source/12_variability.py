# %% [markdown]
# # 12 Variability and claims
#
# Which advice about GPU speed survives a measurement?
#
# The same function, the same inputs, and another time: where does the difference come from? In the
# first half of this lesson you take the sources of variance apart, one experiment for each. In the
# second half you test advice from blogs and forums. Some of it holds, some does not, and some of
# its listings do not even run.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 Sources of variance | to change one thing at a time | 14 |
# | 2 Access patterns | what the order of the bytes costs | 8 |
# | 3 Fewer launches | what batching and fusion save | 6 |
# | 4 Formats | what `channels_last` and half precision save | 7 |
# | 5 Claims | to give a verdict that is computed | 10 |
# | *Going further* | *your benchmark card, jitter, a compiler, precision, alignment* | *30* |

# %%
import time
import warnings

import pandas as pd
import torch
from IPython.display import display

import gpulab
from gpulab import clocks, exercises, plots
from gpulab.exercises import lesson_12 as lab

gpulab.use("auto", max_value_bytes=8 << 20)  # of large tensors only the times matter

# %% [markdown]
# One claim can be tested only once in a notebook, so its reading comes first: what does the first
# call of CUDA take? Section 5 needs it.

# %%
start = time.perf_counter()
torch.cuda.synchronize()
first_call_s = time.perf_counter() - start
torch.cuda.get_device_name()

# %% [markdown]
# ## 1 Sources of variance
#
# The work is a matmul in half precision. Each experiment below changes *one* thing and divides the
# longer time by the shorter one. Which change will matter most?

# %%
exercises.predict("12.largest")

# %%
a, b = torch.randn(2, 6144, 6144, device="cuda", dtype=torch.half)
out, changed = torch.empty_like(a), {}


def seconds(work, **options):
    return gpulab.measure(work, n_samples=15, **options).median_s


f"{seconds(lambda: torch.mm(a, b, out=out)) * 1e3:.2f} ms"

# %% [markdown]
# **Clock and heat.** The GPU lowers its clock when it reaches its limit of power or temperature.
# Rest for a second, time it, work for a second, time it again.
#
# **Data.** The same shape, but zeros: fewer transistors switch, so the GPU draws less power. They
# also get a second of work before they are timed, so that the clock has settled for them.

# %%
time.sleep(1)
rested_s = seconds(lambda: torch.mm(a, b, out=out))
last = list(clocks.watch(lambda: torch.mm(a, b, out=out), duration_s=1))[-1]
hot_s = seconds(lambda: torch.mm(a, b, out=out))
changed["clock"] = hot_s / rested_s
f"{last.sm_mhz} MHz, {last.temperature_c} °C, {last.reasons}"

# %%
zeros = torch.zeros_like(a)
last = list(clocks.watch(lambda: torch.mm(zeros, zeros, out=out), duration_s=1))[-1]
changed["data"] = hot_s / seconds(lambda: torch.mm(zeros, zeros, out=out))
exercises.claim("12.data", here=changed["data"])

# %% [markdown]
# **Order.** Compare a function with *itself*. One is timed first, on a rested GPU, and the other
# after it.

# %%
time.sleep(1)
first_s = gpulab.measure(lambda: torch.mm(a, b, out=out), n_samples=25).median_s
second_s = gpulab.measure(lambda: torch.mm(a, b, out=out), n_samples=250).median_s
changed["order"] = second_s / first_s
display(gpulab.compare(lambda: torch.mm(a, b, out=out), lambda: torch.mm(a, b, out=out)))
exercises.claim("12.order-alone", here=100 * (changed["order"] - 1))

# %% [markdown]
# Taken in turns, both get the same clock, so a difference should be gone. A comparison of a
# function with itself is the best test of a benchmark.
#
# **Allocator.** `x + y` needs memory for its result. PyTorch keeps freed memory for the next call.
# `empty_cache()` gives it back to the driver.
#
# **Contention.** A second stream of your program works at the same time. Another process on the
# same GPU does the same to you, and you do not see it in your program at all.

# %%
x, y = torch.randn(2, 2048, 2048, device="cuda", dtype=torch.half)


def from_the_driver():
    torch.cuda.empty_cache()
    return x + y


cached_s = seconds(lambda: x + y, method="synchronized")
changed["allocator"] = seconds(from_the_driver, method="synchronized") / cached_s
exercises.claim("12.allocator", here=changed["allocator"])

# %%
side, other_out = torch.cuda.Stream(), torch.empty_like(a)


def beside_another():
    with torch.cuda.stream(side):
        torch.mm(b, a, out=other_out)
    torch.mm(a, b, out=out)


alone_s = seconds(lambda: torch.mm(a, b, out=out), method="events")
changed["contention"] = seconds(beside_another, method="events") / alone_s
exercises.claim("12.contention", here=changed["contention"])

# %% [markdown]
# **Placement.** Are the inputs in the L2 cache, or only in memory?
#
# **Algorithm.** One more row and column. The library chooses another kernel, because rows of an
# odd length are not aligned.

# %%
row, weights = x[:1], torch.randn(2048, 8192, device="cuda", dtype=torch.half)
hot, cold = (seconds(lambda: row @ weights, cache=state) for state in ("hot", "cold"))
changed["placement"] = cold / hot
exercises.claim("12.placement", here=changed["placement"])

# %%
odd = torch.randn(2049, 2049, device="cuda", dtype=torch.half)
changed["algorithm"] = seconds(lambda: odd @ odd) / seconds(lambda: x @ y)
exercises.claim("12.odd-size", here=changed["algorithm"])

# %%
factors = pd.Series(changed, name="longer time / shorter time").sort_values()
display(plots.bars(factors))
exercises.compare("12.largest", factors.idxmax())

# %% [markdown]
# Your program has all of them at once. So fix what you can (inputs, memory, other work, cache
# state), read what you cannot fix (clock, temperature) beside each sample, and take A and B in
# turns. (On the virtual GPU the data change nothing: its model does not look at them.)
#
# ### Exercise: name the source

# %%
exercises.ask("12.source")

# %% tags=["exercise"]
answer = {"a": ..., "b": ..., "c": ..., "d": ..., "e": ..., "f": ...}
### BEGIN SOLUTION
answer = {
    "a": "clock",
    "b": "order",
    "c": "allocator",
    "d": "contention",
    "e": "placement",
    "f": "data",
}
### END SOLUTION
exercises.check("12.source", answer)

# %% [markdown]
# ## 2 Access patterns
#
# A *warp*, 32 threads of a GPU, reads memory together, in sectors of 32 bytes (by definition of
# the hardware). If its threads read neighbours, their reads are *coalesced* into few sectors.
# Below, a result of the same size is copied in five ways. Which one is the slowest?

# %%
exercises.predict("12.slowest")

# %%
n = 2048
wide, flat = torch.randn(n, 8 * n, device="cuda"), torch.randn(n * n, device="cuda")
shuffled, copied = torch.randperm(n * n, device="cuda"), torch.empty(n, n, device="cuda")
views = {
    "contiguous": flat.view(n, n),
    "every 2nd": wide[:, : 2 * n : 2],
    "every 8th": wide[:, ::8],
    "transposed": flat.view(n, n).t(),
}
ways = {name: seconds(lambda view=view: copied.copy_(view)) for name, view in views.items()}
ways["gathered"] = seconds(lambda: torch.index_select(flat, 0, shuffled, out=copied.view(-1)))
len(ways)

# %%
useful = 2 * copied.nbytes / pd.Series(ways) / 1e9  # read once and written once
plots.bars(useful.rename("useful GB/s"))

# %%
display(exercises.compare("12.slowest", useful.idxmin()))
exercises.claim("12.transposed-slower", here=useful["contiguous"] / useful["transposed"])

# %% [markdown]
# The kernel copies the same number of elements each time. What differs is how many sectors it must
# fetch for them, and whether reads and writes can both be coalesced: in a transposed copy one of
# them cannot, unless the kernel goes through *shared memory*. A kernel that you write yourself
# decides that (in CUDA or Triton). A tensor in Python does not.
#
# Is a gather slow because of its indices, or because of their order?

# %%
ordered = torch.arange(n * n, device="cuda")
ordered_s = seconds(lambda: torch.index_select(flat, 0, ordered, out=copied.view(-1)))
exercises.claim("12.random-order", here=ways["gathered"] / ordered_s)

# %% [markdown]
# The virtual GPU counts the bytes of a copy, and no sectors. So do not trust it with strides of 2
# and 8, and indices in order and at random take the same time there. On a real GPU they do not.
#
# ### Exercise: count the sectors

# %%
exercises.ask("12.sectors")

# %% tags=["exercise"]
sectors = ...


### BEGIN SOLUTION
def sectors(n, stride, size_bytes):
    return len({k * stride * size_bytes // 32 for k in range(n)})


### END SOLUTION
exercises.check("12.sectors", sectors)

# %% [markdown]
# ## 3 Fewer launches
#
# An optimizer scales 200 small tensors. One launch for each, one `foreach` operator for all, or a
# graph of the 200 launches: by how much is the `foreach` faster, until done?

# %%
exercises.predict("12.batched")


# %%
small = [torch.randn(1024, device="cuda") for _ in range(200)]


def one_by_one():
    for tensor in small:
        tensor.mul_(0.5)


graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    one_by_one()
works = (one_by_one, lambda: torch._foreach_mul_(small, 0.5), graph.replay)
loop_s, foreach_s, graph_s = (seconds(work, method="synchronized") for work in works)
pd.Series({"loop": loop_s, "graph": graph_s, "foreach": foreach_s}).mul(1e6).rename("µs")

# %%
display(exercises.compare("12.batched", loop_s / foreach_s))
exercises.claim("12.batching", here=loop_s / foreach_s)

# %% [markdown]
# A graph saves the host's part of each launch; `foreach` also saves most of the kernels. On the
# virtual GPU its one launch takes the host too long: see the card. PyTorch's optimizers use it by
# default (`foreach=True`).
#
# *Fusion* saves something else: trips to memory. GELU by hand is nine kernels, each of which
# reads and writes the whole tensor. `torch.nn.functional.gelu` is one kernel. By how much is it
# faster, on the GPU alone?

# %%
exercises.predict("12.fused")


# %%
def gelu_by_hand(v):
    return 0.5 * v * (1 + torch.tanh(0.79788456 * (v + 0.044715 * v * v * v)))


v = torch.randn(1 << 24, device="cuda")
by_hand_s = seconds(lambda: gelu_by_hand(v))
one_kernel_s = seconds(lambda: torch.nn.functional.gelu(v, approximate="tanh"))
display(exercises.compare("12.fused", by_hand_s / one_kernel_s))
exercises.claim("12.fusion", here=by_hand_s / one_kernel_s)

# %% [markdown]
# ## 4 Formats
#
# `channels_last` keeps the shape of a batch of images, and changes the order in memory: the
# channels of one pixel lie together. In half precision, what does a convolution gain?

# %%
exercises.predict("12.layout")

# %%
images = torch.randn(32, 64, 56, 56, device="cuda", dtype=torch.half)
conv = torch.nn.Conv2d(64, 64, 3, padding=1, device="cuda", dtype=torch.half)
contiguous_s = seconds(lambda: conv(images))
conv, pixels = (each.to(memory_format=torch.channels_last) for each in (conv, images))
channels_last_s = seconds(lambda: conv(pixels))
images.shape == pixels.shape, images.stride(), pixels.stride()

# %%
display(exercises.compare("12.layout", contiguous_s / channels_last_s))
exercises.claim("12.channels-last", here=contiguous_s / channels_last_s)

# %% [markdown]
# *Mixed precision* uses half precision where it can, for the tensor cores and for half the bytes.
# A float32 matmul, the same with TF32 allowed, and inside `autocast`:

# %%
single = torch.randn(4096, 4096, device="cuda")
times = {"float32": seconds(lambda: single @ single)}
torch.backends.cuda.matmul.allow_tf32 = True
times["TF32"] = seconds(lambda: single @ single)
torch.backends.cuda.matmul.allow_tf32 = False
with torch.autocast("cuda", dtype=torch.bfloat16):
    times["autocast"] = seconds(lambda: single @ single)
display(pd.Series(times).mul(1e3).rename("ms"))
exercises.claim("12.mixed-precision", here=times["float32"] / times["autocast"])

# %% [markdown]
# ### Exercise: which change helps

# %%
exercises.ask("12.cure")

# %% tags=["exercise"]
answer = {"a": ..., "b": ..., "c": ..., "d": ..., "e": ...}
### BEGIN SOLUTION
answer = {"a": "batch", "b": "fuse", "c": "precision", "d": "layout", "e": "none"}
### END SOLUTION
exercises.check("12.cure", answer)

# %% [markdown]
# ## 5 Claims
#
# Seven claims from articles, course notes and forums. Decide first, then let the machine decide.

# %%
exercises.ask("12.verdicts")

# %% [markdown]
# Three of them come with a listing. A listing that raises proves that nobody ran it.

# %%
listings = {
    "a": lambda: torch.cuda.memcpy_async(copied, flat),
    "b": lambda: torch.nn.functional.conv2d(images.reshape(32, -1), conv.weight),
    "c": lambda: single.to(memory_format=torch.channels_last),
}
raised = pd.DataFrame({name: lab.attempt(listing) for name, listing in listings.items()}).T
display(raised)
exercises.claim("12.no-listing-runs", here=(raised["outcome"] != "runs").sum())

# %% [markdown]
# **d** "Any operation on the default stream serialises all streams of PyTorch." Sleep on a side
# stream, on the default stream, and on another side stream. If d holds, three take three times as
# long as one.
#
# **e** "On an idle GPU, a stopwatch is wrong without a synchronize *before* the work."
#
# **f** "With `non_blocking=True` a copy from ordinary memory does not block the host."
#
# **g** "Creating the context takes a tenth to half a second." You have the reading from the top.


# %%
def on_streams(streams):
    for stream in streams:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(5_000_000)
    for stream in streams:
        torch.cuda.current_stream().wait_stream(stream)


three = (torch.cuda.Stream(), torch.cuda.default_stream(), torch.cuda.Stream())
one_s, three_s = (
    seconds(lambda s=s: on_streams(s), method="synchronized") for s in ([side], three)
)
exercises.claim("12.no-default-fence", here=three_s / one_s)


# %%
def waits_after_only():
    start = time.perf_counter()
    torch.mm(a, b, out=out)
    torch.cuda.synchronize()
    return time.perf_counter() - start


kernel_s = seconds(lambda: torch.mm(a, b, out=out))
torch.cuda.synchronize()
exercises.claim("12.one-wait-is-enough", here=waits_after_only() / kernel_s)

# %%
ordinary = torch.ones(1 << 22)
pinned = ordinary.pin_memory()
returns = [
    seconds(lambda host=host: host.to("cuda", non_blocking=True), method="naive")
    for host in (ordinary, pinned)
]
exercises.claim("12.pageable-blocks", here=returns[0] / returns[1])

# %%
exercises.claim("12.context", here=first_call_s)

# %% tags=["exercise"]
answer = {"a": ..., "b": ..., "c": ..., "d": ..., "e": ..., "f": ..., "g": ...}
### BEGIN SOLUTION
answer = {
    "a": "cannot run",
    "b": "cannot run",
    "c": "cannot run",
    "d": "does not hold",
    "e": "does not hold",
    "f": "does not hold",
    "g": "holds",
}
### END SOLUTION
exercises.check("12.verdicts", answer)

# %% [markdown]
# ## What you take along
#
# - Change one thing at a time, and compare a function with itself first.
# - Bytes that lie together are read together. Kernels decide where data sit, tensors do not.
# - Batch launches if the host is busy, fuse if memory is busy, lower the precision if arithmetic
#   is busy. The profile of lesson 11 says which it is.
# - Test a claim before you repeat it, and say on which machine it holds.

# %%
exercises.progress()

# %% [markdown]
# # Going further
#
# What follows is not part of the 45 minutes.
#
# ## Your benchmark card
#
# You wrote `benchmark(fn)` in the lessons 01 to 08. A card says how well it reads works that it
# has not seen, beside the driver's records and `gpulab.measure`. Put your own function in place of
# this short one, which knows events and nothing else.


# %%
def benchmark(fn, n_samples=21):
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(n_samples)]
    for begin, end in pairs:
        begin.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    return sorted(begin.elapsed_time(end) for begin, end in pairs)[n_samples // 2] / 1e3


mine = gpulab.card(benchmark)
mine

# %%
mine.save("card.html"), mine.save("card.json")

# %% [markdown]
# The page is for people and the JSON for programs: hand them in, or keep them with your results.
# The hidden works differ from card to card; `seed` in the card brings the same ones back.
#
# ## The host's jitter
#
# Each launch takes the host a little more or less time. Look at the launches one by one: how far
# is the slowest percent of them from the median?

# %%
launches = gpulab.measure(lambda: v.add_(1), method="naive", n_samples=300)
plots.samples(launches)

# %%
spread = pd.Series(launches.samples_s)
exercises.claim("12.launch-jitter", here=spread.quantile(0.99) / spread.median())

# %% [markdown]
# The virtual GPU's host needs the same time for each launch. A real one shares its cores with
# other programs. Events and a full queue keep this jitter out of your reading (lesson 07).
#
# ## A compiler
#
# `torch.compile` fuses the nine kernels of `gelu_by_hand` for you, where there is a compiler. On
# the virtual GPU it does nothing, and warns; the warning is left out here.

# %%
warnings.filterwarnings("ignore", message="torch.compile did nothing")
compiled = torch.compile(gelu_by_hand)
gain = lab.attempt(lambda: by_hand_s / seconds(lambda: compiled(v)))
gain

# %% [markdown]
# ## What precision costs
#
# Half precision has 11 bits for a number, TF32 has 11, bfloat16 has 8, float32 has 24. Here is the
# largest error of a matmul, as a share of the largest result:

# %%
p, q = torch.randn(2, 512, 512, device="cuda")
exact = p.double() @ q.double()
errors = {}
for dtype in (torch.float32, torch.half, torch.bfloat16):
    result = (p.to(dtype) @ q.to(dtype)).double()
    errors[str(dtype)] = ((result - exact).abs().max() / exact.abs().max()).item()
pd.Series(errors, name="largest error")

# %% [markdown]
# ## Alignment
#
# Fast kernels read 16 bytes at once, if the address is a multiple of 16. A view that begins one
# element later is not aligned. Is the addition slower?

# %%
longer = torch.randn((1 << 24) + 1, device="cuda")
aligned_s, shifted_s = (seconds(lambda w=w: w + 1) for w in (longer[:-1], longer[1:]))
exercises.claim("12.shifted-view", here=shifted_s / aligned_s)
