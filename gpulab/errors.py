"""One class per situation in which the package refuses, so that every layer may raise them."""

import difflib
import reprlib
from collections.abc import Iterable

from gpulab.foreign_text import visible

_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = _brief.maxlong = 60


def shown(value: object) -> str:
    """Return a value as a message shows it: as Python writes it, and never a page of it.

    >>> shown("x" * 1000)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxx...xxxxxxxxxxxxxxxxxxxxxxxxxxxx'"
    """
    try:
        return _brief.repr(value)
    except Exception:  # noqa: BLE001  # what cannot even be shown is named by its type
        return f"a {type(value).__name__}"


class GpulabError(Exception):
    """Base of every error that the package raises on purpose."""

    def __str__(self) -> str:
        # A message has names of files and works in it, which come from anywhere.
        return visible(super().__str__())


class InvalidOptionError(GpulabError, ValueError):
    """An option has a value that cannot be used."""


class NotCallableError(GpulabError, TypeError):
    """Something that cannot be called was given as the work to time."""


class UnknownNameError(GpulabError, ValueError):
    """A name is not among the known ones; the message names the nearest."""

    def __init__(
        self, kind: str, name: object, known: Iterable[str], *, listed_by: str = ""
    ) -> None:
        names = sorted(known)
        near = (
            difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            if isinstance(name, str)
            else []
        )
        hint = f"did you mean {near[0]!r}? " if near else ""
        # Hundreds of names would bury the hint; the reader is told how to see them instead.
        known_names = f"{listed_by} lists all" if listed_by else f"Known: {', '.join(names)}"
        super().__init__(f"unknown {kind} {shown(name)}; {hint}{known_names}")


class EmptyMeasurementError(GpulabError, ValueError):
    """A measurement without samples could answer no question."""


class SchemaVersionError(GpulabError, ValueError):
    """Saved data were written in a form that this version does not read."""


class DamagedDataError(GpulabError, ValueError):
    """A text or a file cannot be read; the message is a clause that says why."""


class StreamLeftOpenError(GpulabError, RuntimeError):
    """The timed work returned with another current stream than it was given."""


class UnsupportedVersionError(GpulabError, RuntimeError):
    """The Python or the torch that is installed is outside the supported range."""


class NoGpuError(GpulabError, RuntimeError):
    """A CUDA GPU was asked for by name, and none can be used."""


class VirtualGpuError(GpulabError, RuntimeError):
    """The virtual GPU was used in a way that it cannot serve."""


class NotModelledError(GpulabError, NotImplementedError):
    """The virtual GPU has no model of this operation."""


class NoValuesError(VirtualGpuError):
    """A value was asked for that the virtual GPU did not compute."""


class LessonFolderError(GpulabError, OSError):
    """The folder for the lessons cannot be used."""


class NoJupyterLabError(GpulabError, RuntimeError):
    """JupyterLab is not installed, or ended before it answered."""


class PortInUseError(GpulabError, OSError):
    """Another program listens on the port that was asked for."""


class NotebookError(GpulabError, ValueError):
    """A lesson's source or its built notebook is not as it must be."""


class NotCapturableError(GpulabError, RuntimeError):
    """Work does something that a CUDA graph cannot hold."""


class ClocksUnavailableError(GpulabError, RuntimeError):
    """The clocks were asked for, and NVML is missing, forbidden, or knows no such GPU."""


class ClockLockError(GpulabError, RuntimeError):
    """The driver refused to lock the clock, or to give it free again."""


class ProfilerBusyError(GpulabError, RuntimeError):
    """Records of the device were asked for while another profiler collects them."""


class ProfilerUnavailableError(GpulabError, RuntimeError):
    """The driver gives no records of what the device does."""


class FlushMemoryError(GpulabError, MemoryError):
    """The GPU has no room for the buffer that empties its cache."""


class NotSavedError(GpulabError, OSError):
    """A file cannot be written.

    Attributes
    ----------
    partial
        What was measured before, where a measurement was being saved; else None.
    """

    def __init__(self, message: str, cause: OSError | None = None, partial: object = None) -> None:
        super().__init__(message)
        if cause is not None:
            self.errno, self.strerror = cause.errno, cause.strerror
        self.partial = partial

    def __str__(self) -> str:
        return str(self.args[0])  # OSError's own would show the number and leave the message out


class NotReadError(GpulabError, OSError):
    """A file is missing, is a folder, or cannot be read."""


class FileInUseError(GpulabError, OSError):
    """Another process writes to the file."""


class RecordingError(GpulabError, ValueError):
    """A file is no recording, or is not as it was made; or a recording could not be made."""


class NotComparableError(GpulabError, ValueError):
    """Two recordings answer different questions."""


class MissingPackageError(GpulabError, ImportError):
    """A package is not installed that only one extra of gpulab brings."""


class DoesNotFitError(GpulabError, MemoryError):
    """A task needs more memory than its device has free."""


class GradingError(GpulabError, RuntimeError):
    """Labs cannot be graded: the secret, nbgrader or the system is not as it must be."""


class CourseFolderError(GpulabError, OSError):
    """A course cannot be written into a folder, or a folder contains none."""


class CutOffError(GpulabError, RuntimeError):
    """A program that would never end was cut off."""
