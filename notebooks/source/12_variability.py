# %% [markdown]
# # 12 Variability and claims
#
# Why does the same work take another time, and which advice about it is true?

# %%
import time
import warnings

import pandas as pd
import torch
from IPython.display import display

import gpulab
from gpulab import exercises, plots
from gpulab.core.units import format_time
from gpulab.exercises import lesson_12 as lab
from gpulab.exercises import machines

gpulab.use("auto", max_value_bytes=8 << 20)  # of large tensors only the times matter

# %% [markdown]
# GELU is a function of many models. Here is its formula. PyTorch has it, too:
# `torch.nn.functional.gelu`.


# %%
def gelu_by_hand(v):
    return 0.5 * v * (1 + torch.tanh(0.79788456 * (v + 0.044715 * v * v * v)))


exercises.predict("12.fused")


# %%
def seconds(work, **options):
    return gpulab.measure(work, n_samples=15, **options).median_s


v = torch.randn(1 << 24, device="cuda")
by_hand_s = seconds(lambda: gelu_by_hand(v))
fused_s = seconds(lambda: torch.nn.functional.gelu(v, approximate="tanh"))
exercises.compare("12.fused", by_hand_s / fused_s)

# %% [markdown]
# ## Is it the same work?

# %%
few = torch.randn(1000, device="cuda")
torch.allclose(gelu_by_hand(few), torch.nn.functional.gelu(few, approximate="tanh"), atol=1e-5)

# %% [markdown]
# The same values, by the same formula. Now look at the GPU:

# %%
seen = gpulab.timeline(lambda: gelu_by_hand(v), n_warmup=2)
fused = gpulab.timeline(lambda: torch.nn.functional.gelu(v, approximate="tanh"), n_warmup=2)
n, n_fused = (len(record.to_frame().query("kind == 'kernel'")) for record in (seen, fused))
plots.timeline(seen, title=f"Kernels of the formula: {n}. Kernels of PyTorch's gelu: {n_fused}")

# %% [markdown]
# Each kernel reads the whole tensor from memory, computes a little, and writes a whole tensor.
# One kernel for all of it reads once and writes once. **Fusion saves trips to memory.**
# *Recorded*: 12.3 times on an H200, 12.5 on an H100.
#
# ## The same code twice
#
# So compare only what is equal. Here a function is timed against *itself*: 25 calls of it as the
# old version, then 250 calls of it as the new one.


# %%
def matmul():
    return large @ large


large = torch.randn(6144, 6144, device="cuda", dtype=torch.half)
exercises.predict("12.itself")

# %%
time.sleep(1)  # let the GPU rest
old_s = gpulab.measure(matmul, n_samples=25).median_s
new_s = gpulab.measure(matmul, n_samples=250).median_s
exercises.compare("12.itself", 100 * (new_s / old_s - 1))

# %% [markdown]
# A function cannot be slower than itself. So the fault is in the comparison. Now let both take
# turns: a call of the one, a call of the other.

# %%
print(gpulab.compare(matmul, matmul).verdict())

# %% [markdown]
# Under load a GPU lowers its clock (lesson 05), and whatever is timed second meets the lower one.
# *Recorded* with the first way: 3.6 % on an H200, 2.1 % on an H100; the virtual GPU exaggerates
# it.
#
# **Compare a function with itself first. If the ratio is not 1, mend the benchmark.**
#
# ## One change at a time
#
# Four more things differ between two runs of a program. Which one matters most?
#
# - *allocator*: the memory of the result comes from the driver, and not from PyTorch's cache
# - *contention*: other work runs on the GPU at the same time
# - *placement*: the inputs are not in the L2 cache
# - *data*: random numbers in place of zeros. *Recorded*: 1.14 times on an H200, 1.11 on an H100.
#   The virtual GPU does not look at the data, so it is not measured here.


# %%
def from_the_driver():
    torch.cuda.empty_cache()
    return x + x


def beside_another():
    with torch.cuda.stream(side):
        large @ large
    return large @ large


exercises.predict("12.largest")

# %%
torch.cuda.empty_cache()  # so x shares its memory with nothing
x = torch.randn(3072, 3072, device="cuda", dtype=torch.half)
side = torch.cuda.Stream()
cached_s = seconds(lambda: x + x, method="synchronized")
alone_s = seconds(matmul, method="events")
changed = {"order": new_s / old_s}
changed["allocator"] = seconds(from_the_driver, method="synchronized") / cached_s
changed["contention"] = seconds(beside_another, method="events") / alone_s
pd.Series(changed, name="longer time / shorter time").round(2).to_frame()

# %%
row = torch.randn(1, 2048, device="cuda", dtype=torch.half)
weights = torch.randn(2048, 8192, device="cuda", dtype=torch.half)
hot_s, cold_s = (seconds(lambda: row @ weights, cache=state) for state in ("hot", "cold"))
changed["placement"] = cold_s / hot_s
factors = pd.Series(changed, name="longer time / shorter time").sort_values().round(2)
largest = factors.idxmax()
title = f"The {largest} changes the time most: {factors.max():.1f} times"
display(plots.bars(factors, title=title))
exercises.compare("12.largest", largest)

# %% [markdown]
# ## Exercise: name the source
#
# Each source has its own sign.

# %% tags=["exercise"]
exercises.ask("12.source")
### BEGIN SOLUTION
sources = {"a": "clock", "b": "order", "c": "allocator"}
sources |= {"d": "contention", "e": "placement", "f": "data"}
exercises.check("12.source", sources)
### END SOLUTION

# %% [markdown]
# ## Advice that pays
#
# `channels_last` keeps the shape of a batch of images, and changes the order in memory. The
# channels of one pixel lie together. In half precision, what does a convolution gain?

# %%
images = torch.randn(32, 64, 56, 56, device="cuda", dtype=torch.half)
conv = torch.nn.Conv2d(64, 64, 3, padding=1, device="cuda", dtype=torch.half)
exercises.predict("12.layout")

# %%
contiguous_s = seconds(lambda: conv(images))
conv, pixels = (each.to(memory_format=torch.channels_last) for each in (conv, images))
print(images.stride(), pixels.stride())
exercises.compare("12.layout", contiguous_s / seconds(lambda: conv(pixels)))

# %% [markdown]
# *Recorded*: 1.7 times on an H200, 1.8 on an H100. (The virtual GPU shows too much of it.)
# **Advice pays where it saves what the program waits for:** fusion saves trips to memory, and a
# layout saves conversions. A program that waits for its host gains nothing by either.
#
# ## Exercise: seven claims
#
# They come from articles, course notes and forums. Decide now. Then run the cells below, change
# what you want, and press *Check*. (g needs a new process.)

# %% tags=["exercise"]
exercises.ask("12.verdicts")
### BEGIN SOLUTION
verdicts = dict.fromkeys("abc", "cannot run") | dict.fromkeys("def", "does not hold")
exercises.check("12.verdicts", verdicts | {"g": "holds"})
### END SOLUTION

# %% [markdown]
# Three of them come with a listing. A listing that raises proves that nobody ran it.

# %%
listings = {
    "a": lambda: torch.cuda.memcpy_async(large, large),
    "b": lambda: torch.nn.functional.conv2d(images.reshape(32, -1), conv.weight),
    "c": lambda: large.to(memory_format=torch.channels_last),
}
tried = {name: lab.attempt(listing) for name, listing in listings.items()}
lines = (f"{name}: {each['outcome']}:\n   {each['message']}" for name, each in tried.items())
print(*lines, sep="\n")

# %% [markdown]
# **d**: three sleeps, on a side stream, the default stream and another side stream. If d holds,
# they take three times as long as one.


# %%
def on_streams(*streams):
    for stream in streams:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(5_000_000)
    for stream in streams:
        torch.cuda.current_stream().wait_stream(stream)


three = torch.cuda.Stream(), torch.cuda.default_stream(), torch.cuda.Stream()
one_s = seconds(lambda: on_streams(side), method="synchronized")
three_s = seconds(lambda: on_streams(*three), method="synchronized")
exercises.claim("12.no-default-fence", here=three_s / one_s)

# %% [markdown]
# **e**: the GPU is idle, and there is one wait, after the work.

# %%
large_s = seconds(matmul)
torch.cuda.synchronize()
start = time.perf_counter()
matmul()
torch.cuda.synchronize()
exercises.claim("12.one-wait-is-enough", here=(time.perf_counter() - start) / large_s)

# %% [markdown]
# **f**: how long the call blocks the host, from ordinary and from pinned memory.

# %%
ordinary = torch.ones(1 << 22)
pinned = ordinary.pin_memory()
ordinary_s = seconds(lambda: ordinary.to("cuda", non_blocking=True), method="naive")
pinned_s = seconds(lambda: pinned.to("cuda", non_blocking=True), method="naive")
exercises.claim("12.pageable-blocks", here=ordinary_s / pinned_s)

# %% [markdown]
# ## What you take with you
#
# - Compare a function with itself first.
# - Change one thing at a time, and name what you could not fix.
# - Test a claim before you repeat it, and say on which machine it holds.
#
# Next: five programs that time the wrong thing, in `13_clinic.ipynb`.

# %% [markdown]
# # Going further
#
# ## Your benchmark card
#
# You wrote `benchmark(fn)` in lessons 01 to 08b. A card says how well it reads works that it has
# not seen, beside the driver's records and `gpulab.measure`. Put your own function in place of
# this short one.


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
print(mine.save("card.html"), mine.save("card.json"))

# %% [markdown]
# The page is for people and the JSON for programs: hand them in, or keep them with your results.
# The hidden works differ from card to card; `seed` in the card brings the same ones back.
#
# ## Access patterns
#
# A *warp*, 32 threads of a GPU, reads memory together, in sectors of 32 bytes (by definition of
# the hardware). If its threads read neighbours, their reads are *coalesced* into few sectors.
# Below, a result of the same size is copied in three ways, the last one by indices in random
# order. (The virtual GPU counts the bytes of a copy, and no sectors. So it is not asked about
# strides here.)

# %%
exercises.predict("12.slowest")

# %%
n = 2048
flat, copied = torch.randn(n * n, device="cuda"), torch.empty(n, n, device="cuda")
shuffled = torch.randperm(n * n, device="cuda")
ways = {
    "contiguous": lambda: copied.copy_(flat.view(n, n)),
    "transposed": lambda: copied.copy_(flat.view(n, n).t()),
    "gathered": lambda: torch.index_select(flat, 0, shuffled, out=copied.view(-1)),
}
ways_s = {name: seconds(way) for name, way in ways.items()}
useful = (2 * copied.nbytes / pd.Series(ways_s) / 1e9).rename("useful GB/s")  # read and written
plots.bars(useful, title=f"The slowest copy: {useful.idxmin()}")

# %%
exercises.compare("12.slowest", useful.idxmin())

# %% [markdown]
# In a transposed copy either the reads or the writes cannot be coalesced, unless the kernel goes
# through *shared memory*. A kernel that you write yourself decides that (in CUDA or Triton). A
# tensor in Python does not.
#
# Is a gather slow because of its indices, or because of their order? *Recorded*: at random it
# took 1.72 times as long as in order on an H200, and 1.78 times on an H100. On the virtual GPU
# both take the same time.

# %%
in_order = torch.arange(n * n, device="cuda")
in_order_s = seconds(lambda: torch.index_select(flat, 0, in_order, out=copied.view(-1)))
print(f"{ways_s['gathered'] / in_order_s:.2f} times here")

# %% [markdown]
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
# ## Fewer launches
#
# An optimizer scales 200 small tensors: one launch for each, or one `foreach` operator for all.
# *Recorded*: the `foreach` was 29 times as fast on an H200 and on an H100. The virtual GPU shows a
# little less.

# %%
exercises.predict("12.batched")


# %%
small = [torch.randn(1024, device="cuda") for _ in range(200)]


def one_by_one():
    for tensor in small:
        tensor.mul_(0.5)


loop_s = seconds(one_by_one, method="synchronized")
foreach_s = seconds(lambda: torch._foreach_mul_(small, 0.5), method="synchronized")
exercises.compare("12.batched", loop_s / foreach_s)

# %% [markdown]
# A graph of the 200 launches saves the host's part of them (lesson 07b). `foreach` also saves
# most of the kernels. PyTorch's optimizers use it by default (`foreach=True`).
#
# ## Mixed precision
#
# *Mixed precision* uses half precision where it can, for the tensor cores and for half the bytes.
# A float32 matmul, the same with TF32 allowed, and inside `autocast`:

# %%
single = torch.randn(4096, 4096, device="cuda")
times_s = {"float32": seconds(lambda: single @ single)}
torch.backends.cuda.matmul.allow_tf32 = True
times_s["TF32"] = seconds(lambda: single @ single)
torch.backends.cuda.matmul.allow_tf32 = False
with torch.autocast("cuda", dtype=torch.bfloat16):
    times_s["autocast"] = seconds(lambda: single @ single)
gained = times_s["float32"] / times_s["autocast"]
plots.bars(pd.Series(times_s, name="time_s"), title=f"autocast is {gained:.1f} times as fast")

# %%
exercises.claim("12.mixed-precision", here=gained)

# %% [markdown]
# What does it cost? Half precision has 11 bits for a number, TF32 has 11, bfloat16 has 8, float32
# has 24. Here is the largest error of a matmul, as a share of the largest result:

# %%
p, q = torch.randn(2, 512, 512, device="cuda")
exact = p.double() @ q.double()
errors = {}
for dtype in (torch.float32, torch.half, torch.bfloat16):
    result = (p.to(dtype) @ q.to(dtype)).double()
    errors[str(dtype)] = ((result - exact).abs().max() / exact.abs().max()).item()
pd.Series(errors, name="largest error").mul(100).map("{:.5f} %".format).to_frame()

# %% [markdown]
# ### Exercise: which change helps

# %% tags=["exercise"]
exercises.ask("12.cure")
### BEGIN SOLUTION
cures = {"a": "batch", "b": "fuse", "c": "precision", "d": "layout", "e": "none"}
exercises.check("12.cure", cures)
### END SOLUTION

# %% [markdown]
# ## Another host
#
# The same GPU in another machine: the small kernels of above, and one large matmul, on a virtual
# H100 that two hosts launch. Which of the two works becomes slower?


# %%
def launch_all():
    tensors = [torch.ones(1024, device="cuda") for _ in range(200)]
    return lambda: [tensor.mul_(0.5) for tensor in tensors]


def multiply():
    a = torch.ones(8192, 8192, device="cuda", dtype=torch.half)
    return lambda: a @ a


# %%
times = {}
for host in (None, "h100-sxm-2026-11"):
    with machines.on_host(host) as pace:
        print(pace)
        times[host or "model"] = [
            seconds(make(), method="synchronized") for make in (launch_all, multiply)
        ]
pd.DataFrame(times, ["200 small kernels", "a large matmul"]).T.map(format_time)

# %% [markdown]
# The name of a GPU does not say how long a program takes that waits for its host. A published
# time of such a program is a time of the host, too.
#
# ## The host's jitter
#
# Each launch takes the host a little more or less time. How far is the slowest percent of them
# from the median? *Recorded*: 2.8 times on an H200, 2.5 times on an H100. The virtual GPU's host
# needs the same time for each launch but the first.

# %%
launches = gpulab.measure(lambda: v.add_(1), method="naive", n_samples=300)
launch_s = pd.Series(launches.samples_s)
slowest = launch_s.quantile(0.99) / launch_s.median()
plots.samples(launches, title=f"99 % of the launches take at most {slowest:.1f} times the median")

# %% [markdown]
# A real host shares its cores with other programs. Events and a full queue keep this jitter out
# of your reading (lesson 07).
#
# ## A compiler
#
# `torch.compile` fuses the nine kernels of `gelu_by_hand` for you, where there is a compiler. On
# the virtual GPU it does nothing, and warns; the warning is left out here.

# %%
warnings.filterwarnings("ignore", message="torch.compile did nothing")
compiled = torch.compile(gelu_by_hand)
tried = lab.attempt(lambda: f"{by_hand_s / seconds(lambda: compiled(v)):.1f} times as fast")
print(f"{tried['outcome']}: {tried['message']}")

# %% [markdown]
# ## Alignment
#
# Fast kernels read 16 bytes at once: eight numbers in half precision. A row of 2,049 numbers ends
# in the middle of such a piece. Add seven more rows and columns, of zeros, which is more work:

# %%
odd = torch.randn(2049, 2049, device="cuda", dtype=torch.half)
padded = torch.nn.functional.pad(odd, (0, 7, 0, 7))
exercises.predict("12.padded")

# %%
exercises.compare("12.padded", seconds(lambda: padded @ padded) / seconds(lambda: odd @ odd))

# %% [markdown]
# A view that begins one element later is not aligned either. Is an *addition* slower, too?

# %%
longer = torch.randn((1 << 24) + 1, device="cuda")
aligned_s, shifted_s = (seconds(lambda w=w: w + 1) for w in (longer[:-1], longer[1:]))
exercises.claim("12.shifted-view", here=shifted_s / aligned_s)

# %%
exercises.progress("12")
