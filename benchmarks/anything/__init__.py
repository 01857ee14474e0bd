"""Whatever runs on the current stream can be measured: CuPy, Triton, graphs, training."""
