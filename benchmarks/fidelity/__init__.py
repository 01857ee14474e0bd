"""How close is the virtual GPU? Record a real one, and compare both, workload by workload."""
