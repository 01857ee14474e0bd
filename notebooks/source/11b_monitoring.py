# %% [markdown]
# # 11b Monitoring
#
# What does a monitor say about a program, and what does it not say?

# %%
import time

import pandas as pd
import torch
from IPython.display import display

import gpulab
from gpulab import clocks, exercises, live
from gpulab.exercises import lesson_11 as lab

gpulab.use("auto")

# %% [markdown]
# `torch.cuda._sleep(n)` is a kernel of *one thread*, which counts n clock cycles. It runs all the
# time. `nvidia-smi` shows a percentage, `GPU-Util`. What is it?


# %%
def one_thread():
    torch.cuda._sleep(20_000_000)


exercises.predict("11b.util")

# %%
alone = list(clocks.watch(one_thread, duration_s=2))  # what nvidia-smi shows, every 0.1 s
exercises.compare("11b.util", alone[-1].utilization)

# %% [markdown]
# ## Is the GPU full?

# %%
chip = torch.cuda.get_device_properties()
n_threads = chip.multi_processor_count * chip.max_threads_per_multi_processor
print(
    f"1 of {n_threads:,} threads, and {alone[-1].power_w:.0f} of {alone[-1].power_limit_w:.0f} W"
)

# %% [markdown]
# It is nearly empty. Now give it something to do: large matmuls in half precision. How many times
# as much power do they draw as the one thread?


# %%
def matmuls():
    torch.mm(a, a, out=out)


a = torch.randn(8192, 8192, device="cuda", dtype=torch.half)
out = torch.empty_like(a)
exercises.predict("11b.power")

# %%
busy = list(clocks.watch(matmuls, duration_s=3))
display(lab.util_and_power({"one thread": alone, "matmuls": busy}))
exercises.compare("11b.power", busy[-1].power_w / alone[-1].power_w)

# %% [markdown]
# ## Half of the time
#
# What does GPU-Util count? One more experiment: the kernel of one thread, then a pause that is as
# long as the kernel.


# %%
def half_of_the_time():
    start = time.perf_counter()
    one_thread()
    torch.cuda.synchronize()
    time.sleep(time.perf_counter() - start)


exercises.predict("11b.half")

# %%
pauses = list(clocks.watch(half_of_the_time, duration_s=2))
exercises.compare("11b.half", pauses[-1].utilization)

# %% [markdown]
# GPU-Util is the share of recent time in which *any* kernel ran. A kernel of one thread counts as
# much as one that uses the whole GPU. **GPU-Util says how often the GPU works, not how much of
# it.** Read the power beside it. *Recorded* on an H200: one thread 100 % at 125 W, matmuls 100 %
# at about 690 W of 700.
#
# On most GPUs the power is an average over a second (NVML's documentation). There, in the first
# second of the matmuls, the clock is already low "because of the power", while the number is
# still small:

# %%
shown = clocks.to_frame(busy)[["time_s", "power_w", "sm_mhz", "reasons"]]
shown.iloc[::5].round({"time_s": 1, "power_w": 0})

# %% [markdown]
# ## Which memory is in use?
#
# Make a tensor of 256 MiB, and delete it. How much of its memory does `nvidia-smi` show as free
# again?

# %%
x = torch.empty(2**28, dtype=torch.uint8, device="cuda")
free_before, _ = torch.cuda.mem_get_info()  # as nvidia-smi shows it
exercises.predict("11b.freed")

# %%
del x
free_after, total = torch.cuda.mem_get_info()
exercises.compare("11b.freed", 100 * (free_after - free_before) / 2**28)

# %% [markdown]
# PyTorch keeps freed memory, so that the next tensor gets it faster.

# %%
in_use = [total - free_after, torch.cuda.memory_reserved(), torch.cuda.memory_allocated()]
names = ["in nvidia-smi", "kept by PyTorch", "in your tensors"]
pd.Series(in_use, names).div(2**20).round().astype(int).rename("MiB").to_frame()

# %% [markdown]
# ## The other columns
#
# `nvidia-smi dmon -s pucvmet` prints one line a second:
#
# | columns | what they are |
# |---|---|
# | `pwr`, `gtemp` | power in W, temperature of the chip |
# | `sm`, `mem` | GPU-Util, and the share of time with memory traffic |
# | `mclk`, `pclk` | clock of the memory and of the multiprocessors, in MHz |
# | `pviol`, `tviol` | share of time below full clock because of power; 1 if heat lowers it |
# | `fb` | memory that is given out, in MB |
# | `rxpci`, `txpci` | traffic over PCIe to the GPU, and from it, in MB/s |
#
# Two names mislead: `mem` is not how full the memory is, and `sm` is not how many multiprocessors
# work.

# %% tags=["exercise"]
exercises.ask("11.which-column")
### BEGIN SOLUTION
columns = {"a": "fb", "b": "pviol", "c": "sm", "d": "rxpci", "e": "tviol"}
exercises.check("11.which-column", columns)
### END SOLUTION

# %% [markdown]
# ## Exercise: six monitors
#
# Six programs ran for six seconds each. This is what a monitor showed.

# %% tags=["exercise"]
display(lab.monitor_panels(lab.monitors()))
exercises.ask("11.monitors")
### BEGIN SOLUTION
wrong = {"a": "nothing", "b": "starved", "c": "one thread"}
wrong |= {"d": "leak", "e": "copies", "f": "pauses"}
exercises.check("11.monitors", wrong)
### END SOLUTION

# %% [markdown]
# A monitor says *that* the GPU waits. The profiler of lesson 11 says for what.
#
# ## What you take with you
#
# - GPU-Util is the share of time in which any kernel ran. Read the power beside it.
# - `fb` is how full the memory is, and PyTorch keeps more than your tensors take.
# - `nvidia-smi`, `nvitop` and `gpulab.clocks` read the same numbers, those of the driver.
#
# A program can use the whole GPU, and still take another time tomorrow. Next:
# `12_variability.ipynb`.

# %% [markdown]
# # Going further
#
# ## A live picture
#
# `live.load` calls a piece of work again and again, and draws clock and power while it runs.
# Temperature and GPU-Util are in its table. Press *Stop*, or interrupt the kernel, to end it.

# %%
live.load(matmuls, duration_s=2)

# %% [markdown]
# Beside a training run, use `nvidia-smi dmon` or `nvitop` (`pip install nvitop`) in another
# terminal: a monitor inside the program would take time from its host.
#
# ## When to worry
#
# Rules of thumb. None of them is in NVIDIA's documentation.
#
# | what you see | what it says | what it does not say |
# |---|---|---|
# | GPU-Util over 90 | the GPU rarely waits for work | that the work is done well |
# | GPU-Util below 50 | it often waits, for the host or for data | for which of the two |
# | power at its limit | the clock falls; normal for large matmuls | that anything is broken |
# | 83 degrees and more | many GPUs lower the clock for heat | the limit of *your* GPU |
# | pviol over 0 | the power limit lowered the clock | that the program is slow |
#
# The limits of temperature of your GPU are in `nvidia-smi -q -d TEMPERATURE`, and the reasons for
# a low clock in `nvidia-smi -q -d PERFORMANCE`. `gpulab` reads the reasons, too:

# %%
clocks.to_frame(busy)["reasons"].value_counts().to_frame()

# %% [markdown]
# ## The numbers of one program
#
# Change the letter.

# %%
lab.monitors().query("program == 'e'").drop(columns="source")

# %%
exercises.progress("11b")
