"""PyTorch's own wrong inputs raise here where an H100 raised."""

import json
import random
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks.common.folders import ROOT
from benchmarks.operators.recorded_errors import EXPLAINED, differences, load, pack
from benchmarks.operators.wrong_inputs import Tried

needs_database = pytest.mark.skipif(
    find_spec("expecttest") is None, reason="the database needs expecttest"
)


@needs_database
def test_some_wrong_inputs_raise_where_a_gpu_raises(
    warm_database: list[str], tmp_path: Path
) -> None:
    """A random choice of operators: each wrong call raises at its line, without values, too."""
    recording = load()
    names = sorted(
        {key.split("|")[1] for key in recording["raises"] if key.startswith("database")}
    )
    chosen = random.Random(0).sample(names, 40)
    assert (
        _differences(warm_database, ["database"], chosen, "virtual-without-values", tmp_path) == []
    )


@needs_database
@pytest.mark.slow
@pytest.mark.parametrize("device", ["virtual", "virtual-without-values"])
def test_all_wrong_inputs_raise_where_a_gpu_raises(
    device: str, warm_database: list[str], tmp_path: Path
) -> None:
    """Every error input of PyTorch's operators and modules raises at its line."""
    assert _differences(warm_database, ["database", "modules"], [], device, tmp_path) == []


@needs_database
@pytest.mark.slow
def test_types_are_refused_where_a_gpu_refuses_them(
    warm_database: list[str], tmp_path: Path
) -> None:
    """A random choice of operators with each type: none is refused that a GPU accepts."""
    chosen = random.Random(0).sample(sorted(load()["types"]), 40)
    names = sorted({name.partition(".")[0] if "nn." not in name else name for name in chosen})
    assert _differences(warm_database, ["types"], names, "virtual-without-values", tmp_path) == []


def _differences(
    python: list[str], kinds: Sequence[str], names: Sequence[str], device: str, folder: Path
) -> list[str]:
    out = folder / "errors.json"
    chosen = ["--names", *names] if names else []
    options = ["--kinds", *kinds, *chosen, "--device", device, "--out", str(out)]
    command = [*python, "-m", "benchmarks.operators", "errors", *options]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    tried = [Tried(**each) for each in json.loads(out.read_text("utf-8"))["tried"]]
    assert len(tried) > 50
    found = differences(tried, load())
    # Without values a call that needs them, such as an index by a mask, says that there are none.
    return [line for line in found if device == "virtual" or "has no values" not in line]


RAISED = Tried("database|x|0", "raises", "RuntimeError", "no")
ACCEPTED = Tried("written|f(x)", "accepted")
TYPES = (Tried("types|add|int64|0", "accepted"), Tried("types|add|int64|1", "raises", "E", "no"))


def _recording() -> dict[str, Any]:
    return pack([RAISED, ACCEPTED, *TYPES], "a GPU", "2.13")


def test_a_recording_says_what_raised_and_which_types_were_refused() -> None:
    """A type is refused if one of the samples raises."""
    assert _recording() == {
        "gpu": "a GPU",
        "torch": "2.13",
        "raises": ["database|x|0"],
        "accepted": ["written|f(x)"],
        "late": [],
        "died": [],
        "types": {"add": {"tried": "int64", "refused": "int64"}},
    }


@pytest.mark.parametrize(
    ("tried", "lines"),
    [
        ([RAISED, ACCEPTED, *TYPES], []),
        ([Tried("database|x|0", "accepted")], ["database|x|0: accepted, not raises: "]),
        ([Tried("database|x|0", "late", "E", "no")], ["database|x|0: late: no"]),
        ([Tried("written|f(x)", "raises", "E", "no")], ["written|f(x): raises, not accepted: no"]),
        ([Tried("written|f(x)", "raises", "NotModelledError", "no")], []),
        ([Tried("database|unknown|0", "raises", "E", "no")], []),
        ([Tried("database|unknown|0", "late", "E", "no")], ["database|unknown|0: late: no"]),
        ([TYPES[0]], ["types|add|int64: accepted here alone: "]),
        ([Tried("types|add|bool|0", "raises", "E", "no")], []),
        ([Tried("types|add|int64|unmade", "unmade")], []),
    ],
)
def test_what_differs_from_a_recording_is_listed(tried: list[Tried], lines: list[str]) -> None:
    """Calls and types that were not recorded are compared with nothing, but are never late."""
    assert differences(tried, _recording()) == lines


def test_what_is_explained_is_listed_only_on_request() -> None:
    """Each explanation is about a call that was recorded, or about a type."""
    key = "written|torch.nansum(c)"
    tried = [Tried(key, "late", "E", "no")]
    assert differences(tried, load()) == []
    assert differences(tried, load(), are_explained=True) == [f"{key}: late: no"]
    recording = load()
    recorded = {*recording["raises"], *recording["accepted"], *recording["late"]}
    assert {key for key in EXPLAINED if not key.startswith("types|")} <= recorded
