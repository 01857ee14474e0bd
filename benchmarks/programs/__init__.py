"""Run other people's unmodified programs on the virtual GPU and on the CPU."""
