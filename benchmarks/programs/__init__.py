"""Unmodified programs of other people, run on the virtual GPU and on the CPU."""
