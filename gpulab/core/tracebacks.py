"""Tracebacks of a user's error, without the functions of gpulab that called the user's one."""

from types import FrameType, TracebackType

from gpulab.core.errors import GpulabError

__all__ = ["UsersTraceback", "drop_our_frames"]

# gpulab, and what its calls pass through on their way to a function of the user's.
_OURS = frozenset({"gpulab", "asyncio", "contextlib", "tqdm"})


class UsersTraceback:
    """A context for the body of a public function that calls a function of the user's.

    If the user's function raises, the traceback goes from the user's call straight to it. An
    error in gpulab itself keeps all its frames; one that gpulab raises on purpose says everything
    in its message, and has none.
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


def _from_users_frame(error: BaseException) -> TracebackType | None:
    entry = error.__traceback__
    while entry is not None and _is_ours(entry.tb_frame):
        entry = entry.tb_next
    if entry is None and not isinstance(error, GpulabError):
        return error.__traceback__
    return entry


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in _OURS
