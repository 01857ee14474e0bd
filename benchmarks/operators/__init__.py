"""Run every operator of PyTorch's own test database on the virtual GPU and on the CPU."""
