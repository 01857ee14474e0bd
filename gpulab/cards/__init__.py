"""The benchmark card: somebody's own benchmark, judged by the driver's records of hidden works."""

from gpulab.cards._card import Card, CardCheck, CardEntry
from gpulab.cards._run import card

__all__ = ["Card", "CardCheck", "CardEntry", "card"]
