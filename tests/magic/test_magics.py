"""``%cudatime`` in a real IPython: its registration, its options and its output."""

import re
from pathlib import Path

import pytest

from benchmarks.common.notebooks import client_of
from gpulab.magic._options import _OPTIONS
from gpulab.timing import METHODS
from tests.support.ipython import LOAD, ROOT, Notebook, shows_our_frames

pytestmark = pytest.mark.slow

FOREIGN = (
    "from IPython.core.magic import Magics, line_magic, magics_class\n"
    "@magics_class\n"
    "class Foreign(Magics):\n"
    "    @line_magic\n"
    "    def cudatime(self, line):\n"
    "        print('foreign')\n"
    "get_ipython().register_magics(Foreign)"
)
LINE = re.compile(
    r"[\d.]+ [mµn]?s per call "
    r"\(median of \d+, 95 % interval within the last digit; "
    r"calibrated, cold cache, floor 2.60 µs subtracted; "
    r"virtual NVIDIA H200 at 1980 MHz\)"
)


def test_loading_is_light_and_importing_registers_nothing(tmp_path: Path) -> None:
    """``import gpulab`` registers no magic; ``%load_ext`` does, without importing torch."""
    with Notebook(tmp_path) as fresh:
        imported, loaded = fresh.run(
            "import gpulab\n%cudatime", f"{LOAD}\nimport sys; print('torch' in sys.modules)"
        )
    assert imported.message == "Line magic function `%cudatime` not found."
    assert loaded.error is None
    assert loaded.out.startswith("False\n")


def test_the_first_cell_says_which_gpu_is_in_use(notebook: Notebook) -> None:
    """The cell of %load_ext ends with one line that has the cure, and the next cell does not."""
    loaded, following = notebook.run(LOAD, "1;")
    reason, _, rest = loaded.out.partition(". ")
    assert reason.startswith("no CUDA GPU: torch ")
    assert rest == (
        '%cudatime times the virtual NVIDIA H200; plain cells with device="cuda" need '
        'gpulab.use("auto")\n'
    )
    assert following.out == ""


HINT = (
    'hint: no CUDA GPU can be used; after gpulab.use("auto") the same code runs on the virtual GPU'
)


@pytest.mark.parametrize("before", ["import torch", "import torch\n%cudatime -q 1"])
@pytest.mark.parametrize("cell", ["torch.ones(3, device='cuda')", "torch.ones(3).cuda()"])
def test_errors_of_a_missing_gpu_get_a_hint(notebook: Notebook, cell: str, before: str) -> None:
    """PyTorch's errors for a missing GPU, before and after a virtual one, name the cure."""
    _, _, failed, _, again = notebook.run(
        LOAD, before, cell, "import gpulab; gpulab.use('auto');", cell
    )
    assert failed.error in {"AssertionError", "NotImplementedError", "RuntimeError"}
    assert failed.out.splitlines()[-1] == HINT
    assert again.error is None


@pytest.mark.parametrize(
    "cell", ["%run own.py", "%run own.ipy", "get_ipython().safe_execfile_ipy('own.ipy');"]
)
def test_an_error_in_a_script_gets_the_hint(notebook: Notebook, cell: str) -> None:
    """``%run`` and ``ipython FILE`` show the traceback; the hint comes once below it."""
    for name in ("own.py", "own.ipy"):
        (notebook.folder / name).write_text("import torch\ntorch.ones(3, device='cuda')\n")
    _, failed, following = notebook.run(LOAD, cell, "1;")
    assert failed.out.split("\n").count(HINT) == 1
    assert following.out == ""


@pytest.mark.parametrize(
    "cell",
    [
        "assert 0, 'CUDA'",
        "raise RuntimeError('Torch not compiled with CUDA enabled')",
        "raise NotImplementedError('not yet')",
        "gpulab.use('H200'); raise AssertionError('Torch not compiled with CUDA enabled')",
    ],
)
def test_other_errors_get_no_hint(notebook: Notebook, cell: str) -> None:
    """An error of the user's own, or with a GPU in each cell, stays as it is."""
    *_, failed = notebook.run(LOAD, "import gpulab", cell)
    assert failed.error is not None
    assert "hint:" not in failed.out


@pytest.mark.parametrize("cell", ["%unload_ext gpulab", "%reload_ext gpulab"])
def test_unloading_removes_the_hook(notebook: Notebook, cell: str) -> None:
    """No hook is left after unloading, and one after reloading."""
    *_, ran = notebook.run(
        LOAD,
        cell,
        "from gpulab.magic._magics import CudaTimeMagics\n"
        "hooks = sum(get_ipython().events.callbacks.values(), [])\n"
        "print(sum(hook.__qualname__.startswith('CudaTimeMagics') for hook in hooks))",
    )
    assert ran.out == f"{3 * ('reload' in cell)}\n"


def test_a_magic_of_another_package_is_not_replaced(notebook: Notebook) -> None:
    """If another package has %cudatime, loading fails, and the message names its owner."""
    *_, loaded, used = notebook.run(FOREIGN, LOAD, "%cudatime")
    assert loaded.message == (
        "the magic cudatime already belongs to __main__.Foreign; unload that first "
        "(%unload_ext), or restart the kernel, then %load_ext gpulab"
    )
    assert loaded.error == "UsageError"
    assert used.out == "foreign\n"


def test_unloading_removes_the_magics(notebook: Notebook) -> None:
    """After %unload_ext the magics and their object are gone, and can be loaded again."""
    *_, line, cell, registry, again = notebook.run(
        LOAD,
        "%unload_ext gpulab",
        "%cudatime 1",
        "%%cudatime\n1",
        "print('CudaTimeMagics' in get_ipython().magics_manager.registry)",
        f"{LOAD}\n%cudatime -q 1",
    )
    assert registry.out == "False\n"
    assert line.message == "Line magic function `%cudatime` not found."
    assert str(cell.message).startswith("Cell magic `%%cudatime` not found")
    assert again.error is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "nothing to time; write %cudatime STATEMENT, and see %cudatime?"),
        ("-q", "nothing to time; write %cudatime STATEMENT, and see %cudatime?"),
        (
            "--method event 1",
            (
                "--method event: unknown timing method 'event'; did you mean 'events'? "
                f"Known: {', '.join(sorted(METHODS))}"
            ),
        ),
        (
            "--stream s 1",
            "--stream s; there is no such variable; make it first: s = torch.cuda.Stream()",
        ),
        (
            "--stream gc 1",
            "--stream gc; it is of type module; make it first: gc = torch.cuda.Stream()",
        ),
    ],
)
def test_an_unusable_request_is_refused(notebook: Notebook, line: str, message: str) -> None:
    """A request that only the session can check gets a message like that of a wrong option."""
    ran = notebook.last(f"%cudatime {line}")
    assert (ran.error, ran.message) == ("UsageError", message)


def test_the_help_shows_options_and_an_example(notebook: Notebook) -> None:
    """``%cudatime?`` lists every option and has an example."""
    text = notebook.last("%cudatime?").out
    assert "In [3]: %%cudatime a = torch.randn(2048, 2048" in text
    assert [name for name in _OPTIONS if f"\n{name} " not in text] == []


def test_options_of_timeit_mean_the_same(notebook: Notebook) -> None:
    """-n sets calls in a sample, -r samples; -o returns, -v stores, -q prints nothing."""
    ran = notebook.last(
        "calls = []",
        "m = %cudatime -o -q -v v -n 3 -r 4 --warmup 0 calls.append(1)",
        "print(m is v, m.inner_loops, m.n_samples, m.n_warmup, len(calls))",
    )
    assert ran.out == "True 3 4 0 12\n"
    assert notebook.last("%cudatime -q 1").out == ""
    assert notebook.last("%cudatime 1").result == "NoneType"


def test_digits_are_those_asked_for(notebook: Notebook) -> None:
    """-p changes the digits of the printed times and nothing else."""
    ran = notebook.last("%cudatime -p 5 -v m torch.cuda._sleep(1000000)")
    three = notebook.last("%cudatime -v m torch.cuda._sleep(1000000)")
    assert re.search(r"^\d{3}\.\d\d µs per call \(median of ", ran.out, re.MULTILINE)
    assert re.sub(r"\d{3}\.\d\d", lambda m: f"{float(m[0]):.0f}", ran.out) == three.out


@pytest.mark.parametrize(
    ("options", "expression", "expected"),
    [
        ("--method naive", "m.method", "naive"),
        ("--warmup 7", "m.n_warmup", "7"),
        ("--max-time 0.01 --precision 1e-9", "m.stopped_by", "max_time"),
        ("--precision 0.5", "m.stopped_by", "precision"),
        ("--save kept", "m is kept", "True"),
        ("--backend virtual", "m.source", "virtual"),
    ],
)
def test_long_options_reach_the_measurement(
    notebook: Notebook, options: str, expression: str, expected: str
) -> None:
    """Each long option has its effect on the measurement."""
    work = "torch.cuda._sleep(100000 + 1000 * next(count))"
    ran = notebook.last(
        "import itertools; count = itertools.cycle(range(7))",
        f"m = %cudatime -o -q {options} {work}",
        f"print({expression})",
    )
    assert ran.out == f"{expected}\n"


def test_a_seed_makes_the_inputs_repeat(notebook: Notebook) -> None:
    """--seed seeds torch before the setup, and again before the extra run."""
    ran = notebook.last(
        "seen = []",
        "%%cudatime -q -r 1 --warmup 0 --seed 3 --run x = torch.rand(1).item()\nseen.append(x)",
        "torch.manual_seed(3)\nprint(seen == [torch.rand(1).item()] * 2)",
    )
    assert ran.out == "True\n"


def test_the_stream_of_the_user_is_current(notebook: Notebook) -> None:
    """Setup and body run on the stream of --stream, which is not current afterwards."""
    ran = notebook.last(
        "s = torch.cuda.Stream(); seen = []; before = torch.cuda.Event()",
        "%%cudatime -q -r 1 --warmup 0 --stream s seen.append(torch.cuda.current_stream() == s)\n"
        "seen.append(torch.cuda.current_stream() == s)",
        "print(seen, torch.cuda.current_stream() == s)",
    )
    assert ran.out == "[True, True] False\n"


def test_a_real_gpu_can_be_required(notebook: Notebook) -> None:
    """--backend cuda is an error if the GPU in use is virtual."""
    ran = notebook.last("%cudatime --backend cuda 1")
    assert ran.error == "NoGpuError"
    assert ran.message == (
        "--backend cuda, but the GPU in use is NVIDIA H200, virtual: it was asked for by name, "
        "so nothing here is measured on hardware; leave --backend out, or choose the real one "
        "with gpulab.use('cuda')"
    )
    assert not shows_our_frames(ran.out)


def test_a_virtual_gpu_can_be_chosen_for_one_cell(notebook: Notebook) -> None:
    """--backend virtual replaces a real GPU by a virtual one, for this cell only."""
    pretend = (
        "from gpulab.device import Device, _notebook_session\n"
        "_notebook_session.session.release()\n"
        "_notebook_session.session.device = Device('NVIDIA REAL', 'measured', 'pretended')"
    )
    *_, ran, after = notebook.run(
        LOAD,
        "import torch, gpulab",
        pretend,
        "%cudatime --backend virtual torch.ones(3, device='cuda')",
        "print(gpulab.device.current(), torch.cuda.is_available())",
    )
    assert "virtual NVIDIA H200 at 1980 MHz)" in ran.out
    assert after.out == "NVIDIA REAL, real: pretended False\n"


def test_run_executes_the_cell_as_an_ordinary_one(notebook: Notebook) -> None:
    """--run shows the last expression, and names of setup and body stay in the notebook."""
    *_, shown, kept = notebook.run(
        f"{LOAD}\nimport torch",
        "%%cudatime -q -r 1 --run a = torch.ones(2, device='cuda')\nb = a + 1\nb",
        "print(a.sum().item(), b.sum().item())",
    )
    assert shown.out.startswith("Out[2]: tensor([2., 2.], device='cuda:0')")
    assert kept.out == "2.0 4.0\n"


@pytest.mark.parametrize("body", ["3;", "3; # silent", "x = 3", "!true\n3;"])
def test_run_respects_a_semicolon(notebook: Notebook, body: str) -> None:
    """With --run, a semicolon at the end or a statement shows nothing."""
    ran = notebook.last(f"%%cudatime -q -r 1 --warmup 0 --run\n{body}")
    assert (ran.out, ran.error) == ("", None)


def test_a_console_without_the_micro_sign_gets_ascii(notebook: Notebook) -> None:
    """If stdout cannot encode µ, the line has u instead."""
    ran = notebook.last("%cudatime torch.cuda._sleep(100000)", encoding="ascii")
    assert re.search(r"^[\d.]+ us per call", ran.out, re.MULTILINE)


def test_output_is_one_line(notebook: Notebook) -> None:
    """The output without findings is one line, the text of the measurement."""
    ran = notebook.last(
        "%cudatime -q -r 1 1\n%cudatime 1;",
        "%cudatime -v m torch.cuda._sleep(1000000)",
        "%cudatime -v m torch.cuda._sleep(1000000)\nprint(m)",
    )
    line, same = ran.out.splitlines()
    assert line == same
    assert LINE.fullmatch(line)


def test_magic_shows_no_bar(notebook: Notebook) -> None:
    """The magic measures without a progress bar."""
    ran = notebook.last(
        "from gpulab import timing as measuring\n"
        "real, given = measuring.measure, {}\n"
        "measuring.measure = lambda work, **given_: given.update(given_) or real(work, **given_)",
        "%cudatime -q 1",
        "measuring.measure = real\nprint(given['progress'])",
    )
    assert ran.out == "False\n"


def test_the_virtual_gpu_is_explained_once_in_a_session(notebook: Notebook) -> None:
    """Only the first output says why no CUDA GPU is used, and -q prints nothing."""
    quiet, first, second, reason = notebook.run(
        f"{LOAD}\n%cudatime -q 1",
        "%cudatime 1",
        "%cudatime 1",
        "from gpulab import device; print(device.current())",
    )
    assert quiet.out == ""
    assert first.out.splitlines()[0] == f"no CUDA GPU in use: {reason.out}".rstrip()
    assert first.out.splitlines()[1:] == second.out.splitlines()


@pytest.mark.parametrize("method", ["naive", "synchronized", "profiler"])
def test_numbers_are_those_of_the_plain_function(notebook: Notebook, method: str) -> None:
    """The samples of the magic and of ``gpulab.measure`` agree to the nanosecond."""
    ran = notebook.last(
        "def start():\n    gpulab.use('H200')\n    return torch.ones(512, 512, device='cuda')",
        f"a = start()\nmagic = %cudatime -o -q --method {method} a @ a",
        "a = start()\ntorch.cuda.synchronize()\n"
        "def work():\n    a @ a\n"
        f"plain = gpulab.measure(work, method={method!r}, progress=False)",
        "ns = [[round(s * 1e9) for s in m.samples_s] for m in (magic, plain)]\n"
        "print(ns[0] == ns[1], magic.findings == plain.findings)",
    )
    assert ran.out == "True True\n"


def test_ladder_shows_every_rung(notebook: Notebook) -> None:
    """--ladder prints a table with a row for each rung, and -o returns the ladder."""
    ran = notebook.last(
        "a = torch.ones(64, 64, device='cuda')", "%cudatime -o --ladder --max-time 0.1 a + a"
    )
    lines = ran.out.splitlines()
    head = next(index for index, line in enumerate(lines) if line.startswith("rung "))
    assert lines[head + 1].startswith("naive ")
    assert lines[head + 7].startswith("calibrated ")
    assert ran.result == "Ladder"


def test_cell_is_compared_with_a_measurement(notebook: Notebook) -> None:
    """--vs compares with a stored measurement, and says that it was taken at another time."""
    ran = notebook.last(
        "%cudatime -q --save base torch.cuda._sleep(100_000)",
        "%cudatime --vs base torch.cuda._sleep(200_000)",
    )
    assert "the cell takes longer: the cell / base = 2.0" in ran.out
    assert "], taken at different times" in ran.out


def test_cell_is_compared_in_turns_with_a_function(notebook: Notebook) -> None:
    """--vs also compares with a function without arguments."""
    ran = notebook.last(
        "def base():\n    torch.cuda._sleep(100_000)",
        "%cudatime -o --vs base torch.cuda._sleep(200_000)",
    )
    assert "the cell takes longer: the cell / base = 2.00" in ran.out
    assert ran.result == "Comparison"


def test_cache_and_flush_reach_the_measurement(notebook: Notebook) -> None:
    """The output names the cache state, and a flush that writes gets a note."""
    ran = notebook.last(
        "a = torch.ones(64, 64, device='cuda')",
        "%cudatime --hot a + a\n%cudatime --cold --flush write a + a",
    )
    assert "calibrated, hot cache" in ran.out
    assert "calibrated, cold cache" in ran.out
    assert "note: the flush left up to half of the cache full of zeros" in ran.out


def test_a_failing_body_fails_the_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm_kernel: Path
) -> None:
    """A run by nbclient stops at the failing cell; those before it only showed text.

    In a notebook its lines are HTML, too, because a page breaks printed lines inside of words.
    """
    from html import unescape

    import nbformat
    from nbclient.exceptions import CellExecutionError

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("JUPYTER_PATH", str(warm_kernel))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    folder = tmp_path / "work"
    folder.mkdir()
    sources = [LOAD, "%cudatime 1", "%%cudatime x = 0\n1 / x", "print('not reached')"]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    book = nbformat.v4.new_notebook(cells=cells)
    with pytest.raises(CellExecutionError) as error:
        client_of(book, folder).execute()
    assert error.value.ename == "ZeroDivisionError"
    shown = [output.data for cell in book.cells[:2] for output in cell.outputs]
    assert all(each["text/plain"] in unescape(each["text/html"]) for each in shown)
    assert book.cells[3].outputs == []
    assert list(folder.iterdir()) == []


def test_the_subtracted_floor_can_be_chosen(notebook: Notebook) -> None:
    """--floor chooses the floor; the default is that of the work."""
    ran = notebook.last(
        "from unittest.mock import patch\nfrom gpulab.timing import _run",
        "with patch.object(_run._work_floor, 'can_record', lambda: True):\n"
        "    own = %cudatime -o -q torch.cuda._sleep(40_000)\n"
        "    usual = %cudatime -o -q --floor device torch.cuda._sleep(40_000)\n"
        "print(own.floor_method, usual.floor_method)",
    )
    assert ran.out == "work records\n"
