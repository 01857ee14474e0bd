"""Interrupt gpulab at every place, use the same GPU again, and look for damage."""
