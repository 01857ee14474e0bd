"""A timed cell restores shell and torch, and its errors have notes that help."""

import re

import pytest

from tests.support.ipython import LOAD, Notebook, shows_our_frames

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("raised", "name"),
    [("1 / 0", "ZeroDivisionError"), ("raise KeyboardInterrupt", "KeyboardInterrupt")],
)
@pytest.mark.parametrize("place", ["setup", "body"])
def test_everything_is_restored_after_an_error(
    notebook: Notebook, raised: str, name: str, place: str
) -> None:
    """After an error in setup or body, all settings of shell and torch are restored."""
    spoil = (
        "get_ipython().ast_transformers.append(None); gc.disable(); "
        "torch.set_grad_enabled(False); torch.cuda.set_stream(torch.cuda.Stream()); "
        "torch.set_default_device('cuda'); "
        "torch.set_default_dtype(torch.float64); torch.backends.cudnn.benchmark = True; "
        "torch.backends.cudnn.enabled = False; torch.backends.cudnn.deterministic = True; "
        f"torch.set_float32_matmul_precision('high'); {raised}"
    )
    state = (
        "(get_ipython().ast_transformers, gc.isenabled(), torch.is_grad_enabled(), "
        "torch.cuda.current_stream(), torch.get_default_dtype(), torch.get_default_device(), "
        "torch.backends.cudnn.benchmark, torch.backends.cudnn.enabled, "
        "torch.backends.cudnn.deterministic, torch.get_float32_matmul_precision(), "
        "torch.backends.cuda.matmul.fp32_precision, torch.backends.cuda.matmul.allow_tf32, "
        "torch.backends.mkldnn.matmul.fp32_precision)"
    )
    cell = f"%%cudatime {spoil}\n1" if place == "setup" else f"%%cudatime\n{spoil}"
    *_, ran, after = notebook.run(
        f"{LOAD}\nimport gc, torch, gpulab; gpulab.use('H200');",
        f"before = {state}",
        cell,
        f"after = {state}\n"
        "notebook = gpulab.device._notebook_session.session\n"
        "print(before == after, notebook.virtual.entered)",
    )
    assert ran.error == name
    assert after.out == "True True\n"


def test_settings_of_the_user_survive_success(notebook: Notebook) -> None:
    """Settings that the user chose before a timed cell are the same after it succeeds."""
    ran = notebook.last(
        "gc.disable(); torch.set_grad_enabled(False); "
        "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
        "%cudatime -q gc.enable(); torch.set_grad_enabled(True)",
        "print(gc.isenabled(), torch.is_grad_enabled(), "
        "torch.backends.cuda.matmul.fp32_precision)\n"
        "gc.enable(); torch.set_grad_enabled(True); torch.backends.cuda.matmul.fp32_precision = "
        "'none'",
    )
    assert ran.out == "False False tf32\n"


def test_the_virtual_gpu_is_left_after_the_cell(notebook: Notebook) -> None:
    """Without ``gpulab.use`` the virtual GPU replaces torch.cuda only for the magic."""
    *_, failed, after = notebook.run(
        f"{LOAD}\nimport torch", "%cudatime 1 / 0", "print(torch.cuda.is_available())"
    )
    assert failed.error == "ZeroDivisionError"
    assert after.out == "False\n"


def test_interrupt_keeps_what_was_measured(notebook: Notebook) -> None:
    """Ctrl-C after some samples prints their result with a note, and the cell succeeds."""
    ran = notebook.last(
        "calls = []",
        "%%cudatime -v m --precision 1e-9 --warmup 0 --max-time 3600\n"
        "torch.cuda._sleep(100000 + 1000 * (len(calls) * 37 % 101))\n"
        "calls.append(1)\n"
        "if len(calls) == 2000: raise KeyboardInterrupt",
    )
    assert ran.error is None
    n_samples = re.search(r"interval of (\d+);", ran.out)
    assert n_samples is not None
    line = f"  note: interrupted after {int(n_samples[1]):,} samples; the result is from these"
    assert ran.out.splitlines()[2] == line


def test_a_cuda_error_gets_a_note(notebook: Notebook) -> None:
    """A CUDA error of the body gets a note that CUDA errors are asynchronous."""
    ran = notebook.last("%cudatime raise torch.AcceleratorError('CUDA error: misaligned')")
    assert ran.error == "AcceleratorError"
    assert any("CUDA errors are asynchronous" in note for note in ran.notes)


def test_earlier_cuda_error_is_not_blamed_on_the_cell(notebook: Notebook) -> None:
    """A CUDA error before the body runs gets a note that earlier work caused it."""
    *_, ran, seen = notebook.run(
        f"{LOAD}\nimport torch, gpulab; gpulab.use('H200'); seen = []",
        "def fail(*_): raise torch.AcceleratorError('CUDA error: misaligned')\n"
        "real, torch.cuda.synchronize = torch.cuda.synchronize, fail",
        "%cudatime seen.append(1)",
        "torch.cuda.synchronize = real\nprint(seen)",
    )
    (note,) = ran.notes
    assert note == (
        "gpulab: CUDA errors are asynchronous; this one comes from work that was launched "
        "before the timed cell, so restart the kernel and look there"
    )
    assert seen.out == "[]\n"


def test_the_gpu_is_usable_after_running_out_of_memory(notebook: Notebook) -> None:
    """The error is PyTorch's with a note on the sample, and the memory can be freed."""
    *_, ran, after = notebook.run(
        f"{LOAD}\nimport gpulab, torch; gpulab.use('T4'); kept = []",
        "%%cudatime -n 300\nkept.append(torch.empty(1 << 28, device='cuda'))",
        "kept.clear()\n"
        "print(gpulab.measure(lambda: torch.ones(4, device='cuda') + 1, n_samples=5).n_samples)",
    )
    assert ran.error == "OutOfMemoryError"
    assert ran.notes[0].startswith("gpulab: raised while samples 1 to ")
    assert after.out == "5\n"


@pytest.mark.parametrize(
    "call", ["gpulab.measure(work)", "%cudatime work()", "%cudatime --vs work 1"]
)
def test_a_notebook_shows_the_users_lines(notebook: Notebook, call: str) -> None:
    """IPython prints the cell and the function; the debugger would begin in the function."""
    *_, ran, last = notebook.run(
        f"{LOAD}\nimport sys, gpulab; gpulab.use('T4')\ndef work(): return 1 / 0",
        call,
        "import traceback; print(traceback.extract_tb(sys.last_traceback)[-1].name)",
    )
    assert ran.error == "ZeroDivisionError"
    assert not shows_our_frames(str(ran))
    assert last.out == "work\n"
