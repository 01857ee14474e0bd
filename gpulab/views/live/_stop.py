"""Stop a live figure early: by Ctrl-C, the notebook's interrupt, or a button."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

from gpulab.core.interrupts import exchange_handler, hold, let_go, step
from gpulab.core.shell import jupyter_kernel


class Stop:
    """Records inside a ``with`` block whether a stop was requested, and how.

    Ctrl-C still raises KeyboardInterrupt. It is also recorded here, because :func:`gpulab.measure`
    catches it and returns its samples so far. Without the record only that one measurement would
    end, and the loop around it would go on. ``by`` is ``"interrupt"``, ``"stop"`` (the button), or
    empty.
    """

    def __init__(self) -> None:
        self.by = ""
        self._requested = threading.Event()
        self._before: Any = None

    def ask(self, by: str) -> None:
        """Request a stop; if there are several requests, ``by`` names the first."""
        self.by = self.by or by
        self._requested.set()

    def wait(self, duration_s: float) -> bool:
        """Wait so many real seconds, and return whether a stop was requested."""
        return self._requested.wait(max(0.0, duration_s))

    @step
    def __enter__(self) -> Self:
        # Python allows signal handlers on the main thread only, and runs them there.
        if threading.current_thread() is threading.main_thread():
            hold(self)
            if callable(signal.getsignal(signal.SIGINT)):
                self._before = exchange_handler(signal.SIGINT, self._note_interrupt)
        return self

    @step
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

    def _note_interrupt(self, number: int, frame: FrameType | None) -> None:
        self.ask("interrupt")
        self._before(number, frame)


class StopButton:
    """A button under the figure, shown only if a click arrives while the cell still runs.

    A click is a message to the kernel. It arrives in time if the front end has opened a subshell,
    a second channel for messages of widgets. Without one it would wait until the cell has
    finished, and a button that does nothing is worse than none.
    """

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._widget: Any = None
        self._handle: Any = None
        self._kernel = _kernel_with_subshells()

    def offer(self) -> None:
        """Create the button at the first call, and show it as soon as clicks would arrive."""
        if self._kernel is None:
            return
        if self._widget is None:
            self._widget = _button(lambda _: self._stop.ask("stop"))
        elif self._handle is None and _has_subshell(self._kernel):
            from IPython.display import display

            # ipykernel 7.4 routes a widget's messages to the shell in which it was created: to the
            # running cell and not to the subshell. Without this attribute the front end decides.
            vars(self._widget.comm).pop("_reply_subshell_id", None)

            self._handle = display(self._widget, display_id=True)  # type: ignore[no-untyped-call]  # IPython's gap

    def close(self) -> None:
        """Remove the button, so that a saved notebook has none that does nothing."""
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
    # A private attribute, new in ipykernel 7; older versions have no subshells, so no button.
    return kernel if getattr(kernel, "_supports_kernel_subshells", False) else None


def _has_subshell(kernel: Any) -> bool:  # noqa: ANN401  # as above
    manager = getattr(getattr(kernel, "shell_channel_thread", None), "manager", None)
    return bool(manager is not None and manager.list_subshell())
