"""From an operator of PyTorch to the kernels that it would be on a GPU."""
