"""Find out whether a program uses the answer of a ``query()``.

An answer that says "done" orders nothing by itself: with another answer the program would run the
same work at the same place. It orders what the program does because of it.
"""

import dis
import sys
from typing import TYPE_CHECKING

from gpulab.happens_before._call_sites import is_inner

if TYPE_CHECKING:
    from types import FrameType

# The functions of PyTorch and of this package between the program and the answer.
_QUERIES = {"query", "call", "counting"}


def is_answer_used() -> bool:
    """Return whether the program does anything with the answer that it is about to get.

    The answer is unused only if the call is a statement of its own, which drops it.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 # inspect.currentframe takes longer
    asked_by = ""
    while frame is not None and is_inner(frame.f_code.co_filename):
        asked_by, frame = frame.f_code.co_name, frame.f_back
    if frame is None or (asked_by and asked_by not in _QUERIES):
        return True  # PyTorch or this package asks, and acts by the answer
    at = frame.f_lasti
    following = (each.opname for each in dis.get_instructions(frame.f_code) if each.offset > at)
    return next(following, "") != "POP_TOP"
