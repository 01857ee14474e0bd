"""More than 450 short PyTorch programs give on the virtual GPU what they give on the CPU.

``python -m tests.probes.test_probes`` prints a table of them; with ``--hardware`` it shows this
computer's GPU.
"""

import argparse
import warnings
from collections.abc import Collection, Iterator

import pytest
import torch

from tests.probes import (
    autocast,
    autograd,
    devices,
    events,
    graphs,
    layers,
    memory,
    moving,
    numbers,
    operators,
    ordinary,
    programs,
    python,
    random,
    refused,
    saving,
    shapes,
    streams,
    text,
    training,
)
from tests.probes.table import Gives, Probe, Raises, Same, hardware, outcome, virtual

MODULES = (
    shapes,
    numbers,
    operators,
    ordinary,
    moving,
    layers,
    autograd,
    training,
    programs,
    saving,
    autocast,
    random,
    streams,
    events,
    graphs,
    memory,
    devices,
    text,
    python,
    refused,
)
PROBES: list[tuple[str, Probe]] = [
    (family, probe)
    for module in MODULES
    for family, probes in module.FAMILIES.items()
    for probe in probes
]


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """Compute on one thread: several wait for each other far longer than small tensors take."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


# What PyTorch itself warns of on every device, where a probe asks for it.
EXPECTED_WARNINGS = (
    "Anomaly Detection has been enabled",
    "`torch.jit.script` is deprecated",
    ".* does nothing on the virtual GPU",
)


@pytest.mark.filterwarnings(*(f"ignore:{text}" for text in EXPECTED_WARNINGS))
@pytest.mark.parametrize(
    "probe", [pytest.param(probe, id=f"{family}: {probe.name}") for family, probe in PROBES]
)
def test_a_program_runs_as_on_the_hardware(probe: Probe) -> None:
    """The program gives on the virtual GPU what it gives elsewhere, or what the table says."""
    probe.check(virtual)


def test_the_battery_is_large_and_each_name_is_used_once() -> None:
    """There are at least 450 probes, and family and name identify the one that failed."""
    names = [(family, probe.name) for family, probe in PROBES]
    assert len(names) >= 450
    assert len(set(names)) == len(names)


JUDGED: dict[str, tuple[Probe, str]] = {
    "as expected": (Same("", lambda d: d and 1), "ok"),
    "another value": (Same("", len), "differs: 4, expected 3"),
    "another type": (
        Same("", lambda d: 1 if d == "cpu" else 1.0),
        "differs: 1.0 is a float, expected 1",
    ),
    "a number that is far off": (
        Same("", lambda d: 1.0 if d == "cpu" else 1.1),
        "differs: Scalars are not close!",
    ),
    "elements that are far off": (
        Same("", lambda d: torch.ones(2).to(d) * len(d)),
        "differs: Tensor-likes are not close!",
    ),
    "elements of another type": (
        Same("", lambda d: torch.ones(2, dtype=torch.int64 if d == "cpu" else None).to(d)),
        "differs: The values for attribute 'dtype' do not match: torch.float32 != torch.int64.",
    ),
    "within a wider tolerance": (
        Same("", lambda d: {"x": torch.ones(2).to(d) * len(d)}, tolerance=0.5),
        "ok",
    ),
    "meant to be on the host": (Same("", lambda d: d and torch.ones(2), on_host=True), "ok"),
    "left on the host": (
        Same("", lambda d: d and torch.ones(2)),
        "differs: a tensor is on cpu, expected cuda",
    ),
    "more of them": (Same("", list), "differs: 4 values, expected 3: ['c', 'u', 'd', 'a']"),
    "another key": (Same("", lambda d: {d: 1}), "differs: 'cuda', expected 'cpu'"),
    "another value of a key": (Same("", lambda d: {"x": len(d)}), "differs: 4, expected 3"),
    "not the expected": (Gives("", lambda: 3, 4), "differs: 3, expected 4"),
    "an error": (Gives("", lambda: 1 // 0), "raises ZeroDivisionError: "),
    "no error": (
        Raises("", lambda: 3, ValueError, ""),
        "differs: returned 3, expected ValueError",
    ),
    "other words": (
        Raises("", lambda: int("x"), ValueError, "invalid"),
        "differs: said \"invalid literal for int() with base 10: 'x'\", expected 'invalid'",
    ),
    "another error": (Raises("", lambda: 1 // 0, ValueError, ""), "raises ZeroDivisionError: "),
}


@pytest.mark.parametrize("name", JUDGED)
def test_a_probe_is_judged(name: str) -> None:
    """A value, a type, a place or an error that is not the expected one is seen and told."""
    probe, expected = JUDGED[name]
    assert outcome(probe).startswith(expected)


def test_hardware_must_have_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe of two GPUs says so where there are fewer."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    probe = Gives("", lambda: True, n_gpus=2)
    assert outcome(probe, hardware) == "raises LookupError: this computer has 1 GPUs, not 2"


def test_the_table_has_a_line_for_each_probe() -> None:
    """The program prints family, name and outcome of each chosen probe, and how many are right."""
    lines = list(table({"embedding", "nvtx"}, on_hardware=False))
    assert [line.split()[0] for line in lines] == ["embedding", "nvtx", "2"]
    assert lines[0].endswith(" ok")
    assert lines[-1] == "2 of 2 ok"


def table(families: Collection[str], *, on_hardware: bool) -> Iterator[str]:
    """Yield a line for each probe: family, name and outcome; then how many are right."""
    chosen = [(family, probe) for family, probe in PROBES if family in families]
    place, n_ok = hardware if on_hardware else virtual, 0
    for family, probe in chosen:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if on_hardware else "error")
            for text in EXPECTED_WARNINGS:
                warnings.filterwarnings("ignore", text)
            found = outcome(probe, place)
        n_ok += found == "ok"
        yield f"{family:<14} {probe.name:<50} {found}"
    yield f"{n_ok} of {len(chosen)} ok"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What PyTorch programs do on the virtual GPU.")
    parser.add_argument("--hardware", action="store_true", help="use this computer's GPU instead")
    parser.add_argument("--families", nargs="*", default={family for family, _ in PROBES})
    parser.add_argument("--without", nargs="*", default=[], help="families to leave out")
    options = parser.parse_args()
    torch.set_num_threads(1)
    families = set(options.families) - set(options.without)
    if options.hardware:
        families -= set(refused.FAMILIES)  # a real GPU does what they ask for
    for line in table(families, on_hardware=options.hardware):
        print(line, flush=True)  # noqa: T201 # the table is what it is run for


if __name__ == "__main__":
    main()
