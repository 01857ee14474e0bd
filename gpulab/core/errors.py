"""The errors that gpulab raises on purpose: one class for each kind of refusal.

Each also derives from the built-in error that fits, so that ``except ValueError`` catches it, too.
One file, because every other package is above it, and any of them may raise any error.
"""

import difflib
import reprlib
from collections.abc import Iterable

from gpulab.core.foreign_text import visible

# A message should stay readable when somebody passes a whole list or a long text.
_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = _brief.maxlong = 60


def shown(value: object) -> str:
    """Return the ``repr`` of a value, shortened so that it fits into a message."""
    try:
        return _brief.repr(value)
    except Exception:  # noqa: BLE001  # a repr of the user's own may raise anything
        return f"a {type(value).__name__}"


class GpulabError(Exception):
    """Base of every error that the package raises on purpose."""

    def __str__(self) -> str:
        # Messages quote names of files and of functions, which may contain control characters.
        return visible(super().__str__())


class InvalidOptionError(GpulabError, ValueError):
    """An argument or option has a value that gpulab cannot use."""


class NotCallableError(GpulabError, TypeError):
    """The work to time is not a function that runs when it is called."""


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
    """A measurement has no samples, so no statistic can be computed from it."""


class SchemaVersionError(GpulabError, ValueError):
    """Saved data have a schema that this version of gpulab does not read."""


class DamagedDataError(GpulabError, ValueError):
    """A text or a file cannot be read; the message is a clause that says why."""


class StreamLeftOpenError(GpulabError, RuntimeError):
    """The timed work changed the current stream and did not change it back."""


class UnsupportedVersionError(GpulabError, RuntimeError):
    """The installed Python is not supported, or the virtual GPU fails with this torch."""


class NoGpuError(GpulabError, RuntimeError):
    """You asked for a CUDA GPU, and none can be used."""


class VirtualGpuError(GpulabError, RuntimeError):
    """The virtual GPU does not support what the program does."""


class NotModelledError(GpulabError, NotImplementedError):
    """The virtual GPU has no model of this operation."""


class NotModelledNameError(NotModelledError, AttributeError):
    """The virtual GPU has no model of a function that this build of PyTorch does not have.

    It is an AttributeError, too, so that ``hasattr`` says that the name does not exist.
    """


class NoValuesError(VirtualGpuError):
    """A program reads a value that the virtual GPU did not compute, to save time."""


class LessonFolderError(GpulabError, OSError):
    """The folder for the lessons cannot be used."""


class NoJupyterLabError(GpulabError, RuntimeError):
    """JupyterLab is not installed, or ended before it answered."""


class PortInUseError(GpulabError, OSError):
    """Another program listens on the port that was asked for."""


class NotebookError(GpulabError, ValueError):
    """A lesson's source or its notebook breaks a rule, such as the length of a cell."""


class NotCapturableError(GpulabError, RuntimeError):
    """The work does something that a CUDA graph cannot capture, such as a wait."""


class ClocksUnavailableError(GpulabError, RuntimeError):
    """The GPU's clocks cannot be read: NVML is missing, refuses, or does not know the GPU."""


class ClockLockError(GpulabError, RuntimeError):
    """The driver refused to lock the clock or to unlock it."""


class ProfilerBusyError(GpulabError, RuntimeError):
    """Another profiler is collecting the device's records, and only one can at a time."""


class ProfilerUnavailableError(GpulabError, RuntimeError):
    """The driver gives no records of what the device did, so the profiler cannot be used."""


class FlushMemoryError(GpulabError, MemoryError):
    """The GPU has no room for the buffer that empties its cache."""


class NotSavedError(GpulabError, OSError):
    """A file cannot be written.

    Attributes
    ----------
    partial
        The measurement that could not be saved, so that it is not lost; None in all other cases.
    """

    def __init__(self, message: str, cause: OSError | None = None, partial: object = None) -> None:
        super().__init__(message)
        if cause is not None:
            self.errno, self.strerror = cause.errno, cause.strerror
        self.partial = partial

    def __str__(self) -> str:
        return str(self.args[0])  # OSError's own shows the error number and leaves our message out


class NotReadError(GpulabError, OSError):
    """A file is missing, is a folder, or cannot be read."""


class FileInUseError(GpulabError, OSError):
    """Another process writes to the file."""


class RecordingError(GpulabError, ValueError):
    """A file is not a recording or is damaged, or a recording could not be made."""


class NotComparableError(GpulabError, ValueError):
    """Two recordings or two measurements cannot be compared; the message says why."""


class TooSlowError(GpulabError, AssertionError):
    """Work takes longer than a check allows, or it is not shown that it does not."""


class MissingPackageError(GpulabError, ImportError):
    """An optional package is missing; the message has the pip command that installs it."""


class DoesNotFitError(GpulabError, MemoryError):
    """A task needs more memory than its device has free."""


class GradingError(GpulabError, RuntimeError):
    """Labs cannot be graded: the secret is missing or wrong, or nbgrader or the system fails."""


class CourseFolderError(GpulabError, OSError):
    """A course cannot be written into a folder, or a folder contains none."""


class CutOffError(GpulabError, RuntimeError):
    """A program was stopped because it would never end."""
