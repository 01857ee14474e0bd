"""The magic itself: it parses the line, compiles the cell once, calls ``measure`` and prints."""

import io
import sys
import tokenize
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from IPython.core.error import UsageError
from IPython.core.magic import (
    Magics,
    line_cell_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
)
from IPython.display import display
from IPython.testing.skipdoctest import skip_doctest

from gpulab.core.errors import NoGpuError
from gpulab.core.foreign_text import visible
from gpulab.core.interrupts import ExitStack, contextmanager
from gpulab.core.markup import clean
from gpulab.core.units import ascii_units
from gpulab.magic._await import loop_of_its_own
from gpulab.magic._cell import Shell, TimedCode, parse_cell, run_once
from gpulab.magic._completion import start_completing, stop_completing
from gpulab.magic._isolation import explain
from gpulab.magic._options import CellOptions, parse_options
from gpulab.magic._run import figures, seed, timed_result

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionResult

    from gpulab.device import Device


_NAME = "cudatime"
# JupyterLab breaks the lines of a printed text anywhere, and those of this one between words.
_LINES = "font-family:var(--jp-code-font-family,monospace);white-space:pre-wrap"
_INVISIBLE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}


@magics_class
class CudaTimeMagics(Magics):
    """The magics ``%cudatime`` and ``%%cudatime`` of one shell."""

    def __init__(self, shell: Shell) -> None:
        super().__init__(shell)
        self._shell = shell
        self._introduced = ""
        self._is_first_cell = True
        self._last_error = _last_error()

    # Without no_var_expand, IPython would replace {x} and $x in the user's code. With
    # needs_local_scope, a line inside a function can use the function's local variables.
    @skip_doctest
    @no_var_expand
    @line_cell_magic
    @needs_local_scope
    def cudatime(
        self, line: str, cell: str | None = None, local_ns: dict[str, object] | None = None
    ) -> object:
        """Time GPU work until the median is precise enough, and print it with its interval.

        One line::

            %cudatime [options] statement

        A cell; code on the magic's line is setup, which runs once and is not timed::

            %%cudatime [options] [setup]
            statements

        Example::

            In [1]: %load_ext gpulab
            In [2]: import torch
            In [3]: %%cudatime a = torch.randn(2048, 2048, device="cuda")
               ...: a @ a

        These options mean the same as in ``%timeit``:

        -n N    calls in each sample (default 1)
        -r R    samples (default: as many as the precision needs)
        -p P    significant digits of the printed times (default 3)
        -q      print nothing
        -o      return the Measurement
        -v NAME store the Measurement in a variable

        More options:

        --method NAME     naive, synchronized, events, saturated, calibrated (default),
                          graph, profiler or profiler-span
        --hot             the cache contains what the previous call left
        --cold            the cache is flushed before each call (default of calibrated)
        --flush NAME      how to make the cache cold: read (default) or write
        --floor NAME      which floor calibrated subtracts: work (default), found from the
                          driver's records of this work, or device, without a profiler
        --ladder          time by every method, next to the driver's own records
        --timeline        show what host and GPU did, call by call
        --vs NAME         compare with the Measurement in this variable, or, in turns,
                          with the function in it
        --warmup N        calls before the first sample (default: until steady)
        --precision X     stop when the 95 % interval of the median is within this
                          share of it (default 0.01)
        --max-time S      stop sampling after this many seconds (default 1)
        --flops N         floating-point operations of a call, such as 2*n**3 with your n,
                          or auto for PyTorch's count: the result has FLOP/s and its share
                          of the data sheet's peak
        --bytes N         bytes that a call moves: the same for bytes per second
        --each "CODE"     runs before each call and is not timed, such as "w.grad = None"
                          for a backward pass
        --seed N          torch.manual_seed(N) before the setup
        --stream NAME     run on the stream in this variable
        --save NAME       the same as -v
        --run             execute the cell once more, as an ordinary one: its names are
                          stored and its last expression is shown; a virtual GPU then
                          stays in use in the next cells
        --backend NAME    auto (default), cuda (a real GPU or an error) or virtual
        --                the end of the options: code follows

        A cell that awaits runs in an event loop of its own, set-up included; what the
        loop does is part of the host's time.

        Names that the cell assigns are local to it, as in ``%timeit``. Methods time
        different things, and not every method times the GPU alone; the notes below the
        line say what to doubt. Without a CUDA GPU, a virtual GPU is timed, and the line
        says so. The numbers are those of :func:`gpulab.measure`.
        """
        options, code = parse_options(line, is_cell=cell is not None)
        if not code and cell is None:
            raise UsageError("nothing to time; write %cudatime STATEMENT, and see %cudatime?")
        setup, body = ("", code) if cell is None else (code, cell)
        try:
            timed = parse_cell(
                self._shell, setup, body, is_cell=cell is not None, line=line, each=options.each
            )
        except SyntaxError as error:
            error.__traceback__ = None  # it would show lines of gpulab, not the user's
            raise
        scope = self._shell.user_ns if local_ns is None else local_ns
        try:
            return self._time(timed, options, scope)
        except BaseException as error:
            explain(error, timed.filename)
            raise

    def _time(self, timed: TimedCode, options: CellOptions, scope: dict[str, object]) -> object:
        with _gpu(options) as gpu, loop_of_its_own() as loop:
            result, text = timed_result(self._shell, timed, options, scope, loop)
            if options.save_as is not None:
                self._shell.user_ns[options.save_as] = result
            if not options.quiet:
                self._introduce(gpu)
                self._print(text)
                for figure in figures(result):
                    display(figure)  # type: ignore[no-untyped-call]  # IPython's gap
            if options.runs_after:
                seed(options.seed)
                value = run_once(self._shell, timed, scope, loop)
                return None if _is_silenced(timed.source) else value
        return result if options.returns_result else None

    def before_code(self) -> None:
        """Remember the last traceback, so that a new one can be told from it."""
        self._last_error = _last_error()

    def after_code(self) -> None:
        """Say how to get a missing GPU, below a traceback of a cell, a script or ``%run``."""
        error = _last_error()
        if error is self._last_error:
            return
        self._last_error = error
        from gpulab import device

        text = device.hint(error)
        if text:
            self._is_first_cell = False  # the hint has the cure, too
            self._print(text)

    def after_cell(self, _: "ExecutionResult") -> None:
        """Say after the first cell which GPU is in use."""
        # At the end of the cell, because it may choose a GPU below %load_ext.
        if not self._is_first_cell:
            return
        self._is_first_cell = False
        from gpulab import device

        text = device.introduction()
        if text:
            self._print(text)

    def _print(self, text: str) -> None:
        text = visible(text)
        if hasattr(self._shell, "kernel"):
            page = f'<div style="{_LINES}">{clean(text)}</div>'
            display({"text/plain": text, "text/html": page}, raw=True)  # type: ignore[no-untyped-call]  # IPython's gap
        else:
            print(ascii_units(text, sys.stdout.encoding))  # noqa: T201  # the magic's one output

    def hooks(self) -> Iterator[tuple[str, Callable[..., None]]]:
        """Yield what the shell calls: IPython runs the cells of a script without the last one."""
        yield "pre_execute", self.before_code
        yield "post_execute", self.after_code
        yield "post_run_cell", self.after_cell

    def _introduce(self, gpu: "Device") -> None:
        """Print why the GPU is not a real one, once and after each change."""
        text = f"no CUDA GPU in use: {gpu}"
        if gpu.virtual is not None and text != self._introduced:
            self._print(text)
            self._introduced = text


def load_ipython_extension(shell: Shell) -> None:
    """Register the magics in a shell; ``%load_ext gpulab`` calls this.

    At the end of its cell, one line says which GPU is in use, unless the cell has chosen one.

    Raises
    ------
    UsageError
        If another package has already registered the name.

    Examples
    --------
    In a cell of a notebook::

        %load_ext gpulab
        %cudatime a @ b

    In a program:

    >>> from IPython.core.interactiveshell import InteractiveShell
    >>> shell = InteractiveShell()
    >>> load_ipython_extension(shell)
    >>> "cudatime" in shell.magics_manager.magics["cell"]
    True
    """
    # There is one table for line magics and one for cell magics; the name may be taken in either.
    for table in shell.magics_manager.magics.values():
        owner = table.get(_NAME)
        if owner is not None and not _is_ours(owner):
            raise UsageError(
                f"the magic {_NAME} already belongs to {_describe_owner(owner)}; unload that "
                "first (%unload_ext), or restart the kernel, then %load_ext gpulab"
            )
    _stop_listening(shell)
    magics = CudaTimeMagics(shell)
    shell.register_magics(magics)
    start_completing(shell)
    for event, hook in magics.hooks():
        shell.events.register(event, hook)


def unload_ipython_extension(shell: Shell) -> None:
    """Remove gpulab's magics from a shell; ``%unload_ext gpulab`` calls this.

    A magic of the same name from another package stays.

    Examples
    --------
    In a cell of a notebook::

        %unload_ext gpulab

    In a program:

    >>> from IPython.core.interactiveshell import InteractiveShell
    >>> shell = InteractiveShell()
    >>> load_ipython_extension(shell)
    >>> unload_ipython_extension(shell)
    >>> "cudatime" in shell.magics_manager.magics["cell"]
    False
    """
    for table in shell.magics_manager.magics.values():
        if _is_ours(table.get(_NAME)):
            del table[_NAME]
    _stop_listening(shell)


def _stop_listening(shell: Shell) -> None:
    magics = shell.magics_manager.registry.pop(CudaTimeMagics.__name__, None)
    if magics is not None:
        for event, hook in magics.hooks():
            shell.events.unregister(event, hook)
    stop_completing(shell)


def _is_ours(magic: object) -> bool:
    return isinstance(getattr(magic, "__self__", None), CudaTimeMagics)


def _describe_owner(magic: Callable[..., object]) -> str:
    owner = getattr(magic, "__self__", None)
    home = magic if owner is None else type(owner)
    return f"{home.__module__}.{home.__qualname__}"


@contextmanager
def _gpu(options: CellOptions) -> Iterator["Device"]:
    """Use the GPU of the option ``--backend`` inside the block, and leave it at the end."""
    from gpulab import device

    with ExitStack() as stack:
        in_use = device.current()
        if options.backend == "cuda" and in_use.virtual is not None:
            raise NoGpuError(
                f"--backend cuda, but the GPU in use is {in_use}; "
                "leave --backend out, or choose the real one with gpulab.use('cuda')"
            )
        if options.backend == "virtual" and in_use.virtual is None:
            from gpulab.virtual import virtual_gpu

            stack.enter_context(virtual_gpu(device.STAND_IN))
        elif options.runs_after and in_use.virtual is not None and not in_use.virtual.entered:
            device.use()  # the names that --run keeps need their GPU in the cells that follow
        yield stack.enter_context(device.active())


def _is_silenced(source: str) -> bool:
    """Return whether code ends in a semicolon, as IPython would say; version 7 does not tell."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    *_, last = (token.string for token in tokens if token.type not in _INVISIBLE)
    return last == ";"


def _last_error() -> BaseException | None:
    """Return the error whose traceback was shown last; IPython and Python keep it here."""
    return getattr(sys, "last_value", None)
