"""Tensors of the virtual GPU, their storages, and which memory they access."""
