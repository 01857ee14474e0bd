"""A real IPython in its own process: it takes cells as JSON lines, and returns their results."""

import io
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]
LOAD = "%load_ext gpulab"


@dataclass(frozen=True, slots=True)
class Ran:
    """What one cell printed, raised and returned."""

    out: str
    err: str
    error: str | None
    message: str | None
    notes: list[str]
    result: str


class Notebook:
    """The client's side: one IPython for many sessions, which sees no CUDA GPU."""

    def __init__(self, folder: Path, python: Sequence[str] = (sys.executable,)) -> None:
        self.folder = folder
        environment = {
            **os.environ,
            "CUDA_VISIBLE_DEVICES": "",
            "IPYTHONDIR": str(folder / ".ipython"),
            "PYTHONPATH": str(ROOT),
        }
        self.process = subprocess.Popen(
            [*python, "-m", "tests.support.ipython"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def run(self, *cells: str, encoding: str = "utf-8") -> list[Ran]:
        """Run cells in a session without names, GPU or extension, and return what each did."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([encoding, cells]), file=self.process.stdin, flush=True)
        return [Ran(**ran) for ran in json.loads(self.process.stdout.readline())]

    def last(self, *cells: str, encoding: str = "utf-8") -> Ran:
        """Run cells with the extension and a virtual GPU, and return what the last one did."""
        start = f"{LOAD}\nimport gc, torch, gpulab\ngpulab.use('H200');"
        *before, last = self.run(start, *cells, encoding=encoding)
        failed = [ran for ran in before if ran.error is not None]
        assert not failed, failed[0].message
        return last


def shows_our_frames(text: str) -> bool:
    """Return whether a traceback shows files of the magic or of the timing below it."""
    return re.search(r"gpulab[/\\](magic|timing)[/\\]\w+\.py", text) is not None


def main() -> None:
    """Run the cells of each request until the input ends."""
    from IPython import version_info
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    warnings.simplefilter("error")
    answers, sys.stdout = sys.stdout, sys.stderr
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor" if version_info >= (9,) else "NoColor"
    shell = InteractiveShell.instance(config=config)
    for line in sys.stdin:
        encoding, cells = json.loads(line)
        begin_session(shell)
        done = [run_cell(shell, code, encoding) for code in cells]
        print(json.dumps(done), file=answers, flush=True)


def begin_session(shell: Any) -> None:  # noqa: ANN401  # IPython's shell is typed only in parts
    """Forget names, extension and GPU of the previous session."""
    shell.reset(new_session=True)
    shell.ast_transformers.clear()
    shell.extension_manager.unload_extension("gpulab")
    for table in shell.magics_manager.magics.values():
        table.pop("cudatime", None)
    if "gpulab.device._notebook_session" in sys.modules:
        session = sys.modules["gpulab.device._notebook_session"].session
        session.release()
        session.device = None


def run_cell(shell: Any, code: str, encoding: str) -> dict[str, object]:  # noqa: ANN401  # as above
    """Run one cell on a console with this encoding."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        done = shell.run_cell(code, store_history=True)
        out.flush()
        err.flush()
    error = done.error_before_exec or done.error_in_exec
    return {
        "out": out.buffer.getvalue().decode(encoding),
        "err": err.buffer.getvalue().decode(encoding),
        "error": type(error).__name__ if error else None,
        "message": str(error) if error else None,
        "notes": getattr(error, "__notes__", []),
        "result": type(done.result).__name__,
    }


if __name__ == "__main__":
    main()
