"""The outcome of calling an operator on the virtual GPU in one form."""

from dataclasses import dataclass

# From the best to the worst; the worst outcome of the samples is the outcome of the call.
KINDS = ("same", "as a GPU", "random", "both refuse", "refused", "differs", "crashes", "died")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an operator's samples of one type in one form.

    Attributes
    ----------
    name
        Name of the operator in the database.
    dtype
        Type of its inputs, such as ``"float32"``.
    form
        ``"forward"``, ``"in place"``, ``"out="`` or ``"backward"``.
    kind
        One of ``KINDS``.
    n_samples
        Number of samples that were tried.
    note
        What differs in the worst sample, or its error message.
    """

    name: str
    dtype: str
    form: str
    kind: str
    n_samples: int = 0
    note: str = ""


def worst(outcomes: "list[Outcome]") -> Outcome:
    """Return the worst of several outcomes of one call."""
    return max(outcomes, key=lambda outcome: KINDS.index(outcome.kind))
