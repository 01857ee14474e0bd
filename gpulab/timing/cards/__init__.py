"""The benchmark card: how well your own benchmark times works that it has not seen."""

from gpulab.timing.cards._card import Card
from gpulab.timing.cards._run import card

__all__ = ["Card", "card"]
