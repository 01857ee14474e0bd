"""Test the virtual GPU blindly: record, predict, and only then open the recorded times."""

import base64
import hashlib
import json
import secrets
import time
import zlib
from pathlib import Path

import torch

import gpulab
from benchmarks.fidelity.recording import Recorder, as_json, real, virtual
from benchmarks.fidelity.table import chosen, failures, family_summary, score, workload_rows
from benchmarks.fidelity.unseen import SEEDS
from benchmarks.fidelity.workload import UNSEEN

LIST, SEALED = "blind-list.json", "blind-times.sealed"
_KNOWN = ("family", "role", "dtype", "parameters")
_MOST_S = 110.0  # about twice the time that it takes on an H200
_SEED_DIGITS = 8
# All files that a virtual time depends on, as patterns within the package.
_MODEL = ("virtual/**/*.py", "gpus/**/*.py", "data/*.json")


class BrokenSealError(Exception):
    """A file or the model has changed since the times were sealed."""


def record(folder: Path, gpu: str) -> None:
    """Draw a seed, time its workloads, and write the list and the times to separate files."""
    folder.mkdir(parents=True, exist_ok=True)  # first, so that a bad path fails before the timing
    # From the system's randomness, so that nobody can know the workloads in advance.
    seed = secrets.randbelow(10**_SEED_DIGITS)
    name = torch.cuda.get_device_name() if not gpu else f"virtual {gpu}"
    bench = virtual(gpu) if gpu else real(quick=False)
    deadline_s = time.perf_counter() + _MOST_S
    seeds = (*SEEDS, seed)
    found = Recorder(bench, "measured", "", UNSEEN, seeds, deadline_s=deadline_s).record()
    times = sealed(as_json(found))
    known = {name: {key: item[key] for key in _KNOWN} for name, item in found["workloads"].items()}
    listed = {"gpu": name, "seed": seed, "times": digest(times), "workloads": known}
    (folder / SEALED).write_bytes(times)
    (folder / LIST).write_text(as_json(listed), "utf-8")


def predict(folder: Path, out: Path) -> None:
    """Compute the times of the list, and write them to a file with the model's digest."""
    listed = json.loads((folder / LIST).read_text("utf-8"))
    quick = virtual("H200", max_value_elements=0)
    seeds = (*SEEDS, listed["seed"])
    found = Recorder(virtual("H200"), "virtual", "", UNSEEN, seeds, quick_bench=quick).record()
    # Python draws the same numbers everywhere; a difference means that the lists of operators
    # differ.
    if set(found["workloads"]) != set(listed["workloads"]):
        raise BrokenSealError("the seed draws other workloads here than where they were recorded")
    # Digests of the model and of the list: judge() refuses predictions of others.
    found["model"], found["list"] = model_digest(), digest((folder / LIST).read_bytes())
    out.write_text(as_json(found), "utf-8")
    print("predictions", digest(out.read_bytes()), "of the model", found["model"])


def judge(folder: Path, predicted: Path, out: Path) -> None:
    """Open the sealed times, print their errors, and write them as a recording."""
    computed = json.loads(predicted.read_text("utf-8"))
    given = (folder / LIST).read_bytes()
    # Otherwise a model could be changed after the times were opened, and examined as if it were
    # blind.
    if (computed["model"], computed["list"]) != (model_digest(), digest(given)):
        raise BrokenSealError("the predictions are of another model or of another list")
    times = (folder / SEALED).read_bytes()
    if digest(times) != json.loads(given)["times"]:
        raise BrokenSealError("the sealed times are not those that were recorded")
    text = opened(times)
    out.write_text(text, "utf-8")
    rows = workload_rows(json.loads(text), computed)
    for what in (("hot", "cold"), ("event",), ("host",)):
        print(*what, score(chosen(rows, what)))
    print("\n".join([*failures(rows), *family_summary(rows)]))


def model_digest() -> str:
    """Return a digest of all files that a virtual time depends on: the code and its tables."""
    root = Path(gpulab.__file__).parent
    paths = [path for part in _MODEL for path in root.glob(part)]
    whole = hashlib.sha256()
    for path in sorted(paths):
        whole.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()


def digest(content: bytes) -> str:
    """Return the SHA-256 of some bytes."""
    return hashlib.sha256(content).hexdigest()


def sealed(text: str) -> bytes:
    """Return a text as bytes that nobody can read by mistake."""
    return base64.encodebytes(zlib.compress(text.encode(), 9))


def opened(content: bytes) -> str:
    """Return the text that was sealed."""
    return zlib.decompress(base64.decodebytes(content)).decode()
