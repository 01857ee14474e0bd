"""Ask a GPU what PyTorch's and CUDA's switches do: deterministic algorithms, blocking launches."""
