"""Compare which calls raise an error with what a GPU did, recorded in ``recordings``."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.folders import RECORDINGS
from benchmarks.operators.wrong_calls import OUTCOMES
from benchmarks.operators.wrong_inputs import Tried

RECORDING = RECORDINGS / "errors-h100.json"

_OF_VALUES = "the error depends on values: it comes at the next wait, or never without values"
_NO_KERNEL = "the CPU has no kernel that could compute the values"
# Where the virtual GPU differs from the recorded one, and why.
EXPLAINED = {
    "database|masked_fill|2": _OF_VALUES,
    "written|torch.lu_solve(s, s, i32)": _OF_VALUES,
    "written|v[torch.tensor([9])]": _OF_VALUES,
    "written|torch.nansum(c)": _NO_KERNEL,
    "types|nansum|complex64": _NO_KERNEL,
    "types|nanmean|complex64": _NO_KERNEL,
    "written|torch.histc(i, 4)": _NO_KERNEL,
    **{f"types|histc|{name}": _NO_KERNEL for name in ("int64", "int32", "int16", "uint8")},
    **{
        f"types|{name}_indices|{kind}": "PyTorch's code for meta tensors knows two types alone"
        for name in ("tril", "triu")
        for kind in (
            *("float32", "float64", "float16", "bfloat16", "complex64", "int16", "uint8", "bool"),
        )
    },
    **dict.fromkeys(
        ("types|stft|float16", "types|stft|bfloat16"), "cuFFT has its own rules for half precision"
    ),
    "written|torch.native_dropout(v, 1.5, True)": (
        "PyTorch's functions check the probability, and nobody calls this operator itself"
    ),
    "written|torch.nn.init.trunc_normal_(v, std=-1.0)": "torch 2.13 accepts it, 2.11 does not",
    "written|torch.fft.rfft(bf)": "torch 2.14 accepts it, 2.11 does not",
}


def pack(outcomes: Sequence[Tried], gpu: str, version: str) -> dict[str, Any]:
    """Return a recording: the calls by outcome, and the types that each operator refuses.

    Parameters
    ----------
    outcomes
        What each call did.
    gpu, version
        Name of the GPU, and version of torch.
    """
    packed: dict[str, Any] = {"gpu": gpu, "torch": version}
    for outcome in OUTCOMES:
        packed[outcome] = [
            each.key
            for each in outcomes
            if each.outcome == outcome and not each.key.startswith("types|")
        ]
    packed["types"] = {
        name: {
            "tried": " ".join(types),
            "refused": " ".join(kind for kind, raises in types.items() if raises),
        }
        for name, types in _refused_types(outcomes).items()
    }
    return packed


def _refused_types(outcomes: Sequence[Tried]) -> dict[str, dict[str, bool]]:
    """Return for each operator and type whether one of the samples raised an error."""
    refused: dict[str, dict[str, bool]] = {}
    for each in outcomes:
        kind, name, *rest = each.key.split("|")
        if kind == "types" and each.outcome != "unmade":
            types = refused.setdefault(name, {})
            types[rest[0]] = types.get(rest[0], False) or each.outcome == "raises"
    return refused


def differences(
    outcomes: Sequence[Tried], recording: dict[str, Any], *, are_explained: bool = False
) -> list[str]:
    """Return a line for each call that does not do what it did on the recorded GPU.

    Parameters
    ----------
    outcomes
        What each call did here.
    recording
        What :func:`pack` returned on the GPU.
    are_explained
        Whether to list those that ``EXPLAINED`` names, too.
    """
    # What the virtual GPU refuses by name is no error of arguments.
    outcomes = [each for each in outcomes if each.error != "NotModelledError"]
    recorded = {
        key: outcome for outcome in ("raises", "accepted", "late") for key in recording[outcome]
    }
    lines = {
        each.key: f"{each.key}: {each.outcome}, not {recorded[each.key]}: {each.message}"
        for each in outcomes
        if each.key in recorded and each.outcome != recorded[each.key]
    }
    messages = {each.key.rpartition("|")[0]: each.message for each in outcomes if each.message}
    for name, types in _refused_types(outcomes).items():
        there = recording["types"].get(name, {"tried": "", "refused": ""})
        for kind, is_refused in types.items():
            key = f"types|{name}|{kind}"
            if kind in there["tried"].split() and is_refused != (kind in there["refused"].split()):
                what = "refused" if is_refused else "accepted"
                lines[key] = f"{key}: {what} here alone: {messages.get(key, '')}"
    # A call that is late is wrong also where the GPU raises nothing.
    lines.update(
        (each.key, f"{each.key}: late: {each.message}")
        for each in outcomes
        if each.outcome == "late" and recorded.get(each.key) != "late"
    )
    return [
        line
        for key, line in lines.items()
        if are_explained or not any(key.startswith(known) for known in EXPLAINED)
    ]


def load(path: Path = RECORDING) -> dict[str, Any]:
    """Return the recording in a file."""
    recording: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return recording
