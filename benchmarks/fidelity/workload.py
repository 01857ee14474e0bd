"""One workload of the benchmark: a call of PyTorch, its sizes, and its role in the fit."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from gpulab.device.work import Work

FIT, HELD_OUT, UNSEEN, EARLIER = "fit", "held out", "unseen", "earlier draw"
SAMPLED = "sampled"  # one of thousands to fit the surfaces to


@dataclass(frozen=True, slots=True)
class Workload:
    """One call of PyTorch with its inputs.

    Attributes
    ----------
    role
        ``FIT`` if constants may be fitted to it, ``HELD_OUT`` if only surfaces may, ``UNSEEN`` if
        nobody looked at its errors before the model was final, ``EARLIER`` if it was unseen by an
        earlier model.
    dtype
        A name of torch, or ``"tf32"`` for float32 with TF32 matrix products allowed.
    parameters
        The sizes, by name, and the operator where a function has several.
    """

    role: str
    family: str
    make: Callable[..., Work]
    dtype: str
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name in recordings and tables."""
        sizes = "x".join(str(n) for n in self.parameters.values() if isinstance(n, int))
        words = [str(word) for word in self.parameters.values() if isinstance(word, str)]
        # Functions for many operators have the operator among the parameters, which names them
        # well enough.
        own = self.make.__name__.replace("elementwise", "").replace("along_rows", "")
        return " ".join(filter(None, [own, *words, self.dtype, sizes]))

    def build(self) -> Work:
        """Set up the inputs and return the call."""
        dtype = torch.float32 if self.dtype == "tf32" else getattr(torch, self.dtype)
        return self.make(dtype, **self.parameters)

    @contextmanager
    def precision(self) -> Iterator[None]:
        """Allow TF32 in the block if the workload uses it, and forbid it otherwise."""
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high" if self.dtype == "tf32" else "highest")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)
