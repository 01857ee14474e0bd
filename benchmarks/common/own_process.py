"""A process of its own that answers questions, and that can be ended if it takes too long."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

_SPAWN = multiprocessing.get_context("spawn")  # a fork could not use CUDA

Answerer = Callable[[Any], Any]


class OwnProcess:
    """Answers questions by a function that it makes at its start.

    Parameters
    ----------
    begin
        Makes the function, in the new process.
    """

    def __init__(self, begin: Callable[[], Answerer]) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_serve, args=(theirs, begin), daemon=True)
        self._process.start()
        theirs.close()  # or the end of the process would not be seen
        self._is_ready = False

    def wait_until_ready(self, limit_s: float | None = None) -> None:
        """Wait until the function is made."""
        if not self._is_ready:
            self._received(limit_s)
            self._is_ready = True

    def ask(self, question: object, limit_s: float | None = None) -> Any:  # noqa: ANN401 # any answer
        """Return the answer to a question; an error over there is raised here."""
        self.wait_until_ready(limit_s)
        try:
            self._pipe.send(question)
        except OSError as error:
            raise RuntimeError("its process ended") from error
        return self._received(limit_s)

    def _received(self, limit_s: float | None) -> Any:  # noqa: ANN401 # as above
        if not self._pipe.poll(limit_s):
            self.close()
            raise TimeoutError(f"no answer within {limit_s:.0f} s")
        try:
            answer = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise RuntimeError("its process ended") from error
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(1)  # it ends by itself unless an answer takes too long
        self._process.kill()
        self._process.join()


def _serve(pipe: Connection, begin: Callable[[], Answerer]) -> None:
    answer = begin()
    pipe.send(None)
    while True:
        try:
            question = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(answer(question))
        except Exception as error:  # noqa: BLE001 # it is raised where the question came from
            pipe.send(RuntimeError(f"{type(error).__name__}: {error}"[:160]))
