"""Tracebacks of a user's error, without the functions of gpulab that called the user's one."""

from collections.abc import Callable, Iterator
from functools import wraps
from opcode import opmap
from types import TracebackType
from typing import ParamSpec, TypeVar

__all__ = [
    "UsersTraceback",
    "drop_our_frames",
    "drop_this_frame",
    "end_at_the_call",
    "ends_at_the_call",
]

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")

# gpulab, and what its calls pass through on their way to a function of the user's.
_OURS = frozenset({"gpulab", "asyncio", "click", "contextlib", "importlib", "tqdm"})
_RAISE = opmap["RAISE_VARARGS"]


class UsersTraceback:
    """A context for the body of a public function that calls a function of the user's.

    If the user's function raises, the traceback goes from the user's call straight to it. An
    error in gpulab itself keeps all its frames; one that gpulab raises on purpose, by a ``raise``,
    says everything in its message, and has none.
    """

    # A class and no generator: contextlib restores the traceback at the end. Python adds no entry
    # for the frame that contains the `with`, since it only raises the same error again.
    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        if error is not None:
            drop_our_frames(error)


def drop_our_frames(error: BaseException) -> None:
    """Let the traceback of an error, and of those it comes from, begin with a user's frame."""
    pending: list[BaseException | None] = [error]
    done: set[int] = set()
    while pending:
        each = pending.pop()
        if each is not None and id(each) not in done:
            done.add(id(each))
            each.__traceback__ = _from_users_frame(each)
            pending += [each.__cause__, each.__context__]


def end_at_the_call(error: BaseException) -> None:
    """Drop the traceback of an error that gpulab raises in the place of PyTorch or of CUDA.

    Their checks have no frames of Python. Such an error comes from a ``raise`` of ours; any other
    is a fault of gpulab, or comes from the user's code, and keeps its frames.
    """
    *_, last = _entries(error)
    if _is_refusal(last):
        each: BaseException | None = error
        while each is not None:
            each.__traceback__, each = None, each.__cause__


def drop_this_frame(error: BaseException) -> None:
    """Remove the frame of the function that caught ``error`` from its traceback.

    For a function in the place of one of PyTorch's, which only calls that one.
    """
    error.__traceback__ = next(_entries(error)).tb_next


def ends_at_the_call(function: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
    """Return a function whose errors show no frame of gpulab; see :func:`end_at_the_call`."""

    @wraps(function)
    def called(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Value:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            end_at_the_call(error)
            raise

    return called


def _entries(error: BaseException) -> Iterator[TracebackType]:
    entry = error.__traceback__
    while entry is not None:
        yield entry
        entry = entry.tb_next


def _from_users_frame(error: BaseException) -> TracebackType | None:
    last = None
    for entry in _entries(error):
        if _package_of(entry) not in _OURS:
            return entry
        last = entry
    return None if last is None or _is_refusal(last) else error.__traceback__


def _package_of(entry: TracebackType) -> str:
    return str(entry.tb_frame.f_globals.get("__name__")).partition(".")[0]


def _is_refusal(entry: TracebackType) -> bool:
    """Return whether gpulab itself raises the error there, by a ``raise``."""
    is_raise = entry.tb_frame.f_code.co_code[entry.tb_lasti] == _RAISE
    return is_raise and _package_of(entry) == "gpulab"
