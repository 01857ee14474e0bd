"""What became of one way of calling an operator on the virtual GPU."""

from dataclasses import dataclass

# From the best to the worst; the worst of the samples is that of the call.
KINDS = ("same", "as a GPU", "random", "both refuse", "refused", "differs", "crashes", "died")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an operator's samples of one type in one form.

    Attributes
    ----------
    name
        Of the operator, in the database's words.
    dtype
        Type of its inputs, such as ``"float32"``.
    form
        ``"forward"``, ``"in place"``, ``"out="`` or ``"backward"``.
    kind
        One of ``KINDS``.
    n_samples
        How many were tried.
    note
        Of the worst sample: what differs, or the message.
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
