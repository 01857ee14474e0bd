"""A second process for the tool that needs CUPTI for itself, because the referee uses it, too.

The referee's process writes the name of a case to the worker's standard input and reads the answer
from its output. Between two answers the worker does not use the GPU.
"""

import json
import queue
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field

from benchmarks.accuracy.cases import find
from benchmarks.accuracy.tools import cupti_tool
from benchmarks.common.command_line import python_command
from benchmarks.common.folders import ROOT
from benchmarks.common.tool import Answer, Tool

_READY, _MARK = "@ready", "@answer "
# An answer takes 2.3 s in the median (docs/accuracy.md); a tool that needs 8 s has failed.
_START_S, _ANSWER_S = 40.0, 8.0
_N_WARM = 3


@dataclass(slots=True)
class Worker:
    """The worker, seen from the referee's process.

    Attributes
    ----------
    tool
        The tool that it runs.
    """

    tool: Tool = field(default_factory=cupti_tool)
    _process: "subprocess.Popen[str]" = field(init=False)
    _lines: "queue.SimpleQueue[str | None]" = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 # it is this program
            python_command("benchmarks.accuracy", "worker"),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def wait_until_ready(self) -> None:
        """Wait until it has loaded everything; loading would disturb the other timings."""
        with suppress(RuntimeError, TimeoutError):  # `ask` raises it again
            self._read_until(_READY, _START_S)

    def ask(self, case: str) -> Answer:
        """Return the tool's answer about a case; an error over there is raised here."""
        if self._process.poll() is not None or self._process.stdin is None:
            raise RuntimeError(f"its process ended with {self._process.returncode}")
        self._process.stdin.write(case + "\n")
        self._process.stdin.flush()
        try:
            return _unpacked(self._read_until(_MARK, _ANSWER_S))
        except TimeoutError:
            self.close()
            raise

    def _read_until(self, mark: str, limit_s: float) -> str:
        """Return what follows the mark on its line."""
        end_s = time.monotonic() + limit_s
        while (left_s := end_s - time.monotonic()) > 0:
            try:
                line = self._lines.get(timeout=left_s)
            except queue.Empty:
                break
            if line is None:
                raise RuntimeError("its process ended")
            if line.startswith(mark):
                return line.removeprefix(mark)
        raise TimeoutError(f"no answer within {limit_s:.0f} s")

    def _listen(self) -> None:
        # On a thread, because reading a line from a pipe takes no timeout.
        for line in self._process.stdout or ():
            self._lines.put(line)
        self._lines.put(None)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def _unpacked(text: str) -> Answer:
    packed = json.loads(text)
    if "error" in packed:
        raise RuntimeError(packed["error"])
    return Answer(**packed)


def serve() -> None:
    """Time each case whose name arrives on standard input, and print the answer."""
    import torch

    tool = cupti_tool()
    # The first use creates the CUDA context, which must not happen while another tool is timed.
    torch.zeros(1, device="cuda")
    print(_READY, flush=True)
    for line in sys.stdin:
        try:
            work = find(line.strip()).build()
            for _ in range(_N_WARM):
                work()
            torch.cuda.synchronize()
            packed: dict[str, object] = asdict(tool.ask(work))
        except Exception as error:  # noqa: BLE001 # the referee's process raises it
            packed = {"error": f"{type(error).__name__}: {error}"[:160]}
        print(_MARK + json.dumps(packed), flush=True)
