"""The host's time: record whole programs and single calls on a CUDA GPU, and judge by them."""
