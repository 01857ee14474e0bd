"""Compare the virtual GPU with recordings of a real one, workload by workload."""
