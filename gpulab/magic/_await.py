"""Run coroutines of a timed cell to their end, although the loop of the notebook already runs."""

import asyncio
from asyncio.tasks import _enter_task, _leave_task
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loop_of_its_own() -> Iterator[asyncio.AbstractEventLoop]:
    """Return a new event loop for a block, in which this thread has left the running one."""
    # A thread has one running loop and one current task. asyncio's page "Extending" gives the
    # functions that change them to authors of other loops.
    outer = asyncio._get_running_loop()  # noqa: SLF001  # as above
    task = None if outer is None else asyncio.current_task(outer)
    if outer is not None and task is not None:
        _leave_task(outer, task)
    asyncio._set_running_loop(None)  # noqa: SLF001  # as above
    loop = asyncio.new_event_loop()
    try:
        yield loop
    finally:
        try:
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()
            asyncio._set_running_loop(outer)  # noqa: SLF001  # as above
            if outer is not None and task is not None:
                _enter_task(outer, task)
