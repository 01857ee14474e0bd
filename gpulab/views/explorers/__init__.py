"""Explorers: notebook figures with controls; you choose, slide, and measure with a button."""

from gpulab.views.explorers._explorer import Explorer
from gpulab.views.explorers._open import crossover_explorer, roofline_explorer
from gpulab.views.machine import MachineExplorer, machine_explorer

__all__ = [
    "Explorer",
    "MachineExplorer",
    "crossover_explorer",
    "machine_explorer",
    "roofline_explorer",
]
