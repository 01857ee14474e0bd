"""The page on how close the virtual GPU is: what was read, where, and the tables."""

from collections import Counter

from benchmarks.fidelity.table import (
    Lines,
    Recording,
    details,
    fact_lines,
    failures,
    family_summary,
    misses,
    program_rows,
    summary,
    verdict,
    workload_rows,
)
from benchmarks.fidelity.unseen import SEEDS
from benchmarks.fidelity.workload import EARLIER, FIT, HELD_OUT, UNSEEN


def page(recorded: Recording, computed: Recording) -> str:
    """Return the page in Markdown."""
    rows, whole = workload_rows(recorded, computed), program_rows(recorded, computed)
    broken = failures([*rows, *whole])
    counts = Counter(row.role for row in rows)
    parts: list[Lines] = [
        ["# How close the virtual GPU is"],
        [verdict(rows)],
        [_DRAWN.format(n_unseen=counts[UNSEEN], seed=SEEDS[-1]).strip()],
        summary(recorded, computed),
        ["## Where the goal is missed", "", _MISSES.strip(), "", *misses(rows)],
        _origin(recorded, counts, len(whole)),
        [_METHOD.strip()],
        ["## By family", "", *family_summary(rows)],
        ["## Programs", "", "Time of a step: on the wall, to enqueue it, and with a busy device."],
        details(whole, ("wall", "host", "busy")),
        ["## Workloads"],
        details(rows, ("hot", "cold", "event", "host")),
        ["## Facts", "", *fact_lines(recorded, computed)],
    ]
    if broken:
        parts.append(["## Not read", "", *broken])
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _origin(recorded: Recording, counts: Counter[str], n_programs: int) -> Lines:
    numbers = {"n_fit": counts[FIT], "n_held_out": counts[HELD_OUT], "n_unseen": counts[UNSEEN]}
    numbers["n_earlier"] = counts[EARLIER]
    lines = [_ORIGIN.format(source=recorded.get("source"), n_programs=n_programs, **numbers)]
    lines += [_RECORDING.format(**origin) for origin in recorded.get("origins", ())]
    first, *rest = (line.strip() for line in lines)
    return [first, "", *rest]


_RECORDING = """
- `{path}`: {date}, one {gpu}, driver {driver}, torch {torch}, CUDA {cuda}, Python {python}, {cpu}
"""
_DRAWN = """
The {n_unseen} unseen workloads were drawn by a program and chosen by nobody: for each operator of
the catalogue, type and sizes from the seed {seed}, log-uniformly between fixed bounds, for 1 KB
to 512 MB of memory; a third as they fall, a third rounded to multiples of 8, a third of 64; none
that the other groups have. The examination was blind (`benchmarks/fidelity/blind.py`): the machine
with the H200 took the seed from the system's source of randomness and put the times into a file of
their own; the model was fitted to the other recordings; its times for the list, and digests of
these and of the model, were written down; only then was the file of times opened, once. No draw
was left out or repeated, and the model here is the one that was examined. What a later version
reaches on the same rows is not blind any more: to judge one, record another seed.

The other workloads are no examination: the surfaces go through them. "Earlier draws" are 270 of
two seeds, on which earlier models had their blind figures (21.3 % and 73.3 %, then 5.8 % and
27.7 %). What a model of the same kind says of these when it is fitted to none of them is given
below.
"""
_MISSES = """
Families whose unseen device times miss the goal, and by how many percentage points. Each has few
times, and a p90 of four is hardly more than the largest error.

What is left is where a library chooses among kernels by rules that nobody publishes. cuDNN runs a
convolution with or without padding, conversion and another layout, on tensor cores or beside
them, and neighbours in size take kernels that differ by a factor of two. Products whose rows do
not begin at multiples of 16 bytes are the second.

The host times of drawn workloads judge little: they are those of a host whose speed changes.
Between two readings of the same workloads, one minute apart, host times differed by 25 % in the
median, device times by 0.4 %.
"""
_ORIGIN = """
## Recordings

Recorded times are {source}, the others computed by the virtual GPU of this version. There are
{n_fit} listed workloads to which the constants were fitted, {n_held_out} further listed ones
(other sizes, other types, other operators of the same families), {n_earlier} of earlier draws,
{n_unseen} that are unseen, and {n_programs} programs. An error is the virtual time over the
recorded one, less one.

This page is made by `python -m benchmarks.fidelity compare --write docs/fidelity.md`; change the
model, not the page.
"""
_METHOD = """
## What was read, and where

- *Hot* and *cold* device time: the driver's records (CUPTI, through `torch.profiler`) of what one
  call made the device do, durations added up, without the pauses in between. Hot is called again
  and again on the same inputs; cold has a read of 256 MB before each call. Medians of up to 20.
  The virtual times are those of its simulated kernels and copies.
- *Event* time: a pair of events round a call, hot, with a spinning kernel in front so that the
  queue is full; the floor of such a pair is in it. Same code on both.
- *Host* time: calls enqueued back-to-back on an idle queue, by `time.perf_counter()`, per call;
  the median of five rounds of up to 200. Same code on both. Where a call waits for the device by
  itself, that wait is in it.
- *Programs*: several steps enqueued, then one wait. Busy is the time in which the device does
  anything at all.

## What the model rests on

A roofline with constants (floors, ceilings, tiles, steps) is multiplied by a correction that
depends on the sizes. The constants were fitted by hand to the first half of the listed workloads
and the facts below. The corrections were fitted by a program to all recordings but the unseen one:
`h200-dense.json`, 11,280 calls drawn with a seed of their own by the same bounds (and, one in
five, of powers of two), with operators of backward passes and of optimizers besides;
`h200-focused.json`, 2,335 more where calls that were left out had been met worst (convolutions,
products, sums) and square products of usual sizes; and the listed and earlier workloads that are
one call each.

For each kind of call (there are 39) there is a surface over its coordinates: logarithms of its
sizes, how these are aligned, the type, the operator, and what the kernels are known to hang on,
such as how PyTorch divides a sum among blocks. The surface goes smoothly through the logarithms of
measured over roofline time, hot and cold (kriging with a sum of three Matern kernels of order
3/2). How much a difference in each coordinate counts was chosen so that points left out are met
best, without the earlier draws. Beyond the measured sizes the last one counts; an operator that
was not measured takes the median of its kind.
With a fifth of the calls left out, and the scales chosen with them in, errors have a median of
5.8 % and a p90 of 27 %; weighted as the blind draw is, 4.7 % and 20 %. Fitted to neither of the
earlier draws, the model met their 540 device times with a median of 4.6 % and a p90 of 21.5 %.
The surfaces pass closer by the listed workloads and the squares than by the others.

The correction belongs to a whole call, so all of its kernels take the same one. Their number is
the recipe's and is not corrected: where the H200 runs more kernels than the recipe says, the
pauses between them (1 us each) are missing from event and wall times, and in a few calls (sorts,
transforms, convolutions) that is several.

Attention, dropout and multi-tensor optimizers are taken as on CUDA; a root-mean-square norm that
is trained is not, and takes the eight operators that PyTorch has for other devices.

Known to be far off: convolutions, their gradients and the depthwise ones (medians of 19, 17 and
13 to 25 % for calls left out, p90 of 53 to 97 %). Host times of whole programs are examined in
[virtual-gpu.md](virtual-gpu.md), with the costs of modules, autograd and optimizers; the programs
above were compared before there were such costs.

## What is extrapolated

The recordings are of one model of GPU, one version of PyTorch and of its libraries, on one day.
Host times hold for the host of the first. For every other GPU the virtual one takes the same
efficiencies and the same corrections on top of that GPU's data sheet, and nobody has compared
those figures with hardware.
Sizes far outside the recorded ones are extrapolated too; so are operators that are not listed,
which are computed like the nearest family. First-use costs are not part of this comparison: they
need a fresh process each.
"""
