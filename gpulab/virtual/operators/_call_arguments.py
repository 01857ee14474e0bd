"""The arguments of an operator call by the names of PyTorch's schema."""

from dataclasses import dataclass
from typing import Any

from gpulab.core.torch_private import arguments_of


@dataclass(frozen=True, slots=True)
class CallArguments:
    """The arguments of a call, by name or position."""

    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __call__(self, wanted: str | int) -> Any:
        """Return an argument, or its default; None if the operator has no such argument."""
        for position, argument in enumerate(arguments_of(self.func)):
            if wanted in {position, argument.name}:
                default = argument.default_value
                value = self.args[position] if position < len(self.args) else default
                return self.kwargs.get(argument.name, value)
        return None


def always(_arguments: CallArguments) -> bool:
    """Return True: what is said of an operator holds for every call."""
    return True
