"""The page on how close the virtual GPU is: what was read, where, and the tables."""

from fidelity_table import (
    FIT,
    Lines,
    Recording,
    details,
    fact_lines,
    failures,
    family_summary,
    program_rows,
    summary,
    verdict,
    workload_rows,
)


def page(recorded: Recording, computed: Recording) -> str:
    """Return the page in Markdown."""
    rows, whole = workload_rows(recorded, computed), program_rows(recorded, computed)
    broken = failures([*rows, *whole])
    n_fit = sum(row.role == FIT for row in rows)
    parts: list[Lines] = [
        ["# How close the virtual GPU is"],
        _origin(recorded, n_fit, len(rows) - n_fit, len(whole)),
        [verdict(rows)],
        summary(recorded, computed),
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


def _origin(recorded: Recording, n_fit: int, n_held_out: int, n_programs: int) -> Lines:
    keys = ("gpu", "driver", "torch", "cuda", "python", "cpu", "date")
    found = {key: recorded.get("provenance", {}).get(key) for key in keys}
    counts = {"n_fit": n_fit, "n_held_out": n_held_out, "n_programs": n_programs}
    return [_ORIGIN.format(source=recorded.get("source"), **found, **counts).strip()]


_ORIGIN = """
Recorded on {date} on one {gpu} ({source}; driver {driver}, torch {torch}, CUDA {cuda},
Python {python}, {cpu}); computed by the virtual GPU of this version. There are {n_fit} workloads
to which its constants may be fitted, {n_held_out} that are held out (other sizes, other types,
other operators of the same families), and {n_programs} programs. An error is the virtual time
over the recorded one, less one.

This page is made by `python benchmarks/fidelity.py compare --write docs/fidelity.md`; change the
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

## What the constants rest on

Constants were fitted to the "fit" workloads and to the facts below. The first complete fit met
the held-out device times with a median of 9.6 % and a p90 of 44.5 %. Even that was not blind:
the whole recording had been printed, and a few held-out rows with it, among them a sort of eight
million, a factorization twice as large and a complex transform. It is the nearest figure there is
for operators and sizes that nobody has looked at.

Then the held-out rows with large errors were read, to find what the model had no idea of: chunks
and launches of foreach kernels, one matrix times one vector, steps that come one after another,
a second list in a launch. What was changed had to fit the "fit" workloads as well or nearly as
well, but where these left a choice it was made with the held-out errors in view. So the scores
above are not those of an unseen examination. Chosen so: the time in which threads set up their
random numbers, the cost of a row of a softmax in shared memory, bytes against elements in
sums over the first dimension, the time of each part of a split sum, the floor of a digit count,
when blocks share a sum, twice the rate for depthwise convolutions in half precision. Assumed, and
fitted to nothing: half the bandwidth for a pass of a radix sort, and the threads of a
likelihood loss. The 20 bytes a clock of a foreach block are those that the recorded programs'
optimizers show.

An operator that is several kernels on the H200 is several here, with the pauses in between; some
that are three or four there (a sum over a split product) are one here, and their time is in it.
Attention, dropout and multi-tensor optimizers are taken as on CUDA; a root-mean-square norm that
is trained is not, and takes the eight operators that PyTorch has for other devices.

Known to be far off: the first convolution of an image network (three channels), depthwise
convolutions in half precision, bilinear scaling, and host times of whole training programs,
which are 20 to 63 % too short. Python between the calls takes no virtual time; whether that is
all of the difference has not been measured.

## What is extrapolated

The recording is of one GPU, one host, one version of PyTorch and of its libraries, on one day.
Host times hold for that processor. For every other GPU the virtual one takes the same
efficiencies on top of that GPU's data sheet, and nobody has compared those figures with hardware.
Sizes far outside the recorded ones are extrapolated too; so are operators that are not listed,
which are computed like the nearest family. First-use costs are not part of this comparison: they
need a fresh process each.
"""
