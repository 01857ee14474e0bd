"""PyTorch's caching allocator on the simulated GPU."""
