"""How a live picture is asked to stop: Ctrl-C, the notebook's interrupt, or a button."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

from gpulab.interrupts import ending, exchange_handler, hold, let_go, step
from gpulab.widgets import jupyter_kernel


class Stop:
    """Whether somebody has asked to stop, and how, while the block runs.

    Ctrl-C raises KeyboardInterrupt as ever. It is noted besides, because work that keeps what it
    has on Ctrl-C, as :func:`gpulab.measure` does, swallows it, and then only that work would end.

    Attributes
    ----------
    by
        ``"interrupt"``, ``"stop"`` (the button), or nothing.
    """

    def __init__(self) -> None:
        self.by = ""
        self._asked = threading.Event()
        self._before: Any = None

    def ask(self, by: str) -> None:
        """Ask to stop; the first to ask is the one that is named."""
        self.by = self.by or by
        self._asked.set()

    def wait(self, duration_s: float) -> bool:
        """Wait in real time, whatever clock is in force, and tell whether it was asked for."""
        return self._asked.wait(max(0.0, duration_s))

    @step
    def __enter__(self) -> Self:
        # Python lets only the main thread listen; elsewhere no Ctrl-C arrives either.
        if threading.current_thread() is threading.main_thread():
            hold(self)
            if callable(signal.getsignal(signal.SIGINT)):
                self._before = exchange_handler(signal.SIGINT, self._hear)
        return self

    @ending
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._before is not None:
            exchange_handler(signal.SIGINT, self._before)
            self._before = None
        let_go(self)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.ask("interrupt")
        self._before(number, frame)


class StopButton:
    """A button under the picture, shown only where a click arrives while the cell still runs.

    A click is a message to the kernel. It is heard in time if the front end has opened a channel
    for messages of widgets, a subshell; otherwise it would wait until the cell is done, and a
    button that does nothing is worse than none.
    """

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._widget: Any = None
        self._handle: Any = None
        self._kernel = _kernel_with_subshells()

    def offer(self) -> None:
        """Make the button at the first call, and show it as soon as a click would arrive."""
        if self._kernel is None:
            return
        if self._widget is None:
            self._widget = _button(lambda _: self._stop.ask("stop"))
        elif self._handle is None and _hears(self._kernel):
            from IPython.display import display

            # ipykernel 7.4 sends a widget's messages to where it was made: to the cell that runs,
            # and so past the subshell. Without this note it leaves them to the front end.
            vars(self._widget.comm).pop("_reply_subshell_id", None)

            self._handle = display(self._widget, display_id=True)  # type: ignore[no-untyped-call]  # IPython's gap

    def close(self) -> None:
        """Take the button away, so that a saved notebook has no dead one."""
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)
            self._handle = None
        if self._widget is not None:
            self._widget.close()
            self._widget = None
        self._kernel = None


def _button(clicked: Any) -> Any:  # noqa: ANN401  # ipywidgets has no types
    from ipywidgets import Button  # type: ignore[import-untyped]  # it ships no types

    button = Button(description="Stop", icon="stop", tooltip="Stop, and keep what there is")
    button.on_click(clicked)
    return button


def _kernel_with_subshells() -> Any:  # noqa: ANN401  # ipykernel's kernel, or None
    kernel = jupyter_kernel()
    # Private in ipykernel, and new in its version 7; without it there is no button.
    return kernel if getattr(kernel, "_supports_kernel_subshells", False) else None


def _hears(kernel: Any) -> bool:  # noqa: ANN401  # as above
    manager = getattr(getattr(kernel, "shell_channel_thread", None), "manager", None)
    return bool(manager is not None and manager.list_subshell())
