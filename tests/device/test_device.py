"""Choosing a GPU: the reasons given, the effect in each cell, and the end in every case."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

import gpulab
from gpulab import device, gpus, virtual
from gpulab.core import versions
from gpulab.core.errors import (
    InvalidOptionError,
    NoGpuError,
    UnknownNameError,
    UnsupportedVersionError,
)
from gpulab.device import Device, _notebook_session, _probe
from gpulab.device._probe import Obstacle
from gpulab.virtual import _self_check, _session, entered

NO_GPU = Obstacle("torch 2.13.0 is a CPU build", "install a build for CUDA")


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this machine look as if it had no GPU."""
    monkeypatch.setattr(_probe, "cuda_obstacle", lambda: NO_GPU)


@pytest.fixture
def _with_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this machine look as if it had a GPU that torch can use."""
    monkeypatch.setattr(_probe, "cuda_obstacle", lambda: None)
    monkeypatch.setattr(_probe, "cuda_name", lambda: "NVIDIA L4")
    monkeypatch.setattr(_probe, "cuda_version", lambda: "13.0")
    monkeypatch.setattr(_probe, "driver_version", lambda: "580.159.03")


def test_auto_without_a_gpu() -> None:
    """Without a GPU the virtual H200 is chosen, and the text says why."""
    chosen = gpulab.use()
    assert str(chosen) == (
        "NVIDIA H200, virtual: torch 2.13.0 is a CPU build, "
        "so nothing here is measured on hardware"
    )
    assert (chosen.name, chosen.source) == ("NVIDIA H200", "virtual")
    assert device.current() is chosen


@pytest.mark.usefixtures("_with_gpu")
@pytest.mark.parametrize("gpu", ["auto", "cuda"])
def test_a_real_gpu_is_taken(gpu: str) -> None:
    """If torch can use a GPU, "auto" and "cuda" choose it."""
    chosen = gpulab.use(gpu)
    assert (chosen.source, chosen.virtual) == ("measured", None)
    assert str(chosen) == "NVIDIA L4, real: torch can use it"


@pytest.mark.usefixtures("_with_gpu")
@pytest.mark.parametrize("gpu", ["A100", "a100"])
def test_a_named_gpu_is_virtual_even_beside_a_real_one(gpu: str) -> None:
    """A name chooses a virtual GPU even if there is a real one, in any case of letters."""
    chosen = gpulab.use(gpu)
    assert chosen.source == "virtual"
    assert str(chosen) == (
        "NVIDIA A100-SXM4-80GB, virtual, extrapolated from its data sheet: it was asked for by "
        "name, so nothing here is measured on hardware"
    )


def test_cuda_without_a_gpu_is_refused() -> None:
    """Asking for "cuda" without a GPU is refused with a cure, and the choice stays."""
    before = gpulab.use("A100")
    with pytest.raises(NoGpuError) as error:
        gpulab.use("cuda")
    assert str(error.value) == (
        "no CUDA GPU can be used: torch 2.13.0 is a CPU build; install a build for CUDA"
    )
    assert device.current() is before


@pytest.mark.parametrize(
    ("gpu", "hint"), [("H20", "did you mean 'H200'? "), ("cude", "did you mean 'cuda'? "), (7, "")]
)
def test_unknown_gpu(gpu: str, hint: str) -> None:
    """An unknown name is refused with the nearest, and the choice stays."""
    before = gpulab.use("A100")
    with pytest.raises(UnknownNameError) as error:
        gpulab.use(gpu)
    assert str(error.value) == (
        f"unknown GPU {gpu!r}; {hint}Known: {', '.join(gpus.names())}, auto, cuda"
    )
    assert device.current() is before


@pytest.fixture
def _untried_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let torch look like a version that nobody has tried."""
    checks = (versions.warn_of_untried_torch, _session._check_untried_torch)
    monkeypatch.setattr(versions, "torch_version", lambda: "2.99.0")
    for check in checks:
        check.cache_clear()
    yield
    for check in checks:
        check.cache_clear()


@pytest.mark.usefixtures("_with_gpu", "_untried_torch")
def test_an_untried_torch_measures_a_real_gpu() -> None:
    """A real GPU needs nothing of torch that is private: an untried version gives a warning."""
    with pytest.warns(UserWarning, match=r"tried with torch 2\.11 to 2\.15"):
        assert gpulab.use().source == "measured"


@pytest.mark.usefixtures("_untried_torch")
@pytest.mark.parametrize("choose", [gpulab.use, gpulab.virtual_gpu])
def test_the_self_check_decides_about_an_untried_torch(
    choose: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The virtual GPU of an untried torch is used if it passes its self-check, else refused."""
    with pytest.warns(UserWarning, match=r"tried with torch 2\.11 to 2\.15"):
        choose("H200")
    _session._check_untried_torch.cache_clear()
    monkeypatch.setitem(_self_check.CHECKS, "graphs", lambda: False)
    with pytest.raises(UnsupportedVersionError) as error:
        choose("H200")
    assert str(error.value) == (
        "the virtual GPU does not work with torch 2.99.0 (graphs: gave a wrong result); "
        'install a torch that was tried: pip install "torch>=2.11,<2.16"'
    )


def test_only_an_unasked_virtual_gpu_stands_in() -> None:
    """`stands_in` is true only for a virtual GPU that the user did not ask for."""
    assert device.current().stands_in
    with gpulab.virtual_gpu("H200"):
        assert not device.current().stands_in
    assert not gpulab.use("H200").stands_in
    assert not device.find("T4").stands_in
    assert gpulab.use("auto").stands_in


@pytest.mark.parametrize("choose", [gpulab.use, device.find])
def test_the_memory_for_values_is_chosen_with_the_gpu(choose: Callable[..., Device]) -> None:
    """``max_value_bytes`` limits the values of the virtual GPU that is chosen; else 4 GiB."""
    for gpu in ("auto", "T4"):
        assert choose(gpu).virtual.machine.limits.max_bytes == 4 << 30  # type: ignore[union-attr] # virtual
        small = choose(gpu, max_value_bytes=64 << 20).virtual
        assert small.machine.limits.max_bytes == 64 << 20  # type: ignore[union-attr] # virtual
    with pytest.raises(InvalidOptionError, match="max_value_bytes=-1; it must be"):
        choose("cuda", max_value_bytes=-1)  # also where no virtual GPU would check it


def test_current_sees_a_gpu_entered_by_hand() -> None:
    """Inside a ``with`` statement its GPU is current, whatever was chosen before."""
    gpulab.use("A100")
    with gpulab.virtual_gpu("T4") as by_hand:
        assert device.current().virtual is by_hand
        text = str(device.current())
        assert text.startswith("Tesla T4, virtual, extrapolated from its data sheet: its context")
    assert device.current().name == "NVIDIA A100-SXM4-80GB"


def test_the_machine_is_seen_from_outside_the_virtual_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside a virtual GPU, the real torch is examined, and the context is entered again."""
    entered_then = []
    monkeypatch.setattr(_probe, "cuda_obstacle", lambda: entered_then.append(entered()) or NO_GPU)
    with gpulab.virtual_gpu("T4") as outer, outer:
        gpulab.use("H100")
        gpulab.doctor()
        assert outer.entered
    assert not outer.entered
    assert entered_then == [None, None]


def test_a_script_is_warned_to_enter() -> None:
    """`use` in a script warns at once and shows how to enter the virtual GPU."""
    script = {"__name__": "__main__", "gpulab": gpulab}
    with pytest.warns(device.NotEnteredWarning) as caught:
        exec("gpulab.use('a100')", script)
    assert len(caught) == 1
    assert str(caught[0].message) == (
        "gpulab.use('a100') in a script chooses the GPU of gpulab's own functions, such as "
        "measure; for torch.cuda itself write `with gpulab.virtual_gpu('A100'):` around that code"
    )


def test_active_enters_and_leaves() -> None:
    """The GPU is entered for the block and left after it, also after an error."""
    chosen = gpulab.use("H200")

    def fail_inside() -> None:
        with device.active() as in_use:
            assert in_use is chosen
            assert torch.cuda.is_available()
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert entered() is None


def test_active_inside_is_the_same_gpu() -> None:
    """A nested `active` gives the same GPU, which the outer one leaves."""
    with device.active() as outer:
        with device.active() as inner:
            assert inner is outer
        assert entered() is outer.virtual


def test_conditions_of_a_virtual_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The conditions of a virtual GPU do not have this machine's CUDA or driver."""
    monkeypatch.setattr(_probe, "cuda_version", lambda: "13.0")
    taken = device.conditions()
    assert (taken.device_name, taken.cuda_version, taken.driver_version) == (
        *("NVIDIA H200", None, None),
    )
    assert (taken.torch_version, taken.gpulab_version) == (torch.__version__, gpulab.__version__)
    assert (taken.cache, taken.clock_before_mhz, taken.clock_after_mhz) == ("hot", None, None)
    assert taken.python_version == ".".join(map(str, sys.version_info[:3]))
    assert taken.taken_at.endswith("+00:00")


def test_doctor_says_what_is_used_instead() -> None:
    """The report names the virtual GPU used instead, without choosing it."""
    rows = {row.topic: row for row in gpulab.doctor().rows}
    assert rows["GPU"].instead == "the virtual NVIDIA H200"
    assert rows["virtual GPU"].state == "usable"
    assert _notebook_session.session.device is None


@pytest.mark.parametrize("broken", [(_session, "failures"), (virtual, "self_check")])
def test_doctor_survives_a_broken_virtual_gpu(
    broken: tuple[ModuleType, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the virtual GPU fails, in a check or at its import, the report quotes its error."""

    def fail() -> None:
        raise RuntimeError("no such private name")

    monkeypatch.setattr(*broken, fail)
    gpu = {row.topic: row for row in gpulab.doctor().rows}["virtual GPU"]
    assert (gpu.state, gpu.reason) == ("not usable", "RuntimeError: no such private name")


# Runs cells in a real shell, and notes after each whether a virtual GPU is still entered.
CELLS = """
import json, sys, time
from IPython.core.interactiveshell import InteractiveShell
import gpulab
from gpulab import virtual as session
shell = InteractiveShell.instance()
outcomes = []
for cell in json.loads(sys.argv[1]):
    ok = shell.run_cell(cell, store_history=False).success
    outcomes.append([ok, session.entered() is None, shell.user_ns.pop("inside", None)])
print(json.dumps(outcomes), file=sys.stderr)
"""
LOOK = "from gpulab import virtual as session\ninside = getattr(session.entered(), 'spec', None)"
LOOK += "\ninside = inside and inside.name"


def _run_cells(python: list[str], *cells: str) -> list[list[object]]:
    """Return for each cell: whether it succeeded, whether the GPU was left, and `inside`."""
    done = subprocess.run(
        [*python, "-c", CELLS, json.dumps(cells)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
    )
    return json.loads(done.stderr.splitlines()[-1])


@pytest.mark.slow
def test_cells_run_inside_and_the_kernel_outside(warm_python: list[str]) -> None:
    """Each cell runs inside the chosen virtual GPU, which is left between cells."""
    use = "import gpulab; gpulab.use('A100')\n" + LOOK
    assert _run_cells(warm_python, LOOK, use, LOOK) == [
        *[[True, True, None], [True, True, "A100"], [True, True, "A100"]],
    ]


@pytest.mark.slow
def test_cells_that_fail_leave_as_well(warm_python: list[str]) -> None:
    """A cell that ends with any error leaves the GPU too."""
    cells = ("1 / 0", "raise KeyboardInterrupt", "def (", "raise SystemExit", "await nothing")
    looks = [each for cell in cells for each in (cell, LOOK)]
    outcomes = _run_cells(warm_python, "import gpulab; gpulab.use('H200')", *looks)
    assert outcomes[1:] == [[False, True, None], [True, True, "H200"]] * len(cells)


@pytest.mark.slow
def test_choosing_on_another_thread_is_refused(warm_python: list[str]) -> None:
    """`use` on another thread is refused, and the GPU of the cells stays in use."""
    other = (
        "import threading; inside = []\n"
        "def choose():\n"
        "    try: gpulab.use('A100')\n"
        "    except Exception as error: inside.append(str(error))\n"
        "thread = threading.Thread(target=choose, name='mine'); thread.start(); thread.join()"
    )
    outcomes = _run_cells(warm_python, "import gpulab; gpulab.use('T4')", other, LOOK)
    refused = (
        "gpulab.use() was called on the thread mine, and it chooses for the cells, which run on "
        "the main thread; call it in a cell, outside your threads"
    )
    assert outcomes[1][2] == [refused]
    assert outcomes[2] == [True, True, "T4"]


@pytest.mark.slow
def test_choosing_again_replaces(warm_python: list[str]) -> None:
    """A second choice replaces the first at once, and a refused one changes nothing."""
    again = "gpulab.use('A100')\n" + LOOK
    outcomes = _run_cells(
        warm_python, "import gpulab; gpulab.use('T4')", again, LOOK, "gpulab.use('cuda')", LOOK
    )
    assert [row[2] for row in outcomes] == [None, "A100", "A100", None, "A100"]


@pytest.mark.slow
def test_ctrl_c_between_two_gpus_waits_for_the_new_one(warm_python: list[str]) -> None:
    """Ctrl-C between leaving one GPU and entering the next waits until that is done."""
    struck = (
        "import signal; notebook = gpulab.device._notebook_session.session\n"
        "release = notebook.release\n"
        "def release_and_strike(): release(); signal.raise_signal(signal.SIGINT)\n"
        "notebook.release = release_and_strike\n"
        "try:\n    gpulab.use('A100')\n    while True: pass\n"
        "except KeyboardInterrupt: inside = 'heard'\n"
        "finally: del notebook.release"
    )
    outcomes = _run_cells(warm_python, "import gpulab; gpulab.use('T4')", struck, LOOK)
    assert outcomes[1:] == [[True, True, "heard"], [True, True, "A100"]]


@pytest.mark.slow
def test_a_cell_that_runs_a_cell(warm_python: list[str]) -> None:
    """After a cell run by another cell, the outer cell is still inside the GPU."""
    nested = "get_ipython().run_cell('2 + 2')\n" + LOOK
    assert _run_cells(warm_python, "import gpulab; gpulab.use('T4')", nested)[1] == [
        True,
        True,
        "T4",
    ]


@pytest.mark.slow
def test_a_cell_whose_end_was_lost_is_repaired(warm_python: list[str]) -> None:
    """If Ctrl-C in IPython skips the end of a cell, the next cell repairs it."""
    lose = (
        "from IPython import get_ipython\n"
        "leave = gpulab.device._notebook_session.session.leave\n"
        "get_ipython().events.unregister('post_run_cell', leave)"
    )
    again = "get_ipython().events.register('post_run_cell', leave)\n" + LOOK
    outcomes = _run_cells(warm_python, "import gpulab; gpulab.use('T4')", lose, again)
    assert outcomes[1:] == [[True, False, None], [True, True, "T4"]]
