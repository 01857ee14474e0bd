"""A small program for a GPU, to play with: edited on its picture, and timed by every method."""

from gpulab.views.machine._explorer import MachineExplorer, machine_explorer

__all__ = ["MachineExplorer", "machine_explorer"]
