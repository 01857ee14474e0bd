"""Every operator of PyTorch's own database on the virtual GPU, held against the CPU."""
