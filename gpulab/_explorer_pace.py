"""A picture at a time: whatever was replaced while one was on its way is never drawn."""

from collections.abc import Callable

from gpulab._explorer_kernel import Kernel

# A front end that shows the picture answers sooner; one that is hidden or gone never does.
PATIENCE_S = 0.5


class Pace:
    """Draws when asked, but not before the picture before was seen.

    What to draw is read when it is drawn, so that it is always the last that was asked for.
    Outside a kernel nobody can answer, and then every picture is drawn at once.

    Parameters
    ----------
    draw
        Draws and sends a picture, and returns its number.
    kernel
        Where it waits.

    Attributes
    ----------
    n_dropped
        How many pictures were asked for and never drawn.
    """

    def __init__(self, draw: Callable[[], int], kernel: Kernel) -> None:
        self._draw, self._kernel = draw, kernel
        self._is_asked = False
        self._on_its_way: int | None = None
        self.n_dropped = 0

    def ask(self) -> None:
        """Ask for a picture of what there is now."""
        self.n_dropped += self._is_asked
        self._is_asked = True
        if self._on_its_way is None:
            self._go()

    def seen(self, number: int) -> None:
        """Take note that a front end shows the picture of this number."""
        if self._on_its_way is None or number < self._on_its_way:
            return
        self._on_its_way = None
        if self._is_asked:
            self._go()

    def close(self) -> None:
        """Draw nothing more of what was asked for."""
        self._on_its_way, self._is_asked = None, False

    def _go(self) -> None:
        self._is_asked = False
        number = self._draw()
        if self._kernel.later(PATIENCE_S, lambda: self.seen(number)):
            self._on_its_way = number
