"""Replacements for functions of ``os`` that fail as on a full or read-only disk."""

import os
from collections.abc import Callable
from typing import Any


def refusal(number: int) -> Callable[..., Any]:
    """Return a function that raises the ``OSError`` with this number."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


def halting(n_bytes: int, error: BaseException) -> Callable[[int, Any], int]:
    """Return an ``os.write`` that writes ``n_bytes`` and then raises the error."""
    original, taken = os.write, 0

    def write(handle: int, content: Any) -> int:  # noqa: ANN401  # as the original
        nonlocal taken
        if taken >= n_bytes:
            raise error
        n_now = original(handle, content[: n_bytes - taken])
        taken += n_now
        return n_now

    return write
