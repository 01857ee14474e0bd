"""Follow each step of an optimizer to its end, also when the step raises an error."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from torch.autograd.profiler import record_function
from torch.optim.optimizer import register_optimizer_step_pre_hook

from gpulab.core.interrupts import Undo
from gpulab.virtual._replaced import Replaced
from gpulab.virtual.simulator import is_owner

End = Callable[[], object]
Begin = Callable[[Any, tuple[object, ...], dict[str, object]], End | None]


class OptimizerSteps:
    """Calls functions when a step of an optimizer begins, and others when it ends.

    PyTorch calls no hook after a step that raised an error. But it runs every step and its hooks
    in a ``with record_function(...)`` block, and that block always ends.
    """

    def __init__(self, replaced: Replaced, undo: Undo) -> None:
        self._undo = undo
        # The blocks that are open now, the innermost last, and what to call when one of them ends.
        self._blocks: list[tuple[record_function, list[End]]] = []
        replaced.put(record_function, self._methods())

    def follow(self, begin: Begin) -> None:
        """Call ``begin`` before each step of this thread, and what it returns after the step."""

        def before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
            if self._blocks and is_owner():
                end = begin(optimizer, args, kwargs)
                if end is not None:
                    self._blocks[-1][1].append(end)

        # One for all optimizers, because each class, also a program's own, has its own ``step``.
        self._undo.callback(register_optimizer_step_pre_hook(before_step).remove)

    def _methods(self) -> dict[str, Any]:
        methods: Any = record_function
        plain_enter, plain_exit = methods.__enter__, methods.__exit__

        @wraps(plain_enter)
        def enter(block: record_function) -> Any:
            if is_owner():
                self._blocks.append((block, []))
            return plain_enter(block)

        @wraps(plain_exit)
        def leave(block: record_function, *error: Any) -> None:
            try:
                plain_exit(block, *error)
            finally:
                if is_owner():
                    self._end(block)

        return {"__enter__": enter, "__exit__": leave}

    def _end(self, block: record_function) -> None:
        # Not always the innermost: a program may end its own blocks in another order.
        for index, (opened, ends) in enumerate(self._blocks):
            if opened is block:
                del self._blocks[index]
                for end in reversed(ends):
                    end()
                return
