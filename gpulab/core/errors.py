"""The errors that gpulab raises on purpose: one class for each kind of refusal.

Each also derives from the built-in error that fits, so that ``except ValueError`` catches it, too.
One file, because every other package is above it, and any of them may raise any error.

Examples
--------
>>> import gpulab
>>> try:
...     gpulab.use("H2000")
... except gpulab.core.errors.UnknownNameError as error:
...     print(str(error).partition("?")[0])
unknown GPU 'H2000'; did you mean 'H200'
"""

import difflib
import reprlib
from collections.abc import Iterable

from gpulab.core.foreign_text import visible

# A message should stay readable when somebody passes a whole list or a long text.
_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = _brief.maxlong = 60


def shown(value: object) -> str:
    """Return the ``repr`` of a value, shortened so that it fits into a message.

    >>> shown("x" * 1000)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxx...xxxxxxxxxxxxxxxxxxxxxxxxxxxx'"
    """
    try:
        return _brief.repr(value)
    except Exception:  # noqa: BLE001  # a repr of the user's own may raise anything
        return f"a {type(value).__name__}"


class GpulabError(Exception):
    """Base of every error that the package raises on purpose.

    Examples
    --------
    >>> import gpulab
    >>> try:
    ...     gpulab.recordings.load("h2000")
    ... except GpulabError as error:
    ...     print(type(error).__name__)
    UnknownNameError
    """

    def __str__(self) -> str:
        # Messages quote names of files and of functions, which may contain control characters.
        return visible(super().__str__())


class InvalidOptionError(GpulabError, ValueError):
    """An argument or option has a value that gpulab cannot use.

    Examples
    --------
    >>> import gpulab
    >>> gpulab.measure(lambda: None, n_samples=0)
    Traceback (most recent call last):
        ...
    gpulab.core.errors.InvalidOptionError: n_samples=0; it must be a whole number, at least 1
    """


class NotCallableError(GpulabError, TypeError):
    """The work to time is not a function that runs when it is called.

    Examples
    --------
    >>> import gpulab
    >>> try:
    ...     gpulab.measure(7)
    ... except NotCallableError as error:
    ...     print(str(error).partition(";")[0])
    work is of type int and cannot be called
    """


class UnknownNameError(GpulabError, ValueError):
    """A name is unknown; the message suggests the nearest known one.

    Parameters
    ----------
    kind
        What the name is of, such as ``"GPU"``.
    name
        What was given.
    known
        All valid names.
    listed_by
        A call that lists the names. If it is given, the message shows it in place of the names.

    Examples
    --------
    >>> print(UnknownNameError("fruit", "aple", ["apple", "pear"]))
    unknown fruit 'aple'; did you mean 'apple'? Known: apple, pear
    """

    def __init__(
        self, kind: str, name: object, known: Iterable[str], *, listed_by: str = ""
    ) -> None:
        names = sorted(known)
        near = (
            difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            # difflib raises for anything else, and the user should see our error.
            if isinstance(name, str)
            else []
        )
        hint = f"did you mean {near[0]!r}? " if near else ""
        # The glossary has hundreds of names: a list of them would bury the hint.
        known_names = f"{listed_by} lists all" if listed_by else f"Known: {', '.join(names)}"
        super().__init__(f"unknown {kind} {shown(name)}; {hint}{known_names}")


class EmptyMeasurementError(GpulabError, ValueError):
    """A measurement has no samples, so no statistic can be computed from it.

    Examples
    --------
    >>> from gpulab import stats
    >>> stats.median_interval([])
    Traceback (most recent call last):
        ...
    gpulab.core.errors.EmptyMeasurementError: samples is empty; give at least one sample
    """


class SchemaVersionError(GpulabError, ValueError):
    """Saved data have a schema that this version of gpulab does not read.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from gpulab import recordings
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "from-the-future.jsonl"
    ...     _ = path.write_text(json.dumps({"schema": "gpulab.sweep/99"}))
    ...     try:
    ...         recordings.load(path)
    ...     except SchemaVersionError as error:
    ...         print(str(error).partition("; ")[2])
    read it with a newer gpulab: pip install --upgrade gpulab
    """


class DamagedDataError(GpulabError, ValueError):
    """A text or a file cannot be read; the message is a clause that says why.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gpulab.tracing import read_trace
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "trace.json"
    ...     _ = path.write_text("[")
    ...     try:
    ...         read_trace(path)
    ...     except DamagedDataError as error:
    ...         print("is not a trace" in str(error))
    True
    """


class StreamLeftOpenError(GpulabError, RuntimeError):
    """The timed work changed the current stream and did not change it back.

    Examples
    --------
    >>> import gpulab, torch
    >>> with gpulab.virtual_gpu("H200"):
    ...     try:
    ...         gpulab.measure(lambda: torch.cuda.set_stream(torch.cuda.Stream()))
    ...     except StreamLeftOpenError as error:
    ...         print(str(error).partition(";")[0])
    the work returned with another current stream than it was given
    """


class UnsupportedVersionError(GpulabError, RuntimeError):
    """The installed version of Python or torch is not supported.

    Examples
    --------
    ``except RuntimeError`` catches it, too:

    >>> issubclass(UnsupportedVersionError, RuntimeError)
    True
    """


class NoGpuError(GpulabError, RuntimeError):
    """You asked for a CUDA GPU, and none can be used.

    Examples
    --------
    ``except RuntimeError`` catches it, too:

    >>> issubclass(NoGpuError, RuntimeError)
    True
    """


class VirtualGpuError(GpulabError, RuntimeError):
    """The virtual GPU does not support what the program does.

    Examples
    --------
    >>> import gpulab
    >>> gpu = gpulab.virtual_gpu("H200")
    >>> try:
    ...     gpu.__exit__(None, None, None)
    ... except VirtualGpuError as error:
    ...     print(str(error).partition(",")[0])
    the virtual H200 is not entered
    """


class NotModelledError(GpulabError, NotImplementedError):
    """The virtual GPU has no model of this operation.

    Examples
    --------
    >>> import gpulab, torch
    >>> with gpulab.virtual_gpu("H200"):
    ...     try:
    ...         torch.cuda.memory._dump_snapshot("snapshot.pickle")
    ...     except NotImplementedError as error:
    ...         print(type(error).__name__)
    NotModelledError
    """


class NotModelledNameError(NotModelledError, AttributeError):
    """The virtual GPU has no model of a function that this build of PyTorch does not have.

    It is an AttributeError, too, so that ``hasattr`` says that the name does not exist.

    Examples
    --------
    >>> import gpulab, torch
    >>> with gpulab.virtual_gpu("H200"):
    ...     try:
    ...         torch.cuda.current_blas_handle()
    ...     except NotImplementedError as error:
    ...         print(error)
    the virtual GPU has no model of torch.cuda.current_blas_handle; use a CUDA GPU
    """


class NoValuesError(VirtualGpuError):
    """A program reads a value that the virtual GPU did not compute, to save time.

    Examples
    --------
    >>> import io, gpulab, torch
    >>> with gpulab.virtual_gpu("H200", max_value_elements=10):
    ...     try:
    ...         torch.save(torch.ones(1000, device="cuda"), io.BytesIO())
    ...     except NoValuesError as error:
    ...         print(str(error).partition(":")[0])
    this torch.float32 tensor of shape (1000,) has no values
    """


class LessonFolderError(GpulabError, OSError):
    """The folder for the lessons cannot be used.

    Examples
    --------
    >>> from pathlib import Path
    >>> from gpulab import lessons
    >>> try:
    ...     lessons.copy_lessons(Path(__file__))
    ... except LessonFolderError as error:
    ...     print(str(error).partition("; ")[2])
    name a folder for the lessons: gpulab lab FOLDER
    """


class NoJupyterLabError(GpulabError, RuntimeError):
    """JupyterLab is not installed, or ended before it answered.

    Examples
    --------
    ``except RuntimeError`` catches it, too:

    >>> issubclass(NoJupyterLabError, RuntimeError)
    True
    """


class PortInUseError(GpulabError, OSError):
    """Another program listens on the port that was asked for.

    Examples
    --------
    ``except OSError`` catches it, too:

    >>> issubclass(PortInUseError, OSError)
    True
    """


class NotebookError(GpulabError, ValueError):
    """A lesson's source or its notebook breaks a rule, such as the length of a cell.

    Examples
    --------
    ``except ValueError`` catches it, too:

    >>> issubclass(NotebookError, ValueError)
    True
    """


class NotCapturableError(GpulabError, RuntimeError):
    """The work does something that a CUDA graph cannot capture, such as a wait.

    Examples
    --------
    >>> import gpulab, torch
    >>> with gpulab.virtual_gpu("H200"):
    ...     try:
    ...         gpulab.measure(torch.cuda.synchronize, method="graph")
    ...     except NotCapturableError as error:
    ...         print(str(error).partition(":")[0])
    the work cannot be captured into a CUDA graph
    """


class ClocksUnavailableError(GpulabError, RuntimeError):
    """The GPU's clocks cannot be read: NVML is missing, refuses, or does not know the GPU.

    Examples
    --------
    ``except RuntimeError`` catches it, too:

    >>> issubclass(ClocksUnavailableError, RuntimeError)
    True
    """


class ClockLockError(GpulabError, RuntimeError):
    """The driver refused to lock the clock or to unlock it.

    Examples
    --------
    ``except RuntimeError`` catches it, too:

    >>> issubclass(ClockLockError, RuntimeError)
    True
    """


class ProfilerBusyError(GpulabError, RuntimeError):
    """Another profiler is collecting the device's records, and only one can at a time.

    Examples
    --------
    >>> import gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     try:
    ...         gpulab.timeline(lambda: gpulab.timeline(lambda: None))
    ...     except ProfilerBusyError as error:
    ...         print(str(error).partition(",")[0])
    a timeline is being recorded
    """


class ProfilerUnavailableError(GpulabError, RuntimeError):
    """The driver gives no records of what the device did, so the profiler cannot be used.

    Examples
    --------
    ``except RuntimeError`` catches it, too:

    >>> issubclass(ProfilerUnavailableError, RuntimeError)
    True
    """


class FlushMemoryError(GpulabError, MemoryError):
    """The GPU has no room for the buffer that empties its cache.

    Examples
    --------
    ``except MemoryError`` catches it, too:

    >>> issubclass(FlushMemoryError, MemoryError)
    True
    """


class NotSavedError(GpulabError, OSError):
    """A file cannot be written.

    Attributes
    ----------
    partial
        The measurement that could not be saved, so that it is not lost; None in all other cases.

    Examples
    --------
    >>> from gpulab.core import disk
    >>> try:
    ...     disk.write_whole("no-such-folder/a.txt", b"text")
    ... except OSError as error:
    ...     print(type(error).__name__)
    NotSavedError
    """

    def __init__(self, message: str, cause: OSError | None = None, partial: object = None) -> None:
        super().__init__(message)
        if cause is not None:
            self.errno, self.strerror = cause.errno, cause.strerror
        self.partial = partial

    def __str__(self) -> str:
        return str(self.args[0])  # OSError's own shows the error number and leaves our message out


class NotReadError(GpulabError, OSError):
    """A file is missing, is a folder, or cannot be read.

    Examples
    --------
    >>> from gpulab.tracing import read_trace
    >>> try:
    ...     read_trace("missing.json")
    ... except OSError as error:
    ...     print(type(error).__name__)
    NotReadError
    """


class FileInUseError(GpulabError, OSError):
    """Another process writes to the file.

    Examples
    --------
    >>> import tempfile
    >>> from gpulab.core import disk
    >>> with tempfile.TemporaryDirectory() as folder, disk.growing(f"{folder}/a") as file:
    ...     try:
    ...         disk.growing(file.path).__enter__()
    ...     except FileInUseError as error:
    ...         print("in use" if "is being written" in str(error) else error)
    in use
    """


class RecordingError(GpulabError, ValueError):
    """A file is not a recording or is damaged, or a recording could not be made.

    Examples
    --------
    >>> import gpulab
    >>> try:
    ...     gpulab.recordings.load("missing.jsonl")
    ... except RecordingError as error:
    ...     print(str(error).partition(":")[0])
    missing.jsonl cannot be read
    """


class NotComparableError(GpulabError, ValueError):
    """Two recordings cannot be compared: no task in common, or one is virtual and one is not.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from gpulab import recordings
    >>> measured = recordings.load("h200-sxm-2026-11")
    >>> try:
    ...     recordings.compare(measured, replace(measured, points=()))
    ... except NotComparableError as error:
    ...     print("no task in common" in str(error))
    True
    """


class MissingPackageError(GpulabError, ImportError):
    """An optional package is missing; the message has the pip command that installs it.

    Examples
    --------
    ``except ImportError`` catches it, too:

    >>> issubclass(MissingPackageError, ImportError)
    True
    """


class DoesNotFitError(GpulabError, MemoryError):
    """A task needs more memory than its device has free.

    Examples
    --------
    ``except MemoryError`` catches it, too:

    >>> issubclass(DoesNotFitError, MemoryError)
    True
    """


class GradingError(GpulabError, RuntimeError):
    """Labs cannot be graded: the secret is missing or wrong, or nbgrader or the system fails.

    Examples
    --------
    ``except RuntimeError`` catches it, too:

    >>> issubclass(GradingError, RuntimeError)
    True
    """


class CourseFolderError(GpulabError, OSError):
    """A course cannot be written into a folder, or a folder contains none.

    Examples
    --------
    >>> from pathlib import Path
    >>> from gpulab import course
    >>> try:
    ...     course.report(Path("my-course"))
    ... except CourseFolderError as error:
    ...     print(str(error).partition(";")[0])
    my-course is not a course
    """


class CutOffError(GpulabError, RuntimeError):
    """A program was stopped because it would never end.

    Examples
    --------
    >>> import gpulab, torch
    >>> from gpulab.exercises import lesson_13
    >>> def endless():
    ...     event = torch.cuda.Event()
    ...     while True:
    ...         torch.cuda._sleep(1000)
    ...         event.record()
    ...         event.query()
    >>> with gpulab.virtual_gpu("H200"):
    ...     print(lesson_13.cut_off(endless).partition(",")[0])
    Cut off: the program asked 500 times whether an event is completed
    """
