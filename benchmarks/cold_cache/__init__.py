"""Which flush makes a GPU's cache cold and clean: times, hardware counters and their page."""
