"""Which calls of PyTorch wait for the GPU: ask a CUDA GPU or the virtual one, and compare."""
