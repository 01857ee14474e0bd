# %% [markdown]
# # 11b Monitoring
#
# What does a monitor show while a program runs, and what does it hide?
#
# The profiler looks into one program for a short time. A monitor looks at the whole GPU for hours,
# from outside, and costs almost nothing. This lesson is about reading its columns, above all the
# one that everybody reads wrongly.
#
# | section | what you will learn | minutes |
# |---|---|---|
# | 1 One look | what `nvidia-smi` shows, and where it comes from | 6 |
# | 2 Column by column | `nvidia-smi dmon -s pucvmet` | 9 |
# | 3 What GPU-Util is | why a full one can mean almost nothing | 8 |
# | 4 Thresholds | when to worry, and when not | 5 |
# | 5 A live picture | to watch your own program | 5 |
# | 6 Six monitors | to say what is wrong in each | 10 |

# %%
import dataclasses
import time

import pandas as pd
import torch

import gpulab
from gpulab import clocks, exercises, live, plots
from gpulab.exercises import lesson_11 as lab

gpulab.use("auto")

# %% [markdown]
# ## 1 One look
#
# `nvidia-smi` in a terminal prints one look at the GPU; `watch -n 1 nvidia-smi` renews it every
# second; `nvitop` (`pip install nvitop`) draws a live screen with processes and curves. All of
# them ask the same library of the driver, NVML, and so does this line:

# %%
pd.Series(dataclasses.asdict(clocks.read()), name="one look")

# %% [markdown]
# In the table of `nvidia-smi`, *Pwr:Usage/Cap* is `power_w` and `power_limit_w`, *Temp* is
# `temperature_c`, *Volatile GPU-Util* is `utilization`. *Memory-Usage* is the memory that the
# driver has given out, and that is not what your tensors take:

# %%
x = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
del x  # PyTorch keeps the memory, so that the next tensor gets it faster
free, everything = torch.cuda.mem_get_info()
in_use = [everything - free, torch.cuda.memory_reserved(), torch.cuda.memory_allocated()]
pd.Series(in_use, ["nvidia-smi", "kept by PyTorch", "your tensors"]).div(2**20).rename("MiB")

# %% [markdown]
# ## 2 Column by column
#
# `nvidia-smi dmon -s pucvmet` prints one line a second. Each letter is a group of columns.
#
# | letter | columns | what they are |
# |---|---|---|
# | `p` | pwr, gtemp, mtemp | power in W; temperature of the chip, and of its memory |
# | `u` | sm, mem, enc, dec, jpg, ofa | share of time with kernels, memory traffic, video |
# | `c` | mclk, pclk | clock of the memory and of the multiprocessors in MHz |
# | `v` | pviol, tviol | share of time below full clock because of power; 1 if heat lowers it |
# | `m` | fb, bar1, ccpm | memory that is given out, in MB; the part that the CPU can address |
# | `e` | sbecc, dbecc, pci | corrected and uncorrected bit errors, errors of the bus |
# | `t` | rxpci, txpci | traffic over PCIe, to the GPU and from it, in MB/s |
#
# The names mislead in two places: `mem` is not how full the memory is (that is `fb`), and `sm` is
# not how many multiprocessors are in use. Here are those of the columns that NVML gives to
# `gpulab`, while matmuls run:

# %%
a = torch.randn(8192, 8192, device="cuda", dtype=torch.half)
out = torch.empty_like(a)
looks = clocks.to_frame(clocks.watch(lambda: torch.mm(a, a, out=out), duration_s=1))
looks = looks.rename(columns={"power_w": "pwr", "temperature_c": "gtemp", "utilization": "sm"})
looks = looks.rename(columns={"memory_mhz": "mclk", "sm_mhz": "pclk"})
looks[["time_s", "pwr", "gtemp", "sm", "mclk", "pclk", "reasons"]].round(1)

# %% [markdown]
# ### Exercise: which column

# %%
exercises.ask("11.which-column")

# %% tags=["exercise"]
answer = {"a": ..., "b": ..., "c": ..., "d": ..., "e": ...}
### BEGIN SOLUTION
answer = {"a": "fb", "b": "pviol", "c": "sm", "d": "rxpci", "e": "tviol"}
### END SOLUTION
exercises.check("11.which-column", answer)

# %% [markdown]
# ## 3 What GPU-Util is
#
# `torch.cuda._sleep` is a kernel of a *single thread*, which counts clock cycles. How many threads
# could the GPU run at the same time, and what is GPU-Util (`sm`) while it runs this one?

# %%
chip = torch.cuda.get_device_properties()
chip.multi_processor_count * chip.max_threads_per_multi_processor

# %%
exercises.predict("11b.util")

# %%
time.sleep(1)
one_thread = list(clocks.watch(lambda: torch.cuda._sleep(10_000_000), duration_s=1.5))[-1]
exercises.compare("11b.util", one_thread.utilization)

# %%
exercises.claim("11.util-of-one-thread", here=one_thread.utilization)

# %% [markdown]
# The matmuls of section 2 had about the same GPU-Util. It is the share of recent time in which
# *any* kernel ran. A kernel that uses one thread counts as much as one that uses all of them. The
# power shows the difference:

# %%
pd.Series({"one thread": one_thread.power_w, "matmuls": looks["pwr"].iloc[-1]}, name="W")

# %% [markdown]
# ## 4 Thresholds
#
# Rules of thumb, in percent, degrees Celsius and words. None of them is in NVIDIA's documentation.
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
# a low clock in `nvidia-smi -q -d PERFORMANCE`. Our readings have them in words:

# %%
looks["reasons"].value_counts()

# %% [markdown]
# ## 5 A live picture
#
# `live.load` calls a piece of work again and again, and draws clock, power, temperature and
# GPU-Util while it runs. Press *Stop*, or interrupt the kernel, to end it.

# %%
watched = live.load(lambda: torch.mm(a, a, out=out), duration_s=2)
watched

# %% [markdown]
# Try it with your own work. Beside a training run, use `nvidia-smi dmon` or `nvitop` in another
# terminal: a monitor inside the program would take time from its host.

# %% [markdown]
# ## 6 Six monitors
#
# Six programs, and what the monitor showed of each, once a second. The last column names the GPU.

# %%
shown = lab.monitors()
shown.query("program == 'a'")

# %% [markdown]
# Change the letter, or draw a column of all six:

# %%
column = shown.pivot_table("sm_percent", "second", "program").add_prefix("program ")
plots.line(column.reset_index(), x="second", source=shown["source"][0])

# %%
exercises.ask("11.monitors")

# %% tags=["exercise"]
answer = {"a": ..., "b": ..., "c": ..., "d": ..., "e": ..., "f": ...}
### BEGIN SOLUTION
answer = {
    "a": "nothing",
    "b": "starved",
    "c": "one thread",
    "d": "leak",
    "e": "copies",
    "f": "pauses",
}
### END SOLUTION
exercises.check("11.monitors", answer)

# %% [markdown]
# ## What you take along
#
# - GPU-Util is the share of time in which any kernel ran. Read the power beside it.
# - `fb` is how full the memory is, and PyTorch keeps more than your tensors take.
# - A monitor says *that* the GPU waits. The profiler of lesson 11 says for what.

# %%
exercises.progress()
