"""Measure work that is not plain PyTorch: CuPy, Triton, CUDA graphs, a training step."""
